"""What the last step could gain at most, in words that lead to the number."""

from dataclasses import replace

import numpy as np
import pytest

from gpureport.report.sections.gains.potential_sentence import describe_potential
from gpureport.report.wording.display import GAP
from tests.comparison.runs import compared, level, sampled

FULL = np.full(1200, 100.0)


@pytest.mark.parametrize(
    ("unseen", "idle", "said"),
    [
        (0, 20, "At most 1.25 times as fast without what b loses: idle 20%. "),
        (28, 20, "At most 1.92 times as fast without what b loses: idle 20% and 28% that was not observed"),
        (28, 0, "At most 1.39 times as fast without what b loses: 28% that was not observed and may be lost. "),
        (0, 100, "b lost all of its GPU time."),
        (40, 60, "b lost all of its GPU time that was observed."),
        (0, 0, "b loses hardly any GPU time: only faster computing would help it."),
    ],
)
def test_the_shares_named_add_up_to_the_bound(unseen: float, idle: float, said: str) -> None:
    """Time without samples counts as lost: unnamed, 20% idle would seem to make a job twice as fast."""
    found = compared(sampled("a", util=level(90)), sampled("b", util=FULL))
    left = replace(
        found.remaining, held_gpu_seconds=100.0, unseen_gpu_seconds=float(unseen), lost_gpu_seconds=(("idle", idle),)
    )
    assert describe_potential(replace(found, remaining=left)).startswith(said)


@pytest.mark.parametrize(
    ("idle", "said"),
    [
        (20, "At most 1.67 times as fast without what b loses: idle 20% and 20% in short pauses, which may be lost. "),
        (0, "At most 1.25 times as fast without what b loses: 20% in short pauses, which may be lost. "),
        (80, "What b could still gain is not known: short pauses took 20% of its time, and it lost all the rest."),
    ],
)
def test_short_pauses_are_part_of_the_bound(idle: float, said: str) -> None:
    """They count as work, but all of them may be lost: without them it would be no upper bound."""
    found = compared(sampled("a", util=level(90)), sampled("b", util=level(80)))
    left = replace(found.remaining, held_gpu_seconds=100.0, unseen_gpu_seconds=0.0, lost_gpu_seconds=(("idle", idle),))
    assert describe_potential(replace(found, remaining=left)).replace(GAP, " ").startswith(said)


def test_long_pauses_hide_what_could_be_gained() -> None:
    """A step that computes a quarter of its time, and whose pauses nothing assessed, may gain more than nothing."""
    found = compared(sampled("a", util=level(90)), sampled("b", util=level(24, 20)))
    left = replace(found.remaining, held_gpu_seconds=100.0, unseen_gpu_seconds=0.0, lost_gpu_seconds=())
    said = describe_potential(replace(found, remaining=left))
    assert said.replace(GAP, "").startswith("What b could still gain is not known: short pauses took 76% of its time")

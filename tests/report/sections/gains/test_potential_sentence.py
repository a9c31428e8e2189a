"""What the last step could gain at most, in words that lead to the number."""

from dataclasses import replace

import pytest

from gpureport.report.sections.gains.potential_sentence import describe_potential
from gpureport.report.wording.display import GAP
from tests.comparison.runs import compared, level, sampled


@pytest.mark.parametrize(
    ("pauses", "unseen", "idle", "said"),
    [
        (0, 0, 20, "At most 1.25 times as fast without what b loses: idle 20%. "),
        (0, 28, 20, "At most 1.92 times as fast without what b loses: idle 20% and 28% that was not observed"),
        (0, 28, 0, "At most 1.39 times as fast without what b loses: 28% that was not observed and may be lost. "),
        (0, 0, 100, "b lost all of its GPU time."),
        (0, 40, 60, "b lost all of its GPU time that was observed."),
        (
            30,
            0,
            20,
            "At most 2.00 times as fast without what b loses: idle 20% and short pauses 30%, as far as they are",
        ),
        (50, 0, 50, "What b could still gain is not known: short pauses took 50% of its time."),
        (0, 0, 0, "b loses hardly any GPU time: only faster computing would help it."),
    ],
)
def test_the_shares_named_add_up_to_the_bound(pauses: float, unseen: float, idle: float, said: str) -> None:
    """Time without samples and short pauses count as lost: unnamed, 20% idle would seem to make a job twice as fast."""
    found = compared(sampled("a", util=level(90)), sampled("b", util=level(90)))
    left = replace(
        found.remaining,
        held_gpu_seconds=100.0,
        unseen_gpu_seconds=float(unseen),
        pause_gpu_seconds=float(pauses),
        lost_gpu_seconds=(("idle", idle),),
    )
    assert describe_potential(replace(found, remaining=left)).startswith(said)


def test_long_pauses_hide_what_could_be_gained() -> None:
    """A step that computes a quarter of its time, and whose pauses nothing assessed, may gain more than nothing."""
    found = compared(sampled("a", util=level(90)), sampled("b", util=level(24, 20)))
    left = replace(found.remaining, held_gpu_seconds=100.0, unseen_gpu_seconds=0.0, lost_gpu_seconds=())
    said = describe_potential(replace(found, remaining=left))
    assert said.replace(GAP, "").startswith("What b could still gain is not known: short pauses took 76% of its time")

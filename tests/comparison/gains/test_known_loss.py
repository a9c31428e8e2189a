"""Whether it is known how much GPU time was lost: where it is not, no figure says 0."""

import numpy as np
import pytest

from gpureport.comparison.gains.known_loss import measure_excessive_short_pauses, measure_lost_ratio
from gpureport.testing import Recording, analyze, recording


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ({"computing": 68.0, "short_pauses": 32.0}, 0.32),
        ({"computing": 68.0, "short_pauses": 32.0, "no_job": 500.0, "no_samples": 500.0}, 0.32),
        ({"computing": 71.0, "short_pauses": 29.0}, None),
        ({"computing": 100.0}, None),
        ({"no_samples": 100.0}, None),
        ({}, None),
    ],
    ids=["more than usual", "of what was observed", "usual", "none", "not observed", "no time"],
)
def test_only_more_short_pauses_than_usual_are_a_figure(seconds: dict[str, float], expected: float | None) -> None:
    """A usual share is no zero: it is not given."""
    measured = measure_excessive_short_pauses(seconds)
    assert measured == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (recording(every=0.5, util=[97.0] * 16, power=300.0), None),
        (recording(every=30.0, util=[97.0] * 4, power=300.0), None),
        (recording(util=[97.0] * 300, power=300.0), 0.0),
        (recording(util=[97.0] * 100 + [0.0] * 100 + [97.0] * 100, power=300.0), 1 / 3),
        (recording(util=[97.0] * 100 + [np.nan] * 200, power=300.0), None),
        (recording(every=0.5, util=[60.0, 20.0] * 20, power=300.0), None),
        (recording(every=0.5, util=[70.0, 62.0] * 400 + [0.0] * 60, power=300.0), None),
    ],
    ids=["8 seconds", "4 samples", "nothing", "a gap", "mostly not observed", "short pauses", "pauses and a tail"],
)
def test_a_share_is_given_where_all_of_the_loss_is_known(run: Recording, expected: float | None) -> None:
    """A run too short for a share, and pauses that may all have been lost, are not known; nor is a lower bound."""
    assert measure_lost_ratio(analyze(run)) == (None if expected is None else pytest.approx(expected, abs=0.01))

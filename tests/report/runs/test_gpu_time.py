"""Where the GPU time went, as the report sums it up."""

import pytest

from gpureport.report.runs.gpu_time import measure_excessive_short_pauses


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

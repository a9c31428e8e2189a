"""Differences between steps as changes."""

import pytest

from gpureport.report.wording.differences.changes import _format_points
from gpureport.report.wording.ranges import drop_equal_ends


@pytest.mark.parametrize("interval", ["−43 to −43%", "12 to 12 times", "+1.0 to +1.0\N{NO-BREAK SPACE}points", ""])
def test_an_interval_with_equal_ends_is_left_out(interval: str) -> None:
    """Such an interval only repeats the figure."""
    assert drop_equal_ends(interval) == ""


@pytest.mark.parametrize(
    "interval", ["−53 to −43%", "+1 to +10%", "11 to 12 times", "−1.0 to +1.0\N{NO-BREAK SPACE}points"]
)
def test_an_interval_with_two_ends_stays(interval: str) -> None:
    """Ends that read differently are told."""
    assert drop_equal_ends(interval) == interval


def test_an_interval_of_points_ends_where_a_share_does() -> None:
    """From 23% a share cannot rise by more than 77 points, nor fall by more than 23."""
    gap = "\N{NO-BREAK SPACE}"
    assert _format_points((0.288, 1.128), 0.23) == f"+28.8 to +77.0{gap}points"
    assert _format_points((-0.9, -0.1), 0.23) == f"−23.0 to −10.0{gap}points"
    assert _format_points(None, 0.23) == ""

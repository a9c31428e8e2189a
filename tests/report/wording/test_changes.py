"""Differences between steps as changes."""

import pytest

from gpureport.report.wording.changes import _drop_equal_ends


@pytest.mark.parametrize("interval", ["−43 to −43%", "12 to 12 times", "+1.0 to +1.0\N{NO-BREAK SPACE}points", ""])
def test_an_interval_with_equal_ends_is_left_out(interval: str) -> None:
    """Such an interval only repeats the figure."""
    assert _drop_equal_ends(interval) == ""


@pytest.mark.parametrize(
    "interval", ["−53 to −43%", "+1 to +10%", "11 to 12 times", "−1.0 to +1.0\N{NO-BREAK SPACE}points"]
)
def test_an_interval_with_two_ends_stays(interval: str) -> None:
    """Ends that read differently are told."""
    assert _drop_equal_ends(interval) == interval

"""Intervals in words: both ends, or nothing where they print the same."""

from gpureport.report.wording import display
from gpureport.report.wording.ranges import format_interval


def test_ends_that_print_the_same_are_no_interval() -> None:
    """The figure beside them says it all."""
    assert format_interval((6.981, 6.984), display.number) == ""
    assert format_interval((6.94, 7.03), display.number) == "6.94 to 7.03"
    assert format_interval((0.204, 0.296), lambda share: f"{share * 100:.1f}", "%") == "20.4 to 29.6%"

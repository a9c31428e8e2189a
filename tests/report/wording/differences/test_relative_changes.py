"""Changes as multiples and in per cent."""

import pytest

from gpureport.number_format import MINUS
from gpureport.report.wording.differences import relative_changes


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (0.5426, f"{MINUS}46%"),
        (0.996, f"{MINUS}0.4%"),
        (0.9901, f"{MINUS}1%"),
        (0.9906, f"{MINUS}0.9%"),
        (1.0004, "0%"),
        (1.0, "0%"),
        (1.23, "+23%"),
        (9.5, "+850%"),
        (12.0, "12 times"),
    ],
)
def test_per_cent(ratio: float, text: str) -> None:
    """Whole from 1% on, one decimal below, no sign on nothing, and times from tenfold on."""
    assert relative_changes.format_percent_change(ratio) == text


def test_ends_of_an_interval() -> None:
    """The unit stands once; an end that is nothing has no sign."""
    assert relative_changes.format_percent_range((0.4746, 0.6203)) == f"{MINUS}53 to {MINUS}38%"
    assert relative_changes.format_percent_range((0.872, 1.063)) == f"{MINUS}13 to +6%"
    assert relative_changes.format_percent_range((0.5, 14.0)) == "0.50 to 14 times"
    assert relative_changes.format_times_range((1.612, 2.107)) == "1.61 to 2.11"


@pytest.mark.parametrize(
    ("ratio", "text"), [(1.843, "1.84"), (9.999, "10"), (23.44, "23"), (1_234.5, "1,234"), (341.2, "341")]
)
def test_multiples(ratio: float, text: str) -> None:
    """Three digits, whole from tenfold on."""
    assert relative_changes.format_times(ratio) == f"{text} times"

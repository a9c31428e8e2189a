"""Quantities in a source's unit to base units."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.units import parse_quantity


@pytest.mark.parametrize(
    ("text", "unit", "base", "expected"),
    [
        ("97 %", "", "1", 0.97),
        ("97%", "", "1", 0.97),
        ("97", "%", "1", 0.97),
        ("8192 MiB", "MiB", "By", 8192 * 2**20),
        ("2117MB", "", "By", 2117 * 2**20),
        ("945", "MB/s", "By/s", 945e6),
        ("945 MB", "MB/s", "By/s", None),
        ("58.52 W", "W", "W", 58.52),
        ("58520 mW", "W", "W", 58.52),
        ("1410", "MHz", "Hz", 1.41e9),
        ("38 °C", "C", "Cel", 38),
        ("+27.0", "C", "Cel", 27),
        ("15820333506", "us", "s", 15820.333506),
        ("58.52 W", "%", "1", None),
        ("12025/06/12", "%", "1", None),
        ("", "W", "W", None),
        ("1e5", "W", "W", None),
        ("٣", "W", "W", 3),
    ],
)
def test_quantities(text: str, unit: str, base: str, expected: float | None) -> None:
    """A number with its unit, or with that of its column, in the base unit; anything else is none."""
    assert parse_quantity(text, unit, base) == expected


@given(st.integers(0, 100))
def test_whole_percent_survive(percent: int) -> None:
    """A percentage is the nearest ratio to it, and back."""
    ratio = parse_quantity(f"{percent} %", "", "1")
    assert ratio == percent / 100
    assert round(ratio * 100) == percent

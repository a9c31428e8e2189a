"""The batch of work that figures are for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.report.wording.work_scale import choose_rate_unit, choose_work_scale


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((0.00242, 0.00115), "per million images"),
        ((0.00475, 0.00098), "per million images"),
        ((0.00475, 0.00009), "per billion images"),
        ((40.0, 20.0), "per 1,000 images"),
        ((40_000.0, 20_000.0), "per image"),
        ((0.0, None), "per million images"),
    ],
)
def test_a_million_where_it_fits(values: tuple[float | None, ...], expected: str) -> None:
    """One batch for both sides, in which each lies between 1, or ten cents a million, and 9,999."""
    assert choose_work_scale(values, "images").per == expected


@given(st.floats(1.1e-6, 9e6), st.floats(1.0, 8.0))
def test_both_sides_have_one_scale(value: float, ratio: float) -> None:
    """Whatever the size, both figures can be read."""
    factor = choose_work_scale((value, value / ratio), "images").factor
    assert value * factor < 9_999.5 or value / ratio * factor >= 1


def test_slow_work_is_counted_by_the_minute_or_the_hour() -> None:
    """A rate is not 0.02 a second."""
    assert choose_rate_unit((2.0, 3.0), "images") == (1.0, "images/s")
    assert choose_rate_unit((0.02, 3.0), "images") == (60.0, "images/min")
    assert choose_rate_unit((0.001, None), None) == (3600.0, "units of work/h")

"""Amounts in words: what is held against a limit never reads as what it is not."""

from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.checks import limit_units
from gpureport.checks.limit_units import Quantity
from gpureport.report.wording.display import GAP
from tests.patience import patience

_WORDS = ("%", "s", "min", "h", "GiB", "MiB", "W", "kWh", "°C", "MHz", "g", "kg", "/s", "EUR")


def limit(text: str) -> Quantity:
    """Return an amount that can be read."""
    found = limit_units.parse_quantity(text)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("value", "text", "expected"),
    [
        (7199.0, "2 h", "1.9997 h"),
        (7200.0, "2 h", "2 h"),
        (7230.0, "2 h", "2.01 h"),
        (9000.0, "2 h", "2 h 30 min"),
        (0.05004, "5%", "5.004%"),
        (84.04, "84 °C", "84.04 °C"),
        (3.004, "3 EUR", "3.004 EUR"),
        (9999.999999999998, "10000 EUR", "€10,000"),
        (40.001 * 2**30, "40 GiB", "40.001 GiB"),
    ],
)
def test_what_is_not_its_limit_does_not_read_as_it(value: float, text: str, expected: str) -> None:
    """As many digits as tell the two apart, in the unit in which the limit is written; none where they are equal."""
    assert limit_units.format_against_limit(value, limit(text)).replace(GAP, " ") == expected


@pytest.mark.parametrize("text", ["9" * 60_000 + " x y", "9" * 40_000 + "." + "9" * 40_000 + " a b", "9" * 101])
def test_a_quantity_without_end_is_none(text: str) -> None:
    """A number that takes pages is a mistake, and is found to be one at once."""
    with patience(15):
        assert limit_units.parse_quantity(text) is None


@given(st.decimals(0, 10_000, places=3), st.sampled_from(_WORDS), st.floats(-0.1, 0.1))
def test_a_value_reads_on_its_side_of_a_limit(number: object, word: str, share: float) -> None:
    """Whatever the unit, and however close: what can be read back lies where the value does."""
    bound = limit(f"{number} {word}")
    value = bound.value * (1 + share)
    said = limit_units.format_against_limit(value, bound)
    back = limit_units.parse_quantity(said.replace(GAP, " "))
    if isclose(value, bound.value):
        assert said == limit_units.format_quantity(bound.value, bound.unit, bound.currency)
    elif back is None:
        assert said != limit_units.format_quantity(bound.value, bound.unit, bound.currency)
    else:
        assert (back.value > bound.value, back.value < bound.value) == (value > bound.value, value < bound.value)

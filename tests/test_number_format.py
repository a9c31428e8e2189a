"""Figures as people read them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport import number_format

_SCALED = st.sampled_from([number_format.GPU_TIME, number_format.ENERGY, number_format.THROUGHPUT, number_format.MASS])


def read(text: str) -> float:
    """Return the number that a text begins with."""
    found = re.match(r"[−\d,.]+", text)
    assert found, text
    return float(found[0].replace(",", "").replace("−", "-"))


@given(st.floats(1e-6, 1e9))
def test_three_figures_are_kept(value: float) -> None:
    """A number is printed to half of its third figure, and all figures of a whole number."""
    assert read(number_format.format_number(value)) == pytest.approx(value, rel=0.00501)


@given(st.floats(1e-3, 1e9), st.floats(1e-3, 1e9))
def test_more_never_reads_as_less(one: float, other: float) -> None:
    """Numbers, shares and amounts are printed in their order."""
    low, high = sorted((one, other))
    for shown in (number_format.format_number, number_format.format_money, number_format.format_integer):
        assert read(shown(low)) <= read(shown(high))


@given(_SCALED, st.floats(1.0, 9_999.0), st.integers(0, 2))
def test_a_scaled_figure_lies_between_one_and_ten_thousand(
    units: number_format.Units, amount: float, place: int
) -> None:
    """Whatever the size, the unit is chosen so that the figure never begins with 0.00."""
    text = number_format.format_scaled(amount * units[place + 1][1], units)
    assert 1 <= read(text) < 10_000
    assert not text.startswith("0.0")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (number_format.format_gpu_time(2994), "49.9 GPU-min"),
        (number_format.format_gpu_time(3.484), "3.48 GPU-s"),
        (number_format.format_energy(0.0), "0 Wh"),
        (number_format.format_energy(1800), "500 mWh"),
        (number_format.format_energy(7.2e9), "2.00 MWh"),
        (number_format.format_duration(454), "7 min 34 s"),
        (number_format.format_duration(10_020), "2 h 47 min"),
        (number_format.format_duration(3 * 86_400 + 4 * 3600), "3 days 4 h"),
        (number_format.format_memory(19.6 * 2**30), "19.6 GiB"),
        (number_format.format_clock(1.71e9), "1,710 MHz"),
        (number_format.format_percent(0.0996), "10%"),
        (number_format.format_percent(1e-12), "<0.1%"),
        (number_format.format_percent(0.019), "1.9%"),
        (number_format.format_money(1.148, "USD"), "$1.15"),
        (number_format.format_money(-1.148, "EUR"), "−€1.15"),
        (number_format.format_money(12_345.6, "GBP"), "£12,346"),
        (number_format.format_money(1.148, "CHF"), "1.15 CHF"),
        (number_format.format_money(0.00242), "0.0024"),
        (number_format.format_signed(1372.0), "+1,372"),
        (number_format.format_signed(-0.18), "−0.180"),
        (number_format.format_number(99.96), "100"),
    ],
)
def test_style(text: str, expected: str) -> None:
    """Units, thousands, signs and currencies as English readers write them."""
    assert text == expected


def test_one_figure_prints_one_way() -> None:
    """By microseconds and by what they were rounded from."""
    assert number_format.format_percent(0.325) == number_format.format_percent(0.325000003) == "32%"
    assert number_format.format_number(432.5) == number_format.format_number(432.5000025) == "432"

"""Quantities in a source's unit to base units, and figures as people read them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport import number_format
from gpureport.parsing import parse_quantity, split_numbers

READ = {
    ("97 %", "", "1"): 0.97,
    ("97%", "", "1"): 0.97,
    ("97", "%", "1"): 0.97,
    ("8192 MiB", "MiB", "By"): 8192 * 2**20,
    ("2117MB", "", "By"): 2117 * 2**20,
    ("945", "MB/s", "By/s"): 945e6,
    ("945 MB", "MB/s", "By/s"): None,
    ("58.52 W", "W", "W"): 58.52,
    ("58520 mW", "W", "W"): 58.52,
    ("1410", "MHz", "Hz"): 1.41e9,
    ("38 °C", "C", "Cel"): 38,
    ("+27.0", "C", "Cel"): 27,
    ("15820333506", "us", "s"): 15820.333506,
    ("58.52 W", "%", "1"): None,
    ("12025/06/12", "%", "1"): None,
    ("", "W", "W"): None,
    ("1e5", "W", "W"): None,
    ("٣", "W", "W"): 3,
    **{(f"{percent} %", "", "1"): percent / 100 for percent in range(101)},
}
SHOWN = {
    number_format.format_gpu_time(2994): "49.9 GPU-min",
    number_format.format_gpu_time(3.484): "3.48 GPU-s",
    number_format.format_duration(0.005): "5 ms",
    number_format.format_duration(4.2): "4.2 s",
    number_format.format_duration(125): "2 min 5 s",
    number_format.format_duration(3599.6): "1 h",
    number_format.format_duration(8000): "2 h 13 min",
    number_format.format_duration(3 * 86_400 + 4 * 3600): "3 days 4 h",
    number_format.format_memory(19.6 * 2**30): "19.6 GiB",
    number_format.format_clock(1.71e9): "1,710 MHz",
    number_format.format_percent(0.0996): "10%",
    number_format.format_percent(1e-12): "<0.1%",
    number_format.format_percent(0.019): "1.9%",
    number_format.format_percent(0.004): "0.4%",
    number_format.format_percent(0.325): "32%",
    number_format.format_percent(0.325000003): "32%",
    number_format.format_money(1.148, "USD"): "$1.15",
    number_format.format_money(-1.148, "EUR"): "−€1.15",
    number_format.format_money(12_345.6, "GBP"): "£12,346",
    number_format.format_money(1.148, "CHF"): "1.15 CHF",
    number_format.format_money(0.00242): "0.0024",
    number_format.format_signed(1372.0): "+1,372",
    number_format.format_signed(-0.18): "−0.180",
    number_format.format_number(99.96): "100",
    number_format.format_number(432.5): "432",
    number_format.format_number(432.5000025): "432",
}
SCALED = [number_format.GPU_TIME, number_format.ENERGY, number_format.THROUGHPUT, number_format.MASS]


def read(text: str) -> float:
    found = re.match(r"[−\d,.]+", text)
    assert found, text
    return float(found[0].replace(",", "").replace("−", "-"))


def test_quantities_are_read_and_written() -> None:
    assert {key: parse_quantity(*key) for key in READ} == READ
    assert {shown: expected for shown, expected in SHOWN.items() if shown.replace("\xa0", " ") != expected} == {}


@given(st.floats(1e-6, 1e9), st.floats(1e-3, 1e9), st.sampled_from(SCALED), st.integers(0, 2))
def test_figures_keep_three_digits_and_their_order(
    value: float, other: float, units: number_format.Units, place: int
) -> None:
    assert read(number_format.format_number(value)) == pytest.approx(value, rel=0.00501)
    low, high = sorted((max(value, 1e-3), other))
    for shown in (number_format.format_number, number_format.format_money, number_format.format_integer):
        assert read(shown(low)) <= read(shown(high))
    amount = min(max(other, 1.0), 9_999.0)
    assert 1 <= read(number_format.format_scaled(amount * units[place + 1][1], units)) < 10_000


def test_numbers_in_names_sort_as_numbers() -> None:
    wanted = ["gpu", "gpu:0", "gpu:2", "gpu:010", "gpu:11", f"gpu:{'9' * 5000}", "node_1/gpu:3", "node_2/gpu:0"]
    assert sorted(set(wanted), key=split_numbers) == wanted

"""Numbers as people read them, one table for each form; held where they are made, as no page holds them all."""

from collections.abc import Callable
from typing import Any

import pytest

from gpureport.report.wording import differences, display, scales

FORMS: dict[str, tuple[Callable[..., str], dict[Any, str]]] = {
    "share": (
        display.percent,
        {0.0: "0%", 0.0003: "<0.1%", 0.0451: "4.5%", 0.36: "36%", 0.9961: "99.6%", 0.9999: "100%", 1.0: "100%"},
    ),
    "points": (display.percentage_points, {-0.28: "−28.0 points", 0.041: "+4.1 points", -0.0001: "0.0 points"}),
    "number": (
        display.number,
        {0.0: "0", 0.000_028_46: "0.0000285", 0.0415: "0.0415", 0.333_33: "0.333", 1e9: "1,000,000,000"},
    ),
    "time": (display.duration, {4.25: "4.2 s", 59.4: "59 s", 59.6: "1 min", 3725: "1 h 2 min", 93_720: "26 h 2 min"}),
    "elapsed": (display.elapsed, {61: "0:01:01", 90_061: "25:01:01"}),
    "GPU time": (
        display.gpu_time,
        {0.5: "500 GPU-ms", 1.0: "1.00 GPU-s", 600: "10.0 GPU-min", 5400: "1.50 GPU-h", 18e6: "5,000 GPU-h"},
    ),
    "energy": (display.energy, {36: "10.0 mWh", 3600: "1.00 Wh", 7_200_000: "2.00 kWh", 3.6e10: "10.0 MWh"}),
    "memory": (display.memory, {0: "0 MiB", 2**20: "1 MiB", 2**29: "512 MiB", 22.14 * 2**30: "22.1 GiB"}),
    "change of memory": (scales.MEMORY.format_signed, {-(2**20): "−1.0 MiB"}),
    "clock": (display.clock, {1.965e9: "1,965 MHz"}),
    "temperature": (display.temperature, {87.0: "87 °C"}),
    "power": (display.power, {612.4: "612 W"}),
    "count": (display.integer, {1_234_567: "1,234,567"}),
    "bytes per second": (lambda value: display.quantity(value, "By/s"), {5.5 * 2**20: "5.77 MB/s"}),
    "ratio": (lambda value: display.quantity(value, "1"), {0.05: "5%", 3.5: "3.50 times"}),
    "change": (differences.format_percent_change, {0.48: "−52%", 1.0: "0%", 1.1: "+10%", 2.12: "+112%"}),
    "times": (differences.format_times, {1.84: "1.84 times", 12.0: "12 times"}),
    "interval": (display.drop_equal_ends, {"45 to 45%": "", "45 to 58%": "45 to 58%"}),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_number_in_its_form(name: str) -> None:
    write, table = FORMS[name]
    assert {value: write(value).replace(display.GAP, " ") for value in table} == table


def test_what_was_not_recorded_is_never_zero() -> None:
    assert display.or_not_recorded(None, display.percent) == "not recorded"
    assert display.or_not_recorded(0.0, display.percent) == "0%"

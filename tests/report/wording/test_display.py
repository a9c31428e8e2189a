"""Numbers and names as people read them."""

import math

import pytest

from gpureport.report.wording import display, scales


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (display.percent(0.0), "0%"),
        (display.percent(0.0003), "<0.1%"),
        (display.percent(0.0451), "4.5%"),
        (display.percent(0.36), "36%"),
        (display.percent(0.9961), "99.6%"),
        (display.percent(1.0), "100%"),
        (display.percentage_points(-0.28), "−28.0 points"),
        (display.percentage_points(0.041), "+4.1 points"),
        (display.percentage_points(-0.0001), "0.0 points"),
        (display.signed(0.00001), "+0.0000100"),
        (display.number(0.0), "0"),
        (display.number(0.000_028_46), "0.0000285"),
        (display.number(0.0415), "0.0415"),
        (display.number(0.333_33), "0.333"),
        (display.number(52_000.0), "52,000"),
        (scales.NUMBERS.format_signed(-0.000_28), "−0.000280"),
        (scales.MEMORY.format_signed(-(2**20)), "−1.0 MiB"),
        (display.duration(4.25), "4.2 s"),
        (display.duration(59.4), "59 s"),
        (display.duration(59.6), "1 min"),
        (display.duration(3725), "1 h 2 min"),
        (display.elapsed(90_061), "25:01:01"),
        (display.gpu_time(5400), "1.50 GPU-h"),
        (display.gpu_time(1.0), "1.00 GPU-s"),
        (display.memory(2**29), "512 MiB"),
        (display.memory(22.14 * 2**30), "22.1 GiB"),
        (display.quantity(5.5 * 2**20, "By/s"), "5.77 MB/s"),
        (display.clock(1.965e9), "1,965 MHz"),
        (display.temperature(87.0), "87 °C"),
        (display.power(612.4), "612 W"),
        (display.energy(7_200_000), "2.00 kWh"),
        (display.integer(1_234_567), "1,234,567"),
        (display.quantity(0.05, "1"), "5%"),
        (display.quantity(30, "rows"), "30 rows"),
        (display.quantity(3.5, "1"), "3.50 times"),
    ],
)
def test_units_of_people(shown: str, expected: str) -> None:
    """Every base unit has the unit people use."""
    assert shown.replace(display.GAP, " ") == expected


def test_nearly_all_has_no_decimal_of_its_own() -> None:
    """A decimal that says nothing is left out."""
    assert display.percent(0.9998) == display.percent(1.0)


def test_absent_is_never_zero() -> None:
    """None and NaN are not recorded; zero is a value."""
    assert display.quantity(None, "W") == "not recorded"
    assert display.quantity(math.nan, "1") == "not recorded"
    assert display.or_not_recorded(None, display.percent) == "not recorded"
    assert display.or_not_recorded(0.0, display.power).replace(display.GAP, " ") == "0 W"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain name", "plain name"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07shown", "shown"),
        ("two\nlines\tand\r\nmore", "two lines and more"),
        ("bell\x07 null\x00 back\x08space", "bell null backspace"),
        ("right\u202eto left", "rightto left"),
        ("half\ud800pair", "halfpair"),
        ("日本語 µs", "日本語 µs"),
    ],
)
def test_text_from_logs_cannot_steer_a_terminal(text: str, expected: str) -> None:
    """Escape codes and control characters go, readable text stays."""
    assert display.clean(text) == expected


def test_words_in_a_sentence() -> None:
    """Lists and plurals read as English."""
    assert display.join_words(["a", "b", "c"]) == "a, b and c"
    assert display.join_words(["a"]) == "a"
    assert display.plural(1, "finding") == "1 finding"
    assert display.plural(2, "finding") == "2 findings"
    assert display.shorten("a long name indeed", 7) == "a long…"
    assert display.shorten_middle("a-long-node-name GPU 0", 13) == "a-long…GPU 0"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.0, "", "1"),
        (18.0, "rows", "18 rows"),
        (2.5, "rows", "2.50 rows"),
        (16.0, "cores", "16 cores"),
        (1.0, "cores", "1 core"),
        (0.02, "cores", "0.0200 cores"),
    ],
)
def test_what_is_counted_has_no_decimals(value: float, unit: str, text: str) -> None:
    """One error is 1, generation 3 is 3."""
    assert display.quantity(value, unit).replace(display.GAP, " ") == text


def test_a_headline_ends_where_a_sentence_does() -> None:
    """Not at the full stop in a name; a short text is a headline as it is."""
    long = f"From list 1. one to {'b' * 140}, it changed. It went from 1 to 2. Beside it, nothing."
    first = f"From list 1. one to {'b' * 140}, it changed."
    assert display.headline(long) == (first, "It went from 1 to 2. Beside it, nothing.")
    assert display.headline("It changed. It went from 1 to 2.") == ("It changed. It went from 1 to 2.", "")

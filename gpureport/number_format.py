"""Formats numbers for people: `52%`, `1,372`, `49.9 GPU-min`, `−3.2`, `$1.15`.

Numbers have three significant figures, commas for thousands and a true minus sign. A quantity is shown in the unit that
puts it between 1 and 9,999. Units follow a plain space, which `report.wording.display` replaces with a no-break space.
"""

import math
import re
from collections.abc import Sequence
from functools import partial

MINUS = "\N{MINUS SIGN}"
NOT_RECORDED = "not recorded"
Units = Sequence[tuple[str, float]]
"""Units of a quantity in descending order, each with its name and its size in base units."""
GPU_TIME: Units = (("GPU-h", 3600.0), ("GPU-min", 60.0), ("GPU-s", 1.0), ("GPU-ms", 0.001))
ENERGY: Units = (("MWh", 3.6e9), ("kWh", 3.6e6), ("Wh", 3600.0), ("mWh", 3.6))
MASS: Units = (("t", 1e6), ("kg", 1e3), ("g", 1.0), ("mg", 1e-3))
THROUGHPUT: Units = (("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3), ("B/s", 1.0))
_SYMBOLS = {"USD": "$", "EUR": "€", "GBP": "£", "$": "$", "€": "€", "£": "£", "¥": "¥"}
"""Symbols that precede an amount. The codes of other currencies follow the amount."""
_FIGURES = 3
_FINEST = 1e-9  # Magnitude below which a number is a rounding error.
_MINUTE, _HOUR, _DAYS_FROM = 60, 3600, 48 * 3600  # Beyond two days, days are easier to read than hours.
_FEW_SECONDS, _SHORT, _SHORTEST = 10, 0.1, 0.0005
"""Seconds below which a duration has a decimal place, and the range of seconds shown in ms."""
_SMALL_SHARE, _LEAST_SHARE = 10, 0.05  # percentages below which shares have a decimal place, or would round to 0.0%
_MANY = 10_000
_DIGIT = re.compile("[1-9]")


def format_integer(value: float) -> str:
    return _with_sign(f"{value:,.0f}")


def count_decimals(value: float, figures: int = _FIGURES) -> int:
    size = abs(value)
    if size < _FINEST or not math.isfinite(size):
        return 0
    return max(0, figures - 1 - math.floor(math.log10(float(f"{size:.{figures - 1}e}"))))


def format_number(value: float) -> str:
    """Return a number with three significant figures, without rounding digits before the decimal point."""
    if not math.isfinite(value):
        return NOT_RECORDED
    if abs(value) < _FINEST:
        return "0"
    decimals = count_decimals(value)
    # different ways of computing a number must print the same text
    return _with_sign(f"{round(value, decimals + 3):,.{decimals}f}")


def format_signed(value: float) -> str:
    return add_sign(format_number(value))


def add_sign(text: str) -> str:
    """Return a formatted number with a plus sign unless it is negative or rounds to zero."""
    signed = _with_sign(text.replace(MINUS, "-"))
    return signed if signed.startswith(MINUS) or not _DIGIT.search(signed) else f"+{signed}"


def _with_sign(text: str) -> str:
    return text.replace("-", MINUS if _DIGIT.search(text) else "", 1)


def choose_unit(value: float, units: Units) -> tuple[str, float]:
    return next((unit for unit in units if abs(value) >= unit[1]), units[-1])


def format_scaled(value: float, units: Units) -> str:
    name, size = choose_unit(value, units) if value else units[min(2, len(units) - 1)]
    return f"{format_number(value / size)} {name}"


format_gpu_time, format_energy = partial(format_scaled, units=GPU_TIME), partial(format_scaled, units=ENERGY)


def format_percent(ratio: float) -> str:
    """Return a ratio as a percentage, with a decimal below 10%."""
    # rounded as in format_number
    points = round(100 * ratio, 6)
    if ratio and abs(points) < _LEAST_SHARE:
        return "<0.1%"
    return f"{_with_sign(f'{points:.1f}' if 0 < abs(points) < _SMALL_SHARE - _LEAST_SHARE else f'{points:.0f}')}%"


def format_duration(seconds: float) -> str:
    """Return a duration in its two largest units, such as `7 min 34 s`, without zero parts."""
    if _SHORTEST <= seconds < _SHORT:
        return f"{1000 * seconds:.0f} ms"
    if round(seconds, 1) < _FEW_SECONDS:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    if round(seconds) < _HOUR:
        amounts, units = divmod(round(seconds), _MINUTE), ("min", "s")
    elif round(seconds) < _DAYS_FROM:
        amounts, units = divmod(round(seconds / _MINUTE), 60), ("h", "min")
    else:
        amounts, units = divmod(round(seconds / _HOUR), 24), ("days", "h")
    return " ".join(f"{format_integer(amount)} {unit}" for amount, unit in zip(amounts, units, strict=True) if amount)


def format_memory(size: float) -> str:
    """Return bytes in GiB with one decimal, or in whole MiB below 1 GiB."""
    if abs(size) >= 2**30:
        return f"{_with_sign(f'{size / 2**30:,.1f}')} GiB"
    return f"{_with_sign(f'{size / 2**20:.0f}')} MiB"


def format_clock(hertz: float) -> str:
    return f"{format_integer(hertz / 1e6)} MHz"


def format_money(amount: float, currency: str = "") -> str:
    """Return `$1.15`, `1.15 CHF` or `1.15`. Small amounts keep two significant figures."""
    size, symbol = abs(amount), _SYMBOLS.get(currency, "")
    decimals = 0 if round(size, 2) >= _MANY else max(2, count_decimals(size, 2))
    text = f"{MINUS if amount < 0 and size >= _FINEST else ''}{symbol}{size:,.{decimals}f}"
    return text if symbol or not currency else f"{text} {currency}"

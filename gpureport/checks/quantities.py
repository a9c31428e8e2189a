"""Quantities as a person writes them (`5%`, `10 min`, `80 GiB`, `3 EUR`), in base units and back."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import isclose, isfinite

from gpureport.parsing import UNITS, Unit
from gpureport.report.wording import display

SHARE, POINTS, TIME, MONEY, FINDINGS, COUNT, NUMBER = "1", "points", "s", "currency", "findings", "", "number"
"""Units of quantities besides the base units of metrics."""

_DECIMALS = 13
"""Enough decimals to show any difference that is not a rounding error."""

_LONGEST = 100
"""Characters of a quantity at most; the pattern takes as long as their square."""
_QUANTITY = re.compile(r"([+-]?(?:\d+(?:[.,]\d+)?|[.,]\d+))\s*(\S+)?")
_AMBIGUOUS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
"""A number whose comma may stand for thousands or for decimals."""
_CURRENCY = re.compile(r"[A-Z]{3}|[€$£¥]")
_SECONDS = {"min": 60, "h": 3600, "d": 86_400, "GPU-s": 1, "GPU-min": 60, "GPU-h": 3600}
# nvidia-smi says MB where it means MiB, a person does not
_UNITS = {name: unit for name, unit in UNITS.items() if name != "MB"} | {
    "points": Unit(POINTS, 1, 100),
    "point": Unit(POINTS, 1, 100),
    "findings": Unit(FINDINGS, 1),
    "finding": Unit(FINDINGS, 1),
    "GB": Unit("By", 10**9),
    "GB/s": Unit("By/s", 10**9),
    "Wh": Unit("J", 3600),
    "kWh": Unit("J", 3_600_000),
    "kJ": Unit("J", 1000),
    "MJ": Unit("J", 10**6),
    "g": Unit("g", 1),
    "kg": Unit("g", 1000),
    "/s": Unit("1/s", 1),
    **{name: Unit(TIME, seconds) for name, seconds in _SECONDS.items()},
}
_EXAMPLES = {
    SHARE: "a share such as 5%",
    POINTS: "points such as 2 points",
    TIME: "a time such as 10 min",
    MONEY: "money such as 3 EUR",
    FINDINGS: "a number of findings such as 3",
    COUNT: "a number such as 3",
    "By": "a size such as 80 GiB",
    "By/s": "a rate such as 12 GB/s",
    "W": "a power such as 300 W",
    "J": "an energy such as 2 kWh",
    "Cel": "a temperature such as 85 °C",
    "Hz": "a clock such as 1,500 MHz",
    NUMBER: "a number such as 0.78",
    "g": "a mass such as 2 kg",
    "1/s": "a rate such as 40 /s",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A number in its base unit (or a unit above, money with its currency), and the text that stated it."""

    value: float
    unit: str
    currency: str = ""
    text: str = ""


def parse_quantity(text: str) -> Quantity | None:
    """Return the quantity that a text states; None if it states none."""
    match = _QUANTITY.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    if match is None or _AMBIGUOUS.fullmatch(match[1]):
        return None
    number, word = float(match[1].replace(",", ".")), match[2] or ""
    is_money = _CURRENCY.fullmatch(word)
    unit = Unit(MONEY, 1) if is_money else _UNITS.get(word)
    if unit is None or not isfinite(unit.to_base(number)):
        return None
    currency = word if is_money else ""
    return Quantity(value=unit.to_base(number), unit=unit.base, currency=currency, text=_join(match[1], word))


def describe_unit(unit: str) -> str:
    """Return what a quantity of a unit is, with an example."""
    return _EXAMPLES.get(unit, f"a number of {unit}")


def format_quantity(value: float, unit: str, currency: str = "") -> str:
    """Return a quantity in words."""
    if unit == POINTS:
        return display.percentage_points(value)
    if unit == MONEY:
        return display.money(value, currency)
    if unit == NUMBER:
        return display.number(value)
    if unit == FINDINGS:
        return display.plural(round(value), "finding")
    return display.integer(value) if unit == COUNT else display.quantity(value, unit)


def format_against_limit(value: float, limit: Quantity, words: Callable[[float], str] | None = None) -> str:
    """Return a quantity, in the unit of a limit, in words that read as the limit only where it equals it.

    If both would read the same, the unit of the limit is used, with enough decimals to differ.
    """
    read = words or (lambda each: format_quantity(each, limit.unit, limit.currency))
    parts = _QUANTITY.fullmatch(limit.text)
    word = parts[2] or "" if parts else ""
    text, at_limit = read(value), read(limit.value)
    if isclose(value, limit.value):
        # a hair below 10 000 would print as 10000.00
        rounded = (shown := parse_quantity(at_limit)) and not isclose(shown.value, limit.value)
        return _join(parts[1], word, gap=display.GAP) if parts and rounded else at_limit
    if text != at_limit:
        return text
    scale = _UNITS.get(word, Unit(limit.unit, 1)).to_base(1)
    return _join(_format_distinct(value / scale, limit.value / scale), word, gap=display.GAP)


def _join(number: str, unit: str, gap: str = " ") -> str:
    """Return a number with its unit, a per cent sign without a space."""
    return f"{number}{'' if unit == '%' else gap}{unit}".rstrip()


def _format_distinct(value: float, other: float) -> str:
    """Return a number with the fewest decimals that show on which side of another it is."""
    for decimals in range(_DECIMALS):
        text = f"{value:.{decimals}f}"
        if (float(text) > other) == (value > other) and not isclose(float(text), other):
            return text
    return str(value)

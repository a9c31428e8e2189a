"""Numbers as wrapper scripts write them: `+27.0°C`, `38 °C`, `1,024`, `2117MB`."""

import re

from gpureport.importers.values import quantities
from gpureport.units import UNITS

_QUANTITY = re.compile(
    r"([+-]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*(%|°?[A-Za-z]+(?:/s)?)?",
    re.ASCII,
)
_SPELLINGS = {"celsius": "C", "watt": "W", "watts": "W", "mb": "MB", "mib": "MiB", "gb": "GiB", "GB": "GiB", "w": "W"}
"""Units in other spellings; GB are those of a card, of 1024³ bytes, as MB are."""


def use_decimal_point(cell: str) -> str:
    """Return a cell of a table parted by semicolons with a dot as its decimal sign, as spreadsheets mean its comma.

    Several commas, or one above a dot, part thousands.
    """
    whole, comma, decimals = cell.rpartition(",")
    if not comma or "," in whole or "." in decimals:
        return cell
    return f"{whole.replace('.', '')}.{decimals}"


def parse_loose_quantity(cell: str, unit: str, metric: str) -> float | int | None:
    """Return what a cell says of a metric in its base unit, None when it is no value of it.

    Args:
        cell: a number; a unit of its own wins.
        unit: unit of a number without one.
        metric: name of the metric.
    """
    match = _QUANTITY.fullmatch(cell.strip())
    if match is None:
        return None
    written = match[2] or unit
    written = _SPELLINGS.get(written, _SPELLINGS.get(written.lower(), written))
    if written not in UNITS or UNITS[written].base != UNITS[unit].base:
        return None
    number = quantities.parse_finite(match[1].replace(",", ""))
    return None if number is None else quantities.convert_to_base(number, written, metric)

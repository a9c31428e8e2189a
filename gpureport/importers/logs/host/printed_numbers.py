"""Numbers as sysstat and top write them: with a decimal point or comma, and with a unit where people read them."""

import re

_FIGURE = re.compile(r"(-?\d{1,18}(?:[.,]\d{1,18})?)([%kKmMgGtT]?)", re.ASCII)
_POWERS = {"k": 1, "m": 2, "g": 3, "t": 4}
KIB = 1024
LARGEST = 2.0**62
"""Bytes beyond any machine's, which no column holds."""


def parse_number(text: str) -> float | None:
    """Return a number, None where the text is none; a sign of per cent behind it is allowed."""
    match = _FIGURE.fullmatch(text)
    return float(match[1].replace(",", ".")) if match and match[2] in {"", "%"} else None


def parse_size(text: str) -> float | None:
    """Return an amount in bytes, None where the text is none; without a unit it counts KiB."""
    match = _FIGURE.fullmatch(text)
    if match is None or match[2] == "%":
        return None
    value = float(match[1].replace(",", ".")) * float(KIB ** _POWERS.get(match[2].lower(), 1))
    return value if value < LARGEST else None


def parse_percent(text: str) -> float | None:
    """Return a share, None where the text is no percentage from 0 on."""
    value = parse_number(text)
    return value / 100 if value is not None and value >= 0 else None

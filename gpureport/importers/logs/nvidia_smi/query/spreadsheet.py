"""Logs that a spreadsheet saved with semicolons, where the comma is the decimal sign: what their cells leave open."""

import re
from collections.abc import Sequence

from gpureport.importers.delimited.layout import Layout
from gpureport.importers.values.cells import GROUPED

_SLASHED = re.compile(r"(\d{1,2})/\d{1,2}/\d{4} ")
_COMMA = re.compile(r"\d,\d")
_DOTTED = re.compile(r"\d+\.\d+")
_WHOLE = re.compile(r"[\d.]+ ?(?:MiB|MHz)")
"""Quantities that nvidia-smi writes without decimals."""
_LAST_MONTH = 12


def has_grouped_thousands(lines: Sequence[str], layout: Layout) -> bool:
    """Return whether dots part the thousands of numbers.

    They do where another number has a decimal comma, or where nvidia-smi writes no decimals; not where a number has a
    dot in another place.

    Args:
        lines: the first lines of a log.
        layout: its columns.
    """
    rows = [line.split(";") for line in lines] if layout.delimiter == ";" else []
    numbers = [
        cell.strip()
        for row in rows
        for cell, column in zip(row, layout.columns, strict=False)
        if column.number is not None and len(row) == len(layout.columns)
    ]
    dotted = [cell for cell in numbers if _DOTTED.match(cell)]
    if not dotted or not all(map(GROUPED.match, dotted)):
        return False
    return any(map(_WHOLE.fullmatch, dotted)) or any(map(_COMMA.search, numbers))


def describe_slashed_dates(lines: Sequence[str]) -> str:
    """Return what a reader must know of dates with slashes, empty where their days cannot be months."""
    found = [match for line in lines for match in _SLASHED.finditer(line)]
    if not found or any(int(match[1]) > _LAST_MONTH for match in found):
        return ""
    return f"Dates such as {found[0][0].strip()} are read as day/month/year; the log does not tell."

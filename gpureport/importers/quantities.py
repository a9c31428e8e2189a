"""Numbers of sources other than nvidia-smi as values of the series; None where the metric cannot have the value."""

import math
import re

import numpy as np

from gpureport.metrics import BY_NAME
from gpureport.parsing import MOST, UNITS

_ROUNDING = 1e-6
"""By how much a mean of parts of a whole may exceed it."""
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_NONE = {"", "nan", "n/a", "-", "null", "none"}


def parse_number(cell: object) -> float | None:
    """Return the finite number a cell of text or JSON holds, None when it holds none."""
    if isinstance(cell, str):
        # float() keeps separators of ASCII that strip() takes for white space
        text = cell.strip()
        return parse_finite(text) if _NUMBER.fullmatch(text) else None
    return parse_finite(cell) if isinstance(cell, int | float) and not isinstance(cell, bool) else None


def parse_finite(cell: float | str) -> float | None:
    """Return a number as a finite float, None when it is too large to be one."""
    try:
        value = float(cell)
    except OverflowError:
        return None
    return value if math.isfinite(value) else None


def parse_quantity(cell: object, unit: str, metric: str) -> float | int | None:
    """Return the value of a cell in the base unit of its metric, None when the metric cannot have it.

    Args:
        cell: a number, or text that is one without a unit.
        unit: unit it counts in, of `parsing.UNITS`.
        metric: name of the metric.
    """
    found = parse_number(cell)
    return None if found is None else convert_to_base(found, unit, metric)


def convert_to_base(found: float, unit: str, metric: str) -> float | int | None:
    """Return a number of a unit as a value of a metric in its base unit, None when the metric cannot have it."""
    wanted = BY_NAME[metric]
    converted = UNITS[unit].to_base(found)
    if abs(converted) >= MOST or (converted < 0 and wanted.unit != "Cel"):
        return None
    if wanted.unit == "1" and not wanted.may_exceed_one and converted > 1:
        return 1.0 if converted <= 1 + _ROUNDING else None
    if "int" not in wanted.dtype:
        return converted
    whole = round(converted)
    return whole if whole <= np.iinfo(wanted.dtype).max else None


def absence_word(cell: object) -> str | None:
    """Return the word of a cell that stands for no value, None for any other cell."""
    text = "null" if cell is None else str(cell).strip()
    return (text or "empty") if text.lower() in _NONE else None


def describe_absence(cell: object) -> str:
    """Return why a cell holds no value of its metric."""
    return absence_word(cell) or "no value it can have"

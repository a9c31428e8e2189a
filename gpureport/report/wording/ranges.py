"""The least and the most of several figures in words, with the unit said once: `16 to 25 s`."""

import re
from collections.abc import Callable, Iterable

from gpureport import number_format
from gpureport.report.wording import display

_MOST = 1000
"""Number above which the larger unit reads better."""

_NUMBER = re.compile(r"([−-]?\d[\d.,]*)(\D*)")
"""A number and its unit; a length of two units (`1 min 21 s`) does not match."""


def format_range(values: Iterable[float], show: Callable[[float], str]) -> str:
    """Return the least and the most of some values as `show` prints one; a single text where both print the same.

    Args:
        values: at least one.
        show: prints a value with its unit.
    """
    known = list(values)
    least, most = show(min(known)), show(max(known))
    if least == most:
        return most
    low, high = _NUMBER.fullmatch(least), _NUMBER.fullmatch(most)
    return f"{low[1]} to {most}" if low and high and low[2] == high[2] else f"{least} to {most}"


def format_interval(ends: tuple[float, float], show: Callable[[float], str], unit: str = "") -> str:
    """Return both ends of an interval, the unit said once; empty where both print the same: the figure says it all."""
    low, high = map(show, ends)
    return "" if low == high else f"{low} to {high}{unit}"


def drop_equal_ends(interval: str) -> str:
    """Return an interval in words; empty where both ends read alike, for then the figure says it all."""
    low, _, high = interval.partition(" to ")
    return "" if high.removesuffix("%").removesuffix(" times").partition(display.GAP)[0] == low else interval


def format_gpu_time_range(seconds: Iterable[float]) -> str:
    """Return the least and the most of GPU time, both in the unit of the least: `55.3 to 67.2 GPU-s`."""
    known = list(seconds)
    units = [number_format.choose_unit(pick(known), number_format.GPU_TIME) for pick in (min, max)]
    name, size = units[0] if max(known) / units[0][1] < _MOST else units[1]
    return format_range(known, lambda each: f"{number_format.format_number(each / size)}{display.GAP}{name}")

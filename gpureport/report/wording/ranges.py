"""The least and the most of several figures in words, with the unit said once: `16 to 25 s`."""

import re
from collections.abc import Callable, Iterable

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

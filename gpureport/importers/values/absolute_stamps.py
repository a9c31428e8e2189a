"""Time stamps that name their moment whatever the zone: seconds since 1970, or a date and a time with an offset."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from gpureport.columns import BoolArray, IntArray
from gpureport.importers.values import timestamps

_LOOKED_AT = 100
"""Stamps that show what all of a log are."""


def are_absolute(texts: Iterable[str]) -> bool:
    """Return whether most of the first stamps of a log are absolute: a damaged one does not decide."""
    first = [text for _, text in zip(range(_LOOKED_AT), texts, strict=False)]
    return 2 * sum(_micros(text) is not None for text in first) > len(first)


def parse(texts: Any) -> tuple[IntArray, BoolArray]:
    """Return microseconds since 1970-01-01 UTC, and where the text is such a stamp."""
    found = [_micros(text) for text in texts.to_pylist()]
    good = np.array([micros is not None for micros in found], dtype=np.bool_)
    return np.array([micros or 0 for micros in found], dtype=np.int64), good


def _micros(text: str) -> int | None:
    moment = timestamps.parse_timestamp(text.strip())
    return moment.micros if moment is not None and moment.utc else None

"""Bounds the memory of what the series of a run keep: what was made first goes first, and is made again when needed."""

from collections import deque
from collections.abc import Hashable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from gpureport import columns

MOST_BYTES = 2**30
"""Bytes that the arrays of all devices of a run may take: those of eight GPUs for two days at a sample a second."""


class ArrayCache:
    """The arrays that several series keep, in the order in which they were made."""

    def __init__(self, most_bytes: int | None = None) -> None:
        """Take the bytes that they may take together; `MOST_BYTES` when None."""
        self._most = MOST_BYTES if most_bytes is None else most_bytes
        self._bytes = 0
        self._kept: deque[tuple[dict[Hashable, Any], Hashable, int]] = deque()

    def keep(self, memo: dict[Hashable, Any], key: Hashable, value: Any) -> None:  # noqa: ANN401 - whatever a series keeps
        """Put a value into the memo of a series; take the oldest arrays out of theirs where all are too many."""
        memo[key] = value
        size = _count_bytes(value)
        if size:
            self._kept.append((memo, key, size))
            self._bytes += size
        while self._bytes > self._most and len(self._kept) > 1:
            owner, oldest, freed = self._kept.popleft()
            owner.pop(oldest, None)
            self._bytes -= freed


def _count_bytes(value: Any) -> int:  # noqa: ANN401 - as above
    """Return the bytes of the arrays that a value is, or holds; one of a single value takes none."""
    if isinstance(value, tuple):
        return sum(map(_count_bytes, value))
    if is_dataclass(value):
        return sum(_count_bytes(getattr(value, field.name)) for field in fields(value))
    if isinstance(value, pa.ChunkedArray):
        return int(value.nbytes)
    return value.nbytes if isinstance(value, np.ndarray) and not (len(value) and columns.is_constant(value)) else 0

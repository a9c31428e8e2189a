"""Bounds the memory of what all series keep: what was made first goes first, and is made again when needed."""

from collections import deque
from collections.abc import Hashable
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any
from weakref import ref

import numpy as np

from gpureport import columns

MOST_BYTES = 2**30
"""Bytes that the arrays of all series may take: those of eight GPUs for two days at a sample a second."""


class Memo(dict[Hashable, Any]):
    """What one series keeps, by what it is."""


class ArrayCache:
    """The arrays that series keep, in the order in which they were made."""

    def __init__(self) -> None:
        self._bytes = 0
        self._made: deque[tuple[ref[Memo], Hashable, int]] = deque()

    def keep(self, memo: Memo, key: Hashable, value: Any) -> None:
        """Put a value into the memo of a series; take the oldest arrays out of theirs where all are too many."""
        memo[key] = value
        size = _count_bytes(value)
        if size:
            self._made.append((ref(memo), key, size))
            self._bytes += size
        while self._bytes > MOST_BYTES and len(self._made) > 1:
            owner, oldest, freed = self._made.popleft()
            self._bytes -= freed
            if (memo_of_oldest := owner()) is not None:
                memo_of_oldest.pop(oldest, None)


CACHE = ArrayCache()
"""The arrays of all series, of whichever run."""


def _count_bytes(value: Any) -> int:
    """Return the bytes of the arrays that a value is, or holds; one of a single value takes none."""
    if isinstance(value, np.ndarray):
        is_shared = len(value) > 0 and columns.is_constant(value)
        return 0 if is_shared else value.nbytes
    if isinstance(value, tuple):
        return sum(map(_count_bytes, value))
    kind: Any = type(value)
    return sum([_count_bytes(getattr(value, name)) for name in _list_fields(kind)])


@cache
def _list_fields(kind: type) -> tuple[str, ...]:
    """Return the names of the fields of a dataclass; none of any other type."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()

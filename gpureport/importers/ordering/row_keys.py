"""A number for each row of a series, so that rows of several logs are told to be the same without being held."""

from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpureport import columns
from gpureport.series_table import KEY_FIELDS

Keys = npt.NDArray[np.uint64]
_MIX = np.uint64(0xBF58476D1CE4E5B9)
_SHIFT = np.uint64(29)
_NO_VALUES = {field.name for field in KEY_FIELDS}


def mix_bits(keys: Keys, bits: Keys) -> Keys:
    """Return keys that depend on more than they did."""
    found = (keys ^ bits) * _MIX
    return found ^ (found >> _SHIFT)


def hash_texts(texts: list[str]) -> Keys:
    """Return what texts are mixed into keys as, for codes that may stand for nothing."""
    return np.array([crc32(text.encode()) for text in texts] or [0], dtype=np.uint64)


def row_keys(table: "pa.Table") -> Keys:
    """Return a hash of each row: its time and every value it holds; columns it holds nothing in do not matter."""
    keys = mix_bits(np.zeros(len(table), dtype=np.uint64), columns.integers(table.column("timestamp")).view(np.uint64))
    for name in sorted(set(table.column_names) - _NO_VALUES):
        column = table.column(name)
        bits = _bits(column) + np.uint64(crc32(name.encode()))
        keys = np.where(columns.valid(column), mix_bits(keys, bits), keys)
    return keys


def _bits(column: "pa.ChunkedArray[Any]") -> Keys:
    """Return the values of a column as bits; what stands for null is undefined."""
    if not pa.types.is_dictionary(column.type):
        # 0.0 and -0.0 are one value
        return (columns.floats(column) + 0.0).view(np.uint64)
    chunks: list[Any] = column.chunks
    parts = [hash_texts(chunk.dictionary.to_pylist())[columns.integers(chunk.indices)] for chunk in chunks]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint64)

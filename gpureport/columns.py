"""Converts Arrow columns to NumPy arrays and back; null becomes NaN, and NaN becomes null.

pyarrow's own conversions import pandas if it is installed, which takes longer than reading a log.
"""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
_Column: TypeAlias = "pa.Array[Any] | pa.ChunkedArray[Any]"


def _stored(column: _Column) -> npt.NDArray[Any]:
    """Return a primitive column's stored values. Values in place of nulls are undefined."""
    if column.null_count == len(column):
        return np.zeros(len(column))
    array: Any = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_boolean(array.type):
        return _stored(array.cast(pa.uint8())).astype(np.bool_)
    kind = pa.int64() if pa.types.is_timestamp(array.type) else array.type
    return np.from_dlpack(pa.Array.from_buffers(kind, len(array), [None, array.buffers()[1]], offset=array.offset))


def valid(column: _Column) -> BoolArray:
    if column.null_count in {0, len(column)}:
        return np.full(len(column), column.null_count == 0)
    return _stored(column.is_valid())


def floats(column: _Column) -> FloatArray:
    """Return a column as float64, with NaN for nulls. A constant column becomes an array of `repeat_value`."""
    values, length, nulls = _stored(column), len(column), column.null_count
    if nulls == length:
        return repeat_value(np.nan, length)
    if length > 1 and not nulls and values[0] == values[-1] == values[length // 2] and (values == values[0]).all():
        return repeat_value(np.float64(values[0]), length)
    values = values.astype(np.float64)
    return np.where(valid(column), values, np.nan) if nulls else values


def integers(column: _Column, null: int = 0) -> IntArray:
    """Return an integer or timestamp column as int64, with nulls replaced by `null`."""
    values = _stored(column).astype(np.int64)
    return np.where(valid(column), values, null) if column.null_count else values


def read_codes(indices: "pa.Array[Any]") -> npt.NDArray[np.int32]:
    return _stored(indices).astype(np.int32, copy=False)


def present(codes: npt.NDArray[Any]) -> list[int]:
    """Return the codes that occur, in ascending order, without negative codes (null)."""
    return np.flatnonzero(np.bincount(codes[codes >= 0])).tolist()


def repeat_value(value: Any, length: int) -> npt.NDArray[Any]:
    """Return a read-only array that repeats one value but stores it once."""
    return np.broadcast_to(np.asarray(value), length)


def to_arrow(values: npt.NDArray[Any], kind: "pa.DataType", where: BoolArray | None = None) -> "pa.Array[Any]":
    """Return castable values as an Arrow array of a primitive type, with nulls where `where` is false."""
    bits = None if where is None or where.all() else pa.py_buffer(np.packbits(where, bitorder="little").data)
    if pa.types.is_boolean(kind):
        stored: npt.NDArray[Any] = np.packbits(values.astype(np.bool_), bitorder="little")
    else:
        name = "int64" if pa.types.is_timestamp(kind) else {"float": "float32"}.get(str(kind), str(kind))
        stored = np.ascontiguousarray(values, dtype=name)
    return pa.Array.from_buffers(kind, len(values), [bits, pa.py_buffer(stored.data)])


def nan_to_null(values: FloatArray, kind: "pa.DataType") -> "pa.Array[Any]":
    where = ~np.isnan(values)
    return to_arrow(np.where(where, values, 0), kind, where)


def categories(codes: npt.NDArray[Any], texts: list[str], where: BoolArray | None = None) -> "pa.Array[Any]":
    return pa.DictionaryArray.from_arrays(to_arrow(codes, pa.int32(), where), strings_to_arrow(texts))


def strings_to_arrow(texts: list[str]) -> "pa.Array[Any]":
    encoded = [text.encode() for text in texts]
    ends = pa.py_buffer(np.cumsum([0, *map(len, encoded)], dtype=np.int32).data)
    return pa.Array.from_buffers(pa.string(), len(texts), [None, ends, pa.py_buffer(b"".join(encoded))])


def category(text: str, length: int) -> "pa.Array[Any]":
    return categories(np.zeros(length, np.int32), [text])

"""Arrow columns to NumPy arrays and back, by their buffers.

pyarrow's own conversions import pandas wherever it is installed, which costs more than reading a log does;
these few functions keep it out. Null becomes NaN on the way out of numeric columns and null again on the way in.
"""

from functools import cache, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]

_NUMPY: dict[str, Any] = {
    "float": np.float32,
    "float32": np.float32,
    "double": np.float64,
    "float64": np.float64,
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "uint64": np.uint64,
}

_GUESSED = 63
"""Values from which a median is guessed first."""


def _bits(buffer: Any, offset: int, length: int) -> BoolArray:
    if buffer is None:
        return np.ones(length, dtype=np.bool_)
    packed = np.frombuffer(buffer, dtype=np.uint8)
    bits = np.unpackbits(packed[offset // 8 : (offset + length + 7) // 8], bitorder="little")
    return bits[offset % 8 : offset % 8 + length].astype(np.bool_)


def _chunks(column: "pa.Array[Any] | pa.ChunkedArray[Any]") -> list["pa.Array[Any]"]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def _raw(array: "pa.Array[Any]") -> npt.NDArray[Any]:
    """Return the stored values of one primitive array; what lies under a null is undefined."""
    kind = array.type
    data: Any = array.buffers()[1]
    if data is None or len(array) == 0:
        return np.zeros(len(array), dtype=np.bool_ if pa.types.is_boolean(kind) else np.float64)
    if pa.types.is_boolean(kind):
        return _bits(data, array.offset, len(array))
    dtype: Any = np.int64 if pa.types.is_timestamp(kind) else _NUMPY[str(kind)]
    values: npt.NDArray[Any] = np.frombuffer(
        data, dtype=dtype, count=len(array), offset=array.offset * np.dtype(dtype).itemsize
    )
    return values


def valid(column: "pa.Array[Any] | pa.ChunkedArray[Any]") -> BoolArray:
    """Return where a column is not null."""
    parts = [
        np.zeros(len(chunk), dtype=np.bool_)
        if pa.types.is_null(chunk.type)
        else _bits(chunk.buffers()[0], chunk.offset, len(chunk))
        for chunk in _chunks(column)
    ]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.bool_)


def floats(column: "pa.Array[Any] | pa.ChunkedArray[Any]") -> FloatArray:
    """Return a numeric or boolean column as float64, NaN where it is null.

    A column of one value is an array that takes no memory and cannot be written to.
    """
    if len(column) and column.null_count == len(column):
        return repeat_value(np.nan, len(column))
    chunks = _chunks(column)
    if len(chunks) == 1 and len(column) > 1 and not column.null_count and _constant(chunks[0]):
        return repeat_value(np.float64(_raw(chunks[0].slice(0, 1))[0]), len(column))
    parts = [_raw(chunk).astype(np.float64) for chunk in chunks]
    values = _whole(parts, np.float64)
    if column.null_count:
        values[~valid(column)] = np.nan
    return values


def _constant(array: "pa.Array[Any]") -> bool:
    """Return whether all stored values of a primitive array are equal; its ends tell most that are not."""
    if pa.types.is_null(array.type) or array.buffers()[1] is None:
        return False
    if pa.types.is_boolean(array.type):
        return array.true_count in {0, len(array)}  # type: ignore[attr-defined]  # of boolean arrays alone
    values = _raw(array)
    first = values[0]
    return bool(first == values[-1] and first == values[len(values) // 2] and (values == first).all())


def _whole(parts: list[npt.NDArray[Any]], kind: Any) -> npt.NDArray[Any]:
    """Return arrays one behind the other; a single one as it is."""
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=kind)


def integers(column: "pa.Array[Any] | pa.ChunkedArray[Any]", null: int = 0) -> IntArray:
    """Return an integer or timestamp column as int64, `null` where it is null."""
    parts = [_raw(chunk).astype(np.int64) for chunk in _chunks(column)]
    values = _whole(parts, np.int64)
    if column.null_count:
        values[~valid(column)] = null
    return values


def read_codes(indices: "pa.Array[Any]") -> npt.NDArray[np.int32]:
    """Return the indices of a dictionary array without nulls, as they are stored."""
    data: Any = indices.buffers()[1]
    if data is None or len(indices) == 0:
        return np.zeros(0, dtype=np.int32)
    return np.frombuffer(data, dtype=np.int32, count=len(indices), offset=indices.offset * 4)


def present(codes: npt.NDArray[Any]) -> list[int]:
    """Return the codes that occur, lowest first, without negative ones, which mean null."""
    return np.flatnonzero(np.bincount(codes[codes >= 0])).tolist() if len(codes) else []


def repeat_value(value: Any, length: int) -> npt.NDArray[Any]:
    """Return an array of one value that takes no memory and cannot be written to."""
    # what `np.broadcast_to` returns, in a tenth of its time
    one = np.asarray(value)
    repeated: npt.NDArray[Any] = np.ndarray((length,), one.dtype, one, 0, (0,))
    repeated.flags.writeable = False
    return repeated


def is_constant(values: npt.NDArray[Any]) -> bool:
    """Return whether an array is one value, as `same` makes it."""
    return values.strides == (0,)


def take_codes(table: npt.NDArray[Any], codes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return `table[code]` for each code."""
    if len(table) == 1:
        return repeat_value(table[0], len(codes))
    return table.take(codes) if len(codes) else np.zeros(0, dtype=table.dtype)


def median(values: FloatArray) -> float:
    """Return the median of one value or more, none of them NaN; as NumPy does, and sooner where many are equal."""
    low, high = (len(values) - 1) // 2, len(values) // 2
    common = _common(values, low, high)
    if common is not None:
        return float(common)
    parted = np.partition(values, high)
    # the sum before the half, as a mean is made
    return float(parted[high] if low == high else (parted[:high].max() + parted[high]) / 2)


def lower_median(values: npt.NDArray[Any]) -> float:
    """Return the lower of the two middle ones of one value or more, none of them NaN."""
    place = (len(values) - 1) // 2
    common = _common(values, place, place)
    return float(np.partition(values, place)[place] if common is None else common)


def _common(values: npt.NDArray[Any], low: int, high: int) -> Any | None:
    """Return the value at two neighbouring places of the order, None where they are not found to hold the same.

    Counting what lies below a guess is far cheaper than ordering; the middle of a few values is a good guess.
    """
    few = np.sort(values[:: max(len(values) // _GUESSED, 1)])
    guess = few[(len(few) - 1) // 2]
    below = int(np.count_nonzero(values < guess))
    confirmed = below <= low and high < below + int(np.count_nonzero(values == guess))
    return guess if confirmed else None


@lru_cache(64)
def all_valid(length: int) -> BoolArray:
    """Return true for each of so many rows, as an array that cannot be written to."""
    rows = np.ones(length, dtype=np.bool_)
    rows.flags.writeable = False
    return rows


def to_arrow(values: npt.NDArray[Any], kind: "pa.DataType", where: BoolArray | None = None) -> "pa.Array[Any]":
    """Return an Arrow array of type `kind`, null where `where` is false.

    Args:
        values: one value a row, of any NumPy type that casts to `kind`.
        kind: a primitive Arrow type, bool and timestamps included.
        where: which rows hold a value; all when None.
    """
    length = len(values)
    validity = None
    if where is not None and not where.all():
        validity = pa.py_buffer(np.packbits(where, bitorder="little").tobytes())
    if pa.types.is_boolean(kind) and length and is_constant(values):
        data = pa.py_buffer((b"\xff" if values[0] else b"\0") * (-(-length // 8)))
    elif pa.types.is_boolean(kind):
        data = pa.py_buffer(np.packbits(values.astype(np.bool_), bitorder="little").tobytes())
    else:
        dtype = np.int64 if pa.types.is_timestamp(kind) else _NUMPY[str(kind)]
        data = pa.py_buffer(np.ascontiguousarray(values, dtype=dtype).data)
    return pa.Array.from_buffers(kind, length, [validity, data])


def nan_to_null(values: FloatArray, kind: "pa.DataType") -> "pa.Array[Any]":
    """Return an Arrow array of type `kind` from float64 values, null where they are NaN."""
    where = ~np.isnan(values)
    return to_arrow(np.where(where, values, 0), kind, where)


def strings_to_arrow(texts: list[str]) -> "pa.Array[Any]":
    """Return an Arrow array of strings."""
    encoded = [text.encode() for text in texts]
    offsets = np.concatenate([[0], np.cumsum([len(text) for text in encoded])]).astype(np.int32)
    return pa.Array.from_buffers(
        pa.string(), len(texts), [None, pa.py_buffer(offsets.data), pa.py_buffer(b"".join(encoded))]
    )


def categories(codes: IntArray, texts: list[str], where: BoolArray | None = None) -> "pa.Array[Any]":
    """Return an Arrow dictionary array: `texts[code]` for each code, null where `where` is false."""
    return pa.DictionaryArray.from_arrays(to_arrow(codes, pa.int32(), where), strings_to_arrow(texts))


def category(text: str, length: int) -> "pa.Array[Any]":
    """Return an Arrow dictionary array of one text for each of so many rows; all such arrays share their codes."""
    codes = pa.Array.from_buffers(pa.int32(), length, [None, _zeros(max(length - 1, 1).bit_length())])
    return pa.DictionaryArray.from_arrays(codes, strings_to_arrow([text]), safe=False)


@cache
def _zeros(bits: int) -> "pa.Buffer":
    return pa.py_buffer(bytes(4 << bits))

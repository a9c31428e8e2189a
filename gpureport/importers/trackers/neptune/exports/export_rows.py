"""Rows of an export as arrays: texts as codes, times in microseconds, steps in millionths."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from gpureport import columns
from gpureport.importers.trackers.neptune_hardware.point_series import STEP_NOT_RECORDED, Series

IDENTITY = ["project_id", "run_id"]
KINDS = [*IDENTITY, "attribute_path", "attribute_type"]
PATHS = ["attribute_path", "attribute_type"]
NUMBERS = [*PATHS, "step", "timestamp", "float_value"]
SERIES = "float_series"
NO_SCALARS = {SERIES, "string_series", "histogram_series", "file_series", "file", "file_set", "artifact"}
_MS = 1000

Key = tuple[str, str]


def encode_texts(table: "pa.Table", name: str) -> tuple[list[str], columns.IntArray]:
    """Return the texts of a column, each once, and the place of that of each row; null is empty text."""
    texts: dict[str, int] = {}
    parts = [np.zeros(0, dtype=np.int64)]
    chunks: list[Any] = table.column(name).chunks
    for chunk in chunks:
        known = [texts.setdefault(str(text), len(texts)) for text in chunk.dictionary.to_pylist()]
        empty = texts.setdefault("", len(texts)) if chunk.null_count else 0
        indices = columns.integers(chunk.indices)
        coded = np.array([*known, empty], dtype=np.int64)[np.where(columns.valid(chunk), indices, len(known))]
        parts.append(coded)
    return list(texts) or [""], np.concatenate(parts)


def iterate_single_values(table: "pa.Table") -> Iterator[dict[str, Any]]:
    """Yield the rows that are single values, stretch by stretch: pyarrow's own filter takes long to be loaded."""
    kinds, kind = encode_texts(table, "attribute_type")
    wanted = np.array([each not in NO_SCALARS for each in kinds])
    rows = np.flatnonzero(wanted[kind])
    for stretch in np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1):
        if len(stretch):
            yield from table.slice(int(stretch[0]), len(stretch)).to_pylist()


class PointCollector:
    """Points of series of numbers, gathered from row groups in their order."""

    def __init__(self) -> None:
        self.timeless = 0
        self._parts: dict[str, list[Series]] = {}

    def add(self, table: "pa.Table", key: Key | None) -> None:
        """Take the points of a row group, those of one run where others have rows in it too."""
        own, (paths, place) = _rows_of_run(table, key), encode_texts(table, "attribute_path")
        rows, held = self._timed(table, own), _read_points(table)
        rows = np.arange(len(place)) if rows is None else rows
        place = place[rows]
        order = np.argsort(place, kind="stable")
        starts = np.searchsorted(place[order], np.arange(len(paths) + 1))
        for code, name in enumerate(paths):
            some = rows[order[starts[code] : starts[code + 1]]]
            if len(some):
                self._parts.setdefault(name, []).append(_select_points(held, some))

    def add_to(self, name: str, table: "pa.Table") -> None:
        """Take the points of a row group that holds one series alone."""
        self._parts.setdefault(name, []).append(_select_points(_read_points(table), self._timed(table, None)))

    def _timed(self, table: "pa.Table", own: columns.BoolArray | None) -> columns.IntArray | None:
        """Return those of the rows that have a time, None for every row, and count the others; of all when None."""
        stamps = table.column("timestamp")
        if own is None and not stamps.null_count:
            return None
        timed = columns.valid(stamps)
        chosen = timed if own is None else own & timed
        self.timeless += int((~timed if own is None else own & ~timed).sum())
        return np.flatnonzero(chosen)

    def series(self) -> dict[str, Series]:
        """Return the series by path, each in the order of its rows."""
        found = {}
        while self._parts:
            name, parts = self._parts.popitem()
            columns_of = ((each.times, each.values, each.steps) for each in parts)
            whole = parts[0] if len(parts) == 1 else Series(*map(np.concatenate, zip(*columns_of, strict=True)))
            found[name] = whole.dated()
            self.timeless += len(whole.times) - len(found[name].times)
        return found


def _rows_of_run(table: "pa.Table", key: Key | None) -> columns.BoolArray:
    kinds, kind = encode_texts(table, "attribute_type")
    own: columns.BoolArray = kind == (kinds.index(SERIES) if SERIES in kinds else -1)
    for name, wanted in zip(IDENTITY, key or (), strict=False):
        texts, code = encode_texts(table, name)
        own &= code == (texts.index(wanted) if wanted in texts else -1)
    return own


def _read_points(table: "pa.Table") -> Series:
    return Series(_microseconds(table), columns.floats(table.column("float_value")), _steps(table))


def _select_points(held: Series, rows: columns.IntArray | None) -> Series:
    if rows is None or len(rows) == len(held.times):
        return held
    return Series(held.times[rows], held.values[rows], held.steps[rows])


def _microseconds(table: "pa.Table") -> columns.IntArray:
    """Return the times of rows; the exporter writes milliseconds."""
    column = table.column("timestamp")
    factor = {"s": _MS * _MS, "ms": _MS, "us": 1}.get(getattr(column.type, "unit", "ms"))
    return columns.integers(column) * factor if factor else columns.integers(column) // _MS


def _steps(table: "pa.Table") -> columns.IntArray:
    """Return the steps of rows in millionths, which is what the decimals of the exporter count."""
    parts = []
    for chunk in table.column("step").chunks:
        if not pa.types.is_decimal128(chunk.type):
            return np.full(len(table), STEP_NOT_RECORDED, dtype=np.int64)
        held: Any = chunk.buffers()[1]
        # 16 bytes a decimal, the lower half first
        data = np.frombuffer(held, dtype=np.int64)[2 * chunk.offset : 2 * (chunk.offset + len(chunk)) : 2]
        parts.append(np.where(columns.valid(chunk), data, STEP_NOT_RECORDED) if chunk.null_count else data.copy())
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

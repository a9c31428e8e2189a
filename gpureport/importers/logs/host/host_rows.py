"""Merges the tables of a host log into rows, one per time; eight bytes a value."""

from array import array
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from math import isnan

import numpy as np

from gpureport.columns import IntArray
from gpureport.importers.delimited.row_sections import LineKind, NonDataLine
from gpureport.importers.devices.column_values import Values
from gpureport.importers.text.text_log import Chunk
from gpureport.metrics import BY_NAME

_NONE = float("nan")
_FAR = 10_000
"""Rows searched for a time stamp where time stamps do not rise."""


_LISTED = 8
"""Tables without a metric that are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReading:
    """The values of a table at one time.

    Attributes:
        table: the table.
        stamp: the time, in microseconds.
        number: the first of its lines.
        lines: how many lines say it.
        values: metrics in base units.
        spare: values used where no better one is known.
    """

    table: Hashable
    stamp: int
    number: int
    lines: int
    values: Mapping[str, float]
    spare: Mapping[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class HostRows:
    """Rows by time; each table of a log passes through them once, in order.

    Attributes:
        other_lines: lines that are no rows, since the last chunk.
        absent: cells without a value, since the last chunk.
        notes: what a reader must know.
    """

    other_lines: list[NonDataLine] = field(default_factory=list)
    absent: dict[tuple[str, str], int] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)
    _stamps: "array[int]" = field(default_factory=lambda: array("q"))
    _numbers: "array[int]" = field(default_factory=lambda: array("q"))
    _columns: "dict[str, array[float]]" = field(default_factory=dict)
    _cursors: dict[Hashable, int] = field(default_factory=dict)
    _late: dict[int, list[TableReading]] = field(default_factory=dict)
    _rising: bool = True
    _continued: int = 0

    def put(self, said: TableReading) -> None:
        """Add the values of a table at one time."""
        row, cursor, end = self._row(said), self._cursors.get(said.table, -1), len(self._stamps)
        if row is None and end and said.stamp < self._stamps[-1] and cursor != end - 1:
            # the tables before lack this time
            self._late.setdefault(said.stamp, []).append(said)
            return
        self._continued += said.lines
        if row is None:
            row = self._append(said.stamp, said.number)
        self._cursors[said.table] = row
        self._fill(row, said)

    @property
    def pending(self) -> int:
        """Rows and lines that are none, not handed on yet."""
        return len(self._stamps) + len(self.other_lines)

    def more(self, lines: int = 1) -> None:
        """Count lines that continue a row or hold no known metric."""
        self._continued += lines

    def lost(self, number: int, reason: str, text: str, kind: LineKind = LineKind.REJECTED) -> None:
        """Add a line that is no row."""
        self.other_lines.append(NonDataLine(number, kind, reason, text))

    def lacks(self, column: str, reason: str) -> None:
        """Count a cell, or a list, that says nothing."""
        self.absent[column, reason] = self.absent.get((column, reason), 0) + 1

    def note_unused_tables(self, names: Iterable[str]) -> None:
        """Note tables that hold no metric, by the first name of each."""
        if told := list(names)[:_LISTED]:
            note = f"Tables that hold no metric were passed over; their columns begin with {', '.join(told)}."
            self.notes[note] = None

    def _fill(self, row: int, said: TableReading) -> None:
        for name, value in said.values.items():
            self._column(name)[row] = value
        for name, value in said.spare.items():
            column = self._column(name)
            if isnan(column[row]):
                column[row] = value

    def _column(self, name: str) -> "array[float]":
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = array("d", [_NONE]) * len(self._stamps)
        return column

    def _row(self, said: TableReading) -> int | None:
        """Return the row that a table continues, None where it begins a new one."""
        start, end = self._cursors.get(said.table, -1), len(self._stamps)
        if start + 1 < end and self._stamps[start + 1] == said.stamp:
            return start + 1
        if self._rising:
            found = bisect_left(self._stamps, said.stamp, start + 1, end)
            return found if found < end and self._stamps[found] == said.stamp else None
        return next((row for row in range(start + 1, min(start + _FAR, end)) if self._stamps[row] == said.stamp), None)

    def _append(self, stamp: int, number: int) -> int:
        self._rising = self._rising and not (self._stamps and stamp < self._stamps[-1])
        self._continued -= 1
        self._stamps.append(stamp)
        self._numbers.append(number)
        for column in self._columns.values():
            column.append(_NONE)
        return len(self._stamps) - 1

    def chunk(self, *, keep: int = 0) -> Chunk:
        """Return what was taken, but for the last rows, to which more may be said."""
        count = max(len(self._stamps) - keep, 0)
        if count and self._late:
            count = self._settle(count)
        numbers, stamps = _integers(self._numbers, count), _integers(self._stamps, count)
        data = {name: _values(name, column, count) for name, column in self._columns.items()}
        chunk = Chunk(
            numbers=numbers,
            times=stamps,
            data={name: values for name, values in data.items() if values.valid.any()},
            lines=count + len(self.other_lines) + self._continued,
            other_lines=tuple(self.other_lines),
            continued=self._continued,
            absent=dict(self.absent),
            notes=tuple(self.notes),
            hosts=np.ones(count, dtype=np.bool_),
        )
        self._forget(count)
        return chunk

    def _settle(self, count: int) -> int:
        """Put the times that only later tables hold among the first rows; return how many these are now."""
        late, self._late = self._late, {}
        kept = len(self._stamps) - count
        for stamp, said in late.items():
            row = self._append(stamp, said[0].number)
            for each in said:
                self._continued += each.lines
                self._fill(row, each)
        stamps = np.array(self._stamps)
        # the rows held back stay the last ones
        stamps[count : count + kept] = np.iinfo(np.int64).max
        order = np.argsort(stamps, kind="stable").tolist()
        self._stamps = array("q", [self._stamps[row] for row in order])
        self._numbers = array("q", [self._numbers[row] for row in order])
        self._columns = {name: array("d", [held[row] for row in order]) for name, held in self._columns.items()}
        return len(self._stamps) - kept

    def _forget(self, count: int) -> None:
        self.other_lines, self.absent, self._continued = [], {}, 0
        del self._stamps[:count]
        del self._numbers[:count]
        for column in self._columns.values():
            del column[:count]
        self._cursors = {table: max(row - count, -1) for table, row in self._cursors.items()}


def _integers(held: "array[int]", count: int) -> IntArray:
    return np.array(held[:count], dtype=np.int64)


def _values(name: str, column: "array[float]", count: int) -> Values:
    held = np.array(column[:count], dtype=np.float64)
    dtype = np.dtype(BY_NAME[name].dtype)
    # a number that its column cannot hold is no reading
    valid = np.abs(held) < float(np.iinfo(dtype).max) if dtype.kind in "iu" else ~np.isnan(held)
    return Values(np.where(valid, held, 0).astype(dtype), valid)

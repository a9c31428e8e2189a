"""The columns of a log: typed values for the series, and an example of each from the beginning of the log."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gpureport import columns
from gpureport.columns import BoolArray, IntArray
from gpureport.importers.delimited.layout import STAMP, Layout
from gpureport.importers.delimited.row_sections import Section
from gpureport.importers.protocol.interpretation import InterpretedColumn, Role
from gpureport.importers.values.cells import Column, Decoded, Value, extra_name
from gpureport.metrics import CLOCK_EVENT_BITS
from gpureport.series_table import METRIC_TYPES

if TYPE_CHECKING:
    import pyarrow as pa

CLOCK_EVENTS = "clock_events"
"""Target of the bit mask of clock events."""
_EXTRA = extra_name("")
_KNOWN_BITS = np.uint64(sum(CLOCK_EVENT_BITS.values()))


@dataclass(frozen=True, slots=True)
class Values:
    """One column of rows: numbers with where they are present, or codes into texts."""

    data: npt.NDArray[Any]
    valid: BoolArray
    texts: list[str] | None = None

    def select(self, rows: BoolArray | IntArray) -> "Values":
        """Return the values of some rows."""
        if rows.dtype == np.bool_:
            return Values(self.data[rows], self.valid[rows], self.texts)
        valid = columns.all_valid(len(rows)) if self.valid.all() else self.valid.take(rows)
        data = self.data[: len(rows)] if columns.is_constant(self.data) else self.data.take(rows)
        return Values(data, valid, self.texts)

    def arrow(self, name: str, rows: slice) -> "pa.Array[Any]":
        """Return the values of some rows as the Arrow type of the column."""
        if self.texts is not None:
            return columns.categories(self.data[rows], self.texts, self.valid[rows])
        return columns.to_arrow(self.data[rows], METRIC_TYPES[name], self.valid[rows])


def to_values(decoded: Decoded, dtype: str) -> Values:
    """Return a decoded column as values."""
    if dtype == "str":
        return _texts(decoded)
    return Values(decoded.values(dtype), decoded.valid())


def _texts(decoded: Decoded) -> Values:
    """Return a column of texts, each text once: cells that differ in blanks or hold nothing may be equal."""
    texts = [str(value) for value in decoded.distinct]
    places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    if len(places) == len(texts):
        return Values(decoded.codes, decoded.valid(), texts)
    table = np.array([places[text] for text in texts], dtype=decoded.codes.dtype)
    return Values(table.take(decoded.codes), decoded.valid(), list(places))


def columns_by_target(section: Section) -> dict[str, Values]:
    """Return the columns of a section by their targets, the time stamp aside."""
    return {
        column.target: to_values(section.columns[position], column.dtype)
        for position, column in enumerate(section.layout.columns)
        if position != section.layout.stamp
    }


def split_clock_events(data: dict[str, Values]) -> dict[str, Values]:
    """Return the columns with the mask replaced by one column a reason; bits without a name are kept in hex.

    Columns of single reasons the log holds besides the mask give way to it: the mask is read in one moment.
    """
    mask = data.get(CLOCK_EVENTS)
    if mask is None:
        return data
    rest = {name: values for name, values in data.items() if name != CLOCK_EVENTS}
    bits = mask.data.astype(np.uint64)
    ever, always = np.bitwise_or.reduce(bits), np.bitwise_and.reduce(bits)
    reasons = {
        f"clock_event_{reason}": Values(_bit_column(bits, np.uint64(bit), ever, always), mask.valid)
        for reason, bit in CLOCK_EVENT_BITS.items()
    }
    unknown = bits & ~_KNOWN_BITS if ever & ~_KNOWN_BITS else columns.repeat_value(np.uint64(0), len(bits))
    return rest | reasons | {"clock_event_unknown_bits": Values(unknown, mask.valid)}


def _bit_column(bits: npt.NDArray[np.uint64], bit: np.uint64, ever: np.uint64, always: np.uint64) -> BoolArray:
    """Return where a bit is set, given the bits that are set anywhere and those set everywhere: most never are."""
    return (bits & bit) != 0 if ever & bit and not always & bit else columns.repeat_value(bool(always & bit), len(bits))


class ColumnsRead:
    """Remembers every column a log has, section by section."""

    def __init__(self, head: str, roles: Mapping[str, Role]) -> None:
        """Start without columns.

        Args:
            head: the beginning of the log's text, from which examples are taken.
            roles: targets that are neither time, nor series, nor extras.
        """
        self._lines = head.split("\n")[:-1]
        self._roles = roles
        self._columns: dict[tuple[str, str], InterpretedColumn] = {}
        self._layout: Layout | None = None

    def columns(self) -> tuple[InterpretedColumn, ...]:
        """Return the columns in the order of the log."""
        return tuple(self._columns.values())

    def fills(self, source: str, target: str) -> bool:
        """Return whether a column of some name fills a target."""
        return any((column.source, column.target) == (source, target) for column in self._columns.values())

    def translated(self) -> list[str]:
        """Return for each heading that was taken for another one, which."""
        return [
            f"{column.heading} is taken for {column.source}{f' [{column.unit}]' if column.unit else ''}"
            for column in self._columns.values()
            if column.translated
        ]

    def see(self, section: Section) -> None:
        """Take the columns of a section."""
        if section.layout is not self._layout:
            self._layout = section.layout
            for column in section.layout.columns:
                self._columns.setdefault(_key(column), self._read(column))
        if len(section.numbers) and section.numbers[0] <= len(self._lines):
            self._exemplify(section)

    def _read(self, column: Column) -> InterpretedColumn:
        return InterpretedColumn(
            heading=column.heading or column.source,
            source=column.source,
            unit=column.unit,
            assumed="" if column.number is None else column.number.unit,
            target=column.target,
            translated=column.translated,
            role=self._role(column.target),
        )

    def _role(self, target: str) -> Role:
        if target == STAMP:
            return Role.TIME
        return self._roles.get(target, Role.EXTRA if target.startswith(_EXTRA) else Role.SERIES)

    def _exemplify(self, section: Section) -> None:
        """Give examples to the columns that have none, from rows near the beginning of the log."""
        lacking = [
            position
            for position, column in enumerate(section.layout.columns)
            if self._columns[_key(column)].value is None
        ]
        layout, near = section.layout, np.flatnonzero(section.numbers <= len(self._lines))
        for position in lacking:
            row = _telling(section, position, near)
            cell = None if row is None else self._cell(layout, int(section.numbers[row]), position)
            if row is not None and cell is not None:
                value = int(section.times[row]) if position == layout.stamp else _value(section.columns[position], row)
                key = _key(layout.columns[position])
                self._columns[key] = replace(self._columns[key], cell=cell, value=value)

    def _cell(self, layout: Layout, number: int, position: int) -> str | None:
        """Return a cell as written, None where its line does not show which it is."""
        cells = self._lines[number - 1].split(layout.delimiter)
        # cells before the time stamp that the header does not name were left out
        surplus = len(cells) - len(layout.columns)
        return cells[position + surplus].strip() if surplus >= 0 and "\0" not in self._lines[number - 1] else None


def _key(column: Column) -> tuple[str, str]:
    return column.heading or column.source, column.target


def _telling(section: Section, position: int, rows: IntArray) -> int | None:
    """Return which of some rows has a value, one that is not 0 where there is any; None where none has one."""
    if position == section.layout.stamp:
        return int(rows[0])
    decoded = section.columns[position]
    valid = decoded.valid()[rows]
    if not valid.any():
        return None
    dtype = section.layout.columns[position].dtype
    telling = valid if dtype == "str" else valid & (decoded.values(dtype)[rows] != 0)
    return int(rows[np.argmax(telling if telling.any() else valid)])


def _value(decoded: Decoded, row: int) -> Value:
    code = int(decoded.codes[row])
    return decoded.distinct[code] if code >= 0 or decoded.plain is None else float(decoded.plain[row])

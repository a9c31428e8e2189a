"""The columns of a log with an example of each: a cell from the log's beginning, and what it became."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from gpureport.columns import IntArray
from gpureport.importers.delimited.layout import STAMP, Layout
from gpureport.importers.delimited.row_sections import Section
from gpureport.importers.protocol.interpretation import InterpretedColumn, Role
from gpureport.importers.values.cells import Column, Decoded, Value, extra_name

_EXTRA = extra_name("")


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

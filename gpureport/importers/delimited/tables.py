"""Rows of one layout as bytes to typed columns, through Arrow's CSV parser."""

from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from gpureport.columns import BoolArray, IntArray
from gpureport.importers.delimited.layout import Layout
from gpureport.importers.delimited.row_sections import Section
from gpureport.importers.protocol.reject_reasons import MALFORMED, TORN
from gpureport.importers.values import absolute_stamps, stamps
from gpureport.importers.values.cells import CellReader, Decoded

_MANY = 0.05
"""Share of distinct texts among the cells of a column above which a dictionary of them costs more than it saves.

Measured on power readings of two decimals: the dictionary takes two thirds of the whole parse.
"""
_FEWEST = 300
"""Distinct texts that are no burden, however few the cells are."""


class TableReader:
    """Reads rows, and remembers which columns have too many distinct texts for a dictionary."""

    def __init__(self) -> None:
        """Start with a dictionary for every column."""
        self._cells = CellReader()
        self._plain: set[tuple[int, str]] = set()

    def read(self, data: bytes, layout: Layout, numbers: IntArray) -> tuple[Section, dict[str, BoolArray]] | None:
        """Return rows, and for each fault the rows that have it; None when a line has another number of cells.

        Args:
            data: whole lines.
            layout: their columns.
            numbers: line number of each.
        """
        table = _read_csv(data, layout, self._kinds(layout))
        if table is None or table.num_rows != len(numbers):
            return None
        faults: dict[str, BoolArray] = {}
        columns = {}
        for position, column in enumerate(layout.columns):
            if position == layout.stamp:
                continue
            texts = table.column(position).chunk(0)
            columns[position] = self._cells.decode(column, texts)
            self._watch(position, column.target, texts, plain=column.number is not None)
            if (wrong := columns[position].wrong()).any():
                faults[f"{MALFORMED} {column.source}"] = wrong
        times = np.zeros(len(numbers), dtype=np.int64)
        if layout.stamp is not None:
            times, good = _times(table.column(layout.stamp).chunk(0), layout)
            if not good.all():
                faults[f"{MALFORMED} {layout.columns[layout.stamp].source}"] = ~good
        if (torn := _torn(columns, len(layout.columns) - 1)) is not None:
            faults[TORN] = torn
        return Section(layout=layout, numbers=numbers, times=times, columns=columns), faults

    def look(self, data: bytes, layout: Layout) -> None:
        """Find out by some rows which columns have too many distinct texts for a dictionary."""
        table = _read_csv(data, layout, self._kinds(layout))
        for position, column in enumerate(layout.columns if table is not None and table.num_rows else ()):
            if position != layout.stamp and table is not None:
                self._watch(position, column.target, table.column(position).chunk(0), plain=column.number is not None)

    def _kinds(self, layout: Layout) -> dict[str, Any]:
        coded = pa.dictionary(pa.int32(), pa.string())
        return {
            str(position): pa.string()
            if position == layout.stamp or (position, column.target) in self._plain
            else coded
            for position, column in enumerate(layout.columns)
        }

    def _watch(self, position: int, target: str, texts: Any, *, plain: bool) -> None:  # noqa: ANN401 - the stubs give dictionary arrays two parameters Arrow has not
        """Note a column of numbers that has many distinct texts."""
        if plain and hasattr(texts, "dictionary") and len(texts.dictionary) > max(_MANY * len(texts), _FEWEST):
            self._plain.add((position, target))


def _times(texts: Any, layout: Layout) -> tuple[IntArray, BoolArray]:  # noqa: ANN401 - an Arrow string array, whose buffers the stubs hide
    """Return the time stamps of rows in microseconds, and which are any."""
    if layout.absolute:
        return absolute_stamps.parse(texts)
    return stamps.parse(texts, day_first=layout.day_first)


def _read_csv(data: bytes, layout: Layout, kinds: dict[str, Any]) -> "pa.Table | None":
    """Return all cells as text, None when a line does not have the layout's number of cells."""
    buffer: Any = pa.BufferReader(data)
    try:
        return csv.read_csv(
            buffer,
            read_options=csv.ReadOptions(column_names=list(kinds), block_size=len(data) + 1, use_threads=False),
            parse_options=csv.ParseOptions(
                delimiter=layout.delimiter, quote_char=False, double_quote=False, ignore_empty_lines=len(kinds) > 1
            ),
            # ASCII needs no look at every cell
            convert_options=csv.ConvertOptions(
                column_types=kinds, strings_can_be_null=False, check_utf8=not data.isascii()
            ),
        )
    except pa.ArrowInvalid:
        return None


_FEW, _PLENTY = 3, 20


def _torn(columns: dict[int, Decoded], last: int) -> BoolArray | None:
    """Return rows whose last cell alone lacks the unit that those around it carry: a line torn inside it."""
    bare = columns[last].without_unit() if last in columns else None
    if bare is None or not 0 < bare.sum() <= _FEW or len(bare) < _PLENTY:
        return None
    alone = bare.copy()
    alone[1:] &= ~bare[:-1]
    alone[:-1] &= ~bare[1:]
    return alone if alone.any() else None

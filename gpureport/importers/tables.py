"""Rows of tables: lines of cells to columns, parsed by Arrow a block at a time."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pyarrow import csv

from gpureport.columns import BoolArray
from gpureport.importers.columns import TIME, Column, Rows, make_column

_LARGE, _SAMPLE = 2**20, 2**14
"""Bytes of a block for which its first ones are looked at."""
_CODED = pa.dictionary(pa.int32(), pa.string())


@dataclass(frozen=True, slots=True)
class Layout:
    """How each cell of a row is read, in order; the line that declares it, empty when none does, is the `header`."""

    columns: tuple[Column, ...]
    delimiter: str = ","
    header: str = field(default="", compare=False)

    @property
    def stamp(self) -> int | None:
        """Position of the time stamp, None when there is none."""
        return next((place for place, column in enumerate(self.columns) if column.target == TIME), None)


def make_layout(
    columns: Sequence[Column], preferred: frozenset[str] = frozenset(), delimiter: str = ",", header: str = ""
) -> Layout:
    """Return a layout in which one column fills each target; any further one becomes an extra column.

    Sources that are `preferred` win over others for the same target, else the first one does.
    """
    chosen: dict[str, int] = {}
    for place, column in enumerate(columns):
        held = chosen.get(column.target)
        if held is None or (column.source in preferred and columns[held].source not in preferred):
            chosen[column.target] = place
    taken, numbers = set(chosen), dict[str, Any]()
    found = []
    for place, column in enumerate(columns):
        if chosen[column.target] == place:
            found.append(column)
            continue
        aside = make_column("", column.source, column.stated, heading=column.heading)
        name = aside.target
        while name in taken:
            name = f"{aside.target}_{next(numbers.setdefault(aside.target, count(2)))}"
        taken.add(name)
        found.append(replace(aside, target=name))
    return Layout(tuple(found), delimiter, header)


def _find_varied(data: bytes, layout: Layout) -> set[int]:
    """Return the columns of a large block of which most numbers differ, so that a dictionary of them costs time."""
    if len(data) < _LARGE or layout.stamp is None:
        return set()
    rows = [line.split(layout.delimiter.encode()) for line in data[:_SAMPLE].split(b"\n")[:-1]]
    columns = list(zip(*(row for row in rows if len(row) == len(layout.columns)), strict=True))
    varied = [place for place, cells in enumerate(columns) if 2 * len(set(cells)) > len(cells)]
    # how the last cell of a row is written shows whether the row is cut
    return {place for place in varied if layout.columns[place].unit and place + 1 < len(columns)}


def scan(data: bytes, layout: Layout) -> tuple[list["pa.Array[Any]"], list[int]]:
    """Return the cells of lines, column by column as Arrow dictionaries, and the places of lines of another width."""
    odd: list[int] = []

    def skip(row: csv.InvalidRow) -> Literal["skip"]:
        odd.append((row.number or 1) - 1)
        return "skip"

    varied = _find_varied(data, layout)
    kinds: dict[str, pa.DataType] = {
        str(place): pa.string() if column.target == TIME or place in varied else _CODED
        for place, column in enumerate(layout.columns)
    }
    buffer: Any = pa.BufferReader(data or b"\n")
    table = csv.read_csv(
        buffer,
        csv.ReadOptions(column_names=list(kinds), block_size=len(data) + 2, use_threads=False),
        csv.ParseOptions(
            delimiter=layout.delimiter, quote_char=False, ignore_empty_lines=False, invalid_row_handler=skip
        ),
        csv.ConvertOptions(column_types=kinds, strings_can_be_null=False, check_utf8=False),
    )
    columns: Any = table.combine_chunks().columns
    return [column.chunk(0) if column.num_chunks else pa.array([], column.type) for column in columns], odd


def without_faults(rows: Rows, faults: dict[str, BoolArray]) -> tuple[Rows, list[tuple[int, str]]]:
    """Return the rows that have no fault, and the place of each other one with its first fault."""
    bad = np.zeros(len(rows), dtype=np.bool_)
    found: list[tuple[int, str]] = []
    for reason, wrong in faults.items():
        found += [(place, reason) for place in np.flatnonzero(wrong & ~bad).tolist()]
        bad |= wrong
    return (rows.select(~bad) if found else rows), found

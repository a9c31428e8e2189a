"""Reads CSV files of DCGM's fields that scripts write: one GPU a line, or one reading a line."""

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from gpureport.errors import SourceError
from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.delimited.row_sections import LineKind
from gpureport.importers.logs.dcgm import fields
from gpureport.importers.logs.dcgm.field_tables import FieldTable, recognise_table
from gpureport.importers.logs.dcgm.field_values import Values, read_field
from gpureport.importers.protocol.reject_reasons import BEFORE_HEADER, CUT_LAST_LINE, WRONG_CELLS
from gpureport.importers.text.chunk_builder import ChunkBuilder
from gpureport.importers.text.csv_lines import split_cells
from gpureport.importers.text.numbered_lines import TextLine, text_lines
from gpureport.importers.text.text_log import Chunk

MOST = 5_000_000
"""Readings at most of a table with one per line, kept in memory until those of a moment are complete."""
_UNTOLD = (
    "DCGM_FI_DEV_GPU_UTIL_RATIO counts in per cent in DCGM before 4.7 and as a ratio since: kept as it is in a table."
)
_Key = tuple[int | None, tuple[tuple[str, str], ...]]


def has_header(lines: Sequence[str]) -> bool:
    """Return whether a line is the header of a table of DCGM's fields; of one reading a line its rows tell."""
    for place, line in enumerate(lines):
        found = recognise_table(split_cells(line)) if "," in line else None
        if found is not None and found.field is None:
            return True
        rows = [split_cells(row) for row in lines[place + 1 :]] if found is not None else []
        if found is not None and any(
            len(row) == len(found.header) and fields.find_field(row[found.field or 0]) for row in rows
        ):
            return True
    return False


class FieldCsvForm:
    """Tables of DCGM's fields."""

    name: ClassVar[str] = "CSV of DCGM fields"
    averaged = False

    def __init__(self) -> None:
        self.zone: str | None = None
        self._table: FieldTable | None = None
        self._node: str | None = None
        self._held: dict[_Key, tuple[int, Values]] = {}
        self._readings = 0

    def chunks(self, log: Iterable[Piece]) -> Iterator[Chunk]:
        """Yield what a table holds; one with a reading a line at its end, in the order of time.

        Raises:
            SourceError: when it is too long to be held in memory, or of several machines.
        """
        builder = ChunkBuilder()
        for line in text_lines(log):
            self._take(line, builder)
            if builder.is_full:
                yield from builder.chunks()
        yield from self._release(builder)
        yield from builder.chunks()

    def _take(self, line: TextLine, builder: ChunkBuilder) -> None:
        row = [] if line.fault else split_cells(line.text)
        found = recognise_table(row) if row else None
        if found is not None:
            self._table = found
            builder.add_non_data_line(line, LineKind.HEADER)
        elif self._table is None:
            builder.reject(line, BEFORE_HEADER)
        elif line.cut or len(row) != len(self._table.header):
            builder.reject(line, CUT_LAST_LINE if line.cut else WRONG_CELLS)
        else:
            self._row(line, row, self._table, builder)

    def _row(self, line: TextLine, row: Sequence[str], columns: FieldTable, builder: ChunkBuilder) -> None:
        self._one_machine(row, columns)
        moment = columns.moment(row)
        if moment is not None and moment.utc:
            self.zone = "UTC"
        time = None if moment is None or moment.utc != (self.zone is not None) else moment.micros
        said = columns.describes(row)
        if columns.field is not None and columns.value is not None:
            self._reading(line, (time, tuple(said.items())), _name(row[columns.field]), row[columns.value], builder)
            return
        values: Values = dict(said)
        for place, name in columns.fields:
            if fields.find_field(name) or row[place]:
                read_field(name, row[place], values, builder)
            if name == fields.EITHER:
                builder.add_note(_UNTOLD)
        builder.add_row(line.number, time, values)

    def _reading(self, line: TextLine, key: _Key, name: str, cell: str, builder: ChunkBuilder) -> None:
        """Hold a reading until the others of its GPU and moment are there."""
        if name == fields.EITHER:
            builder.add_note(_UNTOLD)
        if key not in self._held:
            self._held[key] = (line.number, dict(key[1]))
        else:
            builder.count_continued(1)
        read_field(name, cell, self._held[key][1], builder)
        self._readings += 1
        if self._readings > MOST:
            what = f"more than {MOST:,} readings one a line, which are held in memory"
            raise SourceError(self.name, what, "split it by time, or write one GPU a line", code="too_many_readings")

    def _release(self, builder: ChunkBuilder) -> Iterator[Chunk]:
        for (time, _), (line, values) in sorted(self._held.items(), key=lambda item: (item[0][0] or 0, item[1][0])):
            builder.add_row(line, time, values)
            if builder.is_full:
                yield from builder.chunks()
        self._held.clear()

    def _one_machine(self, row: Sequence[str], columns: FieldTable) -> None:
        if columns.node is None:
            return
        self._node = self._node or row[columns.node]
        if row[columns.node] != self._node and not any(name == "uuid" for _, name in columns.texts):
            what = f"GPUs of several machines ({self._node}, {row[columns.node]}, ...) in one table"
            raise SourceError(
                self.name, what, "write one file a machine, and read them with --as-one-run", code="several_machines"
            )


def _name(cell: str) -> str:
    """Return the name of a field, by the symbol it has in the list where it is given by another one."""
    known = fields.find_field(cell)
    return cell if known is None or not cell.isdigit() else known.source

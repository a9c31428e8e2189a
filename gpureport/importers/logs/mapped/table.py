"""Reads a table as a map says: each mapped cell is a metric of a GPU or of the machine."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import ClassVar

from gpureport.errors import SourceError
from gpureport.importers.decoding.pieces import Piece, head, head_text
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.delimited.row_sections import LineKind
from gpureport.importers.logs.mapped.loose_quantities import parse_loose_quantity, use_decimal_point
from gpureport.importers.protocol.column_map import EPOCHS, ISO, MappedColumn, Mapping
from gpureport.importers.protocol.importer import HEAD_BYTES, ReadOptions
from gpureport.importers.protocol.reject_reasons import BEFORE_HEADER, CUT_LAST_LINE, GPU_NOT_NAMED, WRONG_CELLS
from gpureport.importers.text.chunk_builder import ChunkBuilder
from gpureport.importers.text.csv_lines import split_cells
from gpureport.importers.text.numbered_lines import TextLine, text_lines
from gpureport.importers.text.text_log import Chunk, FormExtraction
from gpureport.importers.values import quantities
from gpureport.importers.values.timestamps import Moment, parse_epoch_time, parse_iso_time
from gpureport.metrics import BY_NAME, Scope
from gpureport.redaction import redact_start

DELIMITERS = (",", ";", "\t", "|")
_WHERE = "the table"
_LISTED = 30
Values = dict[str, float | bool | str]


class Mapped:
    """The importer of tables with a map; it recognises nothing by itself."""

    kind: ClassVar[str] = "mapped"
    title: ClassVar[str] = "table with a map"
    recognised_by: ClassVar[str] = "Only by `--map`, which says what its columns are."
    sample: ClassVar[str] = "mapped/wrapper.csv"

    def identify(self, head: bytes) -> bool:
        """Return False: only a person can say that a table has a map."""
        del head
        return False

    def extract(self, file: RawFile, options: ReadOptions) -> FormExtraction:
        """Begin to read a table.

        Raises:
            SourceError: when no map was given.
        """
        mapping = options.map
        if mapping is None:
            raise _unmapped(file)

        return FormExtraction(file, options, partial(MappedForm, mapping))


def _unmapped(file: RawFile) -> SourceError:
    """Return the error that a table needs a map, with a draft where its header proves a column."""
    from gpureport.importers.logs.mapped.map_draft import draft_map  # noqa: PLC0415 - only where a map is missing

    text = draft_map(head_text(head(file.again(), HEAD_BYTES)))
    hint = ("save standard output as map.toml, complete it, then " if text else "") + "give --map map.toml"
    return SourceError(str(file.path), "no map says what its columns are", hint, text, to_stdout=True, code="no_map")


class MappedForm:
    """Rows of a table whose columns a map names."""

    name: ClassVar[str] = "table with a map"
    averaged = False

    def __init__(self, mapping: Mapping) -> None:
        self.zone: str | None = None
        self._map = mapping
        self._delimiter = mapping.delimiter
        self._header: list[str] = []
        self._first: str | None = None
        self._fitting = 0
        self._others: dict[int, int] = {}

    def chunks(self, log: Iterable[Piece]) -> Iterator[Chunk]:
        """Yield what a table holds, in its order.

        Raises:
            SourceError: when it lacks a mapped column, or no row has as many cells as its header.
        """
        builder = ChunkBuilder()
        for line in text_lines(log):
            self._take(line, builder)
            if builder.is_full:
                yield from builder.chunks()
        self._check()
        yield from builder.chunks()

    def _take(self, line: TextLine, builder: ChunkBuilder) -> None:
        if line.fault:
            builder.reject(line, line.fault)
            return
        self._first = line.text if self._first is None else self._first
        row = split_cells(line.text, self._delimiter or ",")
        if self._heads(line):
            builder.add_non_data_line(line, LineKind.HEADER)
        elif not self._header:
            builder.reject(line, BEFORE_HEADER)
        elif line.cut:
            builder.reject(line, CUT_LAST_LINE)
        elif len(row) != len(self._header) and not (len(row) == len(self._header) + 1 and not row[-1]):
            self._others[len(row)] = self._others.get(len(row), 0) + 1
            builder.reject(line, WRONG_CELLS)
        else:
            self._fitting += 1
            self._rows(line, row, builder)

    def _heads(self, line: TextLine) -> bool:
        """Return whether a line names all columns of the map, and learn where they stand."""
        for delimiter in (self._delimiter,) if self._delimiter else DELIMITERS:
            names = split_cells(line.text, delimiter)
            names = names[:-1] if len(names) > 1 and not names[-1] else names
            if set(self._map.headings) <= set(names):
                self._header, self._delimiter = names, delimiter
                return True
        return False

    def _rows(self, line: TextLine, row: Sequence[str], builder: ChunkBuilder) -> None:
        said = dict(zip(self._header, row, strict=False))
        numbers = said
        if self._delimiter == ";":
            numbers = {heading: use_decimal_point(cell) for heading, cell in said.items()}
        named = self._named(said)
        if self._map.device and named is None:
            builder.reject(line, GPU_NOT_NAMED)
            return
        devices: dict[int | None, Values] = {}
        for column in self._map.columns:
            host = BY_NAME[column.metric].scope is Scope.HOST
            gpu = None if host else named if column.gpu is None else column.gpu
            values = devices.setdefault(gpu, {} if gpu is None else {"index": str(gpu)})
            _put(column, numbers[column.heading], values, builder)
        self._rest(said, devices, named, builder)
        time = self._time(numbers)
        for gpu, values in devices.items():
            builder.add_row(line.number, time, values, host=gpu is None)

    def _named(self, said: dict[str, str]) -> int | None:
        index = said.get(self._map.device, "").lower().removeprefix("gpu").strip(" :_")
        return int(index) if index.isascii() and index.isdigit() and len(index) <= 4 else None  # noqa: PLR2004 - 0 to 9999

    def _rest(
        self, said: dict[str, str], devices: dict[int | None, Values], named: int | None, builder: ChunkBuilder
    ) -> None:
        """Keep the cells of other columns as text where the row is one GPU's, else say that they are not kept."""
        rest = {heading: cell for heading, cell in said.items() if heading not in self._map.headings}
        if named is not None:
            devices[named].update(quantities.extra_column(heading, cell) for heading, cell in rest.items() if cell)
        elif rest:
            builder.add_note(f"Columns the map does not name are not kept: {', '.join(list(rest)[:_LISTED])}.")

    def _time(self, said: dict[str, str]) -> int | None:
        """Return the time of a row; a table whose first time is UTC is one in UTC."""
        moment = _moment(said[self._map.time], self._map.format) if self._map.time else None
        if moment is None:
            return None
        self.zone = "UTC" if moment.utc else self.zone
        return moment.micros if moment.utc == (self.zone is not None) else None

    def _check(self) -> None:
        if not self._header:
            missing = [each for each in self._map.headings if each not in (self._first or "")]
            what = f"no line names the columns of the map ({', '.join(missing or self._map.headings)})"
            raise SourceError(
                _WHERE, what, f"its first line is {redact_start(self._first or '')!r}", code="no_mapped_header"
            )
        if not self._fitting and self._others:
            cells_each = max(self._others, key=lambda count: self._others[count])
            what = f"its header names {len(self._header)} columns, but its rows have {cells_each} cells"
            raise SourceError(
                _WHERE, what, "nobody can say which cell is which: mend the header", code="wrong_number_of_cells"
            )


def _put(column: MappedColumn, cell: str, values: Values, builder: ChunkBuilder) -> None:
    value = parse_loose_quantity(cell, column.unit, column.metric)
    if value is None:
        builder.count_absent(column.heading, quantities.describe_absence(cell))
    else:
        values[column.metric] = value


def _moment(cell: str, pattern: str) -> Moment | None:
    if pattern == ISO:
        return parse_iso_time(cell)
    if pattern in EPOCHS:
        return parse_epoch_time(cell, EPOCHS[pattern])
    try:
        found = datetime.strptime(cell, pattern)
        return parse_iso_time(found.isoformat())
    except (ValueError, OverflowError):
        return None

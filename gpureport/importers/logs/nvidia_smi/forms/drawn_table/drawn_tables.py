"""The table that plain `nvidia-smi` draws, once or with `-l`, and inside the logs of jobs."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import ClassVar

from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.delimited.row_sections import LineKind, NonDataLine
from gpureport.importers.logs.nvidia_smi.forms.drawn_table.table_lines import LineShape, TableLines
from gpureport.importers.logs.nvidia_smi.forms.drawn_table.table_openings import NOWHERE, Opening, openings, opens
from gpureport.importers.logs.nvidia_smi.forms.drawn_table.table_rows import TableRow, TableRows, absences
from gpureport.importers.logs.nvidia_smi.forms.lines_between_blocks import classify_stray_line
from gpureport.importers.protocol.reject_reasons import NOT_OF_FORM, TORN
from gpureport.importers.text.text_log import Chunk, Record, make_chunk

_HEADING = re.compile(r"\| *(?:GPU +Name|Fan +Temp|\| +\| +MIG M\.).*")
_HELD = 256 * 2**10
"""Bytes of one snapshot that are held until it is whole; a table of 64 GPUs with its processes has 60 KiB."""
_WIDEST = 300
"""A line that is wider is none of a table."""
_TAIL = 8
"""Lines at the end of a piece that may open a table."""
_LACKING = "Tables of nvidia-smi hold no SM clock, no clock event reasons, and power in whole watts"
LACKS = f"{_LACKING}: throttling cannot be judged; record with --query-gpu."
LACKS_BESIDE = f"{_LACKING}: of throttling only the other rows of the log tell."
"""Said instead where the log holds such rows."""
INSTANCES = "MIG instances are listed, which are parts of a GPU: they are not read."
ZONES = "Times above the tables name a zone: they are taken as written."
_Stretch = tuple[TableLines, list[Opening], int]


class Tables:
    """Reads the tables of nvidia-smi: the lines of a table besides the first one of each GPU say more of its rows."""

    name: ClassVar[str] = "plain nvidia-smi"

    def __init__(self) -> None:
        self.zone: str | None = None
        self.averaged = False
        self._above = NOWHERE

    @staticmethod
    def opens(line: str) -> bool:
        """Return whether a line is the time above a table, or its banner."""
        return opens(line)

    def chunks(self, log: Iterable[Piece]) -> Iterator[Chunk]:
        """Yield the rows of each piece, those of its last table with the next piece, into which it may go on."""
        for stretch in self._stretches(log):
            yield from self._read(*stretch)

    def _stretches(self, log: Iterable[Piece]) -> Iterator[_Stretch]:
        """Yield lines that hold whole tables, what stands above these, and the number of the first line."""
        held, first, more = TableLines.from_bytes(b""), 1, 0
        for piece in log:
            # damage joins no lines
            data, number = piece.data.replace(b"\0", b"\n"), piece.first_line + more
            if len(held) and number != first + len(held):
                yield held, openings(held), first
                held = TableLines.from_bytes(b"")
            first = first if len(held) else number
            more += data.count(b"\n") - piece.lines
            lines = held + TableLines.from_bytes(data)
            found = openings(lines)
            end = len(lines) if piece.last else _whole(lines, found)
            yield lines[:end], [each for each in found if each.line < end], first
            held, first = lines[end:], first + end
        yield held, openings(held), first

    def _read(self, lines: TableLines, found: list[Opening], first: int) -> Iterator[Chunk]:
        """Yield what some lines hold, rows with a time apart from those without."""
        rows = TableRows(lines)
        records = list(_records(rows.rows, [self._above, *found], first))
        for _, run in groupby(records, key=lambda record: record.time is None):
            part = list(run)
            yield make_chunk(part, lines=len(part))
        yield self._rest(lines, rows, found, first)
        self._above = found[-1] if found else self._above

    def _rest(self, lines: TableLines, rows: TableRows, found: list[Opening], first: int) -> Chunk:
        good = [row for row in rows.rows if not row.malformed]
        others = [*_classify_lines(lines, rows, found, first), *rows.rejected(first)]
        if not good:
            others += _alone(lines, {line.number - first for line in others}, first)
        said = len(lines) - lines.shapes.count(LineShape.BLANK) - len(good)
        conditions = {
            LACKS: good,
            INSTANCES: LineShape.INSTANCE in lines.shapes,
            ZONES: any(each.zoned for each in found),
        }
        notes = tuple(note for note, holds in conditions.items() if holds) + rows.notes()
        return make_chunk(
            (), lines=said, other_lines=others, continued=said - len(others), absent=absences(good), notes=notes
        )


def _whole(lines: TableLines, found: list[Opening]) -> int:
    """Return the line before which tables are whole, though more lines follow."""
    if found and sum(len(raw) + 1 for raw in lines.raw[found[-1].line :]) <= _HELD:
        return found[-1].line
    end = max(len(lines) - _TAIL, 0)
    spans = [(each.line, max(each.banner, each.stamp)) for each in found]
    spans += [(line, line + 2) for line in lines.gpus()]
    return next((begin for begin, last in spans if begin < end <= last), end)


def _records(rows: Sequence[TableRow], above: list[Opening], first: int) -> Iterator[Record]:
    """Yield the good rows with what stands above their table; `first` is the number of the first line of all."""
    begins = [each.line for each in above[1:]]
    table, last, lost = -1, -1, False
    for row in rows:
        place = bisect_right(begins, row.line)
        # GPUs are listed by index: where that falls with nothing above, what stood above was lost, and the time with it
        lost = place == table and (lost or row.index <= last)
        table, last = place, row.index
        if not row.malformed:
            values = {**row.values(), "driver": above[place].driver}
            yield Record(number=row.line + first, time=None if lost else above[place].time, values=values)


def _classify_lines(lines: TableLines, rows: TableRows, found: list[Opening], first: int) -> Iterator[NonDataLine]:
    """Yield the banners, and the lines that belong to no table."""
    for each in found:
        if each.banner >= 0:
            yield NonDataLine(each.banner + first, LineKind.HEADER, "", lines.text(each.banner))
    stamps = {each.stamp for each in found}
    for line in lines.where(LineShape.TEXT):
        if line not in stamps:
            yield classify_stray_line(line + first, lines.text(line))
    for line in lines.where(LineShape.BROKEN):
        yield NonDataLine(line + first, LineKind.REJECTED, NOT_OF_FORM, lines.text(line))
    taken = rows.taken()
    for line in lines.where(LineShape.DEVICE):
        raw = lines.raw[line]
        if line not in taken and (len(raw) > _WIDEST or not _heading(raw)):
            yield NonDataLine(line + first, LineKind.REJECTED, TORN, lines.text(line))


@lru_cache(1024)
def _heading(line: bytes) -> bool:
    return _HEADING.fullmatch(line.decode(errors="replace").strip()) is not None


def _alone(lines: TableLines, known: set[int], first: int) -> Iterator[NonDataLine]:
    """Yield the lines of tables without a row: they say nothing."""
    for line, shape in enumerate(lines.shapes):
        if shape != LineShape.BLANK and line not in known:
            yield NonDataLine(line + first, LineKind.NOISE, "", lines.text(line))

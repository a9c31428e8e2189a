"""The table that plain `nvidia-smi` draws, once or with `-l`, under `watch`, and inside the logs of jobs."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import ClassVar

import numpy as np

from gpureport.columns import BoolArray, IntArray
from gpureport.importers.assembly import Values
from gpureport.importers.chunks import Chunk
from gpureport.importers.delimited.parts import LineKind, OddLine
from gpureport.importers.delimited.pieces import Piece
from gpureport.importers.nvidia_smi.forms import terminal
from gpureport.importers.nvidia_smi.forms.frames import Frames, LineShape
from gpureport.importers.nvidia_smi.forms.strays import stray
from gpureport.importers.nvidia_smi.forms.table_cells import CellTexts
from gpureport.importers.nvidia_smi.forms.table_openings import NOWHERE, Opening, openings, opens
from gpureport.importers.nvidia_smi.forms.table_rows import TableRows
from gpureport.importers.reasons import NOT_OF_FORM, TORN

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
WATCHED = (
    "The log holds what was drawn on a terminal, of which later screens are drawn in part only and cannot be read; "
    "record with nvidia-smi -l instead of watch."
)


_Stretch = tuple[Frames, list[Opening], int]


class Tables:
    """Reads the tables of nvidia-smi: the lines of a table besides the first one of each GPU say more of its rows."""

    name: ClassVar[str] = "plain nvidia-smi"

    def __init__(self) -> None:
        """Start before the first table."""
        self.zone: str | None = None
        self.averaged = False
        self._texts = CellTexts()
        self._above = NOWHERE
        self._drawn = False
        self._more = 0

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
        held, first = Frames.of(b""), 1
        for piece in log:
            data, number = self._plain(piece.data), piece.first_line + self._more
            if len(held) and number != first + len(held):
                yield held, openings(held), first
                held = Frames.of(b"")
            first = first if len(held) else number
            self._more += data.count(b"\n") - piece.lines
            frames = Frames.of(held.data + data)
            found = openings(frames)
            end = len(frames) if piece.last else _whole(frames, found)
            yield frames.upto(end), [each for each in found if each.line < end], first
            held, first = frames.after(end), first + end
        yield held, openings(held), first

    def _plain(self, data: bytes) -> bytes:
        """Return text without what only a terminal understands, in lines that damage does not join."""
        if b"\x1b" in data:
            self._drawn, data = True, terminal.plain(data)
        return data.replace(b"\0", b"\n")

    def _read(self, frames: Frames, found: list[Opening], first: int) -> Iterator[Chunk]:
        """Yield what some lines hold, rows with a time apart from those without."""
        rows = TableRows(frames, self._texts)
        above = [self._above, *found]
        table = np.searchsorted([each.line for each in found], rows.lines, side="right")
        times, dated = _times(above, table, rows)
        for part in _runs(dated, ~rows.wrong):
            yield Chunk(
                numbers=rows.lines[part] + first,
                times=times[part] if dated[part[0]] else None,
                data=rows.data(part) | _drivers(above, table[part]),
                lines=len(part),
            )
        yield self._rest(frames, rows, found, first)
        self._above = above[-1]

    def _rest(self, frames: Frames, rows: TableRows, found: list[Opening], first: int) -> Chunk:
        """Return the account of the lines that are no rows."""
        kept = int((~rows.wrong).sum())
        odd = [*_odd(frames, rows, found, first), *rows.rejected(first)]
        if not kept:
            odd += _alone(frames, {line.number - first for line in odd}, first)
        lines = int((frames.shapes != LineShape.BLANK).sum()) - kept
        conditions = {
            LACKS: kept,
            INSTANCES: (frames.shapes == LineShape.INSTANCE).any(),
            ZONES: any(each.zoned for each in found),
            WATCHED: self._drawn,
        }
        return Chunk(
            numbers=np.zeros(0, dtype=np.int64),
            times=None,
            data={},
            lines=lines,
            odd=odd,
            continued=lines - len(odd),
            absent=rows.absent(~rows.wrong),
            notes=tuple(note for note, holds in conditions.items() if holds) + rows.notes(),
        )


def _whole(frames: Frames, found: list[Opening]) -> int:
    """Return the line before which tables are whole, though more lines follow."""
    if found and len(frames.data) - frames.starts[found[-1].line] <= _HELD:
        return found[-1].line
    end = max(len(frames) - _TAIL, 0)
    spans = [(each.line, max(each.banner, each.stamp)) for each in found]
    spans += [(line, line + 2) for line in frames.gpus().tolist()]
    return next((begin for begin, last in spans if begin < end <= last), end)


def _times(above: list[Opening], table: IntArray, rows: TableRows) -> tuple[IntArray, BoolArray]:
    """Return the time of each row, and which have one."""
    times = np.array([each.time or 0 for each in above], dtype=np.int64)[table]
    dated = np.array([each.time is not None for each in above], dtype=np.bool_)[table]
    # GPUs are listed by index: where that falls with nothing above, what stood above was lost, and the time with it
    lost = np.flatnonzero((np.diff(table) == 0) & (np.diff(rows.indices) <= 0)) + 1
    for row in lost.tolist():
        dated[row : np.searchsorted(table, table[row], side="right")] = False
    return times, dated


def _drivers(above: list[Opening], table: IntArray) -> dict[str, Values]:
    """Return the driver of each row."""
    names = [each.driver or "" for each in above]
    places = {name: place for place, name in enumerate(dict.fromkeys(names))}
    codes = np.array([places[name] for name in names], dtype=np.int64)[table]
    texts = list(places)
    return {"driver": Values(codes, np.array([bool(text) for text in texts], dtype=np.bool_)[codes], texts)}


def _runs(dated: BoolArray, good: BoolArray) -> list[IntArray]:
    """Return the good rows in runs that have a time, or have none."""
    rows = np.flatnonzero(good)
    changes = np.flatnonzero(np.diff(dated[rows].astype(np.int8))) + 1
    return [run for run in np.split(rows, changes) if len(run)]


def _odd(frames: Frames, rows: TableRows, found: list[Opening], first: int) -> Iterator[OddLine]:
    """Yield the banners, and the lines that belong to no table."""
    banners = np.array([each.banner for each in found if each.banner >= 0], dtype=np.int64)
    for line, raw in zip(banners.tolist(), frames.raws(banners), strict=True):
        yield OddLine(line + first, LineKind.HEADER, "", raw.decode(errors="replace").strip())
    stamps = {each.stamp for each in found}
    for line in frames.where(LineShape.TEXT).tolist():
        if line not in stamps:
            yield stray(line + first, frames.text(line))
    for line in frames.where(LineShape.BROKEN).tolist():
        yield OddLine(line + first, LineKind.REJECTED, NOT_OF_FORM, frames.text(line))
    rest = np.setdiff1d(frames.where(LineShape.DEVICE), rows.taken, assume_unique=True)
    for line, raw in zip(rest.tolist(), frames.raws(rest), strict=True):
        if len(raw) > _WIDEST or not _heading(raw):
            yield OddLine(line + first, LineKind.REJECTED, TORN, raw.decode(errors="replace").strip())


@lru_cache(1024)
def _heading(line: bytes) -> bool:
    """Return whether a line of the table of GPUs is one of its headings."""
    return _HEADING.fullmatch(line.decode(errors="replace").strip()) is not None


def _alone(frames: Frames, known: set[int], first: int) -> Iterator[OddLine]:
    """Yield the lines of tables without a row: they say nothing."""
    for line in np.flatnonzero(frames.shapes != LineShape.BLANK).tolist():
        if line not in known:
            yield OddLine(line + first, LineKind.NOISE, "", frames.text(line))

"""Pieces of delimited text to typed sections; every line ends up kept, rejected, or named.

A piece is first handed whole to Arrow's CSV parser. Only where the result is not clean (a line with another
number of cells, a cell that is not what its column holds) are the lines of that piece looked at one by one.
"""

import os
import re
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from gpureport.columns import IntArray
from gpureport.importers.delimited import stamps
from gpureport.importers.delimited.cells import CUT_CELL, CellReader, Decoded
from gpureport.importers.delimited.layout import Layout
from gpureport.importers.delimited.parts import Dialect, LineKind, OddLine, Parsed, Section
from gpureport.importers.delimited.pieces import Piece

_COMPLETE = re.compile(r".*(?:%|MiB|W|MHz|\]|Active|abled|N/A)")
"""Cells that cannot be the beginning of a longer one."""
_WORKERS = 4
"""Pieces parsed at a time at most: memory grows with them, and the thread that writes keeps up with no more."""


@dataclass(slots=True)
class _Lines:
    """The lines of a piece while they are sorted into rows and others."""

    layout: Layout | None
    sections: list[Section] = field(default_factory=list)
    odd: list[OddLine] = field(default_factory=list)
    rows: list[tuple[int, str]] = field(default_factory=list)


class Parser:
    """Parses the pieces of one log, each with the layout in force before it."""

    def __init__(self, dialect: Dialect) -> None:
        """Start without a layout."""
        self._dialect = dialect
        self._cells = CellReader()

    def sections(self, pieces: Iterable[Piece]) -> Iterator[Parsed]:
        """Yield the pieces parsed, in order; a few threads, one a core at most, work ahead."""
        workers = min(os.cpu_count() or 1, _WORKERS)
        layout: Layout | None = None
        pending: deque[tuple[Piece, Layout | None, Future[Parsed]]] = deque()
        with ThreadPoolExecutor(workers) as pool:
            for piece in pieces:
                if piece.first_line == 1:
                    parsed = self.parse(piece, None)
                    layout = parsed.layout
                    yield parsed
                    continue
                pending.append((piece, layout, pool.submit(self.parse, piece, layout)))
                if len(pending) > workers:
                    parsed = self._next(pending, layout)
                    layout = parsed.layout
                    yield parsed
            while pending:
                parsed = self._next(pending, layout)
                layout = parsed.layout
                yield parsed

    def _next(self, pending: deque[tuple[Piece, Layout | None, Future[Parsed]]], layout: Layout | None) -> Parsed:
        piece, assumed, future = pending.popleft()
        parsed = future.result()
        # a header in an earlier piece changed the columns after this one was begun
        return parsed if assumed == layout else self.parse(piece, layout)

    def parse(self, piece: Piece, layout: Layout | None) -> Parsed:
        """Return what one piece holds, given the layout in force before it."""
        return self._whole(piece, layout) or self._line_by_line(piece, layout)

    def _whole(self, piece: Piece, layout: Layout | None) -> Parsed | None:
        """Parse a piece in one go, None when it is not clean."""
        data, first = piece.data, piece.first_line
        odd: tuple[OddLine, ...] = ()
        head, _, body = data.partition(b"\n")
        declared = self._dialect.header(head.decode(errors="replace").strip())
        if declared is not None:
            layout, data, first = declared, body, first + 1
            odd = (OddLine(piece.first_line, LineKind.HEADER, "", ""),)
        if layout is None or not data.endswith(b"\n") or b"\0" in data:
            return None
        rows = data.count(b"\n")
        section = self._section(data, layout, np.arange(first, first + rows, dtype=np.int64))
        if section is None or len(section.times) != rows:
            return None
        return Parsed(layout=layout, sections=(section,), odd=odd, lines=len(section.times) + len(odd))

    def _section(self, data: bytes, layout: Layout, numbers: IntArray) -> Section | None:
        """Return rows of one layout, None when any line or cell is not clean."""
        table = _read_csv(data, layout)
        if table is None:
            return None
        times, columns = self._decode(table, layout)
        bad = any(column.malformed.any() for column in columns.values())
        return None if times is None or bad else Section(layout=layout, numbers=numbers, times=times, columns=columns)

    def _decode(self, table: "pa.Table", layout: Layout) -> tuple[IntArray | None, dict[int, Decoded]]:
        columns = {
            position: self._cells.decode(column, _cells(table, position))
            for position, column in enumerate(layout.columns)
            if position != layout.stamp
        }
        if layout.stamp is None:
            return np.zeros(table.num_rows, dtype=np.int64), columns
        times, good = stamps.parse(_cells(table, layout.stamp))
        return (times if good.all() else None), columns

    def _line_by_line(self, piece: Piece, layout: Layout | None) -> Parsed:
        """Sort the lines of a piece into rows, headers and others."""
        state = _Lines(layout)
        texts = piece.data.split(b"\n")
        cut = piece.last and texts[-1] != b""
        lines = 0
        for number, raw in enumerate(texts, piece.first_line):
            if not raw.strip(b"\r\t "):
                continue
            lines += 1
            self._sort(state, number, raw, last=cut and number == piece.first_line + len(texts) - 1)
        self._flush(state)
        return Parsed(layout=state.layout, sections=tuple(state.sections), odd=tuple(state.odd), lines=lines, cut=cut)

    def _sort(self, state: _Lines, number: int, raw: bytes, *, last: bool) -> None:
        """Put one line where it belongs."""
        text = raw.decode(errors="replace").strip("\r\ufeff")
        reason = _unreadable(raw)
        header = None if reason else self._dialect.header(text.strip())
        if header is not None:
            if header != state.layout:
                self._flush(state)
                state.layout = header
            state.odd.append(OddLine(number, LineKind.HEADER, "", text))
        elif reason is None and state.layout is not None and text.count(",") == len(state.layout.columns) - 1:
            state.rows.append((number, _mend(text) if last else text))
        else:
            kind = LineKind.REJECTED if reason else self._dialect.classify(text.strip())
            state.odd.append(OddLine(number, kind, reason or _why(state.layout, last=last), text))

    def _flush(self, state: _Lines) -> None:
        """Read the rows collected so far; those with a cell that is not what its column holds are rejected."""
        if not state.rows or state.layout is None:
            return
        rows, layout, state.rows = state.rows, state.layout, []
        table = _read_csv("\n".join(text for _, text in rows).encode() + b"\n", layout)
        if table is None or table.num_rows != len(rows):
            msg = "lines with the right number of cells must parse"
            raise AssertionError(msg)
        reasons = self._reasons(table, layout)
        good = [row for row, reason in zip(rows, reasons, strict=True) if reason is None]
        for (number, text), reason in zip(rows, reasons, strict=True):
            if reason is not None:
                kind = self._dialect.classify(text.strip())
                state.odd.append(OddLine(number, kind, reason, text))
        if good:
            numbers = np.array([number for number, _ in good], dtype=np.int64)
            section = self._section("\n".join(text for _, text in good).encode() + b"\n", layout, numbers)
            if section is not None:
                state.sections.append(section)

    def _reasons(self, table: "pa.Table", layout: Layout) -> list[str | None]:
        """Return for each row why it cannot be used, None when it can."""
        reasons: list[str | None] = [None] * table.num_rows
        for position, column in enumerate(layout.columns):
            if position == layout.stamp:
                bad = ~stamps.parse(_cells(table, position))[1]
            else:
                decoded = self._cells.decode(column, _cells(table, position))
                bad = decoded.malformed[decoded.codes]
            for row in np.flatnonzero(bad):
                reasons[row] = reasons[row] or f"malformed {column.source}"
        return reasons


def _read_csv(data: bytes, layout: Layout) -> "pa.Table | None":
    """Return all cells as text, None when a line does not have the layout's number of cells."""
    names = [str(position) for position in range(len(layout.columns))]
    kinds: dict[str, Any] = {name: pa.dictionary(pa.int32(), pa.string()) for name in names}
    if layout.stamp is not None:
        kinds[str(layout.stamp)] = pa.string()
    buffer: Any = pa.BufferReader(data)
    try:
        return csv.read_csv(
            buffer,
            read_options=csv.ReadOptions(column_names=names, block_size=len(data) + 1, use_threads=False),
            parse_options=csv.ParseOptions(quote_char=False, double_quote=False, ignore_empty_lines=len(names) > 1),
            convert_options=csv.ConvertOptions(column_types=kinds, strings_can_be_null=False),
        )
    except pa.ArrowInvalid:
        return None


def _cells(table: "pa.Table", position: int) -> Any:  # noqa: ANN401 - a string or a dictionary array, which the stubs cannot say
    """Return one column of a table that was parsed as one block."""
    return table.column(position).chunk(0)


def _unreadable(raw: bytes) -> str | None:
    """Return why the bytes of a line are not text, None when they are."""
    if b"\0" in raw:
        return "NUL bytes"
    if b"\r" in raw.strip(b"\r"):
        return "carriage return inside the line"
    try:
        raw.decode()
    except UnicodeDecodeError:
        return "not UTF-8 text"
    return None


def _mend(text: str) -> str:
    """Return the last line of a cut log with its last cell marked as cut, unless that cell is surely whole."""
    head, comma, cell = text.rpartition(",")
    return text if _COMPLETE.fullmatch(cell.strip()) else f"{head}{comma}{CUT_CELL}"


def _why(layout: Layout | None, *, last: bool) -> str:
    if layout is None:
        return "before any header"
    return "cut last line" if last else "wrong number of cells"

"""Pieces of delimited text to typed sections; every line ends up kept, rejected, or named.

A piece is first handed whole to Arrow's CSV parser. Only where the result is not clean (a line with another
number of cells, a cell that is not what its column holds) does it look at the lines of that piece one by one.
"""

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from gpureport.columns import BoolArray, IntArray
from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.delimited.layout import Layout
from gpureport.importers.delimited.line_by_line import LineByLineParser
from gpureport.importers.delimited.row_sections import Dialect, LineKind, NonDataLine, ParsedPiece, Section
from gpureport.importers.protocol.reject_reasons import MALFORMED, TORN
from gpureport.importers.values import absolute_stamps, stamps
from gpureport.importers.values.cells import CellReader, Decoded

_WORKERS = 4
"""Pieces parsed at a time at most: memory grows with them, and the thread that writes keeps up with no more."""
_LINES = 2**17
"""Lines parsed at a time at most: one that is no row takes a hundred times the memory of a letter."""
_SHOWN = 2**11
"""Lines that show which columns hold many distinct texts, before the first piece is parsed."""
_MANY = 0.05
"""Share of distinct texts among the cells of a column above which a dictionary of them costs more than it saves.

Measured on power readings of two decimals: the dictionary takes two thirds of the whole parse.
"""
_FEWEST = 300
"""Distinct texts that are no burden, however few the cells are."""
_FEW_BARE, _PLENTY = 3, 20
"""Cells that alone lack a unit at most, and the rows that show it (pragmatic)."""


def _split_piece(piece: Piece) -> Iterator[Piece]:
    """Yield a piece, or parts of it about equal where it has very many lines."""
    count = -(-piece.lines // _LINES)
    if count <= 1:
        yield piece
        return
    ends = np.flatnonzero(np.frombuffer(piece.data, dtype=np.uint8) == ord("\n")) + 1
    begin, line = 0, 0
    for part in range(1, count + 1):
        upto = part * piece.lines // count
        end = len(piece.data) if part == count else int(ends[upto - 1])
        last = piece.last and part == count
        yield Piece(piece.data[begin:end], piece.first_line + line, last=last, lines=upto - line)
        begin, line = end, upto


class Parser:
    """Parses the pieces of one log, each with the layout in force before it."""

    def __init__(self, dialect: Dialect, layout: Layout | None = None) -> None:
        """Start with the layout of rows before any header, None when there is none."""
        self._dialect = dialect
        self._start = layout
        self._tables = TableReader()

    def sections(self, pieces: Iterable[Piece]) -> Iterator[ParsedPiece]:
        """Yield the pieces parsed, in order; a few threads, one a core at most, work ahead."""
        workers = min(os.cpu_count() or 1, _WORKERS)
        layout = assumed = self._start
        pending: deque[tuple[Piece, Layout | None, Future[ParsedPiece]]] = deque()
        with ThreadPoolExecutor(workers) as pool:
            for piece in chain.from_iterable(map(_split_piece, pieces)):
                if piece.first_line == 1 and not piece.last:
                    assumed = self._foreseen(piece)
                before = self._start if piece.first_line == 1 else assumed
                pending.append((piece, before, pool.submit(self.parse, piece, before)))
                # the pieces behind the first are not begun without knowing their columns
                if len(pending) > workers or (piece.first_line == 1 and assumed is None):
                    parsed = self._next(pending, layout)
                    layout = assumed = parsed.layout
                    yield parsed
            while pending:
                parsed = self._next(pending, layout)
                layout = parsed.layout
                yield parsed

    def _foreseen(self, piece: Piece) -> Layout | None:
        """Return the layout that most likely is in force after the first piece, after a look at some of its rows.

        The pieces behind it need not wait for it then.
        """
        header, *rows = piece.data.split(b"\n", _SHOWN)
        declared = self._dialect.header(header.decode(errors="replace").strip())
        if declared is None or not declared.replaces(self._start):
            declared, rows = self._start, [header, *rows]
        if declared is not None and len(rows) > 1:
            self._tables.look(b"\n".join([*rows[:-1], b""]), declared)
        return declared

    def _next(
        self, pending: deque[tuple[Piece, Layout | None, Future[ParsedPiece]]], layout: Layout | None
    ) -> ParsedPiece:
        piece, assumed, future = pending.popleft()
        parsed = future.result()
        # a header in an earlier piece changed the columns after this one was begun
        return parsed if assumed == layout else self.parse(piece, layout)

    def parse(self, piece: Piece, layout: Layout | None) -> ParsedPiece:
        """Return what one piece holds, given the layout in force before it."""
        return self._whole(piece, layout) or LineByLineParser(self._dialect, self._tables.read).parse(piece, layout)

    def _whole(self, piece: Piece, layout: Layout | None) -> ParsedPiece | None:
        """Parse a piece in one go, None when it is not clean."""
        data, first = piece.data, piece.first_line
        others: tuple[NonDataLine, ...] = ()
        end = data.find(b"\n") + 1
        declared = self._dialect.header(data[:end].decode(errors="replace").strip())
        if declared is not None:
            if not declared.replaces(layout):
                return None
            layout, data, first = declared, data[end:], first + 1
            others = (NonDataLine(piece.first_line, LineKind.HEADER, "", ""),)
        if layout is None or not data.endswith(b"\n") or b"\0" in data:
            return None
        numbers = np.arange(first, piece.first_line + piece.lines, dtype=np.int64)
        found = self._tables.read(data, layout, numbers)
        if found is None or found[1]:
            return None
        return ParsedPiece(layout=layout, sections=(found[0],), other_lines=others, lines=len(numbers) + len(others))


class TableReader:
    """Reads rows, and remembers which columns have too many distinct texts for a dictionary."""

    def __init__(self) -> None:
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
            times, good = _read_stamps(table.column(layout.stamp).chunk(0), layout)
            if not good.all():
                faults[f"{MALFORMED} {layout.columns[layout.stamp].source}"] = ~good
        if (torn := _torn_inside_cell(columns, len(layout.columns) - 1)) is not None:
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

    def _watch(self, position: int, target: str, texts: Any, *, plain: bool) -> None:
        """Note a column of numbers that has many distinct texts."""
        if plain and hasattr(texts, "dictionary") and len(texts.dictionary) > max(_MANY * len(texts), _FEWEST):
            self._plain.add((position, target))


def _read_stamps(texts: Any, layout: Layout) -> tuple[IntArray, BoolArray]:
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


def _torn_inside_cell(columns: dict[int, Decoded], last: int) -> BoolArray | None:
    """Return rows whose last cell alone lacks the unit that those around it carry: a line torn inside it."""
    bare = columns[last].without_unit() if last in columns else None
    if bare is None or not 0 < bare.sum() <= _FEW_BARE or len(bare) < _PLENTY:
        return None
    alone = bare.copy()
    alone[1:] &= ~bare[:-1]
    alone[:-1] &= ~bare[1:]
    return alone if alone.any() else None

"""Pieces of delimited text to typed sections; every line ends up kept, rejected, or named.

A piece is first handed whole to Arrow's CSV parser. Only where the result is not clean (a line with another
number of cells, a cell that is not what its column holds) are the odd lines of that piece looked at one by one.
"""

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain

import numpy as np

from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.delimited.layout import Layout
from gpureport.importers.delimited.line_sorting import Lines
from gpureport.importers.delimited.row_sections import Dialect, LineKind, OddLine, Parsed
from gpureport.importers.delimited.tables import TableReader

_WORKERS = 4
"""Pieces parsed at a time at most: memory grows with them, and the thread that writes keeps up with no more."""
_LINES = 2**17
"""Lines parsed at a time at most: one that is no row takes a hundred times the memory of a letter."""
_SHOWN = 2**11
"""Lines that show which columns hold many distinct texts, before the first piece is parsed."""


def _portions(piece: Piece) -> Iterator[Piece]:
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

    def sections(self, pieces: Iterable[Piece]) -> Iterator[Parsed]:
        """Yield the pieces parsed, in order; a few threads, one a core at most, work ahead."""
        workers = min(os.cpu_count() or 1, _WORKERS)
        layout = assumed = self._start
        pending: deque[tuple[Piece, Layout | None, Future[Parsed]]] = deque()
        with ThreadPoolExecutor(workers) as pool:
            for piece in chain.from_iterable(map(_portions, pieces)):
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

    def _next(self, pending: deque[tuple[Piece, Layout | None, Future[Parsed]]], layout: Layout | None) -> Parsed:
        piece, assumed, future = pending.popleft()
        parsed = future.result()
        # a header in an earlier piece changed the columns after this one was begun
        return parsed if assumed == layout else self.parse(piece, layout)

    def parse(self, piece: Piece, layout: Layout | None) -> Parsed:
        """Return what one piece holds, given the layout in force before it."""
        return self._whole(piece, layout) or Lines(self._dialect, self._tables).parse(piece, layout)

    def _whole(self, piece: Piece, layout: Layout | None) -> Parsed | None:
        """Parse a piece in one go, None when it is not clean."""
        data, first = piece.data, piece.first_line
        odd: tuple[OddLine, ...] = ()
        end = data.find(b"\n") + 1
        declared = self._dialect.header(data[:end].decode(errors="replace").strip())
        if declared is not None:
            if not declared.replaces(layout):
                return None
            layout, data, first = declared, data[end:], first + 1
            odd = (OddLine(piece.first_line, LineKind.HEADER, "", ""),)
        if layout is None or not data.endswith(b"\n") or b"\0" in data:
            return None
        numbers = np.arange(first, piece.first_line + piece.lines, dtype=np.int64)
        found = self._tables.read(data, layout, numbers)
        if found is None or found[1]:
            return None
        return Parsed(layout=layout, sections=(found[0],), odd=odd, lines=len(numbers) + len(odd))

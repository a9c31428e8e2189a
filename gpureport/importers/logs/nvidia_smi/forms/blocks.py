"""Cuts a log into blocks of one form each, at the lines that open them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from gpureport.columns import BoolArray, IntArray
from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.logs.nvidia_smi.forms import FORMS
from gpureport.importers.logs.nvidia_smi.forms.drawn_table.drawn_tables import Tables
from gpureport.importers.logs.nvidia_smi.forms.drawn_table.table_openings import lines_above
from gpureport.importers.logs.nvidia_smi.forms.form import BlockForm
from gpureport.importers.logs.nvidia_smi.forms.full_query.q_text import QueryText
from gpureport.importers.logs.nvidia_smi.forms.full_query.q_xml import QueryXml
from gpureport.importers.logs.nvidia_smi.forms.query_csv import QueryCsv

_NEWLINE, _BLANK, _SIGN = (ord(each) for each in "\n #")
_DIGITS = (ord("0"), ord("9"))
_INDENT = 64
"""Blanks before a line's first word that are looked past."""
_LONGEST = 16_384
"""A line longer than this opens no block: a query of all fields has a header of 6,000 characters."""
_LEAST, _MOST = 32, 4_096
"""Lines that are looked at together: few below the beginning of a block, since another may soon begin, then more."""
_ANY = np.ones(256, dtype=np.bool_)


def _may_open(inside: bytes) -> BoolArray:
    """Return which bytes a line that opens a block of another form can begin with."""
    return ~np.isin(np.arange(256), np.frombuffer(inside, dtype=np.uint8))


_MAY_OPEN: dict[type[BlockForm] | None, BoolArray] = {
    form: _may_open(inside) for form, inside in ((Tables, b"|+"), (QueryText, b" "), (QueryXml, b" \t<"))
}
"""Of forms whose lines begin with characters of their own, with what those of others can begin."""
_COMMAND = re.compile(r"\s*(?:#\s*)?\$ \S.*|#{20,}\s*", re.DOTALL)
"""A line with a command and its prompt, or a line across the page: what stood above ends there."""


@dataclass(frozen=True, slots=True)
class Part:
    """Lines of a piece that belong to one block.

    Attributes:
        block: number of the block; one that was interrupted has the same number again.
        form: its form, None for lines that no form reads.
        opening: the line it begins with.
        piece: the lines.
    """

    block: int
    form: type[BlockForm] | None
    opening: str
    piece: Piece


@lru_cache(4096)
def opener(line: str) -> type[BlockForm] | None:
    """Return the form of which a line begins a block, None when it begins none."""
    return next((form for form in FORMS if form.opens(line)), None)


class Blocks:
    """Cuts the pieces of a log where another form begins."""

    def __init__(self) -> None:
        self._blocks = 0
        self._number = 0
        self._form: type[BlockForm] | None = None
        self._opening = ""
        self._interrupted: tuple[int, type[BlockForm], str] | None = None

    def parts(self, piece: Piece) -> Iterator[Part]:
        """Yield the parts of a piece."""
        data = piece.data
        ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == _NEWLINE) + 1
        starts = np.append(0, ends[ends < len(data)]) if data else ends[:0]
        begin = 0
        for place, form, line in self._changes(data, starts, np.append(ends, len(data))):
            top = place - (lines_above(data[starts[begin] : starts[place]]) if form is Tables else 0)
            if begin < top:
                yield self._part(piece, starts, begin, top)
            self._begin(form, line)
            begin = top
        if begin < len(starts) or piece.last:
            yield self._part(piece, starts, begin, len(starts))

    def _changes(
        self, data: bytes, starts: IntArray, stops: IntArray
    ) -> Iterator[tuple[int, type[BlockForm] | None, str]]:
        """Yield the lines at which another block begins, with its form; each is begun before the next is looked for."""
        telling = _telling(data, starts)
        first = np.frombuffer(data, dtype=np.uint8)[starts[telling]]
        # what a line says is looked at once: thousands may say the same
        silent: set[bytes] = set()
        at, some = 0, _LEAST
        while at < len(telling):
            end = min(at + some, len(telling))
            some = min(2 * some, _MOST)
            places = telling[at:end][_MAY_OPEN.get(self._form, _ANY)[first[at:end]]]
            for place, start, stop in zip(
                places.tolist(), starts[places].tolist(), stops[places].tolist(), strict=True
            ):
                told = data[start : min(stop, start + _LONGEST)]
                if told in silent:
                    continue
                line = told.rstrip(b"\n").decode(errors="replace")
                form = opener(line)
                if form is self._form or (form is None and not self._ends(line)):
                    silent.add(told)
                    continue
                silent.clear()
                yield place, form, line
                end, some = int(np.searchsorted(telling, place)) + 1, _LEAST
                break
            at = end

    def _ends(self, line: str) -> bool:
        """Return whether a line that opens no block ends one."""
        below = self._interrupted is not None and "|" not in line
        return below or _COMMAND.fullmatch(line) is not None

    def _begin(self, form: type[BlockForm] | None, line: str) -> None:
        """Begin a block, or go on with a CSV below a table that a job printed between its rows."""
        below = self._interrupted if form is None and not _COMMAND.fullmatch(line) else None
        if below is not None:
            self._number, self._form, self._opening = below
            self._interrupted = None
            return
        between = form is Tables and self._form is QueryCsv
        self._interrupted = (self._number, QueryCsv, self._opening) if between else None
        self._blocks += 1
        self._number, self._form, self._opening = self._blocks, form, line.strip()

    def _part(self, piece: Piece, starts: IntArray, begin: int, end: int) -> Part:
        last = piece.last and end == len(starts)
        if begin == 0 and end == len(starts):
            cut = piece
        else:
            start = int(starts[begin]) if begin < len(starts) else len(piece.data)
            stop = int(starts[end]) if end < len(starts) else len(piece.data)
            ended = end - begin if end < len(starts) else piece.lines - begin
            cut = Piece(piece.data[start:stop], piece.first_line + begin, last=last, lines=ended)
        return Part(self._number, self._form, self._opening, cut)


def _telling(data: bytes, starts: IntArray) -> IntArray:
    """Return the lines that may open a block: those that do not begin with a number, and the first behind those.

    A row below a heading is none of them.
    """
    text = np.frombuffer(data, dtype=np.uint8)
    at = starts.copy()
    blank = np.flatnonzero(text[at] == _BLANK)
    for _ in range(_INDENT):
        if not len(blank):
            break
        at[blank] = np.minimum(at[blank] + 1, len(text) - 1)
        blank = blank[text[at[blank]] == _BLANK]
    first = text[at]
    rows = (first >= _DIGITS[0]) & (first <= _DIGITS[1])
    follows = np.append(True, ~rows[:-1] & (first[:-1] != _SIGN)) if len(rows) else rows
    return np.flatnonzero((~rows & (first > _BLANK)) | (rows & follows))

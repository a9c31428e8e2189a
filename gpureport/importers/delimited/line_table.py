"""Where the lines of a piece begin and end, and which of them do not look like rows."""

import re
from dataclasses import dataclass

import numpy as np

from gpureport.columns import BoolArray, IntArray
from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.delimited.layout import Layout

_ASCII = 127
_IN_HEADERS = re.compile(rb"timestamp")
"""What stands in headers and in no row: a line with it may end in a header, whatever the number of its cells."""


@dataclass(frozen=True, slots=True)
class LineTable:
    """The lines of a piece.

    Attributes:
        data: bytes of the piece.
        starts: where each line begins.
        ends: where each line ends, its newline left out.
        first: number of the first line in the log, from 1.
        cut: whether the log ends inside the last line.
    """

    data: bytes
    starts: IntArray
    ends: IntArray
    first: int
    cut: bool

    @classmethod
    def from_piece(cls, piece: Piece) -> "LineTable":
        """Return the lines of a piece."""
        data = piece.data
        cut = piece.last and bool(data) and not data.endswith(b"\n")
        ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == ord("\n"))
        ends = np.append(ends, len(data)) if cut else ends
        starts = np.append(0, ends[:-1] + 1) if len(ends) else ends
        return cls(data, starts, ends, piece.first_line, cut)

    def __len__(self) -> int:
        return len(self.ends)

    def raw(self, line: int) -> bytes:
        """Return one line."""
        return self.data[self.starts[line] : self.ends[line]]

    def block(self, begin: int, end: int) -> bytes:
        """Return several lines with their newlines."""
        return self.data[self.starts[begin] : self.ends[end - 1] + 1]

    def numbers(self, begin: int, end: int) -> IntArray:
        """Return the line numbers of several lines in the log."""
        return np.arange(self.first + begin, self.first + end, dtype=np.int64)

    def find_non_rows(self, layout: Layout | None) -> IntArray:
        """Return the lines that do not look like rows of the layout."""
        if layout is None:
            return np.arange(len(self))
        text = np.frombuffer(self.data, dtype=np.uint8)
        starts, ends = self.starts, self.ends
        first = np.where(ends > starts, text[np.minimum(starts, len(text) - 1)], 0)
        letter = ((first | 0x20) >= ord("a")) & ((first | 0x20) <= ord("z"))
        odd = (_count_per_line(text == ord(layout.delimiter), starts, ends) != len(layout.columns) - 1) | (
            ends - starts <= 1
        )
        odd |= letter | (first > _ASCII) | (first == 0)
        if len(layout.columns) == 1:
            odd |= (first < ord("0")) | (first > ord("9"))
        if b"\0" in self.data:
            odd |= _count_per_line(text == 0, starts, ends) > 0
        if not is_text(self.data):
            odd |= _count_per_line(text > _ASCII, starts, ends) > 0
        for header in re.finditer(_IN_HEADERS, self.data):
            odd[np.searchsorted(ends, header.start())] = True
        odd[-1] |= self.cut
        return np.flatnonzero(odd)


def is_text(data: bytes) -> bool:
    """Return whether bytes are UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _count_per_line(marks: BoolArray, starts: IntArray, ends: IntArray) -> IntArray:
    """Return how many marked bytes each line holds."""
    places = np.flatnonzero(marks)
    counted: IntArray = np.searchsorted(places, ends) - np.searchsorted(places, starts)
    return counted

"""The lines of tables drawn with `|`, `-` and `+`, told apart by their bars, a whole piece at once."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from gpureport.columns import BoolArray, IntArray

_NEWLINE, _RETURN, _BLANK, _BAR, _CORNER, _DASH, _DOUBLE = b"\n\r |+-="
_BORDERS = {b"+-", b"+=", b"|-", b"|="}
_DEVICE_BARS, _INSTANCE_BARS = 4, 5
_INDEX_AT = 4
"""Place of the last digit of a GPU's index behind the first bar: nvidia-smi writes it four characters wide."""


class LineShape(IntEnum):
    """What a line looks like.

    FRAME is a border, the banner or a line of the table of processes, DEVICE a line of the table of GPUs, INSTANCE one
    of the table of MIG instances; TEXT is no line of a table, BROKEN has no such number of bars.
    """

    BLANK = 0
    TEXT = 1
    FRAME = 2
    DEVICE = 3
    INSTANCE = 4
    BROKEN = 5


_BY_BARS = np.array([1, 5, 2, 5, 3, 4, 5], dtype=np.uint8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frames:
    """Lines by their shape.

    Attributes:
        data: their bytes.
        starts: where each begins.
        ends: where each ends, its newline aside.
        shapes: a `LineShape` for each.
        bars: where the bars are.
        firsts: index into `bars` of the first bar of each line.
    """

    data: bytes
    starts: IntArray
    ends: IntArray
    shapes: npt.NDArray[np.uint8]
    bars: IntArray
    firsts: IntArray

    @classmethod
    def of(cls, data: bytes) -> "Frames":
        """Return the lines of some text."""
        letters = np.frombuffer(data, dtype=np.uint8)
        ends = np.flatnonzero(letters == _NEWLINE)
        if data and not data.endswith(b"\n"):
            ends = np.append(ends, len(data))
        starts = np.append(0, ends[:-1] + 1)[: len(ends)]
        bars = np.flatnonzero(letters == _BAR)
        firsts = np.searchsorted(bars, starts)
        shapes = _BY_BARS[np.minimum(np.searchsorted(bars, ends) - firsts, len(_BY_BARS) - 1)]
        shapes[starts == ends] = LineShape.BLANK
        lines = cls(data=data, starts=starts, ends=ends, shapes=shapes, bars=bars, firsts=firsts)
        lines._look_at(np.flatnonzero(lines._unlike(letters)))
        return lines

    def _unlike(self, letters: npt.NDArray[Any]) -> BoolArray:
        """Return which lines do not plainly begin and end as lines of a table do; shape the borders."""
        last = np.minimum(np.maximum(self.ends - 1, self.starts), len(letters) - 1)
        last = np.maximum(last - (letters[last] == _RETURN), 0)
        begin, end = letters[self.starts], letters[last]
        second = letters[np.minimum(self.starts + 1, len(letters) - 1)]
        drawn = ((second == _DASH) | (second == _DOUBLE)) & ((begin == _BAR) | (begin == _CORNER))
        border = drawn & ((end == _BAR) | (end == _CORNER))
        self.shapes[border] = LineShape.FRAME
        unlike: BoolArray = ~border & ((begin != _BAR) | (end != _BAR)) & (self.starts < self.ends)
        return unlike

    def _look_at(self, lines: IntArray) -> None:
        """Shape lines one by one: text, and lines of tables with blanks around them."""
        for line in lines.tolist():
            text = self.raw(line).strip()
            begin, end = text[:1], text[-1:]
            if not text:
                self.shapes[line] = LineShape.BLANK
            elif text[:2] in _BORDERS:
                self.shapes[line] = LineShape.FRAME if end in b"|+" else LineShape.BROKEN
            elif begin == b"|":
                self.shapes[line] = self.shapes[line] if end == b"|" else LineShape.BROKEN
            else:
                self.shapes[line] = LineShape.TEXT

    def upto(self, line: int) -> "Frames":
        """Return the lines before one."""
        return replace(
            self, starts=self.starts[:line], ends=self.ends[:line], shapes=self.shapes[:line], firsts=self.firsts[:line]
        )

    def after(self, line: int) -> "Frames":
        """Return the lines from one on."""
        return Frames.of(self.data[self.starts[line] :]) if line < len(self) else Frames.of(b"")

    def __len__(self) -> int:
        """Return how many lines there are."""
        return len(self.ends)

    def raw(self, line: int) -> bytes:
        """Return the bytes of a line."""
        return self.data[self.starts[line] : self.ends[line]]

    def text(self, line: int) -> str:
        """Return a line as text."""
        return self.raw(line).decode(errors="replace").strip()

    def where(self, shape: int) -> IntArray:
        """Return the lines of a shape."""
        return np.flatnonzero(self.shapes == shape)

    def gpus(self) -> IntArray:
        """Return the lines of the table of GPUs that begin with an index."""
        lines = self.where(LineShape.DEVICE)
        letters = np.frombuffer(self.data, dtype=np.uint8)
        at = np.minimum(self.bars[self.firsts[lines]] + _INDEX_AT, len(letters) - 1)
        return lines[(letters[at] >= ord("0")) & (letters[at] <= ord("9"))]

    def raws(self, lines: IntArray) -> list[bytes]:
        """Return the bytes of several lines."""
        return _slices(self.data, self.starts[lines], self.ends[lines])

    def cells(self, lines: IntArray) -> Iterator["CellBytes"]:
        """Yield what stands in each of the three columns of some lines of the table of GPUs."""
        places = self.firsts[lines]
        for column in range(_DEVICE_BARS - 1):
            yield CellBytes(data=self.data, begins=self.bars[places + column] + 1, ends=self.bars[places + column + 1])


@dataclass(frozen=True, slots=True, kw_only=True)
class CellBytes:
    """One column of cells: where each begins and ends."""

    data: bytes
    begins: IntArray
    ends: IntArray

    def __len__(self) -> int:
        """Return how many cells there are."""
        return len(self.begins)

    def texts(self) -> list[bytes]:
        """Return each cell."""
        return _slices(self.data, self.begins, self.ends)

    def blank(self) -> BoolArray:
        """Return which cells hold nothing."""
        matrix = self.matrix()
        if matrix is None:
            return np.array([not text.strip() for text in self.texts()], dtype=np.bool_)
        blank: BoolArray = np.asarray((matrix == _BLANK).all(axis=1))
        for place in np.flatnonzero(~blank).tolist():
            blank[place] = not matrix[place].tobytes().strip()
        return blank

    def matrix(self) -> npt.NDArray[np.uint8] | None:
        """Return the characters, one cell a row; None where cells differ in width."""
        widths = self.ends - self.begins
        if not len(widths) or not widths[0] or (widths != widths[0]).any():
            return None
        letters = np.frombuffer(self.data, dtype=np.uint8)
        return np.lib.stride_tricks.sliding_window_view(letters, int(widths[0]))[self.begins]


def _slices(data: bytes, begins: IntArray, ends: IntArray) -> list[bytes]:
    return [data[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]

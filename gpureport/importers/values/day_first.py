"""Stamps as spreadsheets show them where the decimal sign is a comma: day, month, year, whole columns at a time."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from gpureport.columns import BoolArray, IntArray

Characters = npt.NDArray[np.uint8]
"""Texts of one length, one a row."""
_DATE_MARKS, _COLON, _BLANK = np.frombuffer(b"./", dtype=np.uint8), ord(":"), ord(" ")
_SECONDS = len("2026/03/14 09:26:53")
_MINUTES = len("2026/03/14 09:26")


@dataclass(frozen=True, slots=True)
class _Shape:
    """How many characters the parts of `14.3.2026 9:26:53,123` have.

    Attributes:
        day: digits of the day.
        month: digits of the month.
        hour: digits of the hour.
        seconds: characters of the seconds with the colon before them; 0 where there are none.
        fraction: characters of the fraction with the mark before it; 0 where there is none.
    """

    day: int
    month: int
    hour: int
    seconds: int
    fraction: int

    @property
    def clock(self) -> int:
        """Where the hour begins."""
        return self.day + self.month + len("..2026 ")

    @property
    def minutes(self) -> int:
        """Where the colon before the minutes stands."""
        return self.clock + self.hour

    @property
    def width(self) -> int:
        """Characters of the whole stamp."""
        return self.minutes + len(":26") + self.seconds + self.fraction

    def fits(self, text: Characters) -> BoolArray:
        """Return where the marks between the parts stand as in this shape; the rest is still to be looked at."""
        marks = np.isin(text[:, [self.day, self.day + 1 + self.month]], _DATE_MARKS).all(axis=1)
        marks &= (text[:, self.clock - 1] == _BLANK) & (text[:, self.minutes] == _COLON)
        found: BoolArray = marks & (text[:, self.minutes + 3] == _COLON) if self.seconds else marks
        return found

    def year_first(self, text: Characters) -> Characters:
        """Return stamps as nvidia-smi writes them, `2026/03/14 09:26:53.123`."""
        year = self.day + self.month + 2
        turned = np.tile(np.frombuffer(b"0000/00/00 00:00:00", dtype=np.uint8), (len(text), 1))
        parts = (
            (4, text[:, year : year + 4]),
            (7, text[:, self.day + 1 : year - 1]),
            (10, text[:, : self.day]),
            (13, text[:, self.clock : self.minutes]),
            (_MINUTES, text[:, self.minutes + 1 : self.minutes + 3]),
            (_SECONDS, text[:, self.minutes + 4 : self.minutes + 3 + self.seconds]),
        )
        for end, part in parts:
            turned[:, end - part.shape[1] : end] = part
        return np.hstack([turned, text[:, self.width - self.fraction :]])


_SHAPES: dict[int, list[_Shape]] = {}
for _parts in product((1, 2), (1, 2), (1, 2), (0, 3), (0, 2, 3, 4, 5, 6, 7)):
    _SHAPES.setdefault(_Shape(*_parts).width, []).append(_Shape(*_parts))
WIDTHS = frozenset(_SHAPES)
"""Characters that such a stamp can have."""


def year_first(text: Characters) -> Iterator[tuple[IntArray, Characters]]:
    """Yield which of some texts look like day, month, year, and what they are as nvidia-smi writes them.

    Args:
        text: texts of one length.
    """
    for shape in _SHAPES.get(text.shape[1], ()):
        rows = np.flatnonzero(shape.fits(text))
        if len(rows):
            yield rows, shape.year_first(text[rows])

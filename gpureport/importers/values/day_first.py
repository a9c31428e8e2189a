"""Stamps as spreadsheets show them where the decimal sign is a comma: day, month, year, whole columns at a time."""

import numpy as np
import numpy.typing as npt

from gpureport.columns import IntArray

Characters = npt.NDArray[np.uint8]
"""Texts of one length, one a row."""
_MINUTES, _SECONDS = len("14.03.2026 09:26"), len("14.03.2026 09:26:53")
WIDTHS = frozenset({_MINUTES, _SECONDS, len("14.03.2026 09:26:53,589")})
"""Characters that such a stamp can have."""


def year_first(text: Characters) -> tuple[IntArray, Characters]:
    """Return which of some texts look like day, month, year, and what they are as nvidia-smi writes them.

    Args:
        text: texts of one of WIDTHS.
    """
    marks = np.isin(text[:, [2, 5]], np.frombuffer(b"./", dtype=np.uint8)).all(axis=1)
    rows = np.flatnonzero(marks & (text[:, 10] == ord(" ")) & (text[:, 13] == ord(":")))
    found = text[rows]
    turned = np.tile(np.frombuffer(b"0000/00/00 00:00:00", dtype=np.uint8), (len(rows), 1))
    turned[:, :4], turned[:, 5:7], turned[:, 8:10] = found[:, 6:10], found[:, 3:5], found[:, :2]
    turned[:, 10 : found.shape[1]] = found[:, 10:_SECONDS]
    return rows, np.hstack([turned, found[:, _SECONDS:]])

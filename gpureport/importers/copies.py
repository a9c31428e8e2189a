"""Stretches of a log that repeat earlier ones: a file appended to itself, whole or in part, once or often."""

import numpy as np

from gpureport.columns import BoolArray, IntArray
from gpureport.importers.track import Track, spans

DUPLICATE = "duplicate segment"
"""Why rows of such a stretch are not in the series."""
_NEARLY_ALL = 0.9
"""A copy may lack rows the first time had damaged, and hold rows it had; more than a tenth is no copy (pragmatic)."""
_SEAM_ROWS = 2
"""Rows the damaged line where a copy begins may cost."""


def copied(track: Track, cuts: IntArray, folds: BoolArray) -> BoolArray:
    """Return the rows that say again what a row of an earlier segment said: same device, stamp and values.

    Args:
        track: rows with their stamps as written.
        cuts: rows before which the log runs back.
        folds: which of them are the end of daylight saving, after which the same stamps come again rightly.
    """
    copy = np.zeros(len(track), dtype=np.bool_)
    _, firsts, inverse = np.unique(track.keys, return_index=True, return_inverse=True)
    first = firsts[inverse]
    again = np.searchsorted(cuts, first, "right") < np.searchsorted(cuts, np.arange(len(track)), "right")
    starts = {0, *cuts.tolist()}
    for (start, end), fold in zip(spans(cuts, len(track))[1:], folds.tolist(), strict=True):
        if fold and not copy[start - 1]:
            continue
        repeated = start + np.flatnonzero(again[start:end])
        if len(repeated) and _is_copy(repeated, first, (start, end), starts):
            copy[repeated] = True
    return copy


def _is_copy(repeated: IntArray, first: IntArray, span: tuple[int, int], starts: set[int]) -> bool:
    """Return whether the repeated rows of a segment are a copy that fills it or begins it.

    A logger that goes on after it was copied adds new rows to the segment; then the copy must be one of an earlier
    segment from its first row on, for a clock set back by seconds can repeat stamps and values by chance.
    """
    start, end = span
    if len(repeated) >= _NEARLY_ALL * (end - start):
        return True
    filled = len(repeated) >= _NEARLY_ALL * (repeated[-1] + 1 - start)
    origin = int(first[repeated[0]])
    return bool(filled and len(repeated) > 1 and starts & set(range(origin - _SEAM_ROWS, origin + 1)))

"""Stretches of a log that repeat earlier ones: a file appended to itself, whole or in part, once or often."""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpureport.columns import BoolArray, IntArray
from gpureport.data_quality import gap_seconds
from gpureport.importers.timebase.row_order import RowOrder, split_at

_NEARLY_ALL = 0.9
"""A copy may lack rows the first time had damaged, and hold rows it had; more than a tenth is no copy (pragmatic)."""
_DEVICES = 1024
"""More than the GPUs of a log; times it, a stamp of this millennium still fits 64 bits."""
_SEAM_ROWS = 2
"""Rows that damage at the beginning or the end of a copy may cost or change."""
_ENOUGH = 8
"""Rows that chance would have to repeat: one in a thousand each at millisecond stamps (pragmatic)."""
_SECOND = 1_000_000
_ODD = np.uint64(0x9E3779B97F4A7C15)
"""Spreads a stamp over 64 bits (the golden ratio's)."""


def find_copies(track: RowOrder, cuts: IntArray, folds: BoolArray, pace: int) -> BoolArray:
    """Return the rows that repeat a row before a reversal: same device, stamp and values.

    Args:
        track: rows with their stamps as written.
        cuts: rows before which the log runs back.
        folds: which of them are the end of daylight saving, after which the same stamps come again rightly.
        pace: interval of the log, in microseconds.
    """
    copy = np.zeros(len(track), dtype=np.bool_)
    reversal = np.searchsorted(cuts, np.arange(len(track)), "right")
    first = _first(_with_stamps(track))
    again = reversal[first] < reversal
    # a copy whose last cell was cut off is one nevertheless
    place = reversal[_first(track.stamps * _DEVICES + track.devices)] < reversal
    pauses = np.flatnonzero(np.diff(track.stamps) > gap_seconds(pace / 1e6) * 1e6) + 1
    bounds = np.unique(np.concatenate([cuts, pauses, np.flatnonzero(track.after_line_gaps())]))
    starts = {0, *bounds.tolist()}
    distinctive = _find_distinctive_rows(track)
    for start, end in split_at(bounds, len(track)):
        last = int(reversal[start]) - 1
        if last < 0 or (folds[last] and not copy[cuts[last] - 1]):
            continue
        repeated = start + np.flatnonzero(again[start:end])
        if not len(repeated):
            continue
        originals, from_start = first[repeated], _repeats_a_start(first, repeated, starts)
        if not from_start and not distinctive[originals].any():
            continue
        damaged = int((place[start:end] & ~again[start:end]).sum())
        if len(repeated) == end - start - damaged and damaged <= _SEAM_ROWS:
            copy[start:end] = True
        elif _is_copy(repeated, (start, end), sure=from_start or _has_enough_evidence(distinctive, originals)):
            copy[start:end] = again[start:end] | place[start:end]
    return copy


def _with_stamps(track: RowOrder) -> npt.NDArray[np.uint64]:
    """Return a hash of each row, stamp and all."""
    return track.keys ^ (track.stamps.astype(np.uint64) * _ODD)


def _find_distinctive_rows(track: RowOrder) -> BoolArray:
    """Return the rows that a clock set back by whole seconds does not repeat by chance.

    An idle GPU repeats its values row after row, but not the moments, unless stamps are whole seconds. A distinctive
    row has other values than the row before it, or comes at another fraction of the second.
    """
    before = track.previous_rows()
    parts = track.stamps % _SECOND
    other: BoolArray = (track.keys != track.keys[before]) | (parts != parts[before])
    return other & (before >= 0)


def _repeats_a_start(first: IntArray, repeated: IntArray, starts: set[int]) -> bool:
    """Return whether repeated rows begin with the first of an earlier segment."""
    origin = int(first[repeated[0]])
    return bool(starts & set(range(origin - _SEAM_ROWS, origin + 1)))


def _first(keys: npt.NDArray[np.integer[Any]]) -> IntArray:
    """Return for each row the first one with its key."""
    _, firsts, inverse = np.unique(keys, return_index=True, return_inverse=True)
    rows: IntArray = firsts[inverse]
    return rows


def _has_enough_evidence(distinctive: BoolArray, originals: IntArray) -> bool:
    """Return whether so many rows are distinctive that chance cannot have repeated them."""
    return int(distinctive[originals].sum()) >= _ENOUGH


def _is_copy(repeated: IntArray, span: tuple[int, int], *, sure: bool) -> bool:
    """Return whether the repeated rows of a segment are a copy that fills it or begins it.

    A logger that goes on after it was copied adds new rows to the segment; then the copy must be a sure one, for a
    clock set back by seconds can repeat stamps and values by chance.
    """
    start, end = span
    if len(repeated) >= _NEARLY_ALL * (end - start):
        return True
    filled = len(repeated) >= _NEARLY_ALL * (repeated[-1] + 1 - start)
    return filled and len(repeated) > 1 and sure

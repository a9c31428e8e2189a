"""The end of daylight saving in a log: an hour that is written twice."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np

from gpureport.columns import BoolArray, IntArray
from gpureport.importers.timebase import zones
from gpureport.importers.timebase.row_order import RowOrder, split_at

_SECOND = 1_000_000
_SIZES = (3600 * _SECOND, 1800 * _SECOND)
"""By how much zones set their clocks back: an hour, on Lord Howe Island half of one."""
_LAG = 3
"""Intervals that may lie between the last row before a fold and the first after it: one, and a late one (pragmatic)."""
_MONTHS = {3, 4, 9, 10, 11}
_SATURDAY, _SUNDAY = 5, 6
_LAST_HOUR, _FIRST_HOURS = 23, 3
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def find_dst_overlaps(track: RowOrder, cuts: IntArray, pace: int, zone: ZoneInfo | None) -> BoolArray:
    """Return which reversals are the end of daylight saving.

    Args:
        track: rows with their local stamps.
        cuts: rows before which the log runs back.
        pace: interval of the log, in microseconds.
        zone: zone of the stamps, None when unknown.
    """
    folds = np.zeros(len(cuts), dtype=np.bool_)
    back = track.stamps[cuts - 1] - track.stamps[cuts]
    # only these are worth a look at the calendar; a zone of half an hour to two is explained by no other
    near = (2 * (back + _LAG * pace) >= min(_SIZES)) & (back <= 2 * max(_SIZES) + _LAG * pace)
    for place in np.flatnonzero(near).tolist():
        before, after = int(track.stamps[cuts[place] - 1]), int(track.stamps[cuts[place]])
        folds[place] = overlap_size(before, after, pace) if zone is None else _zone_explains(before, after, pace, zone)
    return folds


def overlap_size(before: int, after: int, pace: int) -> int:
    """Return by how much a reversal looks like the end of daylight saving in a zone nobody named, 0 when not at all.

    Zones fold back on a Sunday before 4 h or on Saturday at 23 h, in spring or autumn, to the beginning of an hour;
    the log goes on at its interval, as if the clock had not been touched.
    """
    local = _EPOCH + timedelta(microseconds=after)
    sunday = local.weekday() == _SUNDAY and local.hour <= _FIRST_HOURS
    saturday = local.weekday() == _SATURDAY and local.hour == _LAST_HOUR
    if local.month not in _MONTHS or not (sunday or saturday):
        return 0
    for fold in _SIZES:
        late = after % fold <= _LAG * pace
        if late and -pace < 2 * (after + fold - before) <= 2 * _LAG * pace:
            return fold
    return 0


def _zone_explains(before: int, after: int, pace: int, zone: ZoneInfo) -> bool:
    """Return whether a zone explains a reversal: it leads from the doubled hour into the doubled hour."""
    first, second = (int(fold) for fold in zones.fold_size(np.array([before, after], dtype=np.int64), zone))
    back = before - after
    # the doubled hour repeats a whole fold; a time server sets a clock back by seconds
    return first > 0 and 0 < second < 2 * back and back <= second + pace


def undo_dst_overlaps(track: RowOrder, cuts: IntArray, folds: BoolArray, pace: int, zone: ZoneInfo | None) -> IntArray:
    """Return the times of rows as if the clock had not been set back; in UTC where the zone is known.

    Args:
        track: rows with their local stamps.
        cuts: rows before which the log runs back.
        folds: which of them are the end of daylight saving.
        pace: interval of the log, in microseconds.
        zone: zone of the stamps, None when unknown.
    """
    if zone is not None:
        zones.refuse_skipped_hours(track.stamps, zone)
        return zones.to_utc(track.stamps, zone, _second_halves(track.stamps, cuts, folds, zone))
    times = track.stamps.copy()
    for cut in cuts[folds].tolist():
        before, after = int(track.stamps[cut - 1]), int(track.stamps[cut])
        # an earlier recording that comes later in the file was written before the fold
        times[cut:] += np.where(track.stamps[cut:] >= after - pace, overlap_size(before, after, pace), 0)
    return times


def _second_halves(stamps: IntArray, cuts: IntArray, folds: BoolArray, zone: ZoneInfo) -> BoolArray:
    """Return the rows that were written when a doubled hour came for the second time."""
    second = np.zeros(len(stamps), dtype=np.bool_)
    for (start, end), fold in zip(split_at(cuts, len(stamps))[1:], folds.tolist(), strict=True):
        if fold:
            # once the doubled hour is over, the next one begins with its first half again
            second[start:end] = np.cumprod(zones.fold_size(stamps[start:end], zone) > 0)
    return second

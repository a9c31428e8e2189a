"""Local stamps to UTC, by the zone that a person names."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from gpureport.columns import BoolArray, IntArray
from gpureport.errors import SettingsError

_QUARTER = 15 * 60 * 1_000_000
"""Zones change their offset at quarter hours only."""
_SEVERAL = 3
"""So many stamps in a skipped hour show that the zone is wrong; fewer are damaged stamps."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def load_zone(name: str) -> ZoneInfo:
    """Return the zone of that name.

    Raises:
        SettingsError: when there is none.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise SettingsError(
            "--tz", f"no time zone {name!r}", "give a name such as Europe/Berlin or UTC", code="unknown_time_zone"
        ) from error


def _utc_offset(quarter: int, zone: ZoneInfo, fold: int) -> int:
    """Return the zone's offset from UTC in microseconds in one quarter of an hour of local time."""
    local = (_EPOCH + timedelta(microseconds=quarter * _QUARTER)).replace(tzinfo=zone, fold=fold)
    offset = local.utcoffset() or timedelta()
    return round(offset.total_seconds() * 1e6)


def fold_size(stamps: IntArray, zone: ZoneInfo) -> IntArray:
    """Return for each local stamp that occurs twice by how much the clock is set back that night, else 0."""
    quarters, inverse = np.unique(stamps // _QUARTER, return_inverse=True)
    both = [(_utc_offset(int(quarter), zone, 0), _utc_offset(int(quarter), zone, 1)) for quarter in quarters]
    return np.array([max(first - second, 0) for first, second in both], dtype=np.int64)[inverse]


def to_utc(stamps: IntArray, zone: ZoneInfo, folded: BoolArray) -> IntArray:
    """Return local stamps in microseconds as UTC.

    Args:
        stamps: local time in microseconds, kept as if UTC.
        zone: zone of the recording machine.
        folded: where a stamp that occurs twice is the second of the two.
    """
    quarters, inverse = np.unique(stamps // _QUARTER, return_inverse=True)
    first = np.array([_utc_offset(int(quarter), zone, 0) for quarter in quarters], dtype=np.int64)
    second = np.array([_utc_offset(int(quarter), zone, 1) for quarter in quarters], dtype=np.int64)
    # between the two offsets lies the hour that is skipped in spring; only the doubled hour takes the second
    chosen = np.where(folded & (first > second)[inverse], second[inverse], first[inverse])
    return stamps - chosen


def refuse_skipped_hours(stamps: IntArray, zone: ZoneInfo) -> None:
    """Raise where several local stamps lie in an hour that the zone skips: no clock of it ever showed them.

    In UTC that hour and the next would lie on each other. A single stamp may be a damaged one.

    Raises:
        SettingsError: when they do.
    """
    quarters, inverse = np.unique(stamps // _QUARTER, return_inverse=True)
    skips = np.array(
        [_utc_offset(int(quarter), zone, 0) < _utc_offset(int(quarter), zone, 1) for quarter in quarters], dtype=bool
    )
    # rows of all GPUs share a stamp
    inside = np.unique(stamps[skips[inverse]])
    if len(inside) < _SEVERAL:
        return
    shown = (_EPOCH + timedelta(microseconds=int(inside.min()))).strftime("%Y-%m-%d %H:%M:%S")
    what = f"{zone.key} has no {shown}: clocks were set forward there, and the log has rows of that hour"
    raise SettingsError(
        "--tz", what, "name the zone that the clock of the machine was set to, perhaps UTC", code="skipped_hours"
    )


def local_span(span: tuple[int, int], zone: ZoneInfo) -> tuple[int, int]:
    """Return two times in UTC, in microseconds, as local time of a zone kept as if UTC."""
    return _to_local(span[0], zone), _to_local(span[1], zone)


def _to_local(time: int, zone: ZoneInfo) -> int:
    try:
        there = (_EPOCH + timedelta(microseconds=time)).astimezone(zone).replace(tzinfo=UTC)
    except OverflowError:
        # the last day of the calendar
        return time
    return (there - _EPOCH) // timedelta(microseconds=1)

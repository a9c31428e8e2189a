"""Where the rows of a log belong whose stamps run backwards: copies are left out, steps of a clock made good."""

from datetime import timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from gpureport.columns import BoolArray, IntArray, present
from gpureport.data_quality import CLOCK_SET_BACK
from gpureport.importers.clock import EPOCH, fold_sizes, to_utc
from gpureport.importers.note_text import format_count

_FURTHEST, _MOST_STEPS = 2 * 3_600 * 1_000_000, 4
"""Neither a time server nor the end of summer time sets a clock back further, and none does more often."""
_PUNCTUAL = 3
"""Intervals: how near a clock that is set back by half hours is on time."""
_HALF_HOUR = 1_800 * 1_000_000
_LATE = 3
"""Rows that come late together at most (pragmatic); more are of a clock that was set back."""
_MANY = 20
"""Rows above a step back that show where the log began (pragmatic)."""
_COPIED = 0.5
"""Share of the rows of a stretch that repeat earlier ones from which on it is a copy."""
RESTARTED, SUMMER_TIME = "log restarted", "daylight saving"
Step = tuple[int, int, int, str]
"""A step of a clock: when, by how much, by how much later rows are shifted, in microseconds, and its cause."""


class Order(NamedTuple):
    """The rows of a log in the order of its lines.

    Attributes:
        lines: line of each, rising.
        times: its time, in UTC where the zone is known.
        copies: rows that repeat earlier ones.
        steps: backward steps of each device, by its place.
        notes: what a reader must know.
        shuffled: whether stamps run backwards too often for one writer.
    """

    lines: npt.NDArray[Any]
    times: IntArray
    copies: BoolArray
    steps: dict[int, list[Step]]
    notes: list[str]
    shuffled: bool

    def places(self, lines: IntArray) -> IntArray:
        """Return the places of the rows on some lines."""
        return np.minimum(np.searchsorted(self.lines, lines), len(self.lines) - 1)


def put_in_order(
    lines: npt.NDArray[Any],
    stamps: IntArray,
    devices: npt.NDArray[Any],
    hashes: npt.NDArray[Any],
    zone: ZoneInfo | None,
) -> Order:
    """Return where rows belong: copies are left out, and what a clock wrote after it was set back is moved on.

    A step back by a few intervals is a late row, and many steps, or those over hours, are several recordings: such rows
    keep their stamps and are put in the order of time.

    Args:
        lines: line of each row, rising.
        stamps: stamps as written, in microseconds.
        devices: place of the device of each.
        hashes: what each row holds, as a number.
        zone: zone of the stamps, None where it is unknown or they are UTC.
    """
    times, copies = np.zeros(len(lines), dtype=np.int64), np.zeros(len(lines), dtype=np.bool_)
    steps, shuffled, notes = dict[int, list[Step]](), 0, list[str]()
    for device in np.unique(devices).tolist():
        own = np.flatnonzero(devices == device)
        copies[own] = _find_copies(stamps[own], hashes[own], zone)
        own = own[~copies[own]]
        times[own], steps[device], unsorted = _on_one_clock(lines[own], stamps[own], zone)
        shuffled += unsorted
    if copied := int(copies.sum()):
        notes.append(
            f"{format_count(copied, 'row')} {'says' if copied == 1 else 'say'} again what earlier ones say, the same "
            "GPU, stamp and values, as where a log was appended to itself; they were left out."
        )
    if any(cause == RESTARTED for found in steps.values() for *_, cause in found):
        notes.append("The log holds recordings out of the order of time: rows keep their stamps and were put in order.")
    if shuffled:
        notes.append(f"Stamps run backwards {shuffled:,} times, too often for a clock: rows were put in order by them.")
    return Order(lines, times, copies, steps, notes, shuffled > 0)


def _find_copies(stamps: IntArray, hashes: npt.NDArray[Any], zone: ZoneInfo | None) -> BoolArray:
    """Return which rows of a device repeat rows above a step back: most rows of their stretch do.

    After the end of summer time the same stamps come again rightly.
    """
    stretch = np.cumsum(np.diff(stamps, prepend=stamps[:1]) < 0, dtype=np.int32)
    behind = stamps[1:][stamps[1:] <= np.maximum.accumulate(stamps)[:-1]]
    copies = np.zeros(len(stamps), dtype=np.bool_)
    if not len(behind):
        return copies
    # no other rows can have the stamp of one that stands behind later ones
    own = np.flatnonzero((stamps >= behind.min()) & (stamps <= behind.max()))
    among = stretch[own]

    def repeats(keys: IntArray) -> BoolArray:
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        found: BoolArray = among[first[which]] < among
        return found

    place = repeats(stamps[own])
    again = place & repeats(hashes[own].astype(np.int64) ^ stamps[own] * 0x1E3779B97F4A7C15)
    share = np.bincount(among, again, stretch[-1] + 1) / np.bincount(stretch)
    pace, cuts = measure_pace(stamps), own[again & (np.diff(among, prepend=-1) > 0)]
    rightly = [stretch[cut] for cut in cuts.tolist() if cut and is_fold(stamps, cut, pace, zone)]
    # a copy of which the last cell was cut off is one nevertheless
    copies[own] = place & (share[among] >= _COPIED) & ~np.isin(among, rightly)
    return copies


def _on_one_clock(lines: npt.NDArray[Any], stamps: IntArray, zone: ZoneInfo | None) -> tuple[IntArray, list[Step], int]:
    """Return the times of a device's rows, the steps of its clock, and how often it is shuffled."""
    times = stamps.copy() if zone is None else to_utc(stamps, zone)
    pace, apart, falls = measure_pace(stamps), np.diff(lines), np.diff(stamps)
    if 2 * (falls < 0).sum() > len(stamps):
        # the newest row stands first
        return times, [], 0
    # where more lines stand between two rows than between others, as a header, another recording may begin
    usual = np.median(apart) if len(apart) else 0
    near, restarts, others = list[int](), list[Step](), 0
    for cut in (np.flatnonzero(falls < -1.5 * pace) + 1).tolist():
        fall = int(stamps[cut - 1] - stamps[cut])
        until = min(cut + min(max(1, fall // max(pace, 1) - 1), _LATE), len(stamps) - 1)
        if until == cut or stamps[cut : until + 1].max() >= stamps[cut - 1] or stamps[cut] > stamps[max(cut - 2, 0)]:
            # a row that comes late, or early, is one among rows in order
            continue
        begins_again = cut >= _MANY and abs(int(stamps[cut] - stamps[0])) <= _PUNCTUAL * pace
        if begins_again and not is_fold(stamps, cut, pace, zone):
            # another writer's rows of the same time
            others += 1
        elif fall >= _FURTHEST or (apart[cut - 1] > usual and stamps[cut:].max() < stamps[:cut].min()):
            restarts.append((int(times[cut]), -fall, 0, RESTARTED))
        else:
            near.append(cut)
    if others or len(near) > _MOST_STEPS:
        # a second writer's rows say again and again what was at the same times
        return times, restarts, len(near) + others
    steps = [_set_forward(times, stamps, cut, pace, zone) for cut in near]
    return times, sorted([*restarts, *steps]), 0


def _set_forward(times: IntArray, stamps: IntArray, cut: int, pace: int, zone: ZoneInfo | None) -> Step:
    """Move the times of rows that a clock wrote after it was set back; return the step."""
    fall = int(stamps[cut - 1] - stamps[cut])
    shift = int(times[cut - 1]) + pace - int(times[cut])
    if not is_fold(stamps, cut, pace, zone):
        times[cut:] += shift
        return int(times[cut]), -fall, shift if zone else int(times[cut] - stamps[cut]), CLOCK_SET_BACK
    if zone is None:
        times[cut:] += round((fall + pace) / _HALF_HOUR) * _HALF_HOUR
        return int(times[cut]), -fall, int(times[cut] - stamps[cut]), SUMMER_TIME
    # once the doubled hour is over, the next one begins with its first half again
    end = cut + int(np.logical_and.accumulate(fold_sizes(stamps[cut:], zone) > 0).sum())
    times[cut:end] = to_utc(stamps[cut:end], zone, second=np.ones(end - cut, dtype=np.bool_))
    return int(times[cut]), -fall, 0, SUMMER_TIME


def is_fold(stamps: IntArray, cut: int, pace: int, zone: ZoneInfo | None) -> bool:
    """Return whether a step back is the end of summer time.

    Where nobody named a zone it looks so: zones fold back on a Sunday before 4 h or on Saturday at 23 h, in spring or
    autumn, by an hour or half of one, and the log goes on at its interval.
    """
    fall = int(stamps[cut - 1] - stamps[cut])
    if zone is not None:
        before, after = fold_sizes(stamps[cut - 1 : cut + 1], zone).tolist()
        # the doubled hour repeats a whole fold; a time server sets a clock back by seconds
        return bool(before > 0 and 0 < after < 2 * fall and fall <= after + pace)
    halves = round((fall + pace) / _HALF_HOUR)
    local = EPOCH + timedelta(microseconds=int(stamps[cut]))
    night = (local.weekday() == 6 and local.hour <= 3) or (local.weekday() == 5 and local.hour == 23)  # noqa: PLR2004
    punctual = abs(fall + pace - halves * _HALF_HOUR) <= _PUNCTUAL * pace
    return halves in {1, 2} and punctual and night and local.month in {3, 4, 9, 10, 11}


def measure_pace(stamps: IntArray) -> int:
    """Return the median of the positive differences between stamps; 0 where there is none."""
    steps = np.diff(stamps)
    return int(np.median(steps[steps > 0])) if (steps > 0).any() else 0


_SECOND, _FEWEST = 1_000_000, 10
"""Seconds of a device that show that several rows share each (pragmatic)."""


def share_seconds(stamps: IntArray, devices: IntArray) -> IntArray:
    """Return stamps in which rows that were written several times a second share it evenly.

    A log whose stamps are whole seconds and that is sampled more often has several rows of a GPU with each stamp.
    """
    if not len(stamps) or (stamps % _SECOND).any():
        return stamps
    shared = stamps.copy()
    for device in present(devices):
        own = np.flatnonzero(devices == device)
        seconds, bounds, sizes = np.unique(stamps[own], return_index=True, return_counts=True)
        usual = int(np.median(sizes))
        rises = (np.diff(bounds) == sizes[:-1]).all()
        if not rises or len(sizes) < _FEWEST or usual < 2 or np.median(np.diff(seconds)) != _SECOND:  # noqa: PLR2004
            continue
        places = np.arange(len(own)) - np.repeat(bounds, sizes)
        # the first second may have begun before, and the last one may go on
        places[: sizes[0]] += max(usual - int(sizes[0]), 0)
        shared[own] += places * _SECOND // np.maximum(np.repeat(sizes, sizes), usual)
    return shared


_DAY = 86_400 * 1_000_000
_BEAT = 60 * 1_000_000
"""Intervals up to a minute show a damaged date beside a pause of days: the time of day goes on to the interval, which a
pause does by a chance of 1 in 700 at the most. Jobs that log by the hour or the day always begin on it."""


def find_wrong_dates(stamps: IntArray, devices: IntArray) -> BoolArray:
    """Return which rows have a damaged date: stamps a day or more off all that stands around.

    A row between two of its device is judged by both. The first row is judged by the two after it, and the last by the
    two before it: its date is damaged when the time of day goes on, and the date does not.

    Args:
        stamps: stamps of the rows, in microseconds.
        devices: device of each, negative for rows to leave out.
    """
    wrong = np.zeros(len(stamps), dtype=np.bool_)
    if not len(stamps) or stamps.max() - stamps.min() <= _DAY:
        return wrong
    for device in present(devices):
        own = np.flatnonzero(devices == device)
        steps = np.diff(stamps[own])
        far = np.abs(steps) > _DAY
        wrong[own[1:-1]] = far[:-1] & far[1:] & (np.abs(steps[:-1] + steps[1:]) < _DAY)
        for end, near in ((0, -steps[:2]), (-1, steps[:-3:-1])):
            wrong[own[end]] |= len(near) > 1 and _is_off(*near.tolist())
    return wrong


def _is_off(leap: int, step: int) -> bool:
    """Return whether a leap is one of whole days from where the step beside it leads."""
    days, rest = divmod(leap - step + _DAY // 2, _DAY)
    return abs(leap) > _DAY and abs(step) <= _BEAT and days != 0 and abs(rest - _DAY // 2) <= abs(step)

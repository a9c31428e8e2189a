"""Where the rows of a log belong whose stamps run backwards."""

from dataclasses import dataclass, field
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from gpureport.columns import BoolArray, IntArray
from gpureport.data_quality import CLOCK_SET_BACK, ClockStep
from gpureport.importers.clock import fold_sizes, is_fold, measure_pace, to_utc
from gpureport.importers.note_text import format_count

_FURTHEST, _FEW_STEPS, _MOST_STEPS = 2 * 3_600 * 1_000_000, 4, 1_000
"""Neither a time server nor the end of summer time sets a clock back further, and none does often."""
_PUNCTUAL = 3
"""Intervals: a stamp that falls by less is a late row, and a clock set back by half hours is on time to these."""
_HALF_HOUR = 1_800 * 1_000_000
_TWICE = 0.2
"""Share of the time that many steps back repeat from which on they are a second writer's (pragmatic)."""
_MANY = 20
"""Rows above a step back that show where the log began (pragmatic)."""
_COPIED = 0.5
"""Share of the rows of a stretch that repeat earlier ones from which on it is a copy."""
_RESTARTED, _SUMMER_TIME = "log restarted", "daylight saving"


@dataclass(slots=True)
class Order:
    """Where the rows of a log belong whose stamps run backwards.

    Attributes:
        lines: line of each row, rising.
        times: its time, in UTC where the zone is known.
        copies: rows that repeat earlier ones.
        steps: backward steps of each device, by its place.
        notes: what a reader must know.
        shuffled: whether stamps run backwards too often for one writer.
    """

    lines: IntArray
    times: IntArray
    copies: BoolArray
    steps: dict[int, list[tuple[int, int, int, str]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    shuffled: bool = False

    def clock_steps(self, place: int, device: str) -> list[ClockStep]:
        """Return the backward steps of the device at a place."""
        return [
            ClockStep(device=device, at=at, step_seconds=step / 1e6, shift_seconds=shift / 1e6, cause=cause)
            for at, step, shift, cause in self.steps.get(place, ())
        ]

    def places(self, lines: IntArray) -> IntArray:
        """Return the places of the rows on some lines."""
        return np.minimum(np.searchsorted(self.lines, lines), len(self.lines) - 1)


def put_in_order(
    lines: IntArray, stamps: IntArray, devices: IntArray, hashes: npt.NDArray[np.uint64], zone: ZoneInfo | None
) -> Order:
    """Return where rows belong: copies are left out, and what a clock wrote after it was set back is moved on.

    A step back by a few intervals is a late row, and many steps, or those over hours, are several recordings: such rows
    keep their stamps and are put in the order of time.

    Args:
        lines: line of each row.
        stamps: stamps as written, in microseconds.
        devices: place of the device of each.
        hashes: what each row holds, as a number.
        zone: zone of the stamps, None where it is unknown or they are UTC.
    """
    order = np.argsort(lines, kind="stable")
    lines, stamps, devices, hashes = lines[order], stamps[order], devices[order], hashes[order]
    found = Order(lines, stamps.copy() if zone is None else to_utc(stamps, zone), np.zeros(len(lines), dtype=np.bool_))
    shuffled = 0
    for device in np.unique(devices).tolist():
        own = np.flatnonzero(devices == device)
        copied = _copies(stamps[own], hashes[own], zone)
        found.copies[own[copied]] = True
        own = own[~copied]
        found.times[own], found.steps[device], unsorted = _one_clock(lines[own], stamps[own], zone)
        shuffled += unsorted
    if copies := int(found.copies.sum()):
        found.notes.append(
            f"{format_count(copies, 'row')} {'says' if copies == 1 else 'say'} again what earlier ones say, the same "
            "GPU, stamp and values, as where a log was appended to itself; they were left out."
        )
    if any(cause == _RESTARTED for steps in found.steps.values() for *_, cause in steps):
        found.notes.append(
            "The log holds recordings out of the order of time: rows keep their stamps and were put in order."
        )
    if shuffled:
        found.shuffled = True
        found.notes.append(
            f"Stamps run backwards {shuffled:,} times, too often for a clock: rows were put in order by them."
        )
    return found


def _copies(stamps: IntArray, hashes: npt.NDArray[np.uint64], zone: ZoneInfo | None) -> BoolArray:
    """Return which rows of a device repeat rows above a step back: most rows of their stretch do.

    After the end of summer time the same stamps come again rightly.
    """
    falls = np.flatnonzero(np.diff(stamps) < 0) + 1
    stretch = np.searchsorted(falls, np.arange(len(stamps)), side="right")
    again, place = (
        _first(keys, stretch) < stretch
        for keys in (hashes ^ (stamps.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)), stamps)
    )
    share = np.bincount(stretch, again) / np.maximum(np.bincount(stretch), 1)
    pace = measure_pace(stamps)
    rightly = [place + 1 for place, cut in enumerate(falls.tolist()) if again[cut] and is_fold(stamps, cut, pace, zone)]
    # a copy of which the last cell was cut off is one nevertheless
    return place & (share[stretch] >= _COPIED) & ~np.isin(stretch, rightly)


def _first(keys: npt.NDArray[Any], stretch: IntArray) -> IntArray:
    """Return the stretch in which each key is first."""
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    found: IntArray = stretch[first[which]]
    return found


def _one_clock(
    lines: IntArray, stamps: IntArray, zone: ZoneInfo | None
) -> tuple[IntArray, list[tuple[int, int, int, str]], int]:
    """Return the times of a device's rows, its steps back (time, step, shift, cause), and how often it is shuffled."""
    times = stamps.copy() if zone is None else to_utc(stamps, zone)
    pace, apart = measure_pace(stamps), np.diff(lines)
    # where more lines stand between two rows than between others, as a header, another recording may begin
    usual = np.median(apart) if len(apart) else 0
    if 2 * (np.diff(stamps) < 0).sum() > len(stamps):
        # the newest row stands first
        return times, [], 0
    near, said, others = list[int](), list[tuple[int, int, int, str]](), 0
    for cut in (np.flatnonzero(np.diff(stamps) < -1.5 * pace) + 1).tolist():
        fall = int(stamps[cut - 1] - stamps[cut])
        until = min(cut + max(1, fall // max(pace, 1) - 1), len(stamps) - 1)
        if until == cut or stamps[cut : until + 1].max() >= stamps[cut - 1] or stamps[cut] > stamps[max(cut - 2, 0)]:
            # a row that comes late, or early, is one among rows in order
            continue
        if (
            cut >= _MANY
            and not is_fold(stamps, cut, pace, zone)
            and abs(int(stamps[cut] - stamps[0])) <= _PUNCTUAL * pace
        ):
            # it begins again where the log began: another writer's rows of the same time
            others += 1
        elif fall >= _FURTHEST or (apart[cut - 1] > usual and stamps[cut:].max() < stamps[:cut].min()):
            said.append((int(times[cut]), -fall, 0, _RESTARTED))
        else:
            near.append(cut)
    twice = sum(int(stamps[cut - 1] - stamps[cut]) for cut in near) > _TWICE * pace * len(stamps)
    if others or len(near) > _MOST_STEPS or (len(near) > _FEW_STEPS and twice):
        # a second writer's rows say again and again what was at the same times
        return times, said, len(near) + others
    for cut in near:
        fall, end = int(stamps[cut - 1] - stamps[cut]), len(stamps)
        cause, shift = CLOCK_SET_BACK, int(times[cut - 1]) + pace - int(times[cut])
        if is_fold(stamps, cut, pace, zone):
            cause, shift = _SUMMER_TIME, round((fall + pace) / _HALF_HOUR) * _HALF_HOUR
            if zone is not None:
                second = np.zeros(len(stamps), dtype=np.bool_)
                # once the doubled hour is over, the next one begins with its first half again
                second[cut:] = np.cumprod(fold_sizes(stamps[cut:], zone) > 0)
                end, moved = cut + int(second.sum()), to_utc(stamps, zone, second=second)
                times[cut:end], shift = moved[cut:end], 0
        if zone is None or cause != _SUMMER_TIME:
            times[cut:] += shift
        said.append((int(times[cut]), -fall, shift if zone else int(times[cut] - stamps[cut]), cause))
    return times, sorted(said), 0


_DAY = 86_400 * 1_000_000
_BEAT = 60 * 1_000_000
"""Intervals up to a minute tell a damaged date from a pause of days: the time of day goes on to the interval, which a
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
    for device in np.unique(devices[devices >= 0]).tolist():
        own = np.flatnonzero(devices == device)
        steps = np.diff(stamps[own])
        far = np.abs(steps) > _DAY
        wrong[own[1:-1]] = far[:-1] & far[1:] & (np.abs(steps[:-1] + steps[1:]) < _DAY)
        if len(steps) > 1:
            wrong[own[0]] = _is_off(-int(steps[0]), -int(steps[1]))
            wrong[own[-1]] = _is_off(int(steps[-1]), int(steps[-2]))
    return wrong


def _is_off(leap: int, step: int) -> bool:
    """Return whether a leap is one of whole days from where the step beside it leads."""
    days, rest = divmod(leap - step + _DAY // 2, _DAY)
    return abs(leap) > _DAY and abs(step) <= _BEAT and days != 0 and abs(rest - _DAY // 2) <= abs(step)

"""The clock of a log: zones, the pace of each device, gaps, and rows whose stamps run backwards."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import accumulate, pairwise
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt

from gpureport import sampling_rate
from gpureport.columns import BoolArray, IntArray
from gpureport.data_quality import CLOCK_SET_BACK, ClockStep, LogGap, gap_seconds
from gpureport.errors import SettingsError
from gpureport.importers.note_text import format_count

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_QUARTER = 15 * 60 * 1_000_000
"""Zones change their offset at quarter hours only."""
_SEVERAL = 3
"""So many stamps in a skipped hour show that the zone is wrong; fewer are damaged stamps."""


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


def _offsets(stamps: IntArray, zone: ZoneInfo) -> tuple[IntArray, IntArray]:
    """Return the zone's offset from UTC at local stamps: the earlier reading of each and the later one."""
    quarters, inverse = np.unique(stamps // _QUARTER, return_inverse=True)
    found = np.zeros((2, len(quarters)), dtype=np.int64)
    for place, quarter in enumerate(quarters.tolist()):
        local = (_EPOCH + timedelta(microseconds=quarter * _QUARTER)).replace(tzinfo=zone)
        for fold in (0, 1):
            offset = local.replace(fold=fold).utcoffset() or timedelta()
            found[fold, place] = round(offset.total_seconds() * 1e6)
    return found[0][inverse], found[1][inverse]


def to_utc(stamps: IntArray, zone: ZoneInfo, *, second: BoolArray | None = None) -> IntArray:
    """Return local stamps, in microseconds, as UTC.

    Args:
        stamps: local times.
        zone: zone of the recording machine.
        second: where a stamp that the zone has twice is the second of the two; the first where None.

    Raises:
        SettingsError: where several stamps lie in an hour that the zone skips: no clock of it ever showed them.
    """
    first, later = _offsets(stamps, zone)
    skipped = np.unique(stamps[first < later])
    if len(skipped) >= _SEVERAL:
        shown = (_EPOCH + timedelta(microseconds=int(skipped.min()))).strftime("%Y-%m-%d %H:%M:%S")
        what = f"{zone.key} has no {shown}: clocks were set forward there, and the log has rows of that hour"
        raise SettingsError(
            "--tz", what, "name the zone that the clock of the machine was set to, perhaps UTC", code="skipped_hours"
        )
    # between the two offsets lies the hour that is skipped in spring; only the doubled hour takes the second
    return stamps - (first if second is None else np.where(second & (first > later), later, first))


def local_span(span: tuple[int, int], zone: ZoneInfo) -> tuple[int, int]:
    """Return two times in UTC, in microseconds, as local time of a zone kept as if UTC."""

    def local(time: int) -> int:
        try:
            there = (_EPOCH + timedelta(microseconds=time)).astimezone(zone).replace(tzinfo=UTC)
        except OverflowError:
            # the last day of the calendar
            return time
        return (there - _EPOCH) // timedelta(microseconds=1)

    return local(span[0]), local(span[1])


_DISTINCT = 50_000
_AT_ONCE = 8_192
"""Rows of a device that are measured together: a few thousand cost about what a hundred do (pragmatic)."""
_TOGETHER, _APART, _BUNCH = 60_000, 90_000, (1.9, 16.5)
"""Rows within 60 ms of each other, then at least 90 ms without, 2 to 16 at a time, are rows of several GPUs.

Genuine logs have 1 to 6 ms between the rows of a tick, and 50 under load.
"""


@dataclass(slots=True)
class Clock:
    """The clock of one device, measured as it ticks.

    Attributes:
        device: device id.
        steps: backward steps, where the log has any.
        first: time of the first row, in microseconds; None before there is any.
        last: time of the last one.
        duplicates: rows whose time equals that of the row before; after `measure`.
    """

    device: str
    steps: list[ClockStep] = field(default_factory=list)
    first: int | None = None
    last: int | None = None
    duplicates: int = 0
    _unmeasured: list[IntArray] = field(default_factory=list)
    _ticks: Counter[int] = field(default_factory=Counter)
    _long: list[tuple[int, int]] = field(default_factory=list)
    _pairs: float | None = None

    def accept(self, times: IntArray) -> IntArray:
        """Return the times of the next rows in microseconds, never decreasing, and note what was seen."""
        if not len(times):
            return times
        times = np.maximum.accumulate(np.maximum(times, times[0] if self.last is None else self.last))
        before = [] if self.last is None or self._unmeasured else [np.array([self.last])]
        self._unmeasured += [*before, times]
        self.first = int(times[0]) if self.first is None else self.first
        self.last = int(times[-1])
        if sum(map(len, self._unmeasured)) > _AT_ONCE:
            self.measure()
        return times

    def measure(self) -> None:
        """Note intervals, duplicates and possible gaps of the rows read since this was done last."""
        if not self._unmeasured:
            return
        times, self._unmeasured = np.concatenate(self._unmeasured), []
        ticks = np.diff(times)
        self.duplicates += int((ticks == 0).sum())
        values, counts = np.unique(ticks[ticks > 0], return_counts=True)
        if len(self._ticks) + len(values) > _DISTINCT:
            values, counts = np.unique(np.repeat(values // 1000 * 1000, counts), return_counts=True)
        self._ticks.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
        if self._pairs is None:
            self._pairs = sampling_rate.detect_paired_interval(ticks[ticks > 0])
        limit = gap_seconds(self.interval or 0.0) / 2 * 1e6
        self._long += [(int(times[row]), int(times[row + 1])) for row in np.flatnonzero(ticks > limit)]

    @property
    def interval(self) -> float | None:
        """Median of the positive differences between stamps, in seconds; None before there are any."""
        self.measure()
        return self._pairs or (_middle(sorted(self._ticks.items())) / 1e6 if self._ticks else None)

    def gaps(self) -> tuple[LogGap, ...]:
        """Return the stretches without samples, judged by the interval of the whole log."""
        interval = self.interval or 0.0
        far = np.array(self._long, np.int64).reshape(-1, 2)
        far = far[far[:, 1] - far[:, 0] > gap_seconds(interval) * 1e6]
        found = far[~sampling_rate.mark_slow_distances(far, interval)]
        return tuple(LogGap(device=self.device, start=start, end=end) for start, end in found.tolist())

    def bunched(self) -> bool:
        """Return whether rows come in bunches, as those of several GPUs do that no column tells apart."""
        self.measure()
        apart = sorted((tick, count) for tick, count in self._ticks.items() if tick > _TOGETHER)
        if not apart or _middle(apart) < _APART:
            return False
        rows = self._ticks.total() + self.duplicates
        return _BUNCH[0] <= rows / sum(count for _, count in apart) <= _BUNCH[1]


def _middle(ticks: Sequence[tuple[int, int]]) -> int:
    """Return the median of differences, each with how often it occurs, that rise; of two middle ones the lower."""
    upto = list(accumulate(count for _, count in ticks))
    return ticks[bisect_left(upto, (upto[-1] + 1) // 2)][0]


def coverage_ratio(clocks: Sequence[Clock], gaps: Sequence[LogGap]) -> float | None:
    """Return the share of the time from first to last sample, over all devices, in which each was sampled."""
    spans = [(clock.first, clock.last) for clock in clocks if clock.first is not None and clock.last is not None]
    whole = max((end for _, end in spans), default=0) - min((start for start, _ in spans), default=0)
    sampled = sum(end - start for start, end in spans) - sum(gap.end - gap.start for gap in gaps)
    return sampled / (whole * len(spans)) if whole else None


_LAG = 3
"""Intervals between rows that follow each other: one, and a late one (pragmatic)."""


@dataclass(slots=True)
class DoubledHour:
    """The rows of one device whose stamps a zone has twice, in a log whose stamps never fall.

    Rows that go on into the hour from before it are of the first. Those that begin within it may be of either, and
    those that go on behind it as well are of neither alone.
    """

    zone: ZoneInfo
    unsettled: int = 0
    _open: int = 0
    _entered: bool = False
    _last: int | None = None
    _pace: int = 0

    @property
    def rows(self) -> int:
        """Rows that may be of either hour."""
        return self.unsettled + (0 if self._entered else self._open)

    def take(self, stamps: IntArray) -> None:
        """Take further stamps as written, rising."""
        twice, self._pace = _fold_sizes(stamps, self.zone) > 0, _pace(stamps) or self._pace
        bounds = [0, *(np.flatnonzero(twice[1:] != twice[:-1]) + 1).tolist(), len(stamps)]
        for start, end in pairwise(bounds if twice.any() or self._open else []):
            before = self._last if start == 0 else int(stamps[start - 1])
            near = before is not None and stamps[start] - before <= _LAG * self._pace
            if twice[start]:
                self._entered = self._entered if self._open else near
                self._open += end - start
            elif self._open:
                self.unsettled += 0 if self._entered and not near else self._open
                self._open, self._entered = 0, False
        self._last = int(stamps[-1])


def note_doubled_hour(rows: int, zone: ZoneInfo) -> str:
    """Return what a reader must know of so many rows that may be of either hour."""
    lie = "lies" if rows == 1 else "lie"
    said = f"{format_count(rows, 'row')} {lie} in the hour that {zone.key} has twice in autumn"
    return f"{said}, and nothing in the log tells in which of the two: the first is taken."


_FURTHEST, _MOST_STEPS = 2 * 3_600 * 1_000_000, 4
"""Neither a time server nor the end of summer time sets a clock back further, and none does often."""
_PUNCTUAL = 3
"""Intervals: a stamp that falls by less is a late row, and a clock set back by half hours is on time to these."""
_HALF_HOUR = 1_800 * 1_000_000
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
    """

    lines: IntArray
    times: IntArray
    copies: BoolArray
    steps: dict[int, list[tuple[int, int, int, str]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

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
    keys = hashes ^ (stamps.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    again = stretch[first[which]] < stretch
    share = np.bincount(stretch, again) / np.maximum(np.bincount(stretch), 1)
    pace = _pace(stamps)
    rightly = [
        place + 1 for place, cut in enumerate(falls.tolist()) if again[cut] and _is_fold(stamps, cut, pace, zone)
    ]
    return again & (share[stretch] >= _COPIED) & ~np.isin(stretch, rightly)


def _pace(stamps: IntArray) -> int:
    steps = np.diff(stamps)
    return int(np.median(steps[steps > 0])) if (steps > 0).any() else 0


def _one_clock(
    lines: IntArray, stamps: IntArray, zone: ZoneInfo | None
) -> tuple[IntArray, list[tuple[int, int, int, str]], int]:
    """Return the times of a device's rows, its steps back (time, step, shift, cause), and how often it is shuffled."""
    times = stamps.copy() if zone is None else to_utc(stamps, zone)
    pace, apart = _pace(stamps), np.diff(lines)
    # where more lines stand between two rows than between others, as a header, another recording may begin
    usual = np.median(apart) if len(apart) else 0
    near, said = list[int](), list[tuple[int, int, int, str]]()
    for cut in (np.flatnonzero(np.diff(stamps) < -1.5 * pace) + 1).tolist():
        fall = int(stamps[cut - 1] - stamps[cut])
        until = min(cut + max(1, fall // max(pace, 1) - 1), len(stamps) - 1)
        if until == cut or stamps[cut : until + 1].max() >= stamps[cut - 1] or stamps[cut] > stamps[max(cut - 2, 0)]:
            # a row that comes late, or early, is one among rows in order
            continue
        if fall >= _FURTHEST or (apart[cut - 1] > usual and stamps[cut:].max() < stamps[:cut].min()):
            said.append((int(times[cut]), -fall, 0, _RESTARTED))
        else:
            near.append(cut)
    if len(near) > _MOST_STEPS:
        return times, said, len(near)
    for cut in near:
        fall, end = int(stamps[cut - 1] - stamps[cut]), len(stamps)
        cause, shift = CLOCK_SET_BACK, int(times[cut - 1]) + pace - int(times[cut])
        if _is_fold(stamps, cut, pace, zone):
            cause, shift = _SUMMER_TIME, round((fall + pace) / _HALF_HOUR) * _HALF_HOUR
            if zone is not None:
                second = np.zeros(len(stamps), dtype=np.bool_)
                # once the doubled hour is over, the next one begins with its first half again
                second[cut:] = np.cumprod(_fold_sizes(stamps[cut:], zone) > 0)
                end, moved = cut + int(second.sum()), to_utc(stamps, zone, second=second)
                times[cut:end], shift = moved[cut:end], 0
        if zone is None or cause != _SUMMER_TIME:
            times[cut:] += shift
        said.append((int(times[cut]), -fall, shift, cause))
    return times, sorted(said), 0


def _fold_sizes(stamps: IntArray, zone: ZoneInfo) -> IntArray:
    """Return for each local stamp that a zone has twice by how much the clock is set back that night, else 0."""
    first, later = _offsets(stamps, zone)
    sizes: IntArray = np.maximum(first - later, 0)
    return sizes


def _is_fold(stamps: IntArray, cut: int, pace: int, zone: ZoneInfo | None) -> bool:
    """Return whether a step back is the end of summer time.

    Where nobody named a zone it looks so: zones fold back on a Sunday before 4 h or on Saturday at 23 h, in spring or
    autumn, by an hour or half of one, and the log goes on at its interval.
    """
    fall = int(stamps[cut - 1] - stamps[cut])
    if zone is not None:
        before, after = _fold_sizes(stamps[cut - 1 : cut + 1], zone).tolist()
        # the doubled hour repeats a whole fold; a time server sets a clock back by seconds
        return bool(before > 0 and 0 < after < 2 * fall and fall <= after + pace)
    halves = round((fall + pace) / _HALF_HOUR)
    local = _EPOCH + timedelta(microseconds=int(stamps[cut]))
    night = (local.weekday() == 6 and local.hour <= 3) or (local.weekday() == 5 and local.hour == 23)  # noqa: PLR2004
    punctual = abs(fall + pace - halves * _HALF_HOUR) <= _PUNCTUAL * pace
    return halves in {1, 2} and punctual and night and local.month in {3, 4, 9, 10, 11}


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

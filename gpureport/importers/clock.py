"""The clock of a log: its zone, and of each device the interval, the gaps and how much of the time was sampled."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from gpureport import sampling_rate
from gpureport.columns import BoolArray, IntArray
from gpureport.data_quality import ClockStep, LogGap, gap_seconds
from gpureport.errors import SettingsError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
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
    except (ZoneInfoNotFoundError, ValueError, OSError, RecursionError) as error:
        raise SettingsError(
            "--tz", f"no time zone {name!r}", "give a name such as Europe/Berlin or UTC", code="unknown_time_zone"
        ) from error


def _offsets(stamps: IntArray, zone: ZoneInfo) -> tuple[IntArray, IntArray]:
    """Return the zone's offset from UTC at local stamps: the earlier reading of each and the later one."""
    quarters, inverse = np.unique(stamps // _QUARTER, return_inverse=True)
    found = np.zeros((2, len(quarters)), dtype=np.int64)
    for place, quarter in enumerate(quarters.tolist()):
        local = (EPOCH + timedelta(microseconds=quarter * _QUARTER)).replace(tzinfo=zone)
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
        shown = (EPOCH + timedelta(microseconds=int(skipped.min()))).strftime("%Y-%m-%d %H:%M:%S")
        what = f"{zone.key} has no {shown}: clocks were set forward there, and the log has rows of that hour"
        raise SettingsError(
            "--tz", what, "name the zone that the clock of the machine was set to, perhaps UTC", code="skipped_hours"
        )
    # between the two offsets lies the hour that is skipped in spring; only the doubled hour takes the second
    return stamps - (first if second is None else np.where(second & (first > later), later, first))


def fold_sizes(stamps: IntArray, zone: ZoneInfo) -> IntArray:
    """Return for each local stamp that a zone has twice by how much the clock is set back that night, else 0."""
    first, later = _offsets(stamps, zone)
    sizes: IntArray = np.maximum(first - later, 0)
    return sizes


def local_span(span: tuple[int, int], zone: ZoneInfo) -> tuple[int, int]:
    """Return two times in UTC, in microseconds, as local time of a zone kept as if UTC."""

    def local(time: int) -> int:
        try:
            there = (EPOCH + timedelta(microseconds=time)).astimezone(zone).replace(tzinfo=UTC)
        except OverflowError:
            # the last day of the calendar
            return time
        return (there - EPOCH) // timedelta(microseconds=1)

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
        moved = ticks[ticks > 0]
        self.duplicates += len(ticks) - len(moved)
        values, counts = np.unique(moved, return_counts=True)
        if len(self._ticks) + len(values) > _DISTINCT:
            values, counts = np.unique(moved // 1000 * 1000, return_counts=True)
        self._ticks.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
        self._pairs = self._pairs or sampling_rate.detect_paired_interval(moved)
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

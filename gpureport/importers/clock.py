"""The clock of one device's stamps: repaired where it steps back, and measured as it ticks."""

from collections import Counter
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

import numpy as np

from gpureport.columns import IntArray
from gpureport.importers import zones
from gpureport.quality import ClockStep, LogGap, gap_seconds

_BACKWARD = 0.5
"""A step back by more than this share of the interval is the clock's, less is jitter (pragmatic)."""
_DISTINCT = 50_000
_TOGETHER = 60_000
_APART = 90_000
_BUNCH = (1.9, 16.5)
"""Rows within 60 ms of each other, then at least 90 ms without, 2 to 16 at a time, are rows of several GPUs.

Genuine logs have 1 to 6 ms between the rows of a tick, and 50 under load.
"""


@dataclass(slots=True)
class Clock:
    """State of one device's clock between the pieces of its log.

    Attributes:
        device: device id.
        zone: zone of the stamps, None when unknown.
        steps: backward steps found so far.
        duplicates: rows whose time equals that of the row before.
    """

    device: str
    zone: ZoneInfo | None
    steps: list[ClockStep] = field(default_factory=list)
    duplicates: int = 0
    first: int | None = None
    last: int | None = None
    _raw: int | None = None
    _shift: int = 0
    _folded: bool = False
    _ticks: Counter[int] = field(default_factory=Counter)
    _long: list[tuple[int, int]] = field(default_factory=list)

    @property
    def interval(self) -> float | None:
        """Median of the positive differences between stamps, in seconds; None before there are any."""
        if not self._ticks:
            return None
        ticks = np.array(sorted(self._ticks))
        counts = np.cumsum([self._ticks[int(tick)] for tick in ticks])
        return float(ticks[np.searchsorted(counts, (counts[-1] + 1) // 2)]) / 1e6

    def read(self, stamps: IntArray) -> IntArray:
        """Return the times of the next rows in microseconds, never decreasing, and note what was seen.

        Args:
            stamps: stamps as written, in microseconds.
        """
        if not len(stamps):
            return stamps
        times = np.empty_like(stamps)
        previous = stamps[:1] if self._raw is None else np.array([self._raw], dtype=np.int64)
        differences = np.diff(np.concatenate([previous, stamps]))
        for rows in np.split(np.arange(len(stamps)), self._backward(differences)):
            times[rows] = self._segment(stamps[rows], int(differences[rows[0]]) if len(rows) else 0)
        self._raw = int(stamps[-1])
        return times

    def _backward(self, differences: IntArray) -> IntArray:
        """Return the rows at which the clock steps back."""
        positive = differences[differences > 0]
        interval = self.interval or (float(np.median(positive)) / 1e6 if len(positive) else 0.0)
        return np.flatnonzero(differences < -_BACKWARD * interval * 1e6)

    def _segment(self, stamps: IntArray, step: int) -> IntArray:
        """Return the times of rows without a step among them; `step` leads into the first of them."""
        if not len(stamps):
            return stamps
        interval = round((self.interval or 0.0) * 1e6)
        if self.last is not None and step < -_BACKWARD * interval:
            self._step_back(int(stamps[0]), step, interval)
        times = self._placed(stamps)
        # once the doubled hour is over, the next one begins with its first half again
        self._folded = self._folded and self.zone is not None and bool((zones.fold(stamps, self.zone) > 0).all())
        floor = times[0] if self.last is None else max(self.last, 0)
        times = np.maximum.accumulate(np.maximum(times, floor))
        self._measure(times)
        return times

    def _step_back(self, stamp: int, step: int, interval: int) -> None:
        """Note a step back, and shift what follows unless the zone explains it."""
        fold = 0 if self.zone is None else int(zones.fold(np.array([stamp]), self.zone)[0])
        # the doubled hour repeats a whole fold; a time server sets a clock back by seconds
        saving = not self._folded and 0 < fold < -2 * step
        cause = "daylight saving" if saving else "clock set back or log restarted"
        if saving:
            self._folded = True
        else:
            expected = (self.last or 0) + interval
            self._shift += expected - int(self._placed(np.array([stamp]))[0])
        at = int(self._placed(np.array([stamp]))[0])
        self.steps.append(
            ClockStep(device=self.device, at=at, step_seconds=step / 1e6, shift_seconds=self._shift / 1e6, cause=cause)
        )

    def _placed(self, stamps: IntArray) -> IntArray:
        """Return stamps in UTC where the zone is known, shifted by the steps so far."""
        if self.zone is None:
            return stamps + self._shift
        doubled = zones.fold(stamps, self.zone) > 0
        second = np.cumprod(doubled).astype(np.bool_) if self._folded else np.zeros(len(stamps), dtype=np.bool_)
        return zones.to_utc(stamps, self.zone, second) + self._shift

    def _measure(self, times: IntArray) -> None:
        """Note intervals, duplicates and possible gaps."""
        known = times if self.last is None else np.concatenate([np.array([self.last]), times])
        ticks = np.diff(known)
        self.duplicates += int((ticks == 0).sum())
        values, counts = np.unique(ticks[ticks > 0], return_counts=True)
        if len(self._ticks) + len(values) > _DISTINCT:
            values, counts = np.unique(np.repeat(values // 1000 * 1000, counts), return_counts=True)
        self._ticks.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
        limit = gap_seconds(self.interval or 0.0) / 2 * 1e6
        self._long += [(int(known[row]), int(known[row + 1])) for row in np.flatnonzero(ticks > limit)]
        self.first = int(times[0]) if self.first is None else self.first
        self.last = int(times[-1])

    def gaps(self) -> tuple[LogGap, ...]:
        """Return the stretches without samples, judged by the interval of the whole log."""
        limit = gap_seconds(self.interval or 0.0) * 1e6
        return tuple(
            LogGap(device=self.device, start=start, end=end) for start, end in self._long if end - start > limit
        )

    def bunched(self) -> bool:
        """Return whether rows come in bunches.

        Several GPUs that no column tells apart are written within some milliseconds, then nothing until the next
        tick: most differences are a small part of the long ones.
        """
        ticks = np.array(list(self._ticks), dtype=np.int64)
        counts = np.array(list(self._ticks.values()), dtype=np.int64)
        close = int(counts[ticks <= _TOGETHER].sum()) + self.duplicates
        apart = np.repeat(ticks[ticks > _TOGETHER], counts[ticks > _TOGETHER])
        if len(apart) == 0 or np.median(apart) < _APART:
            return False
        together = (close + len(apart)) / len(apart)
        return bool(_BUNCH[0] <= together <= _BUNCH[1])

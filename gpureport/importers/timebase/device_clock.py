"""The clock of one device: measured as it ticks."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from gpureport import sampling_rate
from gpureport.columns import IntArray
from gpureport.data_quality import ClockStep, LogGap, gap_seconds

_DISTINCT = 50_000
_AT_ONCE = 8_192
"""Rows of a device that are measured together: a few thousand cost about what a hundred do (pragmatic)."""
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
        steps: backward steps, where the log has any.
        first: time of the first row, in microseconds; None before there is any.
        last: time of the last one.
    """

    device: str
    steps: list[ClockStep] = field(default_factory=list)
    first: int | None = None
    last: int | None = None
    _unmeasured: list[IntArray] = field(default_factory=list)
    _repeated: int = 0
    _ticks: Counter[int] = field(default_factory=Counter)
    _long: list[tuple[int, int]] = field(default_factory=list)
    _pairs: float | None = None

    @property
    def interval(self) -> float | None:
        """Median of the positive differences between stamps, in seconds; None before there are any."""
        self._measure()
        return self._usual()

    @property
    def duplicates(self) -> int:
        """Rows whose time equals that of the row before."""
        self._measure()
        return self._repeated

    def accept(self, times: IntArray) -> IntArray:
        """Return the times of the next rows in microseconds, never decreasing, and note what was seen.

        Args:
            times: times in microseconds, in order but for the skipped hour of spring.
        """
        if not len(times):
            return times
        floor = times[0] if self.last is None else self.last
        times = np.maximum.accumulate(np.maximum(times, floor))
        before = [] if self.last is None or self._unmeasured else [np.array([self.last])]
        self._unmeasured += [*before, times]
        self.first = int(times[0]) if self.first is None else self.first
        self.last = int(times[-1])
        if sum(map(len, self._unmeasured)) > _AT_ONCE:
            self._measure()
        return times

    def _measure(self) -> None:
        """Note intervals, duplicates and possible gaps of the rows read since this was done last."""
        if not self._unmeasured:
            return
        times = np.concatenate(self._unmeasured)
        self._unmeasured = []
        ticks = np.diff(times)
        self._repeated += int((ticks == 0).sum())
        values, counts = np.unique(ticks[ticks > 0], return_counts=True)
        if len(self._ticks) + len(values) > _DISTINCT:
            values, counts = np.unique(np.repeat(values // 1000 * 1000, counts), return_counts=True)
        self._ticks.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
        if self._pairs is None:
            self._pairs = sampling_rate.detect_paired_interval(ticks[ticks > 0])
        limit = gap_seconds(self._usual() or 0.0) / 2 * 1e6
        self._long += [(int(times[row]), int(times[row + 1])) for row in np.flatnonzero(ticks > limit)]

    def _usual(self) -> float | None:
        return self._pairs or (_middle(sorted(self._ticks.items())) / 1e6 if self._ticks else None)

    def gaps(self) -> tuple[LogGap, ...]:
        """Return the stretches without samples, judged by the interval of the whole log."""
        interval = self.interval or 0.0
        far = np.array(self._long, np.int64).reshape(-1, 2)
        far = far[far[:, 1] - far[:, 0] > gap_seconds(interval) * 1e6]
        found = far[~sampling_rate.mark_slow_distances(far, interval)]
        return tuple(LogGap(device=self.device, start=start, end=end) for start, end in found.tolist())

    def bunched(self) -> bool:
        """Return whether rows come in bunches.

        Several GPUs that no column tells apart are written within some milliseconds, then nothing until the next
        tick: most differences are a small part of the long ones.
        """
        self._measure()
        apart = sorted((tick, count) for tick, count in self._ticks.items() if tick > _TOGETHER)
        if not apart or _middle(apart) < _APART:
            return False
        rows = self._ticks.total() + self._repeated
        return _BUNCH[0] <= rows / sum(count for _, count in apart) <= _BUNCH[1]


def _middle(ticks: Sequence[tuple[int, int]]) -> int:
    """Return the median of differences, each with how often it occurs, that rise; of two middle ones the lower."""
    upto = list(accumulate(count for _, count in ticks))
    return ticks[bisect_left(upto, (upto[-1] + 1) // 2)][0]

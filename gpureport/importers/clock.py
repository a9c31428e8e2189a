"""The clock of one device: measured as it ticks."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from gpureport import paces
from gpureport.columns import IntArray
from gpureport.quality import ClockStep, LogGap, gap_seconds

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
        steps: backward steps, where the log has any.
        duplicates: rows whose time equals that of the row before.
    """

    device: str
    steps: list[ClockStep] = field(default_factory=list)
    duplicates: int = 0
    first: int | None = None
    last: int | None = None
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

    def read(self, times: IntArray) -> IntArray:
        """Return the times of the next rows in microseconds, never decreasing, and note what was seen.

        Args:
            times: times in microseconds, in order but for the skipped hour of spring.
        """
        if not len(times):
            return times
        floor = times[0] if self.last is None else self.last
        times = np.maximum.accumulate(np.maximum(times, floor))
        self._measure(times)
        return times

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
        interval = self.interval or 0.0
        far = np.array(self._long, np.int64).reshape(-1, 2)
        far = far[far[:, 1] - far[:, 0] > gap_seconds(interval) * 1e6]
        found = far[~paces.usual(far, interval)]
        return tuple(LogGap(device=self.device, start=start, end=end) for start, end in found.tolist())

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

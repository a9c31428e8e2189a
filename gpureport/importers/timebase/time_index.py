"""Indexes of the stamps and the time ranges of a log so far, for quick look-ups."""

from bisect import bisect_left, bisect_right

import numpy as np

from gpureport.columns import IntArray


class TimeIndex:
    """All stamps so far, in sorted runs each at most half as long as the one before it."""

    def __init__(self) -> None:
        self._runs: list[IntArray] = []
        self._bounds: list[tuple[int, int]] = []

    def add(self, stamps: IntArray) -> None:
        """Add stamps, in any order."""
        run = np.sort(stamps)
        while self._runs and 2 * len(run) > len(self._runs[-1]):
            self._bounds.pop()
            # two sorted runs: a stable sort merges them
            run = np.sort(np.concatenate([self._runs.pop(), run]), kind="stable")
        self._runs.append(run)
        self._bounds.append((int(run[0]), int(run[-1])))

    def count_within(self, start: int, end: int) -> int:
        """Return how many stamps lie between two times, both included."""
        inside = [
            run for run, (low, high) in zip(self._runs, self._bounds, strict=True) if low <= end and high >= start
        ]
        return sum(int(np.searchsorted(run, end, "right") - np.searchsorted(run, start)) for run in inside)

    def distance_to(self, start: int, end: int) -> int:
        """Return the distance from a time range to the nearest stamp, 0 when a stamp lies inside."""
        if self.count_within(start, end):
            return 0
        distances = []
        for run in self._runs:
            place = int(np.searchsorted(run, start))
            distances += [start - int(stamp) for stamp in run[place - 1 : place]]
            distances += [int(stamp) - end for stamp in run[place : place + 1]]
        return min(distances)


class CoveredTime:
    """The time ranges so far; overlapping ones are merged."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def __len__(self) -> int:
        return len(self._starts)

    def add(self, start: int, end: int) -> None:
        """Add a range."""
        first, last = bisect_left(self._ends, start), bisect_right(self._starts, end)
        if first < last:
            start, end = min(start, self._starts[first]), max(end, self._ends[last - 1])
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]

    def count_within(self, times: IntArray) -> int:
        """Return how many of these rising times lie in a range."""
        first, last = bisect_left(self._ends, int(times[0])), bisect_right(self._starts, int(times[-1]))
        ends = np.searchsorted(times, self._ends[first:last], "right")
        return int((ends - np.searchsorted(times, self._starts[first:last])).sum())

"""The ledger of one GPU's time: what each class has, as stretches and as sums."""

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from gpureport.analysis.results import GPU_TIME_CLASSES, GpuTime, TimePart
from gpureport.analysis.series import intervals
from gpureport.analysis.series.intervals import Spans
from gpureport.columns import FloatArray, IntArray
from gpureport.findings import Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassTime:
    """Time of one GPU that counts to a class.

    Attributes:
        name: the class.
        cause: what lies behind it; empty where that is not told.
        when: the stretches.
        weight: share of each row's time in them that counts.
        start: where the time of each row begins, in microseconds.
        end: where it ends.
    """

    name: str
    cause: str
    when: Spans
    weight: FloatArray
    start: IntArray
    end: IntArray

    @property
    def seconds(self) -> float:
        """All of it."""
        return float(np.nansum(self.weight * intervals.overlap_seconds(self.start, self.end, self.when)))

    def seconds_until(self, times: IntArray) -> FloatArray:
        """Return how much of it lies before each of some moments."""
        weight = np.nan_to_num(self.weight)
        whole = np.concatenate([[0.0], np.cumsum(weight * intervals.overlap_seconds(self.start, self.end, self.when))])
        row = np.searchsorted(self.end, times, side="right")
        inside = np.minimum(row, len(self.end) - 1)
        begun = np.minimum(self.start[inside], times)
        part = weight[inside] * intervals.overlap_seconds(begun, times, self.when)
        found: FloatArray = whole[row] + np.where(row < len(self.end), part, 0.0)
        return found


@dataclass(slots=True)
class Ledger:
    """The time of one GPU by class.

    Attributes:
        window: from the first to the last sample of the run.
        left: the time that no class has yet.
        entries: what each class and cause has; computing is what no entry has.
    """

    window: Interval
    left: Spans
    entries: list[ClassTime] = field(default_factory=list)

    def claim(self, held: Spans) -> Spans:
        """Return what is left of some stretches, which is left no longer."""
        part = intervals.intersection(self.left, held)
        self.left = intervals.difference(self.left, held)
        return part

    def take(self, name: str, held: Spans, cause: str = "") -> None:
        """Count all that is left of some stretches to a class."""
        self.add(name, self.claim(held), cause)

    def add(self, name: str, when: Spans, cause: str = "", share: float = 1.0) -> None:
        """Count a share of some stretches to a class."""
        if len(when):
            start, end = (np.array([edge]) for edge in (self.window.start, self.window.end))
            self.add_rows(name, when, np.array([share]), (start, end), cause)

    def add_rows(
        self, name: str, when: Spans, weight: FloatArray, rows: tuple[IntArray, IntArray], cause: str = ""
    ) -> None:
        """Count the share of each row that lies in some stretches to a class."""
        if len(when) and len(weight):
            start, end = rows
            self.entries.append(ClassTime(name=name, cause=cause, when=when, weight=weight, start=start, end=end))

    def close(self, device: str) -> GpuTime:
        """Return the classes in whole microseconds, computing being what no other has."""
        seconds: defaultdict[tuple[str, str], float] = defaultdict(float)
        for entry in self.entries:
            seconds[entry.name, entry.cause] += entry.seconds
        taken = {key: round(amount * 1e6) for key, amount in seconds.items()}
        left = self.window.end - self.window.start - sum(taken.values())
        if left < 0:
            # shares of moments are rounded each, which can add a few microseconds
            taken[max(taken, key=lambda key: taken[key])] += left
            left = 0
        totals = dict.fromkeys(GPU_TIME_CLASSES, 0) | {"computing": left}
        for (name, _), amount in taken.items():
            totals[name] += amount
        parts = (
            TimePart(name=name, cause=cause, seconds=amount / 1e6)
            for (name, cause), amount in taken.items()
            if cause and amount
        )
        return GpuTime(
            device=device, seconds=tuple((name, amount / 1e6) for name, amount in totals.items()), parts=tuple(parts)
        )

    def divide(self, edges: IntArray) -> dict[str, FloatArray]:
        """Return the seconds of each class between edges, which together are the time between them."""
        classes = {name: np.zeros(len(edges) - 1) for name in GPU_TIME_CLASSES}
        for entry in self.entries:
            classes[entry.name] = classes[entry.name] + np.diff(entry.seconds_until(edges))
        taken = np.sum(list(classes.values()), axis=0)
        return classes | {"computing": np.maximum(np.diff(edges) / 1e6 - taken, 0.0)}

"""Series of several devices on one grid of equal bins, and rolling figures."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.findings import Interval

_LONGEST_HOLE = 3600.0
"""Seconds of an unsampled stretch that get bins: an hour at most per sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Equal bins of `width` seconds over a window; long unsampled stretches (`removed`) have none."""

    start: int
    width: float
    count: int
    removed: Spans

    def find_bins(self, times: IntArray) -> IntArray:
        """Return the bin of each time, in a removed stretch the bin at its place."""
        left = times - self.start - intervals.measure_covered_before(self.removed, times)
        return np.asarray(np.floor(left / (self.width * 1e6)), dtype=np.int64)

    def find_bin_slice(self, start: int, end: int) -> slice:
        """Return the bins that cover a stretch of time, at least one."""
        first, stop = self.find_bins(np.array([start, end], dtype=np.int64)).tolist()
        return slice(max(first, 0), max(stop, first + 1))

    def cut(self, series: FloatArray, spans: Spans) -> list[FloatArray]:
        return [series[self.find_bin_slice(*span)] for span in spans.tolist()]

    def find_bin_edges(self, bins: IntArray, side: Literal["left", "right"]) -> IntArray:
        """Return when bins begin (`right`) or, for past-the-end bins, end (`left`)."""
        before = np.append(0, np.cumsum(self.removed[:, 1] - self.removed[:, 0]))
        times = self.start + np.round(bins * (self.width * 1e6)).astype(np.int64)
        passed = np.searchsorted(self.removed[:, 0] - before[:-1], times, side=side)
        return np.asarray(times + before[passed], dtype=np.int64)

    @property
    def cells(self) -> tuple[IntArray, IntArray]:
        bins = np.arange(self.count)
        return self.find_bin_edges(bins, "right"), self.find_bin_edges(bins + 1, "left")

    def average_metric(self, series: DeviceSeries, metric: str) -> FloatArray:
        """Return a device's time-weighted mean of a metric per bin, by the middle of the time a value averages."""
        return series.memoize(("mean", metric, self._key), lambda: self.average_values(series, series.values(metric)))

    def average_values(self, series: DeviceSeries, values: FloatArray) -> FloatArray:
        """Return the mean per bin of any values, one per row, as `average_metric` does for a metric."""
        places = series.memoize(("places", self._key), lambda: self.find_bins(series.times - series.shift))
        seconds = series.seconds if series.observed_seconds > 0 else np.ones(len(series))
        rows = (places >= 0) & (places < self.count) & ~np.isnan(values)
        weights, places = seconds[rows], places[rows]
        sums, owned = (np.bincount(places, each, self.count) for each in (values[rows] * weights, weights))
        with np.errstate(invalid="ignore"):
            return np.asarray(sums / owned, dtype=np.float64)

    @property
    def _key(self) -> tuple[int, float, int, bytes]:
        return self.start, self.width, self.count, self.removed.tobytes()

    def mask_to_spans(self, mask: BoolArray, within: float, shortest: float) -> Spans:
        """Return the stretches of true bins that last `shortest` seconds, holes of up to `within` seconds closed.

        Time without bins is never part of a stretch: what happened then is unknown.
        """
        first, stop = intervals.find_runs(mask)
        edges = np.column_stack([self.find_bin_edges(first, "right"), self.find_bin_edges(stop, "left")])
        long = intervals.drop_shorter(intervals.union(edges, within=round(within * 1e6)), shortest)
        return intervals.difference(long, self.removed)


def build_grid(window: Interval, series: Sequence[DeviceSeries]) -> Grid:
    """Return bins over a window, as wide as the longest sampling interval and at least 1 s."""
    width = max(1.0, *(one.interval for one in series))
    holes = intervals.to_spans([window])
    for one in filter(len, series):
        first, last = int(one.times[0]), int(one.times[-1])
        own = [Interval(window.start, first), *one.gaps, Interval(last, window.end)]
        holes = intervals.intersection(holes, intervals.to_spans(own))
    removed = holes + np.array([round(_LONGEST_HOLE * 1e6), 0])
    removed = removed[removed[:, 0] < removed[:, 1]]
    seconds = window.seconds - intervals.total_seconds(removed)
    return Grid(start=window.start, width=width, count=max(int(np.ceil(seconds / width)), 1), removed=removed)


def median_over_devices(series: Sequence[FloatArray]) -> FloatArray:
    """Return the median over devices per bin, NaN without values."""
    ordered = np.sort(np.stack(series), axis=0)
    known, column = (~np.isnan(ordered)).sum(axis=0), np.arange(ordered.shape[1])
    low, high = (ordered[np.clip(place, 0, len(ordered) - 1), column] for place in ((known - 1) // 2, known // 2))
    return np.where(known > 0, (low + high) / 2, np.nan)


def rolling_mean(values: FloatArray | BoolArray, length: int) -> FloatArray:
    """Return the mean over `length` bins around each, without NaN values; fewer at both ends."""
    known = ~np.isnan(values)
    first = np.arange(len(values)) - length // 2
    start, stop = np.maximum(first, 0), np.minimum(first + length, len(values))
    sums, counts = (np.append(0, np.cumsum(each)) for each in (np.where(known, values, 0), known))
    number = counts[stop] - counts[start]
    return np.where(number > 0, (sums[stop] - sums[start]) / np.maximum(number, 1), np.nan)


def mark_low(values: FloatArray, enter: float, leave: float) -> BoolArray:
    """Return the bins of each run at or below `leave` that reaches `enter`; NaN changes no state."""
    steps = np.zeros(len(values) + 1, dtype=np.int64)
    for places, step in zip(intervals.find_hysteresis_runs(values, enter=enter, leave=leave), (1, -1), strict=True):
        steps[places] += step
    return np.asarray(np.cumsum(steps)[:-1] > 0, dtype=np.bool_)

"""Series of several devices on one grid of equal bins, and rolling figures over it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.findings import Interval

_LONGEST_HOLE = 3600.0
"""Seconds of a stretch that no device sampled which get bins: no more than an hour of them for each sample."""
_BINS_AT_ONCE = 2**16
"""Bins in which all devices are looked at together: 34 MB of 64 of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Equal bins over a window; long stretches that no device sampled have none.

    Attributes:
        start: start of the first bin, in microseconds.
        width: width of a bin, in seconds.
        count: number of bins.
        removed: stretches that have no bins, in microseconds.
    """

    start: int
    width: float
    count: int
    removed: Spans

    def find_bins(self, times: IntArray) -> IntArray:
        """Return the bin of each time; a time in a removed stretch gets the bin at which the stretch was cut out."""
        left = times
        if len(self.removed):
            index = np.searchsorted(self.removed[:, 0], times, side="right")
            inside = np.where(index > 0, self.removed[index - 1, 1] - times, 0)
            left = times - self._removed_before[index] + np.maximum(inside, 0)
        return np.asarray(np.floor((left - self.start) / (self.width * 1e6)), dtype=np.int64)

    def find_bin_slice(self, start: int, end: int) -> slice:
        """Return the bins that cover a stretch of time, at least one."""
        first, stop = self.find_bins(np.array([start, end], dtype=np.int64)).tolist()
        return slice(max(first, 0), max(stop, first + 1))

    def find_bin_edges(self, bins: IntArray, side: Literal["left", "right"]) -> IntArray:
        """Return the time at which bins begin (`right`) or, for past-the-end bins, at which they end (`left`)."""
        before = self._removed_before
        times = self.start + np.round(bins * (self.width * 1e6)).astype(np.int64)
        passed = np.searchsorted(self.removed[:, 0] - before[:-1], times, side=side)
        return np.asarray(times + before[passed], dtype=np.int64)

    @property
    def cells(self) -> tuple[IntArray, IntArray]:
        """When each bin begins and ends."""
        bins = np.arange(self.count)
        return self.find_bin_edges(bins, "right"), self.find_bin_edges(bins + 1, "left")

    @property
    def _removed_before(self) -> IntArray:
        return np.append(0, np.cumsum(self.removed[:, 1] - self.removed[:, 0]))

    def average_metric(self, series: DeviceSeries, metric: str) -> FloatArray:
        """Return a device's time-weighted mean of a metric in each bin, NaN in empty bins; read-only.

        A value is placed at the middle of the time it averages, not at its stamp.
        """
        return series.memoize(("mean", metric, self._key), lambda: self.average_values(series, series.values(metric)))

    def average_values(self, series: DeviceSeries, values: FloatArray) -> FloatArray:
        """Return the mean in each bin of any values, one per row of a device, as `average_metric` does for a metric."""
        rows, places, seconds = series.memoize(("places", self._key), lambda: self._place_rows(series))
        values = values[rows]
        known = ~np.isnan(values)
        if known.all():
            covered = series.memoize(("covered", self._key), lambda: self._sum_per_bin(places, seconds))
        else:
            places, seconds, values = places[known], seconds[known], values[known]
            covered = self._sum_per_bin(places, seconds)
        with np.errstate(invalid="ignore"):
            return np.asarray(self._sum_per_bin(places, values * seconds) / covered, dtype=np.float64)

    @property
    def _key(self) -> tuple[int, float, int, bytes]:
        return self.start, self.width, self.count, self.removed.tobytes()

    def _place_rows(self, series: DeviceSeries) -> tuple[slice, IntArray, FloatArray]:
        """Return the rows of a device inside the grid, with the bin and the weight of each: its time, if any has."""
        places = self.find_bins(series.times - series.shift)
        rows = slice(*np.searchsorted(places, [0, self.count], side="left").tolist())
        seconds = series.seconds if series.observed_seconds > 0 else np.ones(len(series))
        return rows, places[rows], seconds[rows]

    def _sum_per_bin(self, places: IntArray, weights: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(places, weights=weights, minlength=self.count), dtype=np.float64)

    def mark_runs(self, first: IntArray, stop: IntArray) -> BoolArray:
        """Return which bins lie inside runs, each given by its first and its past-the-end bin."""
        steps = np.zeros(self.count + 1, dtype=np.int64)
        np.add.at(steps, first, 1)
        np.add.at(steps, stop, -1)
        return np.asarray(np.cumsum(steps)[:-1] > 0, dtype=np.bool_)

    def mask_to_spans(self, mask: BoolArray, within: float, shortest: float) -> Spans:
        """Return the stretches of true bins that last `shortest` seconds, holes of up to `within` seconds closed.

        Time without bins is never part of a stretch: what happened then is unknown.
        """
        first, stop = intervals.find_runs(mask)
        edges = np.column_stack([self.find_bin_edges(first, "right"), self.find_bin_edges(stop, "left")])
        long = intervals.drop_shorter(intervals.union(edges, within=round(within * 1e6)), shortest)
        return intervals.difference(long, self.removed)


def build_grid(window: Interval, series: Sequence[DeviceSeries]) -> Grid:
    """Return bins over a window, as wide as the longest sampling interval of the devices and at least 1 s."""
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


def split_bins(series: Sequence[FloatArray]) -> Iterator[FloatArray]:
    """Yield the values of several devices, one a row, in some bins after others: little memory for any length."""
    for start in range(0, max(len(series[0]), 1), _BINS_AT_ONCE):
        yield np.stack([one[start : start + _BINS_AT_ONCE] for one in series])


def median_over_devices(series: Sequence[FloatArray]) -> FloatArray:
    """Return the median over devices in each bin, NaN where none has a value."""
    medians = []
    for block in split_bins(series):
        ordered = np.sort(block, axis=0)
        known, column = (~np.isnan(ordered)).sum(axis=0), np.arange(ordered.shape[1])
        low, high = (ordered[np.clip(place, 0, len(ordered) - 1), column] for place in ((known - 1) // 2, known // 2))
        medians.append(np.where(known > 0, (low + high) / 2, np.nan))
    return np.concatenate(medians)


def rolling_mean(values: FloatArray | BoolArray, length: int) -> FloatArray:
    """Return the mean over `length` bins around each bin, without NaN values; fewer bins at both ends.

    Args:
        values: one number per bin, or one truth per bin; the mean of truths is the share that is true.
        length: bins.
    """
    known = np.ones(len(values), dtype=np.bool_) if values.dtype == np.bool_ else ~np.isnan(values)
    if known.all():
        # integers add up faster than floats
        kind = np.int32 if values.dtype == np.bool_ else np.float64
        sums, number = _window_sums(np.cumsum(values, dtype=kind), length), _window_sizes(len(values), length)
    else:
        number = _window_sums(np.cumsum(known, dtype=np.int32), length)
        sums = _window_sums(np.cumsum(np.where(known, values, 0.0)), length)
    return np.where(number > 0, sums / np.maximum(number, 1), np.nan)


@lru_cache(8)
def _window_sizes(count: int, length: int) -> IntArray:
    first = np.arange(count) - length // 2
    return np.minimum(first + length, count) - np.maximum(first, 0)


def _window_sums(sums: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    """Return the sum over `length` values centred on each, from the sums up to each."""
    if len(sums) == 0:
        return sums
    behind = min(length // 2 + 1, len(sums))
    ahead = min(length - length // 2, len(sums))
    around = np.concatenate([sums[ahead - 1 :], np.repeat(sums[-1:], ahead - 1)])
    around[behind:] -= sums[: len(sums) - behind]
    return around

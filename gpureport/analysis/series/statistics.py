"""Statistics of devices over the whole recording, and means over equal bins."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gpureport.analysis.results import CounterReading, DeviceStatistics, MetricSummary
from gpureport.analysis.series import MEMORY, POWER, UTILISATION, intervals
from gpureport.analysis.series.device_series import HIGHEST_POWER, DeviceSeries, measure_sample_extents
from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.findings import Interval
from gpureport.metrics import BY_NAME, Metric, MetricKind

IDLE_RATIO = 0.05  # utilisation at or below which a GPU counts as idle
BELOW = (0.25, 0.5, 0.7)  # utilisation levels whose share of time below is reported

_QUANTILES = np.array([0.05, 0.5, 0.95])
_QUANTUM = {"1": 0.01, "By": 2.0**20, "By/s": 1e6, "W": 0.01, "Cel": 1.0, "Hz": 1e6, "": 1.0, "s": 1e-3, "J": 1e-3}
_OFF_GRID = 1e-6  # relative difference from a logged step; float32 is no more precise
_READ_DELAY_SECONDS = 1.0  # from a row's timestamp to the reading of its counter
_LONGEST_HOLE = 3600.0  # seconds; longer periods without samples get no bins

Increments = tuple[IntArray, FloatArray, BoolArray, CounterReading]
"""Rows with a value, increments (0 if impossible), whether each crosses a log gap, and the sum."""


def measure_increments(series: DeviceSeries, metrics: Sequence[str], most: float) -> Increments | None:
    """Return the increments of a counter (the largest of several), or None for fewer than two rows.

    A counter that falls was reset, so its new value counts. `most` is per second.
    """
    values = np.stack([series.values(metric) for metric in metrics])
    rows = np.flatnonzero(~np.isnan(values).any(axis=0)).astype(np.int64)
    if len(rows) < 2:  # noqa: PLR2004 - a step has two ends
        return None
    recorded, times = values[:, rows], series.times[rows]
    steps, seconds = np.diff(recorded, axis=1), np.diff(times) / 1e6
    has_fallen = steps < 0
    increments = np.where(has_fallen, recorded[:, 1:], steps)
    possible = increments <= most * (seconds + _READ_DELAY_SECONDS)
    amounts = np.where(possible, increments, 0.0).max(axis=0)
    in_gap = intervals.overlap_seconds(times[:-1], times[1:], intervals.to_spans(series.gaps)) > 0
    reading = CounterReading(
        total=float(amounts.sum()),
        in_gaps=float(amounts[in_gap].sum()),
        seconds=float(seconds.sum()),
        restarts=int(has_fallen.sum()),
        impossible=int((~possible & ~has_fallen).sum()),
    )
    return rows, amounts, in_gap, reading


def read_counter(series: DeviceSeries, metric: str, most: float) -> CounterReading | None:
    steps = measure_increments(series, [metric], most) if series.is_recorded(metric) else None
    return steps[-1] if steps else None


def _summarise(series: DeviceSeries, metric: Metric) -> MetricSummary:
    rows = series.find_known_rows(metric.name)
    values, seconds = series.values(metric.name)[rows], series.seconds[rows]
    observed = float(seconds.sum())
    weights = seconds if observed > 0 else np.ones(len(values))
    whole = observed or float(len(values))
    order, quantum = values.argsort(), _QUANTUM[metric.unit]
    passed = weights[order].cumsum(dtype=np.float64)
    found = values[order[passed.searchsorted(_QUANTILES * passed[-1] * (1 - 1e-9))]]
    logged = np.rint(found / quantum) * quantum
    p5, p50, p95 = np.where(np.abs(found - logged) <= _OFF_GRID * np.abs(found), logged, found).tolist()
    limits = BELOW if metric.name == UTILISATION else ()
    return MetricSummary(
        metric=metric.name,
        mean=float((values * weights).sum()) / whole,
        sample_mean=float(values.sum() / len(values)),
        p5=p5,
        p50=p50,
        p95=p95,
        max=float(values.max()),
        min=float(values.min()),
        seconds=observed,
        samples=len(values),
        effective_samples=len(values),
        below=tuple((limit, float(weights[np.flatnonzero(values < limit - 1e-6)].sum()) / whole) for limit in limits),
    )


def memory_peak(series: DeviceSeries, metric: str = MEMORY) -> int | None:
    return int(series.known_values(metric).max()) if series.is_recorded(metric) else None


def memory_total(series: DeviceSeries) -> int | None:
    known = series.device.memory_total_bytes
    return memory_peak(series, "gpu_memory_total_bytes") if known is None else known


def memory_reserved(series: DeviceSeries) -> int:
    """Return the driver's reserved bytes, or 0 if unknown or if all memory looks reserved."""
    total = memory_total(series)
    kept = series.device.memory_reserved_bytes or memory_peak(series, "gpu_memory_reserved_bytes") or 0
    if not kept and total:
        rest = total - series.values(MEMORY) - series.values("gpu_memory_free_bytes")
        kept = max(int(np.fmin.reduce(rest, initial=total)), 0)
    return kept if total is None or kept < total else 0


def _integrate_power(series: DeviceSeries) -> tuple[float, float, float] | tuple[None, None, None]:
    """Return the energy in joules, the seconds it covers, and how many of them are interpolated."""
    rows = np.flatnonzero(series.known_rows(POWER))
    power, owned, inside = series.values(POWER)[rows], series.seconds[rows], series.seconds_in_run[rows]
    if not len(rows) or series.observed_seconds <= 0 or (len(rows) == 1 and inside[0] <= 0):
        return None, None, None
    widths = owned
    # a single value cannot be interpolated
    if len(rows) > 1 and (len(rows) < len(series) or len(series.pause_rows)):
        left, right, _, _ = measure_sample_extents(series.times[rows], series.sampling_rate, bridged=True)
        widths = (left + right) / 1e6
    # next to rows without a value, `owned` may exceed the width
    bridged = max(float(widths.sum() - owned.sum()), 0.0)
    return float((power * np.maximum(widths - owned + inside, 0)).sum()), float(inside.sum()) + bridged, bridged


def compute_statistics(series: DeviceSeries, sampled: DeviceSeries | None = None) -> DeviceStatistics:
    """Return the statistics of one device. The energy counter is read from `sampled`, if given."""
    metrics = [BY_NAME[name] for name in series.rows.column_names if name in BY_NAME and series.is_recorded(name)]
    left_out = {"clock_event_unknown_bits"} | {each.name for each in metrics if each.kind is MetricKind.COUNTER}
    peak, total = memory_peak(series), memory_total(series)
    joules, seconds, bridged = _integrate_power(series)
    idle = np.flatnonzero(series.values(UTILISATION) <= IDLE_RATIO + 1e-6)
    return DeviceStatistics(
        device=series.device.id,
        metrics=tuple(_summarise(series, metric) for metric in metrics if metric.name not in left_out),
        idle_seconds=float(series.seconds[idle].sum()) if series.is_recorded(UTILISATION) else None,
        memory_peak_bytes=peak,
        memory_headroom_ratio=None if peak is None or not total else 1 - peak / total,
        energy_joules=joules,
        energy_seconds=seconds,
        energy_bridged_seconds=bridged,
        observed_seconds=series.observed_seconds,
        energy_counter=read_counter(sampled or series, "gpu_energy_joules_total", HIGHEST_POWER),
        power_doubt=series.explain_implausibility(POWER),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Equal bins of `width` seconds. Long periods without samples (`removed`) have no bins."""

    start: int
    width: float
    count: int
    removed: intervals.Spans

    def find_bins(self, times: IntArray) -> IntArray:
        left = times - self.start - intervals.measure_covered_before(self.removed, times)
        return np.asarray(np.floor(left / (self.width * 1e6)), dtype=np.int64)

    def find_bin_slice(self, start: int, end: int) -> slice:
        first, stop = self.find_bins(np.array([start, end], dtype=np.int64)).tolist()
        return slice(max(first, 0), max(stop, first + 1))

    def cut(self, series: FloatArray, spans: intervals.Spans) -> list[FloatArray]:
        return [series[self.find_bin_slice(*span)] for span in spans.tolist()]

    def find_bin_edges(self, bins: IntArray, side: Literal["left", "right"]) -> IntArray:
        """Return the times when bins start (`right`), or when the previous bins end (`left`)."""
        before = np.append(0, np.cumsum(self.removed[:, 1] - self.removed[:, 0]))
        times = self.start + np.round(bins * (self.width * 1e6)).astype(np.int64)
        passed = np.searchsorted(self.removed[:, 0] - before[:-1], times, side=side)
        return np.asarray(times + before[passed], dtype=np.int64)

    @property
    def cells(self) -> tuple[IntArray, IntArray]:
        bins = np.arange(self.count)
        return self.find_bin_edges(bins, "right"), self.find_bin_edges(bins + 1, "left")

    def average_metric(self, series: DeviceSeries, metric: str) -> FloatArray:
        """Return a metric's mean per bin. A value counts at the middle of its window."""
        return series.memoize(("mean", metric, self._key), lambda: self.average_values(series, series.values(metric)))

    def average_values(self, series: DeviceSeries, values: FloatArray) -> FloatArray:
        places = series.memoize(("places", self._key), lambda: self.find_bins(series.times - series.shift))
        seconds = series.seconds if series.observed_seconds > 0 else np.ones(len(series))
        rows = (places >= 0) & (places < self.count) & ~np.isnan(values)
        weights, places = seconds[rows], places[rows]
        sums, owned = (np.bincount(places, each, self.count) for each in (values[rows] * weights, weights))
        with np.errstate(invalid="ignore"):
            return sums / owned

    @property
    def _key(self) -> tuple[int, float, int, bytes]:
        return self.start, self.width, self.count, self.removed.tobytes()

    def mask_to_spans(self, mask: BoolArray, within: float, shortest: float) -> intervals.Spans:
        """Return spans of at least `shortest` seconds, after closing holes of up to `within` seconds."""
        first, stop = intervals.find_runs(mask)
        edges = np.column_stack([self.find_bin_edges(first, "right"), self.find_bin_edges(stop, "left")])
        long = intervals.drop_shorter(intervals.union(edges, within=round(within * 1e6)), shortest)
        return intervals.difference(long, self.removed)


def build_grid(window: Interval, series: Sequence[DeviceSeries]) -> Grid:
    """Return bins as wide as the longest sampling interval, but at least 1 s."""
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
    ordered = np.sort(np.stack(series), axis=0)
    known, column = (~np.isnan(ordered)).sum(axis=0), np.arange(ordered.shape[1])
    low, high = (ordered[np.clip(place, 0, len(ordered) - 1), column] for place in ((known - 1) // 2, known // 2))
    return np.where(known > 0, (low + high) / 2, np.nan)


def rolling_mean(values: FloatArray | BoolArray, length: int) -> FloatArray:
    """Return the mean of the `length` bins around each bin, leaving out NaN."""
    known = ~np.isnan(values)
    first = np.arange(len(values)) - length // 2
    start, stop = np.maximum(first, 0), np.minimum(first + length, len(values))
    sums, counts = (np.append(0, np.cumsum(each)) for each in (np.where(known, values, 0), known))
    number = counts[stop] - counts[start]
    return np.where(number > 0, (sums[stop] - sums[start]) / np.maximum(number, 1), np.nan)


def mark_low(values: FloatArray, enter: float, leave: float) -> BoolArray:
    """Return the bins of each run at or below `leave` (or NaN) that reaches `enter`."""
    runs = intervals.find_hysteresis_runs(values, enter=enter, leave=leave)
    return intervals.contains(np.column_stack(runs), np.arange(len(values)))

"""One run on equal bins, a mean over its GPUs, with the stretch in which it had settled."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gpureport.analysis.job.phases import find_activity
from gpureport.analysis.results import Analysis
from gpureport.analysis.series.bins import Grid, build_grid
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.statistics import IDLE_RATIO
from gpureport.columns import BoolArray, FloatArray
from gpureport.comparison.steps.steady_state import settled
from gpureport.findings import Interval

UTILISATION, IDLE = "gpu_utilization_ratio", "idle_ratio"
SAMPLED = (UTILISATION, "gpu_power_watts", "gpu_sm_clock_hertz", "gpu_graphics_clock_hertz")
"""Metrics that are averaged over GPUs, bin by bin."""

_TAIL_SECONDS = 60.0
"""Idle end from which the job counts as ended; a shorter one may be a pause like those before it."""

_GAP = 0.5
"""Share of the GPUs' time in a bin that is idle from which the bin lies in a gap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One metric in every bin, NaN where it was not recorded."""

    metric: str
    values: FloatArray


@dataclass(frozen=True, kw_only=True)
class RunSeries:
    """A run on equal bins.

    Attributes:
        width: seconds of a bin.
        interval: seconds between the samples it was made from.
        columns: a mean over GPUs of each recorded metric, the share of idle GPUs among them.
        job: first and past-the-end bin of the job, from the first work to the last, or to its end where that is near.
        places: the bins in time; those of the run before it was thinned.
    """

    width: float
    interval: float
    columns: tuple[Column, ...]
    job: tuple[int, int]
    places: Grid

    def values_of(self, metric: str) -> FloatArray | None:
        """Return one metric, None when it was not recorded."""
        return next((column.values for column in self.columns if column.metric == metric), None)

    @cached_property
    def gap(self) -> BoolArray:
        """Which bins lie in a gap: those in which most GPUs are idle."""
        idle = self.values_of(IDLE)
        bins = len(self.columns[0].values) if self.columns else 0
        return np.zeros(bins, dtype=np.bool_) if idle is None else np.asarray(idle > _GAP, dtype=np.bool_)

    @cached_property
    def steady(self) -> tuple[int, int]:
        """First and past-the-end bin of the stretch in which the run had settled."""
        first, stop = self.job
        busy = self.values_of(UTILISATION)
        if busy is None:
            busy = self.values_of("gpu_power_watts")
        if busy is None:
            return first, stop
        rows = first + np.flatnonzero(~np.isnan(busy[first:stop]) & ~self.gap[first:stop])
        cut = settled(busy[rows])
        return (int(rows[cut]) if cut else first), stop

    @property
    def settled(self) -> Interval:
        """The stretch in which the run had settled, in time."""
        times = round(self.width / self.places.width)
        first, stop = (np.array([edge * times], dtype=np.int64) for edge in self.steady)
        return Interval(
            int(self.places.find_bin_edges(first, "right")[0]), int(self.places.find_bin_edges(stop, "left")[0])
        )

    def recorded_seconds(self, metric: str) -> float:
        """Return the time that holds values of a metric, before anything is left out."""
        values = self.values_of(metric)
        return 0.0 if values is None else float((~np.isnan(values)).sum()) * self.width

    def settled_seconds(self, metric: str) -> float:
        """Return the time that holds values of a metric once the run had settled."""
        values = self.values_of(metric)
        return 0.0 if values is None else float((~np.isnan(values[slice(*self.steady)])).sum()) * self.width

    def settled_values(self, metric: str) -> tuple[FloatArray, BoolArray]:
        """Return the values of a metric once the run had settled, and which lie in a gap; bins without are left out."""
        values = self.values_of(metric)
        if values is None:
            return np.zeros(0), np.zeros(0, dtype=np.bool_)
        values, gap = values[slice(*self.steady)], self.gap[slice(*self.steady)]
        known = ~np.isnan(values)
        return values[known], gap[known]

    def thinned(self, width: float) -> "RunSeries":
        """Return the run as a log would hold that was sampled every `width` seconds: one bin of each stretch.

        A mean over the stretch would not do: a coarse log sees one moment of it, and calls that idle or not.
        """
        times = round(width / self.width)
        if times <= 1:
            return self
        columns = tuple(replace(column, values=column.values[times - 1 :: times]) for column in self.columns)
        bins = len(columns[0].values) if columns else 0
        first, stop = (min(-(-edge // times), bins) for edge in self.job)
        return RunSeries(
            width=self.width * times, interval=width, columns=columns, job=(first, stop), places=self.places
        )


def run_series(cells: Sequence[DeviceSeries], analysis: Analysis) -> RunSeries | None:
    """Return a run on bins as wide as its interval and at least 1 s; None when no GPU has samples.

    Args:
        cells: samples of each of its GPUs.
        analysis: what was found out about it.
    """
    if not cells or not any(one.observed_seconds > 0 for one in cells):
        return None
    places = build_grid(_window(cells), cells)
    columns = [Column(metric=metric, values=values) for metric, values in _means(places, cells)]
    idle = _idle(places, cells)
    if idle is not None:
        columns.append(Column(metric=IDLE, values=idle))
    interval = max(one.interval for one in cells)
    return RunSeries(
        width=places.width, interval=interval, columns=tuple(columns), job=_job(analysis, places, cells), places=places
    )


def _window(cells: Sequence[DeviceSeries]) -> Interval:
    start = min(int(one.start[0]) - one.shift for one in cells)
    return Interval(start, max(int(one.end[-1]) - one.shift for one in cells))


def _means(places: Grid, cells: Sequence[DeviceSeries]) -> Iterable[tuple[str, FloatArray]]:
    for metric in SAMPLED:
        series = [places.average_metric(one, metric) for one in cells if one.is_recorded(metric)]
        if series:
            yield metric, _over_gpus(series)


def _over_gpus(series: Sequence[FloatArray]) -> FloatArray:
    if len(series) == 1:
        return series[0]
    sums, counts = np.zeros(len(series[0])), np.zeros(len(series[0]))
    for values in series:
        known = ~np.isnan(values)
        sums += np.where(known, values, 0.0)
        counts += known
    with np.errstate(invalid="ignore"):
        return np.asarray(sums / counts, dtype=np.float64)


def _idle(places: Grid, cells: Sequence[DeviceSeries]) -> FloatArray | None:
    """Return the share of the GPUs' time in each bin that was idle; None when no utilisation was recorded."""
    series = [_idle_of(places, one) for one in cells if one.is_recorded(UTILISATION)]
    return _over_gpus(series) if series else None


def _idle_of(places: Grid, cells: DeviceSeries) -> FloatArray:
    values = cells.values(UTILISATION)
    bins = places.find_bins(cells.times - cells.shift)
    inside = (bins >= 0) & (bins < places.count) & ~np.isnan(values)
    seconds = cells.seconds[inside]
    idle = seconds * (values[inside] <= IDLE_RATIO + 1e-6)
    sums, covered = (np.bincount(bins[inside], weights=each, minlength=places.count) for each in (idle, seconds))
    with np.errstate(invalid="ignore"):
        return np.asarray(sums / covered, dtype=np.float64)


def _job(analysis: Analysis, places: Grid, cells: Sequence[DeviceSeries]) -> tuple[int, int]:
    """Return the bins from the first work to the last, or to the job's end where that is near; all without work."""
    window = next((phase.interval for phase in analysis.phases if phase.kind == "steady"), None)
    if window is None:
        return 0, places.count
    # edges lie half a sample before the first work and behind the last, so jitter must not move them by a bin
    half = max(one.interval for one in cells) / 2 * 1e6
    edges = [_find_start(analysis, window, cells) + places.width * 1e6 - half, window.end + half]
    first, stop = places.find_bins(np.array(edges, dtype=np.int64)).tolist()
    end = places.count
    if (ended := analysis.observed_job.ended) is not None:
        # after the last sample in which the job was seen it may have ended
        end = max(stop, int(places.find_bins(np.array([ended], dtype=np.int64))[0]))
    if (end - stop) * places.width < _TAIL_SECONDS:
        stop = end
    return max(first, 0), min(max(stop, 0), places.count)


def _find_start(analysis: Analysis, window: Interval, cells: Sequence[DeviceSeries]) -> int:
    """Return when work began; that the window begins with the run does not say whether its first sample worked."""
    if window.start > analysis.run.started:
        return window.start
    return min((found.start for one in cells if (found := find_activity(one))), default=window.start)

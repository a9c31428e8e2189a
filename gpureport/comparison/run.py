"""One run prepared for comparison: its series in equal bins, its speed, and its training metrics."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from math import fsum, inf

import numpy as np

from gpureport import columns
from gpureport.analysis.job.jobs import PROCESS_MEMORY, find_activity
from gpureport.analysis.results import Analysis
from gpureport.analysis.rules.memory import is_preallocated
from gpureport.analysis.series import MEMORY, intervals
from gpureport.analysis.series.device_series import DeviceSeries, build_device_series, remove_stretches
from gpureport.analysis.series.statistics import IDLE_RATIO, Grid, build_grid
from gpureport.columns import BoolArray, FloatArray
from gpureport.comparison.estimate import MeanEstimate, count_unsettled, estimate_mean
from gpureport.comparison.work import (
    SAMPLES,
    STEPS,
    Throughput,
    TrainingCurve,
    batch_size,
    build_training_curves,
    measure_throughput,
)
from gpureport.findings import Interval
from gpureport.importers.account import find_note_code
from gpureport.names import normalise_work_unit
from gpureport.recording import Recording, Run, Work

UTILISATION, IDLE, POWER = "gpu_utilization_ratio", "idle_ratio", "gpu_power_watts"
SM_CLOCK, GRAPHICS_CLOCK = "gpu_sm_clock_hertz", "gpu_graphics_clock_hertz"
_SAMPLED = (UTILISATION, POWER, SM_CLOCK, GRAPHICS_CLOCK)  # Averaged over GPUs, bin by bin.
_TAIL_SECONDS = 60.0  # Minimum idle time that ends a job; shorter idle time may be a pause.
_THINNED = 1.25  # Ratio of sampling intervals above which the finer run is thinned to the coarser one.
_WARM_UP, _WARM_UP_SHARE = 600.0, 0.1
"""Maximum length of a warm-up, in seconds or, if longer, as a share of the job."""
_CELSIUS, _FIRST_ROWS = "gpu_temperature_celsius", 30
_BLUR, _KEPT = 0.4, 0.98  # Seconds by which phases may be off, and the share of the usual memory that a job keeps.
_REST, _NO_REST = 2.5, 1.5  # samples before or after the work: the fewest that show rest, and the most without any
AT_WORK, AT_REST = "at work", "at rest"


@dataclass(frozen=True, kw_only=True)
class RunSeries:
    """A run in bins of `width` seconds, from samples `interval` seconds apart."""

    width: float
    interval: float
    columns: dict[str, FloatArray]  # Means of metrics over GPUs, and the share of idle GPUs; NaN if unknown.
    job: tuple[int, int]  # First bin of work, and the bin after the last one.
    grid: Grid  # The bins in time, before thinning.

    @cached_property
    def gap(self) -> BoolArray:
        bins = len(next(iter(self.columns.values()), ()))
        return np.asarray(self.columns.get(IDLE, np.zeros(bins)) > 0.5, dtype=np.bool_)  # noqa: PLR2004 - most

    @cached_property
    def steady(self) -> slice:
        first, stop = self.job
        busy = self.columns.get(UTILISATION, self.columns.get(POWER))
        if busy is None:
            return slice(first, stop)
        rows = first + np.flatnonzero(~np.isnan(busy[first:stop]) & ~self.gap[first:stop])
        settles = int(rows[cut]) if (cut := count_unsettled(busy[rows])) else first
        longest = max(_WARM_UP, _WARM_UP_SHARE * (stop - first) * self.width)
        return slice(settles if (settles - first) * self.width <= longest else first, stop)

    @property
    def settled(self) -> Interval:
        times = round(self.width / self.grid.width)
        first, stop = (np.array([edge * times], dtype=np.int64) for edge in (self.steady.start, self.steady.stop))
        edges = self.grid.find_bin_edges(first, "right")[0], self.grid.find_bin_edges(stop, "left")[0]
        return Interval(int(edges[0]), int(edges[1]))

    def thinned(self, width: float) -> "RunSeries":
        # take one bin from each stretch, not the mean, since a coarse log samples moments, each either idle or not
        times = round(width / self.width)
        if times <= 1:
            return self
        thin = {metric: values[times - 1 :: times] for metric, values in self.columns.items()}
        bins = len(next(iter(thin.values()), ()))
        first, stop = (min(-(-edge // times), bins) for edge in self.job)
        return RunSeries(width=self.width * times, interval=width, columns=thin, job=(first, stop), grid=self.grid)


def build_run_series(cells: Sequence[DeviceSeries], analysis: Analysis) -> RunSeries | None:
    if not any(one.observed_seconds > 0 for one in cells):
        return None
    start = min(int(one.start[0]) - one.shift for one in cells)
    grid = build_grid(Interval(start, max(int(one.end[-1]) - one.shift for one in cells)), cells)
    means = {
        metric: [grid.average_metric(one, metric) for one in cells if one.is_recorded(metric)] for metric in _SAMPLED
    }
    means[IDLE] = [
        grid.average_values(one, np.where(np.isnan(busy), np.nan, busy <= IDLE_RATIO + 1e-6))
        for one in cells
        if one.is_recorded(UTILISATION)
        for busy in [one.values(UTILISATION)]
    ]
    over_gpus = {}
    for metric, each in means.items():
        if each:
            known = ~np.isnan(values := np.stack(each))
            with np.errstate(invalid="ignore"):
                over_gpus[metric] = np.where(known, values, 0.0).sum(axis=0) / known.sum(axis=0)
    return RunSeries(
        width=grid.width,
        interval=max(one.interval for one in cells),
        columns=over_gpus,
        job=_find_job_bins(analysis, grid, cells),
        grid=grid,
    )


def _find_job_bins(analysis: Analysis, grid: Grid, cells: Sequence[DeviceSeries]) -> tuple[int, int]:
    window = next((phase.interval for phase in analysis.phases if phase.kind == "steady"), None)
    if window is None:
        return 0, grid.count
    start = window.start
    if start <= analysis.run.started:
        # the window begins with the run even if the first sample shows no work
        start = min((found.start for one in cells if (found := find_activity(one))), default=start)
    # edges lie half an interval outside the work, so that jitter does not move them by a bin
    half = max(one.interval for one in cells) / 2 * 1e6
    edges = [start + grid.width * 1e6 - half, window.end + half, analysis.observed_job.ended or 0]
    first, stop, ended = grid.find_bins(np.array(edges, dtype=np.int64)).tolist()
    # the job may have ended after the last sample that shows work
    end = grid.count if analysis.observed_job.ended is None else max(stop, ended)
    stop = end if (end - stop) * grid.width < _TAIL_SECONDS else stop
    return max(first, 0), min(max(stop, 0), grid.count)


@dataclass(frozen=True, kw_only=True, eq=False)
class SampledRun:
    """A run of a step. Unknown values are None.

    The series of a run is built once, on first use. `start_celsius` is the mean of the GPUs' first temperatures. Values
    named `steady` exclude start-up and warm-up; those named `recorded` include them. The mean of no values is
    NaN.
    """

    analysis: Analysis
    make_series: Callable[[], RunSeries | None] = lambda: None
    throughput: Throughput | None = None
    training: tuple[TrainingCurve, ...] = ()
    start_celsius: float | None = None
    preallocated: bool | None = None
    gpu_hour_price: float | None = None
    edges: tuple[str | None, ...] = (None, None)  # How the log begins and ends: at work or at rest.
    _estimates: dict[tuple[str, float], MeanEstimate] = field(default_factory=dict, repr=False)
    _thinned: dict[float, RunSeries] = field(default_factory=dict, repr=False)

    def in_step(self, label: str) -> "SampledRun":
        return replace(self, analysis=replace(self.analysis, run=replace(self.info, step=label)))

    @property
    def info(self) -> Run:
        return self.analysis.run

    @property
    def lasted(self) -> float:
        return (self.info.ended - self.info.started) / 1e6

    @property
    def series(self) -> RunSeries | None:
        return self.make_series()

    @property
    def exit_code(self) -> int:
        # runs on several nodes have several codes
        codes = dict(self.info.tags).get("exit_code", "").split(", ")
        return next((int(code) for code in codes if code.removeprefix("-").isdecimal() and int(code)), 0)

    @property
    def is_damaged(self) -> bool:
        return "damaged_archive" in map(find_note_code, self.info.quality.notes)

    @property
    def work_unit(self) -> str | None:
        return self.info.work.unit if self.info.work else None

    @property
    def logged_work(self) -> Throughput | None:
        """The logged speed, if training metrics use the run's unit of work."""
        if self.throughput is None or self.work_unit is None:
            return None
        return self.throughput if normalise_work_unit(self.work_unit) == self.throughput.unit else None

    def at(self, interval: float) -> RunSeries | None:
        """Return the series as a log with a coarser interval would show it."""
        series = self.series
        if series is None or interval <= _THINNED * max(series.interval, series.width):
            return series
        if interval not in self._thinned:
            self._thinned[interval] = series.thinned(interval)
        return self._thinned[interval]

    def settled(self, metric: str, interval: float) -> tuple[FloatArray, BoolArray]:
        series = self.at(interval)
        if series is None or metric not in series.columns:
            return np.zeros(0), np.zeros(0, dtype=np.bool_)
        values, gap = series.columns[metric][series.steady], series.gap[series.steady]
        known = ~np.isnan(values)
        return values[known], gap[known]

    def steady_seconds(self, metric: str, interval: float) -> float:
        series = self.at(interval)
        return len(self.settled(metric, interval)[0]) * series.width if series else 0.0

    def recorded_seconds(self, metric: str, interval: float) -> float:
        series = self.at(interval)
        values = series.columns.get(metric) if series else None
        return 0.0 if series is None or values is None else float((~np.isnan(values)).sum()) * series.width

    def steady_mean(self, metric: str, interval: float) -> float:
        values = self.settled(metric, interval)[0]
        return float(values.mean()) if len(values) else float("nan")

    def estimate(self, metric: str, interval: float, finest: float) -> MeanEstimate:
        if (metric, interval) not in self._estimates:
            self._estimates[metric, interval] = estimate_mean(*self.settled(metric, interval), finest)
        return self._estimates[metric, interval]


def coarsest_interval(runs: Sequence[SampledRun]) -> float:
    return max((run.series.interval for run in runs if run.series is not None), default=0.0)


def build_sampled_run(recording: Recording, analysis: Analysis, key: str | None = None) -> SampledRun:
    cells = []
    for gpu in analysis.run.gpus:
        one, free = build_device_series(recording, gpu), analysis.no_job.get(gpu.id, ())
        one = remove_stretches(one, intervals.to_spans(free)) if free else one
        if len(one) and not gpu.mixed:
            cells.append(one)
    taken = {is_preallocated(one) for one in cells}
    celsius = [columns.floats(one.rows.column(_CELSIUS)) for one in cells if _CELSIUS in one.rows.column_names]
    first = [each for values in celsius for each in values[:_FIRST_ROWS][~np.isnan(values[:_FIRST_ROWS])][:1].tolist()]
    return replace(
        count_work(recording, analysis, key),
        make_series=cache(lambda: build_run_series(cells, analysis)),
        training=build_training_curves(recording.training),
        start_celsius=fsum(first) / len(first) if first else None,
        preallocated=True if True in taken else None if None in taken or not taken else False,
        gpu_hour_price=mean_gpu_hour_price(analysis),
        edges=tuple(_find_edges(analysis, cells)),
    )


def _find_edges(analysis: Analysis, cells: Sequence[DeviceSeries]) -> Iterator[str | None]:
    # a log that begins or ends at work may lack part of the run
    seconds = {phase.kind: phase.interval.seconds for phase in analysis.phases}
    memory = [one.known_values(MEMORY) for one in cells if one.is_recorded(MEMORY)]
    for phase, row in (("startup", 0), ("tail", -1)):
        samples = seconds.get(phase, 0.0) / max(analysis.run.interval or inf, _BLUR)
        held = [values[row] / level for values in memory if (level := np.median(values)) >= PROCESS_MEMORY.value]
        is_held = "steady" in seconds and max(held, default=0.0) >= _KEPT
        is_freed = bool(held) and not is_held
        yield AT_REST if is_freed or samples >= _REST else AT_WORK if is_held and samples <= _NO_REST else None


def count_work(recording: Recording, analysis: Analysis, key: str | None = None) -> SampledRun:
    run, began = analysis.run, None
    if (sampled := SampledRun(analysis=analysis)).exit_code or sampled.is_damaged:
        # a failed job may not have done all the stated work, and a damaged log may not show it
        run = replace(run, work=None)
    start = next((phase.interval.start for phase in analysis.phases if phase.kind == "steady"), None)
    if start is not None and len(recording.training):
        # training began after the last sample before the steady phase
        stamps = (columns.integers(recording.rows.rows_of(gpu.id).column("timestamp")) for gpu in run.gpus)
        began = max((int(times[times <= start].max()) for times in stamps if (times <= start).any()), default=start)
    speed = measure_throughput(recording.training, key, began)
    # a metric that the user names counts even if the work is stated in another unit
    is_wanted = run.work is None or (speed and key and normalise_work_unit(run.work.unit) != speed.unit)
    amount = speed.work.within(run.started, run.ended) if speed is not None and is_wanted else 0.0
    if speed is not None and amount > 0:
        run = replace(run, work=Work(amount=amount, unit=speed.stated_unit))
    return SampledRun(analysis=replace(analysis, run=run), throughput=speed)


def mean_gpu_hour_price(analysis: Analysis) -> float | None:
    stated = [gpu.amount for gpu in analysis.cost.gpus] if analysis.cost else []
    amounts = [amount for amount in stated if amount is not None]
    return sum(amounts) / len(amounts) if amounts and len(amounts) == len(stated) else None


def unify_work(runs: Sequence[SampledRun]) -> list[SampledRun]:
    """Return runs with work in the same unit if possible. For example, images count as samples."""
    # if all runs count steps but step sizes differ, the unit is samples
    sizes = [batch_size(run.info) for run in runs]
    if len(set(sizes)) > 1 and None not in sizes and all(run.work_unit == STEPS for run in runs):
        runs = [_count_in(run, SAMPLES, size) for run, size in zip(runs, sizes, strict=True)]
    units = {run.work_unit for run in runs if run.work_unit is not None}
    names = set(map(normalise_work_unit, units))
    return [_count_in(run, next(iter(names))) for run in runs] if len(units) > len(names) == 1 else list(runs)


def _count_in(run: SampledRun, unit: str, size: float | None = None) -> SampledRun:
    work, speed = run.info.work, run.throughput
    if speed is not None and speed.unit == STEPS and size is not None:
        done = replace(speed.work, amounts=speed.work.amounts * size)
        speed = replace(speed, unit=unit, rates=speed.rates * size, work=done)
    counted = work and replace(work, amount=work.amount * (size or 1.0), unit=unit)
    return replace(run, analysis=replace(run.analysis, run=replace(run.info, work=counted)), throughput=speed)

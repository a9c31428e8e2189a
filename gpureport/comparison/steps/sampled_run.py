"""One run as a comparison takes it: its analysis, its series on bins, and how fast it worked."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from math import fsum
from typing import TYPE_CHECKING

import numpy as np

from gpureport import columns
from gpureport.analysis.results import Analysis
from gpureport.analysis.rules.memory import is_preallocated
from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import DeviceSeries, build_device_series, remove_stretches
from gpureport.columns import FloatArray
from gpureport.comparison.statistics.mean_estimate import MeanEstimate, mean_estimate
from gpureport.comparison.steps.run_series import RunSeries, run_series
from gpureport.comparison.steps.throughput import Throughput, name_counted_unit, throughput
from gpureport.comparison.training import TrainingCurve, build_training_curves
from gpureport.recording import Device, Recording, Work
from gpureport.training_names import normalise_work_unit

if TYPE_CHECKING:
    from collections.abc import Sequence

_CELSIUS = "gpu_temperature_celsius"
_FIRST_ROWS = 30
"""Rows among which the first with a temperature is looked for."""

THINNED = 1.25
"""Ratio of two sampling intervals from which the finer run is thinned to the coarser."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledRun:
    """A run of a step.

    Attributes:
        analysis: what was found out about it.
        make_series: returns its series on bins, made once, when a comparison first asks; None without samples of a GPU.
        throughput: how fast it worked; None where its training metrics do not tell.
        training: every value of its training metrics.
        start_celsius: temperature of its GPUs at the first samples, a mean over them; None when not recorded.
        preallocated: whether a framework took memory of one of its GPUs in advance; None where that cannot be told.
        gpu_hour_price: what an hour of one of its GPUs costs, in the currency of all runs; None where not known.
    """

    analysis: Analysis
    make_series: Callable[[], RunSeries | None] = lambda: None
    throughput: Throughput | None = None
    training: tuple[TrainingCurve, ...] = ()
    start_celsius: float | None = None
    preallocated: bool | None = None
    gpu_hour_price: float | None = None
    _estimates: dict[tuple[str, float], MeanEstimate] = field(default_factory=dict, repr=False, compare=False)
    _thinned: dict[float, RunSeries] = field(default_factory=dict, repr=False, compare=False)

    def in_step(self, label: str) -> "SampledRun":
        """Return the run as one of another step."""
        return replace(self, analysis=replace(self.analysis, run=replace(self.analysis.run, step=label)))

    @property
    def series(self) -> RunSeries | None:
        """Its series on bins; None without samples of a GPU."""
        return self.make_series()

    def at(self, interval: float) -> RunSeries | None:
        """Return its series as a log would hold them that was sampled at an interval, where that is coarser."""
        series = self.series
        if series is None or interval <= THINNED * max(series.interval, series.width):
            return series
        if interval not in self._thinned:
            self._thinned[interval] = series.thinned(interval)
        return self._thinned[interval]

    @property
    def work_unit(self) -> str | None:
        """The unit of its work, as stated by the user or else found in its training metrics; None without either."""
        work = self.analysis.run.work
        return work.unit if work else None

    @property
    def logged_work(self) -> Throughput | None:
        """How fast it worked, where training metrics tell of the unit that its work is counted in."""
        if self.throughput is None or self.work_unit is None:
            return None
        return self.throughput if normalise_work_unit(self.work_unit) == self.throughput.unit else None

    @property
    def rates(self) -> FloatArray | None:
        """Work done a second in each bin once it had settled; None unless training metrics tell of its unit."""
        speed = self.logged_work
        if speed is None:
            return None
        rates = speed.rates if self.series is None else speed.within(self.series.settled)
        known = rates[~np.isnan(rates)]
        return known if len(known) else None

    @property
    def rate_seconds(self) -> float:
        """Time that `rates` cover."""
        return 0.0 if self.rates is None or self.throughput is None else len(self.rates) * self.throughput.width

    @property
    def recorded_rate_seconds(self) -> float:
        """Time that training metrics tell of, before anything is left out."""
        known = 0 if self.throughput is None else int((~np.isnan(self.throughput.rates)).sum())
        return known * self.throughput.width if self.throughput else 0.0

    def recorded_seconds(self, metric: str, interval: float) -> float:
        """Return the time that holds values of a metric, before anything is left out."""
        series = self.at(interval)
        return series.recorded_seconds(metric) if series else 0.0

    def steady_seconds(self, metric: str, interval: float) -> float:
        """Return the time that holds values of a metric once it had settled."""
        series = self.at(interval)
        return series.settled_seconds(metric) if series else 0.0

    def steady_mean(self, metric: str, interval: float) -> float:
        """Return the mean of a metric once it had settled; NaN without any value."""
        series = self.at(interval)
        values = series.settled_values(metric)[0] if series else np.zeros(0)
        return float(values.mean()) if len(values) else float("nan")

    def estimate(self, metric: str, interval: float, finest: float) -> MeanEstimate:
        """Return the mean of a metric once the run had settled, and how sure it is; made once."""
        key = metric, interval
        if key not in self._estimates:
            series = self.at(interval)
            if series is None:
                msg = f"run {self.analysis.run.name} has no series"
                raise ValueError(msg)
            self._estimates[key] = mean_estimate(*series.settled_values(metric), finest)
        return self._estimates[key]


def build_sampled_run(recording: Recording, analysis: Analysis, key: str | None = None) -> SampledRun:
    """Return a run as a comparison takes it.

    Args:
        recording: the run and its series.
        analysis: what was found out about it.
        key: training metric that counts its work, whatever its name.
    """
    cells = [one for gpu in analysis.run.gpus if not gpu.mixed and len(one := _of_jobs(recording, analysis, gpu))]
    counted = count_work(recording, analysis, key)
    return SampledRun(
        analysis=counted.analysis,
        make_series=cache(lambda: run_series(cells, analysis)),
        throughput=counted.throughput,
        training=build_training_curves(recording.training),
        start_celsius=_start_celsius(cells),
        preallocated=_preallocated(cells),
        gpu_hour_price=mean_gpu_hour_price(analysis),
    )


def count_work(recording: Recording, analysis: Analysis, key: str | None = None) -> SampledRun:
    """Return a run with its throughput alone, and with the work it counts in the recording unless work was stated.

    Args:
        recording: the run and its series.
        analysis: what was found out about it.
        key: training metric that counts its work, whatever its name.
    """
    run = analysis.run
    speed = throughput(recording.training, key, _last_sample_before_work(recording, analysis))
    amount = speed.work.within(run.started, run.ended) if speed is not None and run.work is None else 0.0
    if speed is not None and amount > 0:
        analysis = replace(analysis, run=replace(run, work=Work(amount=amount, unit=name_counted_unit(speed))))
    return SampledRun(analysis=analysis, throughput=speed)


def _last_sample_before_work(recording: Recording, analysis: Analysis) -> int | None:
    """Return the last sample before a GPU worked, after which training began; None where no work was seen."""
    start = next((phase.interval.start for phase in analysis.phases if phase.kind == "steady"), None)
    if start is None or not len(recording.training):
        return None
    stamps = (columns.integers(recording.rows.rows_of(gpu.id).column("timestamp")) for gpu in analysis.run.gpus)
    before = [times[times <= start] for times in stamps]
    return max((int(times.max()) for times in before if len(times)), default=start)


def _of_jobs(recording: Recording, analysis: Analysis, gpu: Device) -> DeviceSeries:
    cells, free = build_device_series(recording, gpu), analysis.no_job.get(gpu.id, ())
    return remove_stretches(cells, intervals.to_spans(free)) if free else cells


def mean_gpu_hour_price(analysis: Analysis) -> float | None:
    """Return the mean price of its GPUs; None where one has none."""
    stated = [gpu.amount for gpu in analysis.cost.gpus] if analysis.cost else []
    amounts = [amount for amount in stated if amount is not None]
    return sum(amounts) / len(amounts) if amounts and len(amounts) == len(stated) else None


def _preallocated(cells: "Sequence[DeviceSeries]") -> bool | None:
    """Return whether memory of any GPU was allocated in advance; None where one of them leaves that open."""
    found = {is_preallocated(one) for one in cells}
    return True if True in found else None if None in found or not found else False


def _start_celsius(cells: "Sequence[DeviceSeries]") -> float | None:
    first = []
    for one in cells:
        is_recorded = _CELSIUS in one.rows.column_names
        values = columns.floats(one.rows.column(_CELSIUS).slice(0, _FIRST_ROWS)) if is_recorded else np.zeros(0)
        first += [float(value) for value in values[~np.isnan(values)][:1]]
    return fsum(first) / len(first) if first else None


def find_coarsest_interval(runs: "Sequence[SampledRun]") -> float:
    """Return the longest sampling interval among runs."""
    return max((run.series.interval for run in runs if run.series is not None), default=0.0)

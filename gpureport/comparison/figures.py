"""The figures used to compare steps, and the runs that count for each."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import compress
from math import fsum, log
from statistics import fmean, geometric_mean
from typing import NamedTuple

import numpy as np

from gpureport.analysis.results import Analysis, DeviceStatistics
from gpureport.comparison.estimate import Ends
from gpureport.comparison.run import GRAPHICS_CLOCK, IDLE, POWER, SM_CLOCK, UTILISATION, SampledRun

WORK_BATCH, HOUR = 1000, 3600.0  # Units of work that figures refer to, and seconds in an hour.
# The speed of the whole job on all GPUs together, and the training speed without start-up and final idle time.
WORK_RATE, TRAINING_RATE = "work_rate_hertz", "training_rate_hertz"
PER_WORK, COST_PER_WORK = f"gpu_seconds_per_{WORK_BATCH}_work", f"cost_per_{WORK_BATCH}_work"
ENERGY_PER_WORK = f"energy_joules_per_{WORK_BATCH}_work"
GPU_SECONDS, ENERGY, MEMORY = "gpu_seconds", "energy_joules", "gpu_memory_used_bytes"
SECONDS_TO_TARGET = "seconds_to_target"
TIMED_FIGURES = {PER_WORK, COST_PER_WORK, WORK_RATE}  # figures that depend on how long recordings last
POINTS, SHARE = 0.02, 0.03
"""Normal variation between repeated runs: in points for a share, relative for any other figure."""
SLOW_POINTS, SLOW_RATIO = 0.42, 1.85
"""How far slow drift alone may separate two short recordings of the same load, in points for a share or as a ratio.

A recording shorter than a load's regimes shows only one of them, even if its scatter is small. A difference
therefore counts only if it exceeds a change of regime from 90 to 50% plus the normal variation between runs.
"""
_FULL_SECONDS, LONG_SECONDS = 120.0, 600.0
"""Length up to which a recording may show a single regime, and length from which its own scatter suffices.

In simulated pairs of equal loads (tests/statistics/processes.py) lasting 30 to 450 s, at most 7% differ by
more than the allowance and scatter. Without the allowance, up to 64% differ by more than scatter and two points.
"""
# duration below which shares of a run are meaningless, and single runs show only large changes
SHORTEST_SECONDS = 60.0
SHORTEST_REPETITION_SECONDS = 20.0
"""Duration below which a run cannot be compared, since a second missing at each end is a tenth of the run."""
FINEST_RATIO = 0.003  # Rounding step of figures per unit of work; both are read at single moments.
# Minimum number of samples for a run under a minute to count; trackers take about that many.
_FEWEST_SAMPLES = 6
_LIKE = 1 / 3
"""Share of a step's longest run that others must reach to count; this share detects most changes in simulations."""


class FigureRole(StrEnum):
    """How a figure is measured, which determines its precision."""

    MEAN = "mean"  # over time, with scatter within a run
    PEAK = "peak"
    TOTAL = "total"
    WORK = "work"  # compared as ratios; each run has one value, except for a logged training rate


Read = Callable[[Sequence[SampledRun]], float | None]
"""Returns a figure for whole recordings of runs, or None if it was not recorded."""


@dataclass(frozen=True, slots=True)
class Figure:
    metric: str
    unit: str  # a base unit (1, s, W, By, Hz, J), 1/s for work, or the currency of prices
    role: FigureRole
    better: int  # 1 if more is better, -1 if less is, 0 if neither is
    read: Read = lambda _: None
    finest: float = 0.0  # The step to which logs round the figure.
    usual_noise: float = SHARE  # The usual relative difference between two runs of one job.

    def margin(self, before: float) -> float:
        return POINTS if self.is_share else self.usual_noise * abs(before)

    def allow_slow_change(self, seconds: float) -> float:
        most = SLOW_POINTS if self.is_share else log(SLOW_RATIO)
        return most * float(np.interp(seconds, (_FULL_SECONDS, LONG_SECONDS), (1.0, 0.0)))

    @property
    def is_share(self) -> bool:
        return self.metric in {UTILISATION, IDLE}

    def clip(self, interval: Ends, before: float | None) -> Ends:
        """Limit an interval so that no share falls below 0 or rises above 1."""
        if not self.is_share or before is None:
            return interval
        return max(interval[0], 0.0 - before), min(interval[1], 1 - before)


def _list_gpus(analyses: Iterable[Analysis]) -> list[DeviceStatistics]:
    return [
        statistics
        for analysis in analyses
        for gpus in [{gpu.id for gpu in analysis.run.gpus}]
        for statistics in analysis.statistics
        if statistics.device in gpus
    ]


def observed_seconds(analyses: Sequence[Analysis]) -> float:
    each = [
        min(gpu.observed_seconds, (analysis.run.ended - analysis.run.started) / 1e6)
        for analysis in analyses
        for gpu in _list_gpus([analysis])
    ]
    return max(each, default=0.0)


def recorded_seconds(analyses: Sequence[Analysis]) -> float:
    each = [observed_seconds([analysis]) for analysis in analyses]
    return max(fsum(one for one in each if one >= SHORTEST_REPETITION_SECONDS), *each, 0.0)


def _of_time(metric: str) -> Read:
    def read(runs: Sequence[SampledRun]) -> float | None:
        found = [gpu.metric(metric) for gpu in _list_gpus(run.analysis for run in runs)]
        known = [each for each in found if each is not None and each.seconds > 0]
        seconds = fsum(each.seconds for each in known)
        return fsum(each.mean * each.seconds for each in known) / seconds if seconds else None

    return read


def _idle(runs: Sequence[SampledRun]) -> float | None:
    known = [
        (gpu.idle_seconds, found.seconds)
        for gpu in _list_gpus(run.analysis for run in runs)
        if gpu.idle_seconds is not None and (found := gpu.metric(UTILISATION)) is not None
    ]
    seconds = fsum(each for _, each in known)
    return fsum(idle for idle, _ in known) / seconds if seconds else None


def _memory(runs: Sequence[SampledRun]) -> float | None:
    peaks = (gpu.memory_peak_bytes for gpu in _list_gpus(run.analysis for run in runs))
    return max((peak for peak in peaks if peak is not None), default=None)


def _energy(runs: Sequence[SampledRun]) -> float | None:
    used = [gpu.energy_joules for gpu in _list_gpus(run.analysis for run in runs)]
    known = [joules for joules in used if joules is not None]
    return fsum(known) / len(runs) if known and len(known) == len(used) else None


def _gpu_seconds(runs: Sequence[SampledRun]) -> float | None:
    return fsum(run.analysis.job_gpu_seconds for run in runs) / len(runs) or None


def _cost(runs: Sequence[SampledRun]) -> float | None:
    held, price = _gpu_seconds(runs), runs[0].gpu_hour_price
    return None if held is None or price is None else held / HOUR * price


def _per_work(total: Read) -> Read:

    def read(runs: Sequence[SampledRun]) -> float | None:
        each = [(total([run]), run.info.work) for run in runs]
        known = [one / work.amount * WORK_BATCH for one, work in each if one is not None and work and work.amount > 0]
        units = {work and work.unit for _, work in each}
        return mean_of_ratios(known) if len(known) == len(runs) and len(units) == 1 else None

    return read


def mean_of_ratios(values: Sequence[float]) -> float:
    """Return the geometric mean, or the arithmetic mean if a value is zero."""
    return geometric_mean(values) if len(values) > 1 and min(values) > 0 else fmean(values)


_WORK, _MEAN, _TOTAL = FigureRole.WORK, FigureRole.MEAN, FigureRole.TOTAL
_SECONDS = _per_work(lambda one: one[0].analysis.seconds)
FIGURES = (
    Figure(WORK_RATE, "1/s", _WORK, 1, lambda runs: (each := _SECONDS(runs)) and WORK_BATCH / each),
    Figure(TRAINING_RATE, "1/s", _WORK, 1, lambda _: None),
    Figure(PER_WORK, "s", _WORK, -1, _per_work(_gpu_seconds)),
    Figure(COST_PER_WORK, "currency", _WORK, -1, _per_work(_cost)),
    Figure(GPU_SECONDS, "s", _TOTAL, -1, _gpu_seconds),
    Figure(ENERGY_PER_WORK, "J", _WORK, -1, _per_work(_energy)),
    Figure(ENERGY, "J", _TOTAL, -1, _energy),
    Figure(IDLE, "1", _MEAN, -1, _idle, 0.01),
    Figure(UTILISATION, "1", _MEAN, 1, _of_time(UTILISATION), 0.01),
    Figure(POWER, "W", _MEAN, 0, _of_time(POWER), 0.01),
    Figure(SM_CLOCK, "Hz", _MEAN, 0, _of_time(SM_CLOCK), 1e6),
    Figure(GRAPHICS_CLOCK, "Hz", _MEAN, 0, _of_time(GRAPHICS_CLOCK), 1e6),
    Figure(MEMORY, "By", FigureRole.PEAK, 0, _memory, 2.0**20),
)
"""Every figure, in display order. The training rate has no reader, since all steps must use the same source."""
LISTED = sorted(FIGURES, key=lambda figure: {COST_PER_WORK: 1, TRAINING_RATE: 2}.get(figure.metric, 0))
"""The same figures in the order used in JSON documents."""
TIME_TO_TARGET = Figure(SECONDS_TO_TARGET, "s", _TOTAL, -1, usual_noise=0.2)
"""Time to the quality target, if one was given. The seed alone often changes this time by a fifth."""
BY_METRIC = {figure.metric: figure for figure in (*FIGURES, TIME_TO_TARGET)}


def read_run(run: SampledRun) -> dict[str, float | None]:
    return {figure.metric: figure.read([run]) for figure in LISTED if figure.metric != TRAINING_RATE}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortRun:
    """A run with too little settled time, or one that `stopped` after a small part of the others' work."""

    run: str
    seconds: float
    least: float
    stopped: bool = False


class CountedRuns(NamedTuple):
    counted: tuple[SampledRun, ...]
    left_out: tuple[ShortRun, ...]


def count_runs(runs: Sequence[SampledRun], metric: str, interval: float) -> CountedRuns:
    held = [run.steady_seconds(metric, interval) for run in runs]
    sampled, alike = (min(SHORTEST_SECONDS, each) for each in (_FEWEST_SAMPLES * interval, max(held) * _LIKE))
    least = max(SHORTEST_REPETITION_SECONDS, sampled, alike)
    return _split(runs, held, [seconds < least for seconds in held], least)


def count_jobs(runs: Sequence[SampledRun]) -> CountedRuns:
    # leave out a run that stopped long before the others, since start-up weighs more in it, unless it did a third of
    # their work
    seconds = [observed_seconds([run.analysis]) for run in runs]
    amounts = [run.info.work.amount if run.info.work else 0.0 for run in runs]
    least = min(SHORTEST_SECONDS, max(seconds) * _LIKE)
    early = [held < least and amount < max(amounts) * _LIKE for held, amount in zip(seconds, amounts, strict=True)]
    return _split(runs, seconds, early, least, stopped=True)


def _split(
    runs: Sequence[SampledRun], seconds: Sequence[float], short: Sequence[bool], least: float, *, stopped: bool = False
) -> CountedRuns:
    left_out = [
        ShortRun(run=run.info.name, seconds=min(held, run.lasted), least=least, stopped=stopped)
        for run, held in compress(zip(runs, seconds, strict=True), short)
    ]
    return CountedRuns(tuple(run for run, each in zip(runs, short, strict=True) if not each), tuple(left_out))


class Resolution(NamedTuple):
    """The rounding step of values, and the smallest half-width that more runs can achieve."""

    finest: float = 0.0
    least: float = 0.0


def find_sampling_step(runs: Sequence[SampledRun]) -> float:
    # a job may begin half an interval before the first sample, and end half an interval after the last one; repetitions
    # do not average this error out, since every recording begins with its job
    # an unknown interval counts as one second
    lengths = [(run.info.interval or 1.0, observed_seconds([run.analysis])) for run in runs]
    return max((interval / seconds for interval, seconds in lengths if seconds > 0), default=0.0)

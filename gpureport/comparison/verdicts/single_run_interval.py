"""One run against one: the interval of their difference from the scatter within each run, or why there is none."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import expm1, inf, isfinite, log

import numpy as np

from gpureport.comparison.statistics import slow_changes
from gpureport.comparison.statistics.batch_means import FEWEST, BatchMeans, batch_means
from gpureport.comparison.statistics.difference_estimate import LEVEL, DifferenceEstimate, estimate_within_runs
from gpureport.comparison.statistics.mean_estimate import MeanEstimate
from gpureport.comparison.statistics.slow_changes import LONG_SECONDS, SECONDS_A_SAMPLE
from gpureport.comparison.steps.compared_figures import IDLE, POWER, UTILISATION, Figure
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.steps.step_figures import ENERGY_PER_WORK
from gpureport.comparison.steps.verdict_reason import Reason, ReasonKind
from gpureport.comparison.verdicts.per_work import compute_per_work

_FEWEST_BINS = round(LONG_SECONDS / SECONDS_A_SAMPLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleRunDifference:
    """The difference of one run against another.

    Attributes:
        contrast: None where nothing can be told.
        reason: why nothing can, or why only a large difference shows; None where neither is so.
        unseen: seconds of the shorter run without any gap; None where both have some. A gap that came once in a third
            of them or more often would have been seen, with a probability of 95 %.
    """

    contrast: DifferenceEstimate | None
    reason: Reason | None = None
    unseen: float | None = None


def compare_means(before: SampledRun, after: SampledRun, figure: Figure, interval: float) -> SingleRunDifference:
    """Return the difference of a mean over time."""
    runs = (before, after)
    estimates = [run.estimate(figure.metric, interval, figure.finest) for run in runs]
    if any(estimate.between.degrees < 1 for estimate in estimates):
        return SingleRunDifference(contrast=None, reason=Reason(kind=ReasonKind.FEW_BATCHES, least=FEWEST))
    quiet = [
        run.steady_seconds(figure.metric, interval)
        for run, estimate in zip(runs, estimates, strict=True)
        if estimate.seen == 0
    ]
    lengths = [_measure_length(run, figure.metric, interval) for run in runs]
    short = next((reason for length in lengths if (reason := length.reason)), None)
    allowance = _allow(figure, estimates, min(length.seconds for length in lengths)) if short else 0.0
    return SingleRunDifference(
        contrast=estimate_within_runs(*estimates, allowance=allowance), reason=short, unseen=min(quiet, default=None)
    )


def _allow(figure: Figure, estimates: Sequence[MeanEstimate], seconds: float) -> float:
    """Return the allowance for slow changes, in the unit of the figure."""
    if figure.metric in {UTILISATION, IDLE}:
        return slow_changes.allow_points(seconds)
    return expm1(slow_changes.allow_logarithm(seconds)) * min(abs(estimate.mean) for estimate in estimates)


def estimate_mean_interval(run: SampledRun, figure: Figure, interval: float) -> tuple[float, float] | None:
    """Return the interval of a mean over time of one run; None where the run is too short for one."""
    if _measure_length(run, figure.metric, interval).reason:
        return None
    found = run.estimate(figure.metric, interval, figure.finest)
    return found.interval(LEVEL) if found.between.degrees >= 1 else None


def compare_work(before: SampledRun, after: SampledRun, figure: Figure) -> SingleRunDifference:
    """Return the difference of the logarithms of a figure per unit of work."""
    runs = (before, after)
    estimates = [_log_estimate(run, figure.metric) for run in runs]
    lengths = [_measure_work_length(run) for run in runs]
    short = next((reason for length in lengths if (reason := length.reason)), None)
    if any(estimate.between.degrees < 1 or not isfinite(estimate.mean) for estimate in estimates):
        return SingleRunDifference(contrast=None, reason=short or Reason(kind=ReasonKind.FEW_BATCHES, least=FEWEST))
    allowance = slow_changes.allow_logarithm(min(length.seconds for length in lengths)) if short else 0.0
    return SingleRunDifference(contrast=estimate_within_runs(*estimates, allowance=allowance), reason=short)


def estimate_work_interval(run: SampledRun, metric: str) -> tuple[float, float] | None:
    """Return the interval of the logarithm of a figure per unit of work in one run; None where it tells none."""
    if _measure_work_length(run).reason:
        return None
    low, high = _log_estimate(run, metric).interval(LEVEL)
    return (low, high) if isfinite(low) and isfinite(high) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Length:
    """How long a run is for an interval of its own.

    Attributes:
        seconds: steady time it counts with, fewer where samples lie far apart.
        reason: why slow changes may hide in it; None where it is long enough.
    """

    seconds: float
    reason: Reason | None


def _measure_length(run: SampledRun, metric: str, interval: float) -> _Length:
    series = run.at(interval)
    width = series.width if series else 1.0
    steady = run.steady_seconds(metric, interval)
    return _length(run, run.recorded_seconds(metric, interval), steady, width, ReasonKind.FEW_SAMPLES)


def _measure_work_length(run: SampledRun) -> _Length:
    width = run.throughput.width if run.throughput else 1.0
    recorded = 0.0 if run.rates is None else run.recorded_rate_seconds
    return _length(run, recorded, run.rate_seconds, width, ReasonKind.FEW_RATES)


def _length(run: SampledRun, recorded: float, steady: float, width: float, few: ReasonKind) -> _Length:
    name, bins = run.analysis.run.name, round(recorded / width)
    seconds = min(steady, SECONDS_A_SAMPLE * steady / width)
    if recorded < LONG_SECONDS - width / 2:
        # cells reach past the first and the last sample, the recording does not
        lasted = min(recorded, (run.analysis.run.ended - run.analysis.run.started) / 1e6)
        reason = Reason(kind=ReasonKind.SHORT_RUN, run=name, amount=lasted, least=LONG_SECONDS)
        return _Length(seconds=seconds, reason=reason)
    if bins < _FEWEST_BINS:
        return _Length(seconds=seconds, reason=Reason(kind=few, run=name, amount=bins, least=_FEWEST_BINS))
    return _Length(seconds=seconds, reason=None)


def _log_estimate(run: SampledRun, metric: str) -> MeanEstimate:
    """Return the logarithm of a figure, its error that of rate and power together, which are taken as independent."""
    rates, value = run.rates, compute_per_work(run, metric)
    speed = batch_means(rates if rates is not None else np.zeros(0))
    error, degrees = _relative(speed.error, speed.mean), speed.degrees
    if metric == ENERGY_PER_WORK:
        power = run.estimate(POWER, 0.0, 0.01)
        error = float(np.hypot(error, _relative(power.between.error, power.mean)))
        degrees = min(degrees, power.between.degrees)
    center = log(value) if value else -inf
    return MeanEstimate(mean=center, between=BatchMeans(mean=center, error=error, degrees=degrees))


def _relative(error: float, mean: float) -> float:
    return error / mean if mean > 0 else inf

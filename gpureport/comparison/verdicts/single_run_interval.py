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
from gpureport.comparison.steps.compared_figures import Figure
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.steps.steady_state import settled
from gpureport.comparison.steps.training_rate import TrainingBasis, training_rate
from gpureport.comparison.steps.verdict_reason import Reason, ReasonKind

_FEWEST_BINS = round(LONG_SECONDS / SECONDS_A_SAMPLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleRunDifference:
    """The difference of one run against another.

    Attributes:
        contrast: None where nothing can be told.
        reason: why nothing can, or why only a large difference shows; None where neither is so.
        unseen: seconds of the shorter run without any gap; None where both have some. A gap that came once in a third
            of them or more often would have been seen, with a probability of 95%.
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
    if figure.is_share:
        return slow_changes.allow_points(seconds)
    return expm1(slow_changes.allow_logarithm(seconds)) * min(abs(estimate.mean) for estimate in estimates)


def estimate_mean_interval(run: SampledRun, figure: Figure, interval: float) -> tuple[float, float] | None:
    """Return the interval of a mean over time of one run; None where the run is too short for one."""
    if _measure_length(run, figure.metric, interval).reason:
        return None
    found = run.estimate(figure.metric, interval, figure.finest)
    return found.interval(LEVEL) if found.between.degrees >= 1 else None


def compare_training_rates(before: SampledRun, after: SampledRun) -> SingleRunDifference:
    """Return the difference of the logarithms of the rates that training metrics tell."""
    runs = (before, after)
    estimates = [_log_training_rate(run) for run in runs]
    lengths = [_measure_work_length(run) for run in runs]
    short = next((reason for length in lengths if (reason := length.reason)), None)
    if any(estimate.between.degrees < 1 or not isfinite(estimate.mean) for estimate in estimates):
        return SingleRunDifference(contrast=None, reason=short or Reason(kind=ReasonKind.FEW_BATCHES, least=FEWEST))
    allowance = slow_changes.allow_logarithm(min(length.seconds for length in lengths)) if short else 0.0
    return SingleRunDifference(contrast=estimate_within_runs(*estimates, allowance=allowance), reason=short)


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


def _log_training_rate(run: SampledRun) -> MeanEstimate:
    """Return the logarithm of the training rate; its error is that of the rates once the run had settled."""
    value = training_rate(run, TrainingBasis.SERIES)
    rates = np.zeros(0) if run.rates is None else run.rates
    # a slow beginning is part of the rate but no scatter, and utilisation need not show it
    speed = batch_means(rates[settled(rates) :])
    error = speed.error / speed.mean if speed.mean > 0 else inf
    center = log(value) if value else -inf
    return MeanEstimate(mean=center, between=BatchMeans(mean=center, error=error, degrees=speed.degrees))

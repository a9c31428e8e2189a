"""One run against one: the interval of their difference from the scatter within each run, or why there is none."""

from dataclasses import dataclass
from math import inf, isfinite, log

import numpy as np

from gpureport.comparison.statistics.batch_means import FEWEST, BatchMeans, batch_means
from gpureport.comparison.statistics.difference_estimate import LEVEL, DifferenceEstimate, estimate_within_runs
from gpureport.comparison.statistics.mean_estimate import MeanEstimate
from gpureport.comparison.steps.compared_figures import POWER, Figure
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.steps.step_figures import ENERGY_PER_WORK
from gpureport.comparison.steps.verdict_reason import Reason, ReasonKind
from gpureport.comparison.verdicts.per_work import compute_per_work

SHORTEST_SECONDS = 600.0
"""Recorded time below which one run says nothing about its own scatter."""

FEWEST_BINS = 120
"""Bins below which it does not either."""

_SMALLEST_BATCH = 5
"""Samples of the shortest batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleRunDifference:
    """The difference of one run against another.

    Attributes:
        contrast: None where nothing can be told.
        reason: why nothing can; None where something can.
        unseen: seconds of the shorter run without any gap; None where both have some. A gap that came once in a third
            of them or more often would have been seen, with a probability of 95 %.
    """

    contrast: DifferenceEstimate | None
    reason: Reason | None = None
    unseen: float | None = None


def compare_means(before: SampledRun, after: SampledRun, figure: Figure, interval: float) -> SingleRunDifference:
    """Return the difference of a mean over time."""
    runs = (before, after)
    for run in runs:
        series = run.at(interval)
        seconds = series.recorded_seconds(figure.metric) if series else 0.0
        width = series.width if series else 1.0
        if short := _too_short(run, seconds, width):
            return SingleRunDifference(contrast=None, reason=short)
    estimates = [run.estimate(figure.metric, interval, figure.finest) for run in runs]
    if any(estimate.between.degrees < 1 for estimate in estimates):
        return SingleRunDifference(contrast=None, reason=Reason(kind=ReasonKind.FEW_BATCHES, least=FEWEST))
    quiet = [
        run.steady_seconds(figure.metric, interval)
        for run, estimate in zip(runs, estimates, strict=True)
        if estimate.seen == 0
    ]
    return SingleRunDifference(contrast=estimate_within_runs(*estimates), unseen=min(quiet, default=None))


def compare_work(before: SampledRun, after: SampledRun, figure: Figure) -> SingleRunDifference:
    """Return the difference of the logarithms of a figure per unit of work."""
    estimates = []
    for run in (before, after):
        if short := _short_of_work(run):
            return SingleRunDifference(contrast=None, reason=short)
        estimates.append(_log_estimate(run, figure.metric))
    return SingleRunDifference(contrast=estimate_within_runs(*estimates))


def estimate_work_interval(run: SampledRun, metric: str) -> tuple[float, float] | None:
    """Return the interval of the logarithm of a figure per unit of work in one run; None where it tells none."""
    if _short_of_work(run):
        return None
    low, high = _log_estimate(run, metric).interval(LEVEL)
    return (low, high) if isfinite(low) and isfinite(high) else None


def _short_of_work(run: SampledRun) -> Reason | None:
    """Return why throughput is too short a series to say anything about its scatter; None when it is not."""
    width = run.throughput.width if run.throughput else 1.0
    seconds = 0.0 if run.rates is None else run.recorded_rate_seconds
    return _too_short(run, seconds, width, ReasonKind.FEW_RATES)


def _too_short(
    run: SampledRun, seconds: float, width: float, few: ReasonKind = ReasonKind.FEW_SAMPLES
) -> Reason | None:
    """Return why a run is too short to say anything about its own scatter; None when it is not."""
    name, bins = run.analysis.run.name, round(seconds / width)
    if seconds < SHORTEST_SECONDS - width / 2:
        # cells reach past the first and the last sample, the recording does not
        seconds = min(seconds, (run.analysis.run.ended - run.analysis.run.started) / 1e6)
        return Reason(kind=ReasonKind.SHORT_RUN, run=name, amount=seconds, least=SHORTEST_SECONDS)
    if bins < max(FEWEST_BINS, FEWEST * _SMALLEST_BATCH):
        return Reason(kind=few, run=name, amount=bins, least=FEWEST_BINS)
    return None


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

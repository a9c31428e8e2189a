"""One run against one: the interval of their difference from the scatter within each run, or why there is none."""

from dataclasses import dataclass
from math import inf, log

import numpy as np

from gpureport.comparison.statistics.batch_means import FEWEST, BatchMeans, batch_means
from gpureport.comparison.statistics.difference_estimate import DifferenceEstimate, estimate_within_runs
from gpureport.comparison.statistics.mean_estimate import MeanEstimate
from gpureport.comparison.steps.compared_figures import Figure
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.steps.training_rate import TrainingBasis, training_rate
from gpureport.comparison.steps.verdict_reason import Reason, ReasonKind

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


def compare_training_rates(before: SampledRun, after: SampledRun) -> SingleRunDifference:
    """Return the difference of the logarithms of the rates that training metrics tell."""
    estimates = []
    for run in (before, after):
        if short := _short_of_work(run):
            return SingleRunDifference(contrast=None, reason=short)
        estimates.append(_log_training_rate(run))
    return SingleRunDifference(contrast=estimate_within_runs(*estimates))


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


def _log_training_rate(run: SampledRun) -> MeanEstimate:
    """Return the logarithm of the training rate; its error is that of the rates once the run had settled."""
    rates, value = run.rates, training_rate(run, TrainingBasis.SERIES)
    speed = batch_means(rates if rates is not None else np.zeros(0))
    error = speed.error / speed.mean if speed.mean > 0 else inf
    center = log(value) if value else -inf
    return MeanEstimate(mean=center, between=BatchMeans(mean=center, error=error, degrees=speed.degrees))

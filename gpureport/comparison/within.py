"""One run against one: how sure their difference is by what lies within them, or why that cannot be told."""

import re
from dataclasses import dataclass
from math import inf, isfinite, log

import numpy as np

from gpureport.analysis import wording
from gpureport.comparison.batch_means import FEWEST, BatchMeans, batch_means
from gpureport.comparison.contrasts import LEVEL, Contrast, within_runs
from gpureport.comparison.figures import POWER, Figure
from gpureport.comparison.mean_estimate import MeanEstimate
from gpureport.comparison.measures import ENERGY_PER_WORK
from gpureport.comparison.per_work import per_work
from gpureport.comparison.sampled_run import SampledRun

SHORTEST_SECONDS = 600.0
"""Recorded time below which one run says nothing about its own scatter."""

FEWEST_BINS = 120
"""Bins below which it does not either."""

_SMALLEST_BATCH = 5
"""Samples of the shortest batch."""

_REPEAT = "record longer, or repeat each step three times"
_ONE = re.compile(r"^(One run tells its own scatter from .*? on), and .* holds [^:]*(?=: )")


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """The difference of one run against another.

    Attributes:
        contrast: None where nothing can be told.
        reason: why nothing can; empty where something can.
        unseen: seconds of the shorter run without any gap; None where both have some. A gap that came once in a third
            of them or more often would have been seen, with a probability of 95 %.
    """

    contrast: Contrast | None
    reason: str
    unseen: float | None = None


def mean(before: SampledRun, after: SampledRun, figure: Figure, interval: float) -> Within:
    """Return the difference of a mean over time."""
    runs = (before, after)
    for run in runs:
        series = run.at(interval)
        seconds = series.recorded_seconds(figure.metric) if series else 0.0
        width = series.width if series else 1.0
        if reason := _refused(run, seconds, width):
            return Within(contrast=None, reason=reason)
    estimates = [run.estimate(figure.metric, interval, figure.finest) for run in runs]
    if any(estimate.between.degrees < 1 for estimate in estimates):
        return Within(contrast=None, reason=f"Too little is left between gaps for {FEWEST} batches: {_REPEAT}.")
    quiet = [
        run.steady_seconds(figure.metric, interval)
        for run, estimate in zip(runs, estimates, strict=True)
        if estimate.seen == 0
    ]
    return Within(contrast=within_runs(*estimates), reason="", unseen=min(quiet, default=None))


def work(before: SampledRun, after: SampledRun, figure: Figure) -> Within:
    """Return the difference of the logarithms of a figure per unit of work."""
    estimates = []
    for run in (before, after):
        if reason := _refused_work(run):
            return Within(contrast=None, reason=reason)
        estimates.append(_log_estimate(run, figure.metric))
    return Within(contrast=within_runs(*estimates), reason="")


def alone(run: SampledRun, metric: str) -> tuple[float, float] | None:
    """Return the interval of the logarithm of a figure per unit of work in one run; None where it tells none."""
    if _refused_work(run):
        return None
    low, high = _log_estimate(run, metric).interval(LEVEL)
    return (low, high) if isfinite(low) and isfinite(high) else None


def _refused_work(run: SampledRun) -> str:
    """Return why throughput is too short a series to say anything about its scatter; empty when it is not."""
    width = run.throughput.width if run.throughput else 1.0
    seconds = 0.0 if run.rates is None else run.recorded_rate_seconds
    return _refused(run, seconds, width, "points of its throughput")


def _refused(run: SampledRun, seconds: float, width: float, what: str = "samples") -> str:
    """Return why a run is too short to say anything about its own scatter; empty when it is not."""
    name, bins = run.analysis.run.name, round(seconds / width)
    if seconds < SHORTEST_SECONDS - width / 2:
        # cells reach past the first and the last sample, the recording does not
        seconds = min(seconds, (run.analysis.run.ended - run.analysis.run.started) / 1e6)
        held = wording.duration(seconds)
        return f"One run tells its own scatter from 10 minutes on, and {name} holds {held}: {_REPEAT}."
    if bins < max(FEWEST_BINS, FEWEST * _SMALLEST_BATCH):
        return f"One run tells its own scatter from {FEWEST_BINS} {what} on, and {name} holds {bins}: {_REPEAT}."
    return ""


def general(reason: str) -> str:
    """Return why nothing can be told without the run that it was said of, so that several pairs share it."""
    return _ONE.sub(r"\1", reason)


def _log_estimate(run: SampledRun, metric: str) -> MeanEstimate:
    """Return the logarithm of a figure, its error that of rate and power together, which are taken as independent."""
    rates, value = run.rates, per_work(run, metric)
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

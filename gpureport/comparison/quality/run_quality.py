"""How well one run trained by one metric: its value at the end, its best value, and the spread of its last values."""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from gpureport.columns import FloatArray
from gpureport.comparison.run import SampledRun
from gpureport.comparison.training.training_curves import TrainingCurve
from gpureport.findings import Interval

_LAST = 0.1
"""Share of the values, from the end, that the final value is the mean of (pragmatic)."""

_FEWEST = 3
"""Values that the final value is the mean of where there are twice as many: one alone scatters."""

_SPREAD_SHARE = 0.2
"""Share of the values, from the end, whose scatter about a line is the spread (pragmatic)."""

_SPREAD_VALUES = 5
"""Values that show the spread at least, where there are as many: fewer tell scatter from trend badly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunQuality:
    """One training metric of one run.

    Attributes:
        final: mean of its last values; None where it ended in a value that is not a number.
        best: its best value; None where it is not known which way it gets better, or no value is a number.
        best_seconds: when it was reached, from the start of the job; None where values have no times.
        spread: standard deviation of its last values about their trend; None of fewer than three values.
        last_count: how many values the final one is the mean of.
        diverged: whether it ended in a value that is not a number.
    """

    final: float | None
    best: float | None
    best_seconds: float | None
    spread: float | None
    last_count: int
    diverged: bool


def measure_run_quality(run: SampledRun, curve: TrainingCurve, *, higher_is_better: bool | None) -> RunQuality:
    """Return how well a run trained by one of its metrics.

    Args:
        run: the run.
        curve: the metric.
        higher_is_better: whether a higher value is the better one; None where not known.
    """
    best_row = find_best_row(curve.values, higher_is_better=higher_is_better)
    known = curve.known
    last_count = count_last(len(known))
    final = None if curve.has_diverged or not last_count else float(known[-last_count:].mean())
    timed = best_row is not None and len(curve.times) > 0
    return RunQuality(
        final=final,
        best=None if best_row is None else float(curve.values[best_row]),
        best_seconds=seconds_since_job_start(run, curve, int(curve.times[best_row])) if timed else None,
        spread=measure_spread(known),
        last_count=last_count,
        diverged=curve.has_diverged,
    )


def count_last(count: int) -> int:
    """Return how many of the last values count as the end: a tenth, and three or half where that is fewer."""
    return max(round(count * _LAST), min(_FEWEST, (count + 1) // 2), min(2, count))


def find_best_row(values: FloatArray, *, higher_is_better: bool | None) -> int | None:
    """Return the row of the best value, the first of equal ones; None without any, or without a direction."""
    if higher_is_better is None or not np.isfinite(values).any():
        return None
    worst = -np.inf if higher_is_better else np.inf
    ranked = np.where(np.isfinite(values), values, worst)
    return int(ranked.argmax() if higher_is_better else ranked.argmin())


def measure_spread(values: FloatArray) -> float | None:
    """Return the standard deviation of the last values about the line through them; None of fewer than three values.

    The line takes out what the run still learned at its end.
    """
    if len(values) < _FEWEST:
        return None
    last = values[-max(round(len(values) * _SPREAD_SHARE), _SPREAD_VALUES) :]
    place = np.arange(len(last)) - (len(last) - 1) / 2
    slope = float(place @ last) / float(place @ place)
    residuals = last - last.mean() - slope * place
    return sqrt(float(residuals @ residuals) / (len(last) - 2))


def seconds_since_job_start(run: SampledRun, curve: TrainingCurve, moment: int) -> float:
    """Return the time from the start of the job that a metric was logged in to a moment, in seconds."""
    return (moment - find_job_start(run, curve)) / 1e6


def find_job_start(run: SampledRun, curve: TrainingCurve) -> int:
    """Return the start of the job in which the first value of a metric was logged, in microseconds.

    Where no job was told apart it is the start of the recording.
    """
    first = int(curve.times[0])
    begun = [job.interval.start for job in run.analysis.jobs if job.interval.start <= first]
    return max(begun, default=run.analysis.run.started)


def gpu_seconds_between(run: SampledRun, start: int, end: int) -> float:
    """Return the GPU time that a run held between two moments, without time in which no job held a GPU."""
    whole = Interval(start, end)
    held = 0.0
    for gpu in run.analysis.run.gpus:
        free = run.analysis.no_job.get(gpu.id, ())
        overlaps = ((max(each.start, start), min(each.end, end)) for each in free)
        held += whole.seconds - sum(max(last - first, 0) for first, last in overlaps) / 1e6
    return held

"""Every step as a group among others: how busy its GPUs were, and what their time and money bought."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, fsum, log, sqrt

from gpureport.comparison.statistics import quantiles
from gpureport.comparison.statistics.difference_estimate import LEVEL, find_rounding_error
from gpureport.comparison.steps.compared_figures import BY_METRIC, UTILISATION
from gpureport.comparison.steps.counted_runs import ShortRun, count_runs
from gpureport.comparison.steps.sampled_run import find_coarsest_interval
from gpureport.comparison.steps.step_figures import COST_PER_WORK, HOUR, PER_WORK, WORK_BATCH
from gpureport.comparison.steps.steps import Step
from gpureport.comparison.verdicts import single_run_interval
from gpureport.comparison.verdicts.step_evidence import gather_evidence
from gpureport.comparison.verdicts.work_resolution import EXACT, Resolution, find_resolution

_LARGEST = 300.0
"""Logarithm beyond which no figure lies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A mean over the runs of a step.

    Attributes:
        value: the mean.
        interval: its ends at a level of 0.95; None where nothing tells its scatter.
        basis: `within-run` or `replicates`; None without an interval.
        settled: whether it leaves out start-up and what had not settled.
    """

    value: float
    interval: tuple[float, float] | None
    basis: str | None
    settled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSummary:
    """One step among others.

    Attributes:
        label: of the step.
        runs: how many it has.
        gpus: GPUs of a run; None where its runs differ.
        models: of its GPUs.
        utilisation: GPU utilisation of what had settled; None where not recorded, or `too_short_run`.
        work_unit: what work is counted in; None where not known.
        work_per_gpu_hour: work a GPU did in an hour; None where not known.
        gpu_hour_price: what a GPU-hour costs; None where not known, or its runs differ.
        cost_per_1000_work: what 1000 units of work cost; None where either is not known.
        too_short_run: the longest run, too short for it as are the others; None where utilisation is given, or was
            not recorded.
    """

    label: str
    runs: int
    gpus: int | None
    models: tuple[str, ...]
    utilisation: Mean | None
    work_unit: str | None
    work_per_gpu_hour: Mean | None
    gpu_hour_price: float | None = None
    cost_per_1000_work: Mean | None = None
    too_short_run: ShortRun | None = None


def summarize_steps(steps: Sequence[Step]) -> tuple[StepSummary, ...]:
    """Return every step as a group among others."""
    return tuple(_group(step) for step in steps)


def gpu_count(step: Step) -> int | None:
    """Return the GPUs of a run; None where its runs differ."""
    counts = {len(analysis.run.gpus) for analysis in step.analyses}
    return counts.pop() if len(counts) == 1 else None


def _group(step: Step) -> StepSummary:
    models = {gpu.model for analysis in step.analyses for gpu in analysis.run.gpus if gpu.model}
    prices = {run.gpu_hour_price for run in step.runs}
    seconds, too_short_run = _per_work(step, PER_WORK), _find_too_short_run(step)
    return StepSummary(
        label=step.label,
        runs=len(step.runs),
        gpus=gpu_count(step),
        models=tuple(sorted(models)),
        utilisation=None if too_short_run else _utilisation(step),
        work_unit=step.work_unit,
        work_per_gpu_hour=None if seconds is None else _turned(seconds, WORK_BATCH * HOUR),
        gpu_hour_price=prices.pop() if len(prices) == 1 else None,
        cost_per_1000_work=_per_work(step, COST_PER_WORK),
        too_short_run=too_short_run,
    )


def _find_too_short_run(step: Step) -> ShortRun | None:
    """Return the run that holds most of the steady state where that is too little; None elsewhere."""
    interval = find_coarsest_interval(step.runs)
    if any(run.recorded_seconds(UTILISATION, interval) <= 0 for run in step.runs):
        return None
    runs = count_runs(step.runs, UTILISATION, interval)
    return None if runs.counted else max(runs.left_out, key=lambda run: run.seconds)


def _utilisation(step: Step) -> Mean | None:
    """Return the mean over what had settled, of runs that hold enough of it where they hold any."""
    interval = find_coarsest_interval(step.runs)
    if any(run.recorded_seconds(UTILISATION, interval) <= 0 for run in step.runs):
        return None
    counted = count_runs(step.runs, UTILISATION, interval).counted
    values = [run.steady_mean(UTILISATION, interval) for run in counted]
    if len(values) > 1:
        return replace(mean_over_runs(values), settled=True)
    bounds = single_run_interval.estimate_mean_interval(counted[0], BY_METRIC[UTILISATION], interval)
    return Mean(value=values[0], interval=bounds, basis="within-run" if bounds else None, settled=True)


def mean_over_runs(values: Sequence[float], resolution: Resolution = EXACT) -> Mean:
    """Return the mean of a figure of two or more runs, with the interval that their scatter gives it.

    Args:
        values: one of each run.
        resolution: how finely they are known; the interval is no finer.
    """
    mean = fsum(values) / len(values)
    error = sqrt(fsum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))
    error = max(error, find_rounding_error(resolution.finest, [len(values)]))
    half = max(quantiles.student((1 + LEVEL) / 2, len(values) - 1) * error, resolution.least)
    return Mean(value=mean, interval=(mean - half, mean + half), basis="replicates")


def geometric_mean_over_runs(values: Sequence[float], resolution: Resolution = EXACT) -> Mean:
    """Return the geometric mean of a figure of two or more runs; interval and resolution are those of logarithms."""
    mean = mean_over_runs([log(value) for value in values], resolution)
    interval = mean.interval and (_amount(mean.interval[0]), _amount(mean.interval[1]))
    return replace(mean, value=exp(mean.value), interval=interval)


def _per_work(step: Step, metric: str) -> Mean | None:
    """Return what work took in whole recordings, a geometric mean over runs."""
    own = gather_evidence(step, step, BY_METRIC[metric])
    if not own.before or own.difference is None:
        return None
    if len(own.figures[0]) > 1:
        return geometric_mean_over_runs(own.figures[0], find_resolution(step, step, metric))
    return Mean(value=own.before, interval=None, basis=None)


def _amount(logarithm: float) -> float:
    """Return what a logarithm is of; ends of an interval that nothing bounds stay within what a float holds."""
    return exp(min(max(logarithm, -_LARGEST), _LARGEST))


def _turned(mean: Mean, size: float) -> Mean:
    interval = None if mean.interval is None else (size / mean.interval[1], size / mean.interval[0])
    return replace(mean, value=size / mean.value, interval=interval)

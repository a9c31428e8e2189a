"""The noise of a store: what repetitions of one and the same step in it differ by."""

from collections.abc import Sequence
from math import log

from gpureport.comparison.steps.compared_figures import FIGURES, IDLE, MEMORY, UTILISATION, Figure, FigureRole
from gpureport.comparison.steps.counted_runs import STEADY_SECONDS
from gpureport.comparison.steps.sampled_run import SampledRun, find_coarsest_interval
from gpureport.comparison.steps.step_figures import TRAINING_RATE, measures
from gpureport.comparison.steps.steps import Step, build_steps
from gpureport.comparison.steps.training_rate import training_rate
from gpureport.comparison.verdicts.repetition_noise import MetricNoise, Noise, pool_noise
from gpureport.recording import Run

SHARES = (UTILISATION, IDLE)
"""Figures whose scatter is measured in points; that of all others is relative."""


def repetition_key(run: Run) -> tuple[object, ...]:
    """Return what runs must have in common to be repetitions of one step: label, params and GPUs."""
    models = tuple((gpu.model, gpu.power_limit_watts) for gpu in run.gpus)
    return run.step, tuple(sorted(run.params)), models


def measure_store_noise(runs: Sequence[SampledRun]) -> Noise:
    """Return the scatter of repetitions, figure by figure; of those only those that two runs at least recorded.

    Args:
        runs: any runs; those of one step label, with equal params on equal GPUs, are repetitions.
    """
    groups: dict[tuple[object, ...], list[SampledRun]] = {}
    for run in runs:
        if run.analysis.run.step is not None:
            groups.setdefault(repetition_key(run.analysis.run), []).append(run)
    repeated = [step for group in groups.values() for step in build_steps(group)]
    found = (_noise(repeated, figure) for figure in FIGURES if figure.kind is not FigureRole.TOTAL)
    return Noise(metrics=tuple(each for each in found if each is not None))


def _noise(steps: Sequence[Step], figure: Figure) -> MetricNoise | None:
    relative = figure.metric not in SHARES
    groups = []
    for step in steps:
        if figure.kind is FigureRole.WORK and step.work_unit is None:
            continue
        values = [value for run in step.runs if (value := _value(run, figure, step)) is not None]
        groups.append([log(value) for value in values if value > 0] if relative else values)
    return pool_noise(figure.metric, groups, relative=relative)


def _value(run: SampledRun, figure: Figure, step: Step) -> float | None:
    """Return a figure of one run as a comparison would take it; None where it was not recorded, or for too short."""
    interval = find_coarsest_interval(step.runs)
    if figure.kind is FigureRole.WORK:
        return _per_work(run, figure.metric, step)
    if figure.metric == MEMORY:
        peaks = [device.memory_peak_bytes for device in run.analysis.statistics if device.memory_peak_bytes]
        return float(max(peaks)) if peaks else None
    if run.steady_seconds(figure.metric, interval) < STEADY_SECONDS:
        return None
    return run.steady_mean(figure.metric, interval)


def _per_work(run: SampledRun, metric: str, step: Step) -> float | None:
    """Return the training rate, or a figure per unit of work of the whole recording."""
    if (run.analysis.run.ended - run.analysis.run.started) / 1e6 < STEADY_SECONDS:
        return None
    if metric == TRAINING_RATE:
        return training_rate(run, step.training_source.basis) if step.training_source else None
    found = measures([run.analysis], [run.gpu_hour_price])
    return next((each.value for each in found if each.metric == metric), None)

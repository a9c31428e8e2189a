"""Figures per unit of work in two steps, compared as ratios."""

from collections.abc import Sequence
from dataclasses import replace
from math import exp, log

from gpureport.comparison.statistics.difference_estimate import DifferenceEstimate, estimate_between_runs
from gpureport.comparison.steps.compared_figures import Figure
from gpureport.comparison.steps.counted_runs import count_jobs
from gpureport.comparison.steps.step_figures import COST_PER_WORK
from gpureport.comparison.steps.steps import Step
from gpureport.comparison.steps.verdict_reason import Reason, ReasonKind
from gpureport.comparison.verdicts.figure_evidence import (
    Evidence,
    compare_whole_recordings,
    compute_mean,
    find_brief_recording,
    read_each_run,
    read_whole_recordings,
)
from gpureport.comparison.verdicts.work_resolution import Resolution, find_resolution


def gather_work_evidence(base: Step, step: Step, figure: Figure) -> Evidence:
    """Return a figure per unit of work, compared as a ratio, of runs that count as whole jobs."""
    jobs = [count_jobs(side.runs) for side in (base, step)]
    left_out = (*jobs[0].left_out, *jobs[1].left_out)
    base, step = (replace(side, runs=each.counted) for side, each in zip((base, step), jobs, strict=True))
    return replace(_compare_work(base, step, figure), left_out=left_out)


def _compare_work(base: Step, step: Step, figure: Figure) -> Evidence:
    runs = (*base.runs, *step.runs)
    if obstacle := find_unit_obstacle(base, step):
        return compare_whole_recordings(base, step, figure, obstacle)
    if figure.metric == COST_PER_WORK and None in {run.gpu_hour_price for run in runs}:
        return compare_whole_recordings(base, step, figure, ReasonKind.NO_PRICE)
    sides = [read_each_run(side, figure.metric) for side in (base, step)]
    if None in sides[0] or None in sides[1]:
        return compare_whole_recordings(base, step, figure, ReasonKind.NOT_RECORDED)
    known = [[value for value in side if value] for side in sides]
    whole = [len(side) for side in known] == [len(side) for side in sides]
    return (
        compare_ratios(base, step, figure, known)
        if whole
        else compare_whole_recordings(base, step, figure, ReasonKind.ZERO)
    )


def find_unit_obstacle(base: Step, step: Step) -> Reason | ReasonKind | None:
    """Return why the work of two steps cannot be set side by side; None where it can."""
    runs = [run.analysis.run for run in (*base.runs, *step.runs)]
    cut = next((run.name for run in runs if run.work is None and run.quality.unfinished), None)
    if cut is not None and any(run.work for run in runs):
        return Reason(kind=ReasonKind.UNFINISHED, run=cut)
    if None in {base.work_unit, step.work_unit}:
        return ReasonKind.NOT_RECORDED
    return ReasonKind.OTHER_WORK_UNIT if base.work_unit != step.work_unit else None


def compare_ratios(
    base: Step, step: Step, figure: Figure, sides: Sequence[Sequence[float]], resolution: Resolution | None = None
) -> Evidence:
    """Return figures of runs compared by their logarithms; the values are geometric means.

    Args:
        base: the earlier step.
        step: the later step.
        figure: the figure.
        sides: one value a run, of both.
        resolution: how finely their logarithms are known; None where the recordings tell.
    """
    logs = [tuple(log(value) for value in side) for side in sides]
    known = resolution or find_resolution(base, step, figure.metric)
    contrast = estimate_between_runs(logs[0], logs[1], known.finest, known.least)
    before, after = (exp(compute_mean(side)) for side in logs)
    return Evidence(
        figure=figure,
        before=before,
        after=after,
        steady=False,
        contrast=contrast and convert_to_amounts(contrast, before),
        reason=None if contrast else Reason(kind=ReasonKind.SINGLE_FIGURE),
        whole=read_whole_recordings(base, step, figure),
        figures=(tuple(sides[0]), tuple(sides[1])),
        lone=contrast is None,
        brief=find_brief_recording(base, step),
    )


def convert_to_amounts(contrast: DifferenceEstimate, before: float) -> DifferenceEstimate:
    """Return a difference of logarithms as a difference from what was before."""
    return contrast.convert(lambda difference: before * (exp(min(difference, 50.0)) - 1))

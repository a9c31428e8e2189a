"""Figures per unit of work in two steps, compared as ratios."""

from collections.abc import Callable, Sequence
from math import exp, log

from gpureport.comparison.statistics.difference_estimate import DifferenceEstimate, estimate_between_runs
from gpureport.comparison.steps.compared_figures import Figure
from gpureport.comparison.steps.step_figures import COST_PER_WORK
from gpureport.comparison.steps.steps import Step
from gpureport.comparison.steps.verdict_reason import Reason, ReasonKind
from gpureport.comparison.verdicts import single_run_interval
from gpureport.comparison.verdicts.figure_evidence import (
    Evidence,
    compare_whole_recordings,
    compute_mean,
    read_each_run,
    read_whole_recordings,
)
from gpureport.comparison.verdicts.per_work import compute_per_work

FINEST_RATIO = 0.003
"""Step in which figures per unit of work are known at best: work and time are both read off points in time."""


def gather_work_evidence(base: Step, step: Step, figure: Figure) -> Evidence:
    """Return a figure per unit of work, compared as a ratio."""
    runs = (*base.runs, *step.runs)
    if None in {base.work_unit, step.work_unit}:
        return compare_whole_recordings(base, step, figure, ReasonKind.NOT_RECORDED)
    if base.work_unit != step.work_unit:
        return compare_whole_recordings(base, step, figure, ReasonKind.OTHER_WORK_UNIT)
    if figure.metric == COST_PER_WORK and None in {run.gpu_hour_price for run in runs}:
        return compare_whole_recordings(base, step, figure, ReasonKind.NO_PRICE)
    if all(run.rates is not None for run in runs):
        return _by_rates(base, step, figure)
    sides = [read_each_run(side, figure.metric) for side in (base, step)]
    if None in sides[0] or None in sides[1]:
        return compare_whole_recordings(base, step, figure, ReasonKind.NOT_RECORDED)
    known = [[value for value in side if value] for side in sides]
    whole = [len(side) for side in known] == [len(side) for side in sides]
    return (
        compare_ratios(base, step, figure, known, steady=False)
        if whole
        else compare_whole_recordings(base, step, figure, ReasonKind.ZERO)
    )


def _by_rates(base: Step, step: Step, figure: Figure) -> Evidence:
    """Return a figure per unit of work once runs had settled, by how fast training metrics say that work went."""
    runs = (*base.runs, *step.runs)
    sides = [[compute_per_work(run, figure.metric) for run in side.runs] for side in (base, step)]
    known = [[value for value in side if value is not None and value > 0] for side in sides]
    if [len(side) for side in known] != [len(side) for side in sides]:
        return compare_whole_recordings(base, step, figure, ReasonKind.NOT_RECORDED)
    if len(runs) > 2:  # noqa: PLR2004 - one on each side
        return compare_ratios(base, step, figure, known, steady=True)
    found = single_run_interval.compare_work(base.runs[0], step.runs[0], figure)
    before, after = known[0][0], known[1][0]
    return Evidence(
        figure=figure,
        before=before,
        after=after,
        steady=True,
        contrast=found.contrast and convert_to_amounts(found.contrast, before),
        reason=found.reason,
        whole=read_whole_recordings(base, step, figure),
        seconds=min(run.rate_seconds for run in runs),
        lone=found.contrast is None,
    )


def compare_ratios(  # noqa: PLR0913 - both steps, their values, and how finely these are known
    base: Step,
    step: Step,
    figure: Figure,
    sides: Sequence[Sequence[float]],
    *,
    steady: bool = False,
    finest: float = FINEST_RATIO,
) -> Evidence:
    """Return figures of runs compared by their logarithms; the values are geometric means.

    Args:
        base: the earlier step.
        step: the later step.
        figure: the figure.
        sides: one value a run, of both.
        steady: whether the values leave out start-up and tail.
        finest: part of itself in which a value is known at best.
    """
    logs = [tuple(log(value) for value in side) for side in sides]
    contrast = estimate_between_runs(logs[0], logs[1], finest)
    before, after = (exp(compute_mean(side)) for side in logs)
    return Evidence(
        figure=figure,
        before=before,
        after=after,
        steady=steady,
        contrast=contrast and convert_to_amounts(contrast, before),
        reason=None if contrast else Reason(kind=ReasonKind.SINGLE_FIGURE),
        whole=read_whole_recordings(base, step, figure),
        figures=(tuple(sides[0]), tuple(sides[1])) if contrast else ((), ()),
        lone=contrast is None,
    )


def convert_to_amounts(contrast: DifferenceEstimate, before: float) -> DifferenceEstimate:
    """Return a difference of logarithms as a difference from what was before."""

    def amount(difference: float) -> float:
        return before * (exp(min(difference, 50.0)) - 1)

    def interval(level: float) -> tuple[float, float]:
        low, high = contrast.interval(level)
        return amount(low), amount(high)

    made: Callable[[float], tuple[float, float]] = interval
    return DifferenceEstimate(
        difference=amount(contrast.difference), basis=contrast.basis, interval=made, reach=contrast.reach
    )

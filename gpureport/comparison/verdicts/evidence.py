"""What two steps hold on a figure: both values, and how sure their difference is or why that cannot be told."""

from collections.abc import Sequence

from gpureport.comparison.statistics.contrasts import between_runs
from gpureport.comparison.steps.compared_figures import ENERGY, GPU_SECONDS, Figure, Kind
from gpureport.comparison.steps.sampled_run import SampledRun, coarsest
from gpureport.comparison.steps.steps import Step
from gpureport.comparison.steps.verdict_reason import Reason, ReasonKind
from gpureport.comparison.verdicts import single_run_interval
from gpureport.comparison.verdicts.figure_evidence import (
    Evidence,
    average,
    each_run,
    told,
    whole_of,
)
from gpureport.comparison.verdicts.work_evidence import of_work

STEADY_SECONDS = 60.0
"""Steady time below which a run is no observation."""


def evidence(base: Step, step: Step, figure: Figure) -> Evidence:
    """Return what two steps hold on a figure."""
    made = {Kind.MEAN: _mean, Kind.PEAK: _single, Kind.TOTAL: _single, Kind.WORK: of_work}
    return made[figure.kind](base, step, figure)


def _mean(base: Step, step: Step, figure: Figure) -> Evidence:
    """Return a mean over time: within runs where each side is one, else over runs."""
    runs = (*base.runs, *step.runs)
    interval = coarsest(runs)
    if any(run.recorded_seconds(figure.metric, interval) <= 0 for run in runs):
        return told(base, step, figure, ReasonKind.NOT_RECORDED)
    if short := _short_steady_state(runs, figure.metric, interval):
        return told(base, step, figure, short)
    single = len(runs) == 2  # noqa: PLR2004 - one on each side
    estimate = single_run_interval.mean(base.runs[0], step.runs[0], figure, interval) if single else None
    sides = _means(base.runs, figure.metric, interval), _means(step.runs, figure.metric, interval)
    contrast = estimate.contrast if estimate else between_runs(*sides, figure.finest)
    return Evidence(
        figure=figure,
        before=average(sides[0]),
        after=average(sides[1]),
        steady=True,
        contrast=contrast,
        reason=estimate.reason if estimate else None,
        whole=whole_of(base, step, figure),
        figures=((), ()) if single else sides,
        unseen=estimate.unseen if estimate else None,
        seconds=min(run.steady_seconds(figure.metric, interval) for run in runs) if single else None,
    )


def _means(runs: Sequence[SampledRun], metric: str, interval: float) -> tuple[float, ...]:
    return tuple(run.steady_mean(metric, interval) for run in runs)


def _short_steady_state(runs: Sequence[SampledRun], metric: str, interval: float) -> Reason | None:
    """Return which run has too little steady time to be an observation; None when none."""
    seconds, name = min((run.steady_seconds(metric, interval), run.analysis.run.name) for run in runs)
    if seconds >= STEADY_SECONDS:
        return None
    return Reason(kind=ReasonKind.SHORT_STEADY_STATE, run=name, amount=seconds, least=STEADY_SECONDS)


def _single(base: Step, step: Step, figure: Figure) -> Evidence:
    """Return a peak or a total: one figure a run."""
    plain = told(base, step, figure, ReasonKind.SINGLE_FIGURE)
    if plain.whole.difference is None:
        return plain
    sides = [each_run(side, figure.metric) for side in (base, step)]
    if None in sides[0] or None in sides[1]:
        return told(base, step, figure, ReasonKind.NOT_RECORDED)
    before, after = (tuple(value for value in side if value is not None) for side in sides)
    if figure.metric in {GPU_SECONDS, ENERGY} and not _same_work(base, step):
        return told(base, step, figure, ReasonKind.UNEQUAL_WORK)
    contrast = between_runs(before, after, figure.finest)
    return Evidence(
        figure=figure,
        before=average(before),
        after=average(after),
        steady=False,
        contrast=contrast,
        reason=None if contrast else Reason(kind=ReasonKind.SINGLE_FIGURE),
        whole=plain.whole,
        figures=(before, after) if contrast else ((), ()),
        lone=contrast is None,
    )


def _same_work(base: Step, step: Step) -> bool:
    works = {run.analysis.run.work for run in (*base.runs, *step.runs)}
    return len(works) == 1 and None not in works

"""One figure of every run of a step, beside the mean over them."""

from dataclasses import dataclass
from math import isfinite

from gpureport.comparison.chain.step_summaries import Mean
from gpureport.comparison.steps.counted_runs import count_jobs, count_runs
from gpureport.comparison.steps.sampled_run import SampledRun, find_coarsest_interval
from gpureport.comparison.steps.step_figures import measures
from gpureport.comparison.steps.steps import Step
from gpureport.comparison.steps.training_rate import TrainingBasis, training_rate
from gpureport.comparison.verdicts.figure_evidence import compute_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigure:
    """One figure of one run.

    Attributes:
        run: name of the run.
        value: the figure in its base unit; None where not recorded.
        seconds: time that the figure rests on.
        counted: whether the mean of the step counts the run: not where it is too short and others are not.
    """

    run: str
    value: float | None
    seconds: float
    counted: bool = True


def read_settled_figures(step: Step, metric: str) -> tuple[RunFigure, ...]:
    """Return the mean of a sampled metric once each run had settled, also of runs too short for an interval."""
    interval = find_coarsest_interval(step.runs)
    counted = {run.analysis.run.id for run in count_runs(step.runs, metric, interval).counted}
    return tuple(
        RunFigure(
            run=run.analysis.run.name,
            value=_finite(run.steady_mean(metric, interval)),
            seconds=run.steady_seconds(metric, interval),
            counted=not counted or run.analysis.run.id in counted,
        )
        for run in step.runs
    )


def read_training_rates(step: Step) -> tuple[RunFigure, ...]:
    """Return how fast each run trained, by what the rate of the step rests on; nothing where that is not known."""
    if step.training_source is None:
        return ()
    basis, jobs = step.training_source.basis, {run.analysis.run.id for run in count_jobs(step.runs).counted}
    return tuple(
        RunFigure(
            run=run.analysis.run.name,
            value=training_rate(run, basis),
            seconds=run.rate_seconds if basis is TrainingBasis.SERIES else run.analysis.seconds,
            counted=run.analysis.run.id in jobs,
        )
        for run in step.runs
    )


def read_work_figures(step: Step, metric: str) -> tuple[RunFigure, ...]:
    """Return a figure per unit of work of each run, over its whole recording."""
    jobs = {run.analysis.run.id for run in count_jobs(step.runs).counted}
    return tuple(_work_figure(run, metric, counted=run.analysis.run.id in jobs) for run in step.runs)


def _work_figure(run: SampledRun, metric: str, *, counted: bool) -> RunFigure:
    name = run.analysis.run.name
    whole = measures([run.analysis], [run.gpu_hour_price])
    value = next((each.value for each in whole if each.metric == metric), None)
    return RunFigure(run=name, value=value, seconds=run.analysis.seconds, counted=counted)


def average_counted(figures: tuple[RunFigure, ...], *, settled: bool) -> Mean | None:
    """Return the mean of the runs that count, without an interval; None where none has a value."""
    values = [each.value for each in figures if each.counted and each.value is not None]
    return Mean(value=compute_mean(values), interval=None, basis=None, settled=settled) if values else None


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None

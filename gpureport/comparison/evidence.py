"""What two steps hold on one figure: both values, and how sure their difference is or why that cannot be told."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp, fsum, log

from gpureport.comparison import within
from gpureport.comparison.contrasts import Contrast, between_runs
from gpureport.comparison.figures import ENERGY, GPU_SECONDS, Figure, Kind
from gpureport.comparison.measures import ENERGY_PER_WORK, PER_WORK, WORK_BATCH, WORK_RATE, measures
from gpureport.comparison.sampled_run import SampledRun, coarsest
from gpureport.comparison.steps import Plain, Step

STEADY_SECONDS = 60.0
"""Steady time below which a run is no observation."""

FINEST_RATIO = 0.003
"""Step in which figures per unit of work are known at best: work and time are both read off points in time."""

ABSENT = "It was not recorded in both steps."
OTHER_WORK = "The two steps count their work in different units."
SINGLE_FIGURE = (
    "It is one figure a run, so one run on each side says nothing about scatter: only what lies beyond what repeating "
    "a run commonly changes is told."
)
UNEQUAL_WORK = "A total grows with the work done, and that both did the same work is not known."


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One figure of two steps.

    Attributes:
        figure: the figure.
        before: value in the earlier step, a mean over its runs; None when not recorded.
        after: value in the later step.
        steady: whether the values are of what had settled, not of whole recordings.
        contrast: the difference and how sure it is; None where that cannot be told.
        reason: why it cannot; empty where it can.
        whole: the figure over whole recordings.
        figures: one value a run on each side, where the run is the unit.
        seconds: shortest steady time of a run, where the interval rests on what lies within runs.
        lone: whether it is one figure a run, of one run on each side, without an interval.
        unseen: seconds of the shorter run without any gap; None where both have some, or where runs are the unit.
    """

    figure: Figure
    before: float | None
    after: float | None
    steady: bool
    contrast: Contrast | None
    reason: str
    whole: Plain
    figures: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
    seconds: float | None = None
    lone: bool = False
    unseen: float | None = None

    @property
    def difference(self) -> float | None:
        """How far the values are apart; None when either is missing, or one cannot be taken from the other."""
        return replace(self.whole, before=self.before, after=self.after).difference


def evidence(base: Step, step: Step, figure: Figure) -> Evidence:
    """Return what two steps hold on a figure."""
    made = {Kind.MEAN: _mean, Kind.PEAK: _single, Kind.TOTAL: _single, Kind.WORK: _work}
    return made[figure.kind](base, step, figure)


def _whole(base: Step, step: Step, figure: Figure) -> Plain:
    return Plain(before=base.value(figure.metric), after=step.value(figure.metric))


def _told(base: Step, step: Step, figure: Figure, reason: str) -> Evidence:
    """Return whole recordings side by side."""
    whole = replace(_whole(base, step, figure), comparable=reason != OTHER_WORK)
    missing = whole.before is None or whole.after is None
    return Evidence(
        figure=figure,
        before=whole.before,
        after=whole.after,
        steady=False,
        contrast=None,
        reason=ABSENT if missing and reason != OTHER_WORK else reason,
        whole=whole,
    )


def _mean(base: Step, step: Step, figure: Figure) -> Evidence:
    """Return a mean over time: within runs where each side is one, else over runs."""
    runs = (*base.runs, *step.runs)
    interval = coarsest(runs)
    if any(run.steady_seconds(figure.metric, interval) <= 0 for run in runs):
        return _told(base, step, figure, ABSENT)
    brief = _brief(runs, figure.metric, interval)
    if brief:
        return _told(base, step, figure, brief)
    single = len(runs) == 2  # noqa: PLR2004 - one on each side
    estimate = within.mean(base.runs[0], step.runs[0], figure, interval) if single else None
    sides = _means(base.runs, figure.metric, interval), _means(step.runs, figure.metric, interval)
    contrast = estimate.contrast if estimate else between_runs(*sides, figure.finest)
    return Evidence(
        figure=figure,
        before=_average(sides[0]),
        after=_average(sides[1]),
        steady=True,
        contrast=contrast,
        reason=estimate.reason if estimate else "",
        whole=_whole(base, step, figure),
        figures=((), ()) if single else sides,
        unseen=estimate.unseen if estimate else None,
        seconds=min(run.steady_seconds(figure.metric, interval) for run in runs) if single else None,
    )


def _means(runs: Sequence[SampledRun], metric: str, interval: float) -> tuple[float, ...]:
    return tuple(run.steady_mean(metric, interval) for run in runs)


def _average(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def _brief(runs: Sequence[SampledRun], metric: str, interval: float) -> str:
    """Return which run has too little steady time to be an observation; empty when none."""
    for run in runs:
        seconds = run.steady_seconds(metric, interval)
        if seconds < STEADY_SECONDS:
            return (
                f"{run.analysis.run.name} holds {seconds:.0f} s of steady state, and a run needs "
                f"{STEADY_SECONDS:.0f} s to count: leave it out, or run it again."
            )
    return ""


def _single(base: Step, step: Step, figure: Figure) -> Evidence:
    """Return a peak or a total: one figure a run."""
    told = _told(base, step, figure, SINGLE_FIGURE)
    if told.whole.difference is None:
        return told
    sides = [_each(side, figure.metric) for side in (base, step)]
    if None in sides[0] or None in sides[1]:
        return _told(base, step, figure, ABSENT)
    before, after = (tuple(value for value in side if value is not None) for side in sides)
    if figure.metric in {GPU_SECONDS, ENERGY} and not _same_work(base, step):
        return _told(base, step, figure, UNEQUAL_WORK)
    contrast = between_runs(before, after, figure.finest)
    return Evidence(
        figure=figure,
        before=_average(before),
        after=_average(after),
        steady=False,
        contrast=contrast,
        reason="" if contrast else SINGLE_FIGURE,
        whole=told.whole,
        figures=(before, after) if contrast else ((), ()),
        lone=contrast is None,
    )


def _each(step: Step, metric: str) -> list[float | None]:
    """Return a figure of each run over its whole recording."""
    return [
        next((each.value for each in measures([analysis]) if each.metric == metric), None) for analysis in step.analyses
    ]


def _same_work(base: Step, step: Step) -> bool:
    works = {run.analysis.run.work for run in (*base.runs, *step.runs)}
    return len(works) == 1 and None not in works


def _work(base: Step, step: Step, figure: Figure) -> Evidence:
    """Return a figure per unit of work, compared as a ratio."""
    runs = (*base.runs, *step.runs)
    if None in {base.work_unit, step.work_unit}:
        return _told(base, step, figure, ABSENT)
    if base.work_unit != step.work_unit:
        return _told(base, step, figure, OTHER_WORK)
    if all(run.rates is not None for run in runs):
        return _by_rates(base, step, figure)
    sides = [_each(side, figure.metric) for side in (base, step)]
    if None in sides[0] or None in sides[1]:
        return _told(base, step, figure, ABSENT)
    return _ratio(base, step, figure, [[value for value in side if value] for side in sides], steady=False)


def _by_rates(base: Step, step: Step, figure: Figure) -> Evidence:
    """Return a figure per unit of work once runs had settled, by how fast training metrics say that work went."""
    runs = (*base.runs, *step.runs)
    sides = [[_per_work(run, figure.metric) for run in side.runs] for side in (base, step)]
    known = [[value for value in side if value is not None and value > 0] for side in sides]
    if [len(side) for side in known] != [len(side) for side in sides]:
        return _told(base, step, figure, ABSENT)
    if len(runs) > 2:  # noqa: PLR2004 - one on each side
        return _ratio(base, step, figure, known, steady=True)
    found = within.work(base.runs[0], step.runs[0], figure)
    before, after = known[0][0], known[1][0]
    return Evidence(
        figure=figure,
        before=before,
        after=after,
        steady=True,
        contrast=found.contrast and _as_amounts(found.contrast, before),
        reason=found.reason,
        whole=_whole(base, step, figure),
        seconds=min(run.rate_seconds for run in runs),
        lone=found.contrast is None,
    )


def _per_work(run: SampledRun, metric: str) -> float | None:
    """Return a figure per unit of work of what had settled in one run."""
    rate, gpus = run.rate, len(run.analysis.run.gpus)
    if not rate:
        return None
    if metric == WORK_RATE:
        return rate
    if metric == PER_WORK:
        return gpus * WORK_BATCH / rate
    watts = run.steady_mean("gpu_power_watts", 0.0) if run.steady_seconds("gpu_power_watts", 0.0) else None
    return None if watts is None or metric != ENERGY_PER_WORK else watts * gpus * WORK_BATCH / rate


def _ratio(base: Step, step: Step, figure: Figure, sides: Sequence[Sequence[float]], *, steady: bool) -> Evidence:
    """Return figures of runs compared by their logarithms; the values are geometric means."""
    logs = [tuple(log(value) for value in side) for side in sides]
    contrast = between_runs(logs[0], logs[1], FINEST_RATIO)
    before, after = (exp(_average(side)) for side in logs)
    return Evidence(
        figure=figure,
        before=before,
        after=after,
        steady=steady,
        contrast=contrast and _as_amounts(contrast, before),
        reason="" if contrast else SINGLE_FIGURE,
        whole=_whole(base, step, figure),
        figures=(tuple(sides[0]), tuple(sides[1])) if contrast else ((), ()),
        lone=contrast is None,
    )


def _as_amounts(contrast: Contrast, before: float) -> Contrast:
    """Return a difference of logarithms as a difference from what was before."""

    def amount(difference: float) -> float:
        return before * (exp(min(difference, 50.0)) - 1)

    def interval(level: float) -> tuple[float, float]:
        low, high = contrast.interval(level)
        return amount(low), amount(high)

    made: Callable[[float], tuple[float, float]] = interval
    return Contrast(difference=amount(contrast.difference), basis=contrast.basis, interval=made, reach=contrast.reach)

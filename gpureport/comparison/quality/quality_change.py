"""How well two steps trained, metric by metric, and what may be said of the difference."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import fsum, sqrt

from gpureport.comparison.quality.quality_verdict import (
    compute_final_error,
    compute_mean,
    find_failed_runs,
    find_full_scale,
    judge_quality,
)
from gpureport.comparison.quality.run_quality import RunQuality, measure_run_quality
from gpureport.comparison.run import SampledRun
from gpureport.comparison.steps import Step
from gpureport.comparison.training.training_goals import TrainingGoals
from gpureport.comparison.verdict import Verdict
from gpureport.training_names import QUALITY_ROLES, Role, is_batch_metric, recognise_metric


class MetricRank(IntEnum):
    """How much a metric counts: those that a person named first, then validation, training, and single batches."""

    NAMED = 0
    VALIDATION = 1
    TRAINING = 2
    BATCH = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityFigure:
    """One training metric of a step.

    Attributes:
        final: value at the end, a mean over its runs; None where no run recorded it, or none ended in a number.
        best: best value, a mean over its runs; None where it is not known which way it gets better.
        best_seconds: when it was reached, from the start of the job, a mean over the runs; None without times.
        spread: standard deviation between runs; of one run that of its last values. None where neither is known.
        runs: how many runs recorded it.
        diverged: how many of them ended in a value that is not a number.
    """

    final: float | None
    best: float | None
    best_seconds: float | None
    spread: float | None
    runs: int
    diverged: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityChange:
    """One training metric at the end of two steps.

    Attributes:
        base: label of the earlier step.
        step: label of the later step.
        name: of the metric.
        higher_is_better: whether a higher value is the better one; None where not known.
        before: in the earlier step.
        after: in the later step.
        difference: after - before, of final values; None when either is missing.
        interval: lower and upper end of the difference at 95%; None with one run on either side.
        verdict: what may be said of it, at 99%.
        margin: what single runs plausibly differ by; 0 where either is missing.
        failed: final values of runs of the later step that are worse than each earlier run by more than the margin,
            where it has several runs: a mean with a wide interval can hide one that went wrong.
        full_scale: 1 of a share, 100 of one in per cent; None of other metrics.
        leading: whether it counts: a person named it, or none beside it says more, as validation does than training.
    """

    base: str
    step: str
    name: str
    higher_is_better: bool | None
    before: QualityFigure
    after: QualityFigure
    difference: float | None
    interval: tuple[float, float] | None
    verdict: Verdict
    margin: float
    failed: tuple[float, ...]
    full_scale: float | None
    leading: bool

    @property
    def fell(self) -> bool:
        """Whether quality fell, by repetitions or further than a single run plausibly differs from another."""
        if self.after.diverged > self.before.diverged or self.failed:
            return True
        if self.verdict is Verdict.UNCONFIRMED and self.difference is not None and self.higher_is_better is not None:
            return (self.difference < 0) == self.higher_is_better
        return self.verdict is Verdict.WORSE


def compare_quality(base: Step, step: Step, goals: TrainingGoals) -> tuple[QualityChange, ...]:
    """Return how well two steps trained, by every metric that says so; those that count most first.

    Figures of single batches are left out where anything else was recorded.
    """
    sides = [{curve.name for run in side.runs for curve in run.training} for side in (base, step)]
    ranks = {name: rank for name in set().union(*sides) if (rank := _rank(name, goals)) is not None}
    if not ranks:
        return ()
    others = {name: rank for name, rank in ranks.items() if rank is not MetricRank.NAMED}
    first = min([others[name] for name in others if name in sides[0] & sides[1]] or others.values(), default=None)
    shown = sorted(
        (name for name, rank in ranks.items() if rank is not MetricRank.BATCH or len(set(ranks.values())) == 1),
        key=lambda name: (ranks[name], _role_order(name), name),
    )
    return tuple(
        _compare_metric(base, step, name, goals, leading=ranks[name] in {MetricRank.NAMED, first}) for name in shown
    )


def _rank(name: str, goals: TrainingGoals) -> MetricRank | None:
    """Return how much a metric counts; None where it says nothing of quality."""
    if goals.is_named(name):
        return MetricRank.NAMED
    metric = recognise_metric(name)
    if metric is None or metric.role not in QUALITY_ROLES:
        return None
    if is_batch_metric(name):
        return MetricRank.BATCH
    return MetricRank.VALIDATION if metric.validation else MetricRank.TRAINING


def _role_order(name: str) -> int:
    """Return the place of a metric by its role: accuracies say more than errors, and errors more than losses."""
    metric = recognise_metric(name)
    return (Role.ACCURACY, Role.ERROR, Role.LOSS).index(metric.role) if metric and metric.role in QUALITY_ROLES else 0


def _compare_metric(base: Step, step: Step, name: str, goals: TrainingGoals, *, leading: bool) -> QualityChange:
    higher = goals.is_higher_better(name)
    sides = [list(_measure_runs(side.runs, name, higher_is_better=higher)) for side in (base, step)]
    before, after = map(_summarize, sides)
    finals = [[run.final for run in side if run.final is not None] for side in sides]
    errors = [max((compute_final_error(run.spread, run.last_count) for run in side), default=0.0) for side in sides]
    full_scale = find_full_scale((value for side in finals for value in side), higher_is_better=higher)
    found = judge_quality(
        finals[0],
        finals[1],
        (errors[0], errors[1]),
        higher_is_better=higher,
        full_scale=full_scale,
    )
    return QualityChange(
        base=base.label,
        step=step.label,
        name=name,
        higher_is_better=higher,
        before=before,
        after=after,
        difference=None if before.final is None or after.final is None else after.final - before.final,
        interval=found.interval,
        verdict=_verdict_of_diverged(before, after) or found.verdict,
        margin=found.margin,
        failed=find_failed_runs(finals[0], finals[1], found.margin, higher_is_better=higher),
        full_scale=full_scale,
        leading=leading,
    )


def _verdict_of_diverged(before: QualityFigure, after: QualityFigure) -> Verdict | None:
    """Return the verdict where runs of one side ended without a number and those of the other did not."""
    if before.diverged == after.diverged or not before.runs or not after.runs:
        return None
    if min(before.runs, after.runs) == 1:
        return Verdict.UNCONFIRMED
    return Verdict.WORSE if after.diverged > before.diverged else Verdict.BETTER


def measure_step_quality(step: Step, name: str, goals: TrainingGoals) -> QualityFigure:
    """Return one training metric of a step."""
    return _summarize(list(_measure_runs(step.runs, name, higher_is_better=goals.is_higher_better(name))))


def _measure_runs(runs: Iterable[SampledRun], name: str, *, higher_is_better: bool | None) -> Iterator[RunQuality]:
    for run in runs:
        for curve in run.training:
            if curve.name == name:
                yield measure_run_quality(run, curve, higher_is_better=higher_is_better)


def _summarize(runs: Sequence[RunQuality]) -> QualityFigure:
    finals = [run.final for run in runs if run.final is not None]
    several = len(finals) > 1
    return QualityFigure(
        final=_mean(finals),
        best=_mean([run.best for run in runs if run.best is not None]),
        best_seconds=_mean([run.best_seconds for run in runs if run.best_seconds is not None]),
        spread=_deviation(finals) if several else _largest(run.spread for run in runs),
        runs=len(runs),
        diverged=sum(run.diverged for run in runs),
    )


def _mean(values: Sequence[float]) -> float | None:
    return compute_mean(values) if values else None


def _deviation(values: Sequence[float]) -> float:
    mean = compute_mean(values)
    return sqrt(fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def _largest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)

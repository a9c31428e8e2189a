"""How well two steps trained, metric by metric and at equal work, and what may be said of the difference."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import fsum, hypot, sqrt

import numpy as np

from gpureport.columns import FloatArray
from gpureport.comparison.estimate import LEVEL, estimate_between_runs
from gpureport.comparison.quality_at_work import EqualWork, NoWork, measure_spread, read_at_equal_work, read_end
from gpureport.comparison.run import SampledRun
from gpureport.comparison.steps import Step
from gpureport.comparison.training import TrainingGoals
from gpureport.comparison.verdict import Verdict
from gpureport.comparison.work import TrainingCurve
from gpureport.names import QUALITY_ROLES, Role, is_batch_metric, recognise_metric

_LEVEL = 0.99
"""Level at which quality changed: stricter than for speed, with several metrics and a loud warning."""
_SHARE_NOISE = 0.04
"""Plausible change of a share of 50% by repeating a run (pragmatic); less towards 0 and 1."""
_RELATIVE_NOISE = 0.1  # the same of any other metric, as a part of it (pragmatic)
_ERRORS = 2.5
"""Standard errors of final values that single runs must differ by as well (pragmatic)."""
_PERCENT = 100.0
_NAMED, _VALIDATION, _TRAINING, _BATCH = range(4)
"""How much a metric counts: first those a person named, then validation, training, single batches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityFigure:
    """One training metric of a run or a step: the mean of its last values, its best one, and when that was.

    They are means over runs, `final` without those that `diverged`: ended in a value that is not a number. `spread` is
    that between runs, of one run that of its last values about their trend.
    """

    final: float | None
    at_work: float | None = None
    best: float | None
    best_seconds: float | None
    spread: float | None
    runs: int
    diverged: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityChange:
    """One training metric of two steps, its verdict at 99%, its interval at 95%.

    `failed` are values of later runs, where they are several, that are worse than each earlier one by more than single
    runs plausibly differ: a mean with a wide interval can hide one that went wrong.
    """

    base: str
    step: str
    name: str
    higher_is_better: bool | None
    before: QualityFigure
    after: QualityFigure
    work: float | None = None
    work_unit: str = ""
    at_end: bool = True
    reason: NoWork | None = None
    difference: float | None = None
    interval: tuple[float, float] | None = None
    verdict: Verdict = Verdict.NOT_ENOUGH_DATA
    margin: float = 0.0
    failed: tuple[float, ...] = ()
    full_scale: float | None
    leading: bool

    @property
    def values(self) -> tuple[float | None, float | None]:
        """Both values that are compared: at equal work, else at the end."""
        before, after = (side.final if side.at_work is None else side.at_work for side in (self.before, self.after))
        return before, after

    @property
    def fell(self) -> bool:
        """Whether quality fell, by repetitions or by more than single runs plausibly differ."""
        if self.after.diverged > self.before.diverged or self.failed:
            return True
        if self.verdict is Verdict.UNCONFIRMED and self.difference is not None and self.higher_is_better is not None:
            return (self.difference < 0) == self.higher_is_better
        return self.verdict is Verdict.WORSE


def measure_run_quality(run: SampledRun, curve: TrainingCurve, *, higher_is_better: bool | None) -> QualityFigure:
    """Return how well a run trained by one of its metrics."""
    row = _find_best_row(curve.values, higher_is_better=higher_is_better)
    return QualityFigure(
        final=read_end(curve.known).value if curve.is_finished else None,
        best=None if row is None else float(curve.values[row]),
        best_seconds=None if row is None or not len(curve.times) else seconds_since_job_start(run, curve, row),
        spread=measure_spread(curve.known),
        runs=1,
        diverged=int(curve.has_diverged),
    )


def _find_best_row(values: FloatArray, *, higher_is_better: bool | None) -> int | None:
    """Return the row of the first best value; None without any, or without a direction."""
    if higher_is_better is None or not np.isfinite(values).any():
        return None
    ranked = np.where(np.isfinite(values), values if higher_is_better else -values, -np.inf)
    return int(ranked.argmax())


def seconds_since_job_start(run: SampledRun, curve: TrainingCurve, row: int) -> float:
    """Return the seconds from the start of the job that logged a metric to one of its values."""
    return (int(curve.times[row]) - find_job_start(run, curve)) / 1e6


def find_job_start(run: SampledRun, curve: TrainingCurve) -> int:
    """Return when the job that logged a metric began, in microseconds; the recording where no job is known."""
    first = int(curve.times[0])
    begun = [job.interval.start for job in run.analysis.jobs if job.interval.start <= first]
    return max(begun, default=run.info.started)


def compare_quality(base: Step, step: Step, goals: TrainingGoals) -> tuple[QualityChange, ...]:
    """Return how well two steps trained, by every metric that says so, the weightiest first.

    Figures of single batches are left out where anything else was recorded.
    """
    sides = [{curve.name for run in side.runs for curve in run.training} for side in (base, step)]
    ranks = {name: rank for name in sides[0] | sides[1] if (rank := _rank(name, goals)) is not None}
    if not ranks:
        return ()
    others = {name: rank for name, rank in ranks.items() if rank != _NAMED}
    first = min([others[name] for name in others if name in sides[0] & sides[1]] or others.values(), default=None)
    shown = (name for name, rank in ranks.items() if rank != _BATCH or len(set(ranks.values())) == 1)
    return tuple(
        _compare_metric(base, step, name, goals, leading=ranks[name] in {_NAMED, first})
        for name in sorted(shown, key=lambda name: (ranks[name], _role_order(name), name))
    )


def _rank(name: str, goals: TrainingGoals) -> int | None:
    if goals.is_named(name):
        return _NAMED
    metric = recognise_metric(name)
    if metric is None or metric.role not in QUALITY_ROLES:
        return None
    return _BATCH if is_batch_metric(name) else _VALIDATION if metric.validation else _TRAINING


def _role_order(name: str) -> int:
    """Return the place of a metric by its role: accuracies say more than errors, and errors more than losses."""
    metric = recognise_metric(name)
    return (Role.ACCURACY, Role.ERROR, Role.LOSS).index(metric.role) if metric and metric.role in QUALITY_ROLES else 0


def _compare_metric(base: Step, step: Step, name: str, goals: TrainingGoals, *, leading: bool) -> QualityChange:
    higher = goals.is_higher_better(name)
    before, after = (measure_step_quality(side, name, goals) for side in (base, step))
    ended = [[(run, curve) for run, curve in _list_curves(side, name) if curve.is_finished] for side in (base, step)]
    finals = [read_end(curve.known).value for side in ended for _, curve in side]
    found = QualityChange(
        base=base.label,
        step=step.label,
        name=name,
        higher_is_better=higher,
        before=before,
        after=after,
        difference=None if before.final is None or after.final is None else after.final - before.final,
        full_scale=find_full_scale(finals, higher_is_better=higher),
        leading=leading,
    )
    if all(ended):
        work = read_at_equal_work([pair for side in ended for pair in side])
        several = [] if isinstance(work, NoWork) else [_judge(found, each, len(ended[0])) for each in work]
        found = replace(found, reason=work) if isinstance(work, NoWork) else _agree(several)
    if before.diverged == after.diverged or not before.runs or not after.runs:
        return found
    sure = Verdict.WORSE if after.diverged > before.diverged else Verdict.BETTER
    return replace(found, verdict=Verdict.UNCONFIRMED if min(before.runs, after.runs) == 1 else sure, reason=None)


def _list_curves(step: Step, name: str) -> list[tuple[SampledRun, TrainingCurve]]:
    return [(run, curve) for run in step.runs for curve in run.training if curve.name == name]


def measure_step_quality(step: Step, name: str, goals: TrainingGoals) -> QualityFigure:
    """Return one training metric of a step."""
    higher = goals.is_higher_better(name)
    runs = [measure_run_quality(run, curve, higher_is_better=higher) for run, curve in _list_curves(step, name)]
    finals, bests, seconds, spreads = (
        [value for run in runs if (value := getattr(run, field)) is not None]
        for field in ("final", "best", "best_seconds", "spread")
    )
    spread = max(spreads, default=None)
    if len(finals) > 1:
        spread = sqrt(fsum((value - _mean(finals)) ** 2 for value in finals) / (len(finals) - 1))
    return QualityFigure(
        final=_mean(finals) if finals else None,
        best=_mean(bests) if bests else None,
        best_seconds=_mean(seconds) if seconds else None,
        spread=spread,
        runs=len(runs),
        diverged=sum(run.diverged for run in runs),
    )


def _agree(changes: Sequence[QualityChange]) -> QualityChange:
    """Return what a metric did by every count of work: nothing is claimed unless they agree."""
    calm = [each for each in changes if each.verdict is Verdict.NO_CLEAR_CHANGE and not each.failed]
    if calm or len({(each.difference or 0.0) > 0 for each in changes}) == 1:
        return (calm or changes)[0]
    return replace(changes[0], verdict=Verdict.NO_CLEAR_CHANGE, failed=())


def _judge(change: QualityChange, found: EqualWork, count: int) -> QualityChange:
    """Return a change with its verdict; the first `count` of the values at equal work are of the earlier step."""
    sides, higher = (found.readings[:count], found.readings[count:]), change.higher_is_better
    before, after = ([reading.value for reading in side] for side in sides)
    errors = [max(reading.error for reading in side) for side in sides]
    # a bend of the curve moves all interpolated values alike, however well repetitions agree
    bias = max(reading.bias for reading in found.readings)
    noise = _plausible_noise(_mean(before), _mean(after), full_scale=change.full_scale)
    margin = hypot(noise, _ERRORS * hypot(*errors)) + bias
    difference, interval = _mean(after) - _mean(before), None
    # nor are values before the end surer than their own scatter
    finest = 0.0 if found.at_end else sqrt(12) * max(errors)
    contrast = estimate_between_runs(before, after, finest) if min(len(before), len(after)) > 1 else None
    if contrast is None:
        verdict = Verdict.UNCONFIRMED if abs(difference) > margin else Verdict.NO_CLEAR_CHANGE
    else:
        sure, interval = ((low - bias, high + bias) for low, high in map(contrast.interval, (_LEVEL, LEVEL)))
        separate = max(before) < min(after) or max(after) < min(before)
        if sure[0] <= 0 <= sure[1] and not (abs(difference) > noise + bias and separate):
            verdict = Verdict.NO_CLEAR_CHANGE
        else:
            verdict = Verdict.BETTER if (difference > 0) == higher else Verdict.WORSE
            verdict = Verdict.DIFFERS if higher is None else verdict
    return replace(
        change,
        before=replace(change.before, at_work=_mean(before)),
        after=replace(change.after, at_work=_mean(after)),
        work=found.work,
        work_unit=found.unit,
        at_end=found.at_end,
        difference=difference,
        interval=interval,
        verdict=verdict,
        margin=margin,
        failed=_find_failed_runs(before, after, margin, higher_is_better=higher),
    )


def _find_failed_runs(
    before: Sequence[float], after: Sequence[float], margin: float, *, higher_is_better: bool | None
) -> tuple[float, ...]:
    """Return the values of runs, several of a step, that are worse than each run before by more than a margin."""
    if len(after) < 2 or higher_is_better is None:  # noqa: PLR2004 - a single run is no exception
        return ()
    if higher_is_better:
        return tuple(sorted(value for value in after if value < min(before) - margin))
    return tuple(sorted((value for value in after if value > max(before) + margin), reverse=True))


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def find_full_scale(values: Iterable[float], *, higher_is_better: bool | None) -> float | None:
    """Return 1 of a metric such as an accuracy recorded as a share, 100 of one in per cent, None of others."""
    known = list(values)
    if higher_is_better is not True or not known or min(known) < 0 or max(known) > _PERCENT:
        return None
    return 1.0 if max(known) <= 1 else _PERCENT


def _plausible_noise(before: float, after: float, *, full_scale: float | None) -> float:
    if full_scale is not None:
        mean = (before + after) / 2 / full_scale
        return full_scale * 2 * _SHARE_NOISE * sqrt(max(mean * (1 - mean), 0.0))
    return _RELATIVE_NOISE * max(abs(before), abs(after))

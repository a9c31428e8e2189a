"""Compares two steps' training quality: metrics after equal work, and time to the target."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import fsum, hypot, sqrt
from statistics import fmean, stdev

import numpy as np

from gpureport.comparison import figures
from gpureport.comparison.estimate import LEVEL, estimate_between_runs
from gpureport.comparison.evidence import Evidence, Reason, ReasonKind, compare_ratios, compare_whole_recordings
from gpureport.comparison.quality_at_work import EqualWork, NoWork, measure_spread, read_at_equal_work, read_end
from gpureport.comparison.run import SampledRun
from gpureport.comparison.steps import Step
from gpureport.comparison.training import TrainingGoals
from gpureport.comparison.verdict import Judgement, Verdict
from gpureport.comparison.work import TrainingCurve
from gpureport.findings import Interval
from gpureport.names import QUALITY_ROLES, Role, is_batch_metric, recognise_metric

_LEVEL = 0.99  # Stricter than for speed: there are several metrics and the warning is prominent.
# Plausible variation of a share of 50% between repeated runs; it is smaller near 0 and 1.
_SHARE_NOISE = 0.04
_RELATIVE_NOISE = 0.1  # Plausible relative variation of any other metric.
_ERRORS = 2.5  # Number of standard errors by which final values of single runs must also differ.
_PERCENT = 100.0
_NAMED, _VALIDATION, _TRAINING, _BATCH = range(4)
"""Ranks of metrics: those the user named, then validation, training and single-batch metrics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityFigure:
    """The mean of the last values of a metric, and its best value with its time."""

    final: float | None  # excluding runs that `diverged`, whose last value is not finite
    at_work: float | None = None
    best: float | None
    best_seconds: float | None
    spread: float | None  # scatter between runs or, for a single run, of its last values about their trend
    runs: int
    diverged: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityChange:
    """One training metric in two steps, with a verdict at the 99% level and a 95% interval."""

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
    failed: tuple[float, ...] = ()  # later values that are clearly worse than all earlier ones, despite a wide interval
    full_scale: float | None
    leading: bool

    @property
    def values(self) -> tuple[float | None, float | None]:
        before, after = (side.final if side.at_work is None else side.at_work for side in (self.before, self.after))
        return before, after

    @property
    def fell(self) -> bool:
        """Whether quality fell, in repeated runs or by more than single runs would plausibly differ."""
        if self.after.diverged > self.before.diverged or self.failed:
            return True
        if self.verdict is Verdict.UNCONFIRMED and self.difference is not None and self.higher_is_better is not None:
            return (self.difference < 0) == self.higher_is_better
        return self.verdict is Verdict.WORSE


def measure_run_quality(run: SampledRun, curve: TrainingCurve, *, higher_is_better: bool | None) -> QualityFigure:
    row, is_known = None, np.isfinite(curve.values)
    if higher_is_better is not None and is_known.any():
        row = int(np.where(is_known, curve.values if higher_is_better else -curve.values, -np.inf).argmax())
    return QualityFigure(
        final=read_end(curve.known).value if curve.is_finished else None,
        best=None if row is None else float(curve.values[row]),
        best_seconds=None if row is None or not len(curve.times) else seconds_since_job_start(run, curve, row),
        spread=measure_spread(curve.known),
        runs=1,
        diverged=int(curve.has_diverged),
    )


def seconds_since_job_start(run: SampledRun, curve: TrainingCurve, row: int) -> float:
    return (int(curve.times[row]) - find_job_start(run, curve)) / 1e6


def find_job_start(run: SampledRun, curve: TrainingCurve) -> int:
    """Return the start of the job that logged a metric or, if none is known, of the recording."""
    first = int(curve.times[0])
    begun = [job.interval.start for job in run.analysis.jobs if job.interval.start <= first]
    return max(begun, default=run.info.started)


def compare_quality(base: Step, step: Step, goals: TrainingGoals) -> tuple[QualityChange, ...]:
    sides = [{curve.name for run in side.runs for curve in run.training} for side in (base, step)]
    ranks = {name: rank for name in sides[0] | sides[1] if (rank := _rank(name, goals)) is not None}
    others = {name: rank for name, (rank, _) in ranks.items() if rank != _NAMED}
    first = min([others[name] for name in others if name in sides[0] & sides[1]] or others.values(), default=None)
    is_batch_alone = {rank for rank, _ in ranks.values()} == {_BATCH}
    shown = (name for name, (rank, _) in ranks.items() if rank != _BATCH or is_batch_alone)
    return tuple(
        _compare_metric(base, step, name, goals, leading=ranks[name][0] in {_NAMED, first})
        for name in sorted(shown, key=lambda name: (ranks[name], name))
    )


def _rank(name: str, goals: TrainingGoals) -> tuple[int, int] | None:
    """Return a metric's rank and its place in that rank: accuracies, errors, then losses."""
    metric, roles = recognise_metric(name), (Role.ACCURACY, Role.ERROR, Role.LOSS)
    order = roles.index(metric.role) if metric and metric.role in QUALITY_ROLES else None
    if goals.is_named(name):
        return _NAMED, order or 0
    if metric is None or order is None:
        return None
    return _BATCH if is_batch_metric(name) else _VALIDATION if metric.validation else _TRAINING, order


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
    higher = goals.is_higher_better(name)
    runs = [measure_run_quality(run, curve, higher_is_better=higher) for run, curve in _list_curves(step, name)]
    finals, bests, seconds, spreads = (
        [value for run in runs if (value := getattr(run, field)) is not None]
        for field in ("final", "best", "best_seconds", "spread")
    )
    return QualityFigure(
        final=fmean(finals) if finals else None,
        best=fmean(bests) if bests else None,
        best_seconds=fmean(seconds) if seconds else None,
        spread=stdev(finals) if len(finals) > 1 else max(spreads, default=None),
        runs=len(runs),
        diverged=sum(run.diverged for run in runs),
    )


def _agree(changes: Sequence[QualityChange]) -> QualityChange:
    """Return one change, with no clear change if units of work disagree."""
    calm = [each for each in changes if each.verdict is Verdict.NO_CLEAR_CHANGE and not each.failed]
    if calm or len({(each.difference or 0.0) > 0 for each in changes}) == 1:
        return (calm or changes)[0]
    return replace(changes[0], verdict=Verdict.NO_CLEAR_CHANGE, failed=())


def _judge(change: QualityChange, found: EqualWork, count: int) -> QualityChange:
    """Return a change with its verdict. The first `count` readings belong to the earlier step."""
    sides, higher = (found.readings[:count], found.readings[count:]), change.higher_is_better
    before, after = ([reading.value for reading in side] for side in sides)
    means, errors = (fmean(before), fmean(after)), [max(reading.error for reading in side) for side in sides]
    # curvature shifts all interpolated values equally, however well repetitions agree
    bias = max(reading.bias for reading in found.readings)
    noise = _RELATIVE_NOISE * max(map(abs, means))
    if change.full_scale is not None:
        share = fmean(means) / change.full_scale
        noise = change.full_scale * 2 * _SHARE_NOISE * sqrt(max(share * (1 - share), 0.0))
    margin = hypot(noise, _ERRORS * hypot(*errors)) + bias
    difference, interval = means[1] - means[0], None
    # values before the end are no more precise than their own scatter
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
    failed = []
    if len(after) > 1 and higher is not None:
        sign, worst = (1, min(before)) if higher else (-1, max(before))
        failed = sorted((value for value in after if sign * (worst - value) > margin), reverse=not higher)
    return replace(
        change,
        before=replace(change.before, at_work=means[0]),
        after=replace(change.after, at_work=means[1]),
        work=found.work,
        work_unit=found.unit,
        at_end=found.at_end,
        difference=difference,
        interval=interval,
        verdict=verdict,
        margin=margin,
        failed=tuple(failed),
    )


def find_full_scale(values: Iterable[float], *, higher_is_better: bool | None) -> float | None:
    """Return 1 for a metric recorded as a share, such as accuracy, 100 for a percentage, otherwise None."""
    known = list(values)
    if higher_is_better is not True or not known or min(known) < 0 or max(known) > _PERCENT:
        return None
    return 1.0 if max(known) <= 1 else _PERCENT


class MissingTarget(StrEnum):
    NOT_RECORDED = "the metric was not recorded"
    NO_TIMES = "the metric was recorded without times"
    NOT_REACHED = "the target was never reached"
    BEFORE_RECORDING = "the target was reached before the recording began"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimeToTarget:
    """When a run first reached the target, known to within `interval`."""

    run: str
    seconds: float | None = None
    gpu_seconds: float | None = None
    cost: float | None = None
    interval: float = 0.0
    missing: MissingTarget | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeToTarget:
    """When a step's runs first reached the target. If all runs did, there are means (geometric for time)."""

    step: str
    name: str
    target: float
    runs: tuple[RunTimeToTarget, ...]
    reached: int
    seconds: float | None
    gpu_seconds: float | None
    cost: float | None


def measure_time_to_target(step: Step, goals: TrainingGoals) -> TimeToTarget | None:
    if goals.target is None:
        return None
    runs = tuple(measure_run_time_to_target(run, goals) for run in step.runs)
    seconds, gpu_seconds, costs = (
        [value for value in column if value is not None]
        for column in zip(*((run.seconds, run.gpu_seconds, run.cost) for run in runs), strict=True)
    )
    return TimeToTarget(
        step=step.label,
        name=goals.target.name,
        target=goals.target.value,
        runs=runs,
        reached=len(seconds),
        seconds=figures.mean_of_ratios(seconds) if len(seconds) == len(runs) else None,
        gpu_seconds=fsum(gpu_seconds) / len(runs) if len(gpu_seconds) == len(runs) else None,
        cost=fsum(costs) / len(runs) if len(costs) == len(runs) else None,
    )


def measure_run_time_to_target(run: SampledRun, goals: TrainingGoals) -> RunTimeToTarget:
    name, target = run.info.name, goals.target
    curve = next((each for each in run.training if target is not None and each.name == target.name), None)
    if target is None or curve is None:
        return RunTimeToTarget(run=name, missing=MissingTarget.NOT_RECORDED)
    if not len(curve.times):
        return RunTimeToTarget(run=name, missing=MissingTarget.NO_TIMES)
    falls = goals.is_higher_better(target.name) is False
    rows = np.flatnonzero(curve.values <= target.value if falls else curve.values >= target.value)
    if not len(rows):
        return RunTimeToTarget(run=name, missing=MissingTarget.NOT_REACHED)
    start, moment = find_job_start(run, curve), int(curve.times[rows[0]])
    if moment <= start:
        return RunTimeToTarget(run=name, missing=MissingTarget.BEFORE_RECORDING)
    gpu_seconds = sum(
        Interval(start, moment).seconds
        - sum(max(min(free.end, moment) - max(free.start, start), 0) for free in run.analysis.no_job.get(gpu.id, ()))
        / 1e6
        for gpu in run.info.gpus
    )
    # the first value has no predecessor, so the next one shows the spacing
    apart = np.diff(curve.times[max(int(rows[0]) - 1, 0) :][:2])
    return RunTimeToTarget(
        run=name,
        seconds=(moment - start) / 1e6,
        gpu_seconds=gpu_seconds,
        cost=None if run.gpu_hour_price is None else gpu_seconds / figures.HOUR * run.gpu_hour_price,
        interval=float(apart[0]) / 1e6 if len(apart) else 0.0,
    )


def gather_target_evidence(base: Step, step: Step, goals: TrainingGoals) -> Evidence:
    sides = [[measure_run_time_to_target(run, goals) for run in side.runs] for side in (base, step)]
    runs = [run for side in sides for run in side]
    if missing := {run.missing for run in runs} - {None}:
        kind = ReasonKind.TARGET_NOT_REACHED if MissingTarget.NOT_REACHED in missing else ReasonKind.NOT_RECORDED
        return compare_whole_recordings(base, step, figures.TIME_TO_TARGET, Reason(kind=kind))
    seconds = [[run.seconds for run in side if run.seconds is not None] for side in sides]
    finest = max(run.interval / run.seconds for run in runs if run.seconds)
    return compare_ratios(base, step, figures.TIME_TO_TARGET, seconds, figures.Resolution(finest=finest))


def judge_missed_target(base: Step, step: Step, goals: TrainingGoals) -> Judgement | None:
    """Return a verdict if every run of one step but none of the other reached the target."""
    before, after = ({measure_run_time_to_target(run, goals).missing for run in side.runs} for side in (base, step))
    reached: set[MissingTarget | None] = {None}
    missed: set[MissingTarget | None] = {MissingTarget.NOT_REACHED}
    if (before, after) not in ((reached, missed), (missed, reached)):
        return None
    verdict = Verdict.BETTER if after == reached else Verdict.WORSE
    is_single = min(len(base.runs), len(step.runs)) == 1
    return Judgement(Verdict.UNCONFIRMED if is_single else verdict, Reason(kind=ReasonKind.TARGET_NOT_REACHED))

"""When runs first reached the target of a training metric, and how that differs between two steps."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import fsum

import numpy as np

from gpureport.comparison import figures
from gpureport.comparison.evidence import Evidence, Reason, ReasonKind, compare_ratios, compare_whole_recordings
from gpureport.comparison.quality import find_job_start
from gpureport.comparison.run import SampledRun
from gpureport.comparison.steps import Step
from gpureport.comparison.training import TrainingGoals
from gpureport.comparison.verdict import Judgement, Verdict
from gpureport.findings import Interval


class MissingTarget(StrEnum):
    """Why no time to the target is known of a run."""

    NOT_RECORDED = "the metric was not recorded"
    NO_TIMES = "the metric was recorded without times"
    NOT_REACHED = "the target was never reached"
    BEFORE_RECORDING = "the target was reached before the recording began"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimeToTarget:
    """When a run first reached the target, from the start of the job; `interval` is how finely the time is known."""

    run: str
    seconds: float | None = None
    gpu_seconds: float | None = None
    cost: float | None = None
    interval: float = 0.0
    missing: MissingTarget | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeToTarget:
    """When the runs of a step first reached the target; a geometric mean, other amounts plain ones, if each did."""

    step: str
    name: str
    target: float
    runs: tuple[RunTimeToTarget, ...]
    reached: int
    seconds: float | None
    gpu_seconds: float | None
    cost: float | None


def measure_time_to_target(step: Step, goals: TrainingGoals) -> TimeToTarget | None:
    """Return when the runs of a step first reached the target; None where none was given."""
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
    """Return when a run first reached the target that was given."""
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
    gpu_seconds = _gpu_seconds_between(run, start, moment)
    # no value lies before the first: the next one says how far they lie apart
    apart = np.diff(curve.times[max(int(rows[0]) - 1, 0) :][:2])
    return RunTimeToTarget(
        run=name,
        seconds=(moment - start) / 1e6,
        gpu_seconds=gpu_seconds,
        cost=None if run.gpu_hour_price is None else gpu_seconds / figures.HOUR * run.gpu_hour_price,
        interval=float(apart[0]) / 1e6 if len(apart) else 0.0,
    )


def _gpu_seconds_between(run: SampledRun, start: int, end: int) -> float:
    held = 0.0
    for gpu in run.info.gpus:
        overlaps = ((max(free.start, start), min(free.end, end)) for free in run.analysis.no_job.get(gpu.id, ()))
        held += Interval(start, end).seconds - sum(max(last - first, 0) for first, last in overlaps) / 1e6
    return held


def add_time_to_target(step: Step, goals: TrainingGoals) -> Step:
    """Return a step with the time to the target, if any, among its figures."""
    found = measure_time_to_target(step, goals)
    return replace(step, values=step.values | {figures.SECONDS_TO_TARGET: found.seconds}) if found else step


def gather_target_evidence(base: Step, step: Step, goals: TrainingGoals) -> Evidence:
    """Return the times to the target in two steps, compared as ratios."""
    sides = [[measure_run_time_to_target(run, goals) for run in side.runs] for side in (base, step)]
    runs = [run for side in sides for run in side]
    if missing := {run.missing for run in runs} - {None}:
        kind = ReasonKind.TARGET_NOT_REACHED if MissingTarget.NOT_REACHED in missing else ReasonKind.NOT_RECORDED
        return compare_whole_recordings(base, step, figures.TIME_TO_TARGET, Reason(kind=kind))
    seconds = [[run.seconds for run in side if run.seconds is not None] for side in sides]
    finest = max(run.interval / run.seconds for run in runs if run.seconds)
    return compare_ratios(base, step, figures.TIME_TO_TARGET, seconds, figures.Resolution(finest=finest))


def judge_missed_target(base: Step, step: Step, goals: TrainingGoals) -> Judgement | None:
    """Return the verdict where every run of one step reached the target and none of the other, else None."""
    before, after = (_has_reached(side.runs, goals) for side in (base, step))
    if before is None or after is None or before == after:
        return None
    verdict = Verdict.BETTER if after else Verdict.WORSE
    is_single = min(len(base.runs), len(step.runs)) == 1
    return Judgement(Verdict.UNCONFIRMED if is_single else verdict, Reason(kind=ReasonKind.TARGET_NOT_REACHED))


def _has_reached(runs: Sequence[SampledRun], goals: TrainingGoals) -> bool | None:
    """Return whether all runs reached the target, or none did; None if mixed or unknown."""
    found = {measure_run_time_to_target(run, goals).missing for run in runs}
    return True if found == {None} else False if found == {MissingTarget.NOT_REACHED} else None

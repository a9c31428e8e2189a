"""Compares each step with the previous one and with the first, and summarises each step."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import exp, isfinite, log, log1p, sqrt
from statistics import mean
from typing import NamedTuple

from gpureport.comparison import figures
from gpureport.comparison.changes import (
    FindingChange,
    RemainingLoss,
    SetupChange,
    compare_findings,
    compare_setups,
    measure_remaining_loss,
)
from gpureport.comparison.comparable import Comparability, check_comparability, is_same_recording, read_property
from gpureport.comparison.estimate import LEVEL, Basis, Ends, estimate_mean_of_runs, find_holm_levels
from gpureport.comparison.evidence import Evidence, Reason, ReasonKind, gather_evidence
from gpureport.comparison.factors import share_a_clock
from gpureport.comparison.quality import (
    QualityChange,
    compare_quality,
    gather_target_evidence,
    judge_missed_target,
    measure_time_to_target,
)
from gpureport.comparison.run import GRAPHICS_CLOCK, SM_CLOCK, UTILISATION, SampledRun, coarsest_interval, unify_work
from gpureport.comparison.steps import Step, TrainingBasis, build_steps, find_resolution
from gpureport.comparison.training import NO_GOALS, TrainingGoals
from gpureport.comparison.verdict import Delta, Judgement, Verdict, build_delta, find_obstacle, judge


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Steps in order, and how each differs from the previous and the first one.

    Attributes:
        steps: the steps in order.
        deltas: each step compared with the previous one, then steps from the third on with the first.
        primary: the figure that decides the verdict on a step.
        tested: the number of comparisons of the primary figure, for correcting verdicts.
        training_tested: the same number for the training rate.
        remaining: losses left in the last step.
        goals: the user's goals for training metrics.
    """

    steps: tuple[Step, ...]
    deltas: tuple[Delta, ...]
    primary: str
    tested: int
    training_tested: int
    remaining: RemainingLoss
    goals: TrainingGoals = NO_GOALS

    def between(self, base: str, step: str) -> tuple[Delta, ...]:
        return tuple(delta for delta in self.deltas if (delta.base, delta.step) == (base, step))

    def judged(self, base: str, step: str) -> Delta | None:
        return next((delta for delta in self.between(base, step) if delta.primary), None)

    def judged_training(self, base: str, step: str) -> Delta | None:
        return next((delta for delta in self.between(base, step) if delta.metric == figures.TRAINING_RATE), None)


def compare(runs: Sequence[SampledRun], goals: TrainingGoals = NO_GOALS) -> Comparison:
    """Compare runs in the given order. Runs with the same label are repetitions of one step."""
    steps = tuple(build_steps(unify_work(runs)))
    if goals.target is not None:
        times = [measure_time_to_target(step, goals) for step in steps]
        steps = tuple(
            replace(step, values=step.values | {figures.SECONDS_TO_TARGET: found.seconds if found else None})
            for step, found in zip(steps, times, strict=True)
        )
    entries: list[tuple[Step, Step, Evidence, Judgement | None]] = []
    for base, step in [*pairwise(steps), *((steps[0], step) for step in steps[2:])]:
        checks, same = check_comparability(base, step), is_same_recording(base, step)
        for figure in figures.FIGURES:
            found = gather_evidence(base, step, figure)
            is_known = found.whole.difference is not None or found.contrast is not None
            obstacle = find_obstacle(checks, figure.metric, same=same) if is_known else None
            entries.append((base, step, found, obstacle))
        if goals.target is not None:
            missed = find_obstacle((), figures.SECONDS_TO_TARGET, same=same) or judge_missed_target(base, step, goals)
            entries.append((base, step, gather_target_evidence(base, step, goals), missed))
    units = {step.work_unit for step in steps}
    primary = figures.PER_WORK if len(units) == 1 and None not in units else UTILISATION
    tested = [found for *_, found, obstacle in entries if obstacle is None and found.contrast is not None]
    families = [[found for found in tested if found.figure.metric == each] for each in (primary, figures.TRAINING_RATE)]
    # apply Holm's correction, to avoid false claims from multiple comparisons
    levels = {
        id(found): (level, len(family))
        for family in families
        for found, level in zip(family, find_holm_levels([each.contrast for each in family]), strict=True)
    }
    deltas = []
    for base, step, found, obstacle in entries:
        judgement = obstacle or judge(found, *levels.get(id(found), (LEVEL, 1)))
        if judgement.verdict.is_established and (drift := find_drift(base, step, found)):
            judgement = Judgement(Verdict.UNCONFIRMED, drift.reason)
        deltas.append(build_delta(base, step, found, judgement, primary=primary))
    return Comparison(
        steps=steps,
        deltas=tuple(deltas),
        primary=primary,
        tested=len(families[0]),
        training_tested=len(families[1]),
        remaining=measure_remaining_loss(steps[-1].label, steps[-1].analyses),
        goals=goals,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPair:
    """A step and the previous one. `quality_since_first` is empty if the previous step is the first."""

    base: Step
    step: Step
    deltas: tuple[Delta, ...]
    comparability: tuple[Comparability, ...]
    finding_changes: tuple[FindingChange, ...]
    changes: tuple[SetupChange, ...]
    quality: tuple[QualityChange, ...]
    quality_since_first: tuple[QualityChange, ...]

    @property
    def doubts(self) -> tuple[Comparability, ...]:
        return tuple(check for check in self.comparability if check.comparable is False)

    @property
    def comparable(self) -> bool:
        shortest = min(figures.recorded_seconds(side.analyses) for side in (self.base, self.step))
        is_measured = any(delta.interval for delta in self.deltas) and shortest >= figures.SHORTEST_REPETITION_SECONDS
        return is_measured or any(delta.verdict is not Verdict.NOT_ENOUGH_DATA for delta in self.deltas)


def pair_steps(comparison: Comparison) -> tuple[StepPair, ...]:
    first, goals = comparison.steps[0], comparison.goals
    return tuple(
        StepPair(
            base=base,
            step=step,
            deltas=comparison.between(base.label, step.label),
            comparability=check_comparability(base, step),
            finding_changes=compare_findings(base, step),
            changes=compare_setups(base, step),
            quality=compare_quality(base, step, goals),
            quality_since_first=() if base is first else compare_quality(first, step, goals),
        )
        for base, step in pairwise(comparison.steps)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A mean over the runs of a step, excluding start-up and warm-up if `settled`."""

    value: float
    interval: Ends | None = None
    basis: Basis | None = None
    settled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigure:
    run: str
    value: float | None
    seconds: float
    counted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSummary:
    label: str
    runs: int
    gpus: int | None
    models: tuple[str, ...]
    utilisation: Mean | None
    work_unit: str | None
    work_per_gpu_hour: Mean | None
    gpu_hour_price: float | None
    cost_per_1000_work: Mean | None
    too_short_run: figures.ShortRun | None


def summarize_step(step: Step) -> StepSummary:
    interval, prices = coarsest_interval(step.runs), {run.gpu_hour_price for run in step.runs}
    is_recorded = all(run.recorded_seconds(UTILISATION, interval) > 0 for run in step.runs)
    counted, short = figures.count_runs(step.runs, UTILISATION, interval) if is_recorded else ((), ())
    work, size = average(step, figures.PER_WORK), figures.WORK_BATCH * figures.HOUR
    if work is not None:
        ends = work.interval and (size / work.interval[1], size / work.interval[0])
        work = replace(work, value=size / work.value, interval=ends)
    return StepSummary(
        label=step.label,
        runs=len(step.runs),
        gpus=step.gpu_count,
        models=tuple(sorted({gpu.model for run in step.runs for gpu in run.info.gpus if gpu.model})),
        utilisation=average(step, UTILISATION),
        work_unit=step.work_unit,
        work_per_gpu_hour=work,
        gpu_hour_price=prices.pop() if len(prices) == 1 else None,
        cost_per_1000_work=average(step, figures.COST_PER_WORK),
        too_short_run=max(short, key=lambda run: run.seconds) if short and not counted else None,
    )


def average(step: Step, metric: str) -> Mean | None:
    figure = figures.BY_METRIC[metric]
    own, is_work = gather_evidence(step, step, figure), figure.role is figures.FigureRole.WORK
    if own.before is None or (not own.before if is_work else not own.steady):
        return None
    values = own.figures[0]
    if len(values) > 1:
        if not is_work:
            return replace(mean_over_runs(values), settled=True)
        middle, ends = estimate_mean_of_runs([log(value) for value in values], *find_resolution(step, step, metric))
        # keep unbounded ends within the range of a float
        low, high = (exp(min(max(end, -300.0), 300.0)) for end in ends)
        return Mean(value=exp(middle), interval=(low, high), basis=Basis.REPLICATES)
    plain = Mean(value=own.before, settled=own.steady)
    if own.contrast is None or own.reason is not None:
        # the allowance for slow changes applies to a difference, not to a single run
        return plain
    if not is_work:
        interval = coarsest_interval(step.runs)
        run = figures.count_runs(step.runs, metric, interval).counted[0]
        ends = run.estimate(metric, interval, figure.finest).interval(LEVEL)
        return replace(plain, interval=ends, basis=Basis.WITHIN_RUN)
    # the interval of a run compared with itself is wider by a factor of √2
    half = log1p(own.contrast.interval()[1] / own.before) / sqrt(2)
    ends = own.before * exp(-half), own.before * exp(min(half, 50.0))
    return replace(plain, interval=ends, basis=own.contrast.basis) if isfinite(half) else plain


def mean_over_runs(values: Sequence[float], least: float = 0.0) -> Mean:
    value, ends = estimate_mean_of_runs(values, least=least)
    return Mean(value=value, interval=ends, basis=Basis.REPLICATES)


def read_run_figures(step: Step, metric: str) -> tuple[RunFigure, ...]:
    figure, interval = figures.BY_METRIC[metric], coarsest_interval(step.runs)
    if figure.role is figures.FigureRole.MEAN:
        counted = figures.count_runs(step.runs, metric, interval).counted or step.runs
        values: list[float | None] = [run.steady_mean(metric, interval) for run in step.runs]
        seconds = [run.steady_seconds(metric, interval) for run in step.runs]
    else:
        counted, values = figures.count_jobs(step.runs).counted, step.read(figure)
        source = step.training_source if metric == figures.TRAINING_RATE else None
        is_logged = source is not None and source.basis is TrainingBasis.SERIES
        logged = [run.logged_work if is_logged else None for run in step.runs]
        seconds = [
            speed.seconds if speed else run.analysis.seconds for run, speed in zip(step.runs, logged, strict=True)
        ]
    known = [value if value is not None and isfinite(value) else None for value in values]
    return tuple(
        RunFigure(run=run.info.name, value=value, seconds=held, counted=run in counted)
        for run, value, held in zip(step.runs, known, seconds, strict=True)
    )


def find_steps_not_in_turn(steps: Sequence[Step]) -> Iterator[tuple[Step, Step]]:
    for pair in pairwise(steps):
        if min(len(step.runs) for step in pair) > 1 and (order := _find_order(*pair)):
            yield order


def _find_order(*pair: Step) -> tuple[Step, Step] | None:
    """Return both steps in chronological order, or None if runs overlap or clocks may differ."""
    earlier, later = sorted(pair, key=lambda step: min(run.info.started for run in step.runs))
    before, after = ([run.info for run in step.runs] for step in (earlier, later))
    is_apart = max(run.ended for run in before) <= min(run.started for run in after)
    return (earlier, later) if share_a_clock([*before, *after]) and is_apart else None


_DEGREES, _PART = 2.0, 0.5
"""Drift requires this difference in start temperature (degrees) and a clock that explains this share of a change."""


class Drift(NamedTuple):
    celsius: tuple[float, float]
    hertz: tuple[float, float]

    @property
    def reason(self) -> Reason:
        warmer, clock = self.celsius[1] - self.celsius[0], self.hertz[1] / self.hertz[0]
        return Reason(kind=ReasonKind.DRIFT, amount=warmer, least=clock)


def find_drift(base: Step, step: Step, found: Evidence | Delta) -> Drift | None:
    """Return how the machine drifted, if this may explain the change in a figure per unit of work.

    Drift means that the later runs started warmer and ran at a lower clock (or the reverse), that the clock
    explains at least half of the change, and that the steps' runs did not alternate. A different GPU model
    or power limit is not drift.
    """
    figure = figures.BY_METRIC[found.metric] if isinstance(found, Delta) else found.figure
    runs = (*base.runs, *step.runs)
    celsius = [run.start_celsius for run in runs if run.start_celsius is not None]
    if figure.role is not figures.FigureRole.WORK or not found.before or not found.after or len(celsius) < len(runs):
        return None
    interval = coarsest_interval(runs)
    clocks = ([run.steady_mean(clock, interval) for run in runs] for clock in (SM_CLOCK, GRAPHICS_CLOCK))
    hertz = next((each for each in clocks if min(each) > 0), None)
    other = any(read_property(base, each) != read_property(step, each) for each in ("gpu_models", "power_limit"))
    if hertz is None or other or not _find_order(base, step):
        return None
    split = len(base.runs)
    drift = Drift(*((mean(each[:split]), mean(each[split:])) for each in (celsius, hertz)))
    faster, clock = figure.better * log(found.after / found.before), log(drift.hertz[1] / drift.hertz[0])
    is_alike = faster * clock > 0 and abs(clock) >= _PART * abs(faster)
    warmer = drift.reason.amount
    return drift if is_alike and abs(warmer) >= _DEGREES and warmer * clock < 0 else None


class OtherUse(NamedTuple):
    run: SampledRun
    devices: tuple[str, ...]
    busy: float


def find_other_use(steps: Sequence[Step]) -> OtherUse | None:
    """Return the run whose GPUs were busiest with other jobs, or None if no run or every run shared its GPUs."""
    runs = [run for step in steps for run in step.runs]
    found = [
        OtherUse(run, finding.devices, evidence.observed)
        for run in runs
        for finding in run.analysis.findings
        for evidence in finding.evidence
        if (finding.cause, evidence.statistic) == ("other use", "other level")
    ]
    is_in_all = len({each.run.info.id for each in found}) == len(runs)
    return None if is_in_all else max(found, key=lambda each: each.busy, default=None)


_MOST = 2.0
"""Maximum plausible ratio of stated to logged work, or the reverse; logs of other jobs differ far more."""


class WorkContradiction(NamedTuple):
    run: str
    stated: float
    logged: float
    unit: str
    ratio: float


def find_work_contradiction(run: SampledRun) -> WorkContradiction | None:
    # a log may cover only part of a run, but its rate limits how much work the whole run can have done
    info, speed = run.info, run.logged_work
    if speed is None or speed.work.rate is None or info.work is None or info.work.amount <= 0:
        return None
    stated, logged = info.work.amount, speed.work.within(info.started, info.ended)
    possible = max(speed.work.rate * run.lasted, logged)
    if logged <= 0 or logged <= _MOST * stated <= _MOST * _MOST * possible:
        return None
    return WorkContradiction(info.name, stated, logged, info.work.unit, max(stated / logged, logged / stated))

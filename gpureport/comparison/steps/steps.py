"""Optimization steps in the order given, and the differences between them with their verdicts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from gpureport.analysis.results import Analysis
from gpureport.comparison.steps.compared_figures import BY_METRIC, FigureRole
from gpureport.comparison.steps.counted_runs import ShortRun, count_jobs
from gpureport.comparison.steps.remaining_loss import RemainingLoss
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.steps.step_figures import TRAINING_RATE, Measure, measures
from gpureport.comparison.steps.training_rate import TrainingSource, choose_training_sources, mean_training_rate
from gpureport.comparison.steps.verdict_reason import Reason
from gpureport.comparison.training import NO_GOALS, TrainingGoals


class Verdict(StrEnum):
    """The verdict on a difference."""

    BETTER = "better"
    WORSE = "worse"
    DIFFERS = "differs"
    UNCONFIRMED = "unconfirmed (one run each)"
    NO_CLEAR_CHANGE = "no clear change"
    NOT_ENOUGH_DATA = "not enough data"

    @property
    def is_established(self) -> bool:
        """Whether repetitions show the difference and it has a direction."""
        return self in {Verdict.BETTER, Verdict.WORSE}

    @property
    def code(self) -> str:
        """The verdict in one word of snake_case, which stays when its words change."""
        return self.name.lower()

    @property
    def short(self) -> str:
        """The verdict without its explanation in brackets."""
        return self.value.partition(" (")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Runs that share a step label; more than one are replicates of it.

    Attributes:
        label: the label.
        runs: its runs.
        measures: its figures.
        training_source: what its training rate rests on; None where nothing tells that of all its runs.
    """

    label: str
    runs: tuple[SampledRun, ...]
    measures: tuple[Measure, ...]
    training_source: TrainingSource | None = None

    @property
    def analyses(self) -> tuple[Analysis, ...]:
        """What was found out about each of its runs."""
        return tuple(run.analysis for run in self.runs)

    def value(self, metric: str) -> float | None:
        """Return one figure of the whole recordings, None when it was not recorded."""
        return next((measure.value for measure in self.measures if measure.metric == metric), None)

    @property
    def work_unit(self) -> str | None:
        """The unit of its work, as stated or found in training metrics; None without either, or where runs differ."""
        units = {run.work_unit for run in self.runs}
        return units.pop() if len(units) == 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeRecordingFigure:
    """One figure over whole recordings, start-up and end included.

    Attributes:
        before: in the earlier step; None where it was not recorded.
        after: in the later step.
        comparable: whether one can be taken from the other: not where they are for other units of work.
    """

    before: float | None
    after: float | None
    comparable: bool = True

    @property
    def difference(self) -> float | None:
        """How far they are apart; None when either is missing, or one cannot be taken from the other."""
        if self.before is None or self.after is None or not self.comparable:
            return None
        return self.after - self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """What would narrow an interval to a half-width.

    Attributes:
        half_width: in the unit of the figure.
        seconds: how long each run would have to be; None where the interval rests on repetitions.
        runs: how many runs a side it would take; None where it rests on one, or a thousand would not do.
    """

    half_width: float
    seconds: float | None
    runs: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """One figure of a step against an earlier one.

    Attributes:
        metric: name of the figure.
        unit: its base unit.
        device: device id; None for all GPUs together.
        base: label of the earlier step.
        step: label of the later step.
        before: value in the earlier step, a mean over its runs; None when not recorded.
        after: value in the later step; None when not recorded.
        difference: after - before; None when either is missing.
        interval: lower and upper end of the difference; None where none can be told.
        level: probability with which the interval holds it; None without one.
        basis: `within-run` or `replicates`, what the interval was told from; None without one.
        detectable_difference: size of a difference that such recordings show four times in five.
        verdict: what may be said about the difference.
        reason: why no more than that may be said; None where nothing is held back.
        window: `steady`, `training` of the training rate, or `whole` where the values are of whole recordings.
        whole: the same figure over whole recordings.
        primary: whether it is the figure that the chain is judged by.
        family: `primary` or `training`, the comparisons that its verdict allows for; None where it is not corrected.
        runs: how many runs stand on either side.
        needed: what would narrow the interval to two points, or two per cent; None where runs do so already.
        unseen_gap_seconds: where a run shows no gap, the time in which there is less than one with a probability of
            95%; the interval does not allow for gaps that are rarer.
        left_out: runs of either step that are too short for this figure beside others of their step.
    """

    metric: str
    unit: str
    device: str | None
    base: str
    step: str
    before: float | None
    after: float | None
    difference: float | None
    interval: tuple[float, float] | None
    level: float | None
    basis: str | None
    detectable_difference: float | None
    verdict: Verdict
    reason: Reason | None
    window: str
    whole: WholeRecordingFigure
    primary: bool
    family: str | None
    runs: tuple[int, int]
    needed: Needed | None
    unseen_gap_seconds: float | None
    left_out: tuple[ShortRun, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Steps in order, and the differences between each and the one before, and the first.

    Attributes:
        steps: in order.
        deltas: neighbours in order, then those after the second against the first.
        primary: the figure that the chain is judged by.
        tested: how many comparisons of it were made, which verdicts allow for.
        training_tested: how many comparisons of the training rate were made, which verdicts on it allow for.
        remaining: what is still lost in the last step.
        goals: what a person says of training metrics.
    """

    steps: tuple[Step, ...]
    deltas: tuple[Delta, ...]
    primary: str
    tested: int
    training_tested: int
    remaining: RemainingLoss
    goals: TrainingGoals = NO_GOALS

    def between(self, base: str, step: str) -> tuple[Delta, ...]:
        """Return the differences of one step against an earlier one."""
        return tuple(delta for delta in self.deltas if (delta.base, delta.step) == (base, step))

    def judged(self, base: str, step: str) -> Delta | None:
        """Return the difference of the primary figure between two steps, None where they were not set side by side."""
        return next((delta for delta in self.between(base, step) if delta.primary), None)

    def judged_training(self, base: str, step: str) -> Delta | None:
        """Return the difference of the training rate between two steps, None where they were not set side by side."""
        return next((delta for delta in self.between(base, step) if delta.metric == TRAINING_RATE), None)


def build_steps(runs: Sequence[SampledRun]) -> Iterator[Step]:
    """Yield one step a label; a run without a label is a step of its own, named after the run."""
    groups: dict[tuple[str | None, int], list[SampledRun]] = {}
    for position, run in enumerate(runs):
        label = run.analysis.run.step
        groups.setdefault((label, -1 if label is not None else position), []).append(run)
    taken: set[str] = set()
    sources = choose_training_sources(list(groups.values()))
    for group, source in zip(groups.values(), sources, strict=True):
        first = group[0].analysis.run
        label = _unique(first.step or first.name, taken)
        yield Step(label=label, runs=tuple(group), measures=_measure(group, source), training_source=source)


def _measure(group: Sequence[SampledRun], source: TrainingSource | None) -> tuple[Measure, ...]:
    """Return the figures of a step; those per unit of work are of runs that count as whole jobs."""
    jobs = count_jobs(group).counted
    training = Measure(metric=TRAINING_RATE, unit="1/s", value=mean_training_rate(jobs, source))
    every, whole = (
        measures([run.analysis for run in runs], [run.gpu_hour_price for run in runs]) for runs in (group, jobs)
    )
    per_work = {each.metric: each for each in whole if BY_METRIC[each.metric].kind is FigureRole.WORK}
    return (*(per_work.get(each.metric, each) for each in every), training)


def _unique(label: str, taken: set[str]) -> str:
    candidates = (label if count == 1 else f"{label} ({count})" for count in range(1, len(taken) + 2))
    name = next(candidate for candidate in candidates if candidate not in taken)
    taken.add(name)
    return name

"""Optimization steps in the order given, each set against the one before it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from gpureport.analysis.base import Analysis
from gpureport.comparison.measures import PER_WORK, Measure, measures

NOT_TESTED = "not tested"
CANNOT_JUDGE = "cannot judge"
NO_UNCERTAINTY = (
    "The uncertainty of a difference is not yet computed, so it may lie within what repeating the run would change."
)
ABSENT = "It was not recorded in both steps."
OTHER_WORK = "The two steps count their work in different units."


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Runs that share a step label; more than one are replicates of it."""

    label: str
    analyses: tuple[Analysis, ...]
    measures: tuple[Measure, ...]

    def value(self, metric: str) -> float | None:
        """Return one figure, None when it was not recorded."""
        return next((measure.value for measure in self.measures if measure.metric == metric), None)

    @property
    def work_unit(self) -> str | None:
        """The unit its work is counted in; None when not given, or when its runs differ."""
        units = {analysis.run.work.unit if analysis.run.work else None for analysis in self.analyses}
        return units.pop() if len(units) == 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """One figure of a step against the step before it.

    Attributes:
        metric: name of the figure.
        unit: its base unit.
        device: device id; None for all GPUs together.
        base: label of the earlier step.
        step: label of the later step.
        before: value in the earlier step; None when not recorded.
        after: value in the later step; None when not recorded.
        difference: after - before; None when either is missing.
        interval: lower and upper end of the difference; None while not computed.
        verdict: what may be said about the difference.
        reason: why no more than that may be said.
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
    verdict: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Steps in order, and the differences between each and the one before."""

    steps: tuple[Step, ...]
    deltas: tuple[Delta, ...]

    def between(self, base: str, step: str) -> tuple[Delta, ...]:
        """Return the differences of one step against an earlier one."""
        return tuple(delta for delta in self.deltas if (delta.base, delta.step) == (base, step))


def compare(analyses: Sequence[Analysis]) -> Comparison:
    """Return the runs as steps in the order given, with plain differences between neighbours."""
    steps = tuple(_steps(analyses))
    return Comparison(steps=steps, deltas=tuple(_deltas(steps)))


def _steps(analyses: Sequence[Analysis]) -> Iterator[Step]:
    """Yield one step a label; a run without a label is a step of its own, named after the run."""
    groups: dict[tuple[str | None, int], list[Analysis]] = {}
    for position, analysis in enumerate(analyses):
        label = analysis.run.step
        groups.setdefault((label, -1 if label is not None else position), []).append(analysis)
    taken: set[str] = set()
    for group in groups.values():
        label = _unique(group[0].run.step or group[0].run.name, taken)
        yield Step(label=label, analyses=tuple(group), measures=measures(group))


def _unique(label: str, taken: set[str]) -> str:
    """Return the label, numbered when another step already has it."""
    candidates = (label if count == 1 else f"{label} ({count})" for count in range(1, len(taken) + 2))
    name = next(candidate for candidate in candidates if candidate not in taken)
    taken.add(name)
    return name


def _deltas(steps: Sequence[Step]) -> Iterator[Delta]:
    for base, step in pairwise(steps):
        for before, after in zip(base.measures, step.measures, strict=True):
            yield _delta(base, step, before, after)


def _delta(base: Step, step: Step, before: Measure, after: Measure) -> Delta:
    same_work = before.metric != PER_WORK or base.work_unit == step.work_unit
    difference = None
    if before.value is not None and after.value is not None and same_work:
        difference = after.value - before.value
    return Delta(
        metric=before.metric,
        unit=before.unit,
        device=None,
        base=base.label,
        step=step.label,
        before=before.value,
        after=after.value,
        difference=difference,
        interval=None,
        verdict=CANNOT_JUDGE if difference is None else NOT_TESTED,
        reason=NO_UNCERTAINTY if difference is not None else ABSENT if same_work else OTHER_WORK,
    )

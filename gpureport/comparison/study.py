"""A study: groups by one or two settings, the best by cost and by speed, and each setting's effect."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite

from gpureport.comparison.chain import Comparison
from gpureport.comparison.comparable import check_comparability, is_same_recording
from gpureport.comparison.effects import FigureEffects, estimate_effects
from gpureport.comparison.estimate import LEVEL, find_holm_levels
from gpureport.comparison.evidence import Evidence, gather_evidence
from gpureport.comparison.factors import Factor, VariedParams, find_varied_params, order_levels
from gpureport.comparison.figures import (
    BY_METRIC,
    COST_PER_WORK,
    PER_WORK,
    SHORTEST_REPETITION_SECONDS,
    TRAINING_RATE,
    WORK_RATE,
    recorded_seconds,
)
from gpureport.comparison.quality import QualityChange, compare_quality
from gpureport.comparison.run import UTILISATION
from gpureport.comparison.steps import Step
from gpureport.comparison.training import TrainingGoals
from gpureport.comparison.verdict import Judgement, Verdict, find_obstacle, judge


@dataclass(frozen=True, slots=True, kw_only=True)
class BestGroup:
    """The group with the best figure, against the next one, and the verdict on the group it stands least clear of.

    All were tested together; `rivals` are those not shown to be worse.
    """

    metric: str
    unit: str
    label: str
    value: float
    next: str
    next_value: float
    change: float
    interval: tuple[float, float] | None
    verdict: Verdict
    rivals: tuple[str, ...]
    unconfirmed: tuple[str, ...]
    unknown: tuple[str, ...]
    tested: int
    lower_quality: tuple[QualityChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyGroup:
    """A group and the value of each setting in it, None where its runs do not have it."""

    label: str
    values: tuple[str | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What is said of all groups that the settings `by` make.

    The best by cost is in money where all prices are known, else in GPU time. Either best is None where its figure is
    known of fewer than two groups.
    """

    by: tuple[Factor, ...]
    values: tuple[tuple[str | None, ...], ...]
    groups: tuple[StudyGroup, ...]
    varied: VariedParams
    best_by_cost: BestGroup | None
    best_by_speed: BestGroup | None
    effects: tuple[FigureEffects, ...]

    @property
    def best_label(self) -> str | None:
        """The group with the best figures: the cheapest, else the fastest, if known."""
        best = self.best_by_cost or self.best_by_speed
        return best.label if best else None

    @property
    def mixed_in(self) -> tuple[Factor, ...]:
        """Settings that varied beside those of the groups, so that their effects are mixed in."""
        return self.varied.factors[len(self.by) :]


def build_study(comparison: Comparison, by: Sequence[Factor]) -> Study:
    """Return what is said of groups, the steps of a comparison, by the settings `by`."""
    steps = comparison.steps
    runs = [run for step in steps for run in step.runs]
    groups = tuple(
        StudyGroup(label=step.label, values=tuple(factor.value(step.runs[0].analysis.run) for factor in by))
        for step in steps
    )
    varied = find_varied_params([run.analysis.run for run in runs], by)
    cost = COST_PER_WORK if all(run.gpu_hour_price is not None for run in runs) else PER_WORK
    found = [estimate_effects(steps, varied.factors, metric) for metric in (TRAINING_RATE, WORK_RATE, cost)]
    if not any(found):
        found = [estimate_effects(steps, varied.factors, UTILISATION)]
    return Study(
        by=tuple(by),
        values=tuple(tuple(order_levels([group.values[place] for group in groups])) for place in range(len(by))),
        groups=groups,
        varied=varied,
        best_by_cost=find_best_group(steps, cost, comparison.goals),
        best_by_speed=find_best_group(steps, TRAINING_RATE, comparison.goals),
        effects=tuple(each for each in found if each is not None),
    )


def select_focus(comparison: Comparison, study: Study | None) -> Step:
    """Return the step that remaining losses and advice are of: the best group if known, else the last step."""
    best = study.best_label if study else None
    return next((step for step in comparison.steps if step.label == best), comparison.steps[-1])


def find_best_group(steps: Sequence[Step], metric: str, goals: TrainingGoals) -> BestGroup | None:
    """Return the best of groups by a figure; None where fewer than two have it, or their work is in several units.

    A group of short runs takes part: the verdict says whether it differs from the others.
    """
    figure = BY_METRIC[metric]
    values = {step.label: _read_value(step, metric) for step in steps}
    known = [(value, step) for step in steps if (value := values[step.label]) is not None]
    if len(known) < 2 or len({step.work_unit for _, step in known}) > 1:  # noqa: PLR2004 - best of two at least
        return None
    ranked = sorted(known, key=lambda each: -figure.better * each[0])
    (value, best), (next_value, following) = ranked[:2]
    others = [step for _, step in ranked[1:]]
    evidence = {other.label: gather_evidence(other, best, figure) for other in others}
    obstacles = {
        other.label: find_obstacle(check_comparability(other, best), metric, same=is_same_recording(other, best))
        for other in others
    }
    verdicts = _judge_against_others(evidence, {label: barred for label, barred in obstacles.items() if barred})
    return BestGroup(
        metric=metric,
        unit=figure.unit,
        label=best.label,
        value=value,
        next=following.label,
        next_value=next_value,
        change=value / next_value - 1,
        interval=_relative_interval(evidence[following.label]),
        verdict=_judge_best(set(verdicts.values())),
        rivals=tuple(label for label, verdict in verdicts.items() if verdict is not Verdict.BETTER),
        unconfirmed=tuple(label for label, verdict in verdicts.items() if verdict is Verdict.UNCONFIRMED),
        unknown=tuple(step.label for step in steps if values[step.label] is None),
        tested=len(verdicts),
        lower_quality=tuple(_find_lower_quality(best, steps, goals)),
    )


def _read_value(step: Step, metric: str) -> float | None:
    if recorded_seconds(step.analyses) < SHORTEST_REPETITION_SECONDS:
        return None
    return gather_evidence(step, step, BY_METRIC[metric]).before or None


def _judge_against_others(evidence: Mapping[str, Evidence], obstacles: Mapping[str, Judgement]) -> dict[str, Verdict]:
    """Return the verdict on one group against each other, the other one as the earlier step.

    They are one family, by Holm's levels: a group that is not the best is called so in one study of twenty at most.
    """
    tested = [label for label, each in evidence.items() if each.contrast is not None and label not in obstacles]
    levels = dict(zip(tested, find_holm_levels([evidence[label].contrast for label in tested]), strict=True))
    return {
        label: (obstacles.get(label) or judge(each, levels.get(label, LEVEL), max(len(tested), 1))).verdict
        for label, each in evidence.items()
    }


def _find_lower_quality(best: Step, steps: Sequence[Step], goals: TrainingGoals) -> Iterator[QualityChange]:
    """Yield for each metric that counts the group that trained furthest beyond the best, if any."""
    fallen: dict[str, list[QualityChange]] = {}
    for other in steps:
        for change in compare_quality(other, best, goals) if other is not best else ():
            if change.leading and change.fell:
                fallen.setdefault(change.name, []).append(change)
    for changes in fallen.values():
        yield max(changes, key=lambda change: inf if change.difference is None else abs(change.difference))


def _judge_best(verdicts: set[Verdict]) -> Verdict:
    left = verdicts - {Verdict.BETTER}
    doubts = (Verdict.NOT_ENOUGH_DATA, Verdict.UNCONFIRMED)
    if left <= {*doubts}:
        return next((verdict for verdict in doubts if verdict in left), Verdict.BETTER)
    return Verdict.NO_CLEAR_CHANGE


def _relative_interval(evidence: Evidence) -> tuple[float, float] | None:
    if evidence.contrast is None or not evidence.before:
        return None
    low, high = (end / evidence.before for end in evidence.contrast.interval(LEVEL))
    return (low, high) if isfinite(low) and isfinite(high) else None

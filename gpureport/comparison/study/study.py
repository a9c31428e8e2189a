"""A study: groups by one or two settings, the best of them by cost and by speed, and what each setting did."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpureport.comparison.chain import Comparison
from gpureport.comparison.figures import COST_PER_WORK, PER_WORK, TRAINING_RATE, WORK_RATE
from gpureport.comparison.run import UTILISATION
from gpureport.comparison.steps import Step
from gpureport.comparison.study.best_group import BestGroup, find_best_group
from gpureport.comparison.study.factors import Factor
from gpureport.comparison.study.main_effects import FigureEffects, estimate_effects, order_levels
from gpureport.comparison.study.varied_params import VariedParams, find_varied_params


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyGroup:
    """A group and the value of each setting in it, None where its runs do not have it."""

    label: str
    values: tuple[str | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What is said of all groups together.

    Attributes:
        by: the settings that make the groups.
        values: of each of these settings, in order.
        groups: every group with its values.
        varied: all settings that differ between runs.
        best_by_cost: the cheapest group for its work, in money where all prices are known, else in GPU time; None
            where the work is not known.
        best_by_speed: the group that trains fastest; None where no training rate is known.
        effects: what each setting did to each figure.
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
        """The group with the best figures: the cheapest, else the fastest; None where neither is known."""
        best = self.best_by_cost or self.best_by_speed
        return best.label if best else None

    @property
    def mixed_in(self) -> tuple[Factor, ...]:
        """Settings that varied beside those that make the groups, so that their effects are mixed into the groups."""
        return self.varied.factors[len(self.by) :]


def build_study(comparison: Comparison, by: Sequence[Factor]) -> Study:
    """Return what is said of groups together.

    Args:
        comparison: the groups as steps.
        by: the settings that make them.
    """
    steps = comparison.steps
    runs = [run for step in steps for run in step.runs]
    groups = tuple(StudyGroup(label=step.label, values=_read_values(step, by)) for step in steps)
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
    """Return the step that remaining losses and advice are of: the last of a chain, of groups the best.

    Where no best group is known it is the last one.
    """
    best = study.best_label if study else None
    return next((step for step in comparison.steps if step.label == best), comparison.steps[-1])


def _read_values(step: Step, by: Sequence[Factor]) -> tuple[str | None, ...]:
    return tuple(factor.value(step.runs[0].analysis.run) for factor in by)

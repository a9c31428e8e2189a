"""Groups runs by one or two settings, finds the best groups, and estimates each setting's effect.

Effects come from a linear model of all settings.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isfinite, log, sqrt

import numpy as np

from gpureport.columns import FloatArray
from gpureport.comparison import figures
from gpureport.comparison.chain import Comparison
from gpureport.comparison.comparable import check_comparability, is_same_recording
from gpureport.comparison.estimate import LEVEL, DifferenceEstimate, estimate_from_scatter, find_holm_levels
from gpureport.comparison.evidence import gather_evidence
from gpureport.comparison.factors import Factor, VariedParams, find_varied_params, order_levels
from gpureport.comparison.figures import BY_METRIC, COST_PER_WORK, PER_WORK, TRAINING_RATE, WORK_RATE, recorded_seconds
from gpureport.comparison.quality import QualityChange, compare_quality
from gpureport.comparison.run import UTILISATION
from gpureport.comparison.steps import Step
from gpureport.comparison.training import TrainingGoals
from gpureport.comparison.verdict import Verdict, find_obstacle, judge

_MOST_TRIED = 12  # Maximum number of settings left out one by one to find those that changed together.
Levels = tuple[tuple[int, ...], ...]  # For each factor, the observations' levels, counted from 0.


@dataclass(frozen=True, slots=True, kw_only=True)
class BestGroup:
    """The group with the best value. Its verdict is the weakest against the other groups."""

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
    label: str
    values: tuple[str | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelEffect:
    """The effect of a value (None if the setting is absent)."""

    value: str | None
    runs: int
    change: float | None = None
    interval: tuple[float, float] | None = None
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingEffect:
    factor: Factor
    levels: tuple[LevelEffect, ...]
    confounded_with: tuple[Factor, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureEffects:
    """Each setting's effect on one figure, from a linear model of its logarithm (for a share, its value)."""

    metric: str
    unit: str
    better: int
    relative: bool
    runs: int
    missing_runs: int
    degrees: int
    additive: bool | None
    settings: tuple[SettingEffect, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Costs are in money if all prices are known, else in GPU time."""

    by: tuple[Factor, ...]
    values: tuple[tuple[str | None, ...], ...]
    groups: tuple[StudyGroup, ...]
    varied: VariedParams
    best: dict[str, BestGroup | None]  # by cost, speed and energy
    effects: tuple[FigureEffects, ...]

    @property
    def best_label(self) -> str | None:
        best = self.best["cost"] or self.best["speed"]
        return best.label if best else None

    @property
    def mixed_in(self) -> tuple[Factor, ...]:
        """Other varied settings; their effects are mixed with the groups' effects."""
        return self.varied.factors[len(self.by) :]


def build_study(comparison: Comparison, by: Sequence[Factor]) -> Study:
    steps = comparison.steps
    runs = [run for step in steps for run in step.runs]
    groups = tuple(
        StudyGroup(label=step.label, values=tuple(factor.value(step.runs[0].info) for factor in by)) for step in steps
    )
    varied = find_varied_params([run.info for run in runs], by)
    cost = COST_PER_WORK if all(run.gpu_hour_price is not None for run in runs) else PER_WORK
    ranked = {"cost": cost, "speed": TRAINING_RATE, "energy": figures.ENERGY_PER_WORK}
    found = [estimate_effects(steps, varied.factors, metric) for metric in (TRAINING_RATE, WORK_RATE, cost)]
    if not any(found):
        found = [estimate_effects(steps, varied.factors, UTILISATION)]
    return Study(
        by=tuple(by),
        values=tuple(tuple(order_levels([group.values[place] for group in groups])) for place in range(len(by))),
        groups=groups,
        varied=varied,
        best={name: find_best_group(steps, metric, comparison.goals) for name, metric in ranked.items()},
        effects=tuple(each for each in found if each is not None),
    )


def select_focus(comparison: Comparison, study: Study | None) -> Step:
    """Return the best group if known, otherwise the last step."""
    best = study.best_label if study else None
    return next((step for step in comparison.steps if step.label == best), comparison.steps[-1])


def find_best_group(steps: Sequence[Step], metric: str, goals: TrainingGoals) -> BestGroup | None:
    # includes groups of short runs; the family-wise level lets one study in twenty name a wrong group
    figure = BY_METRIC[metric]
    long_enough = [each for each in steps if recorded_seconds(each.analyses) >= figures.SHORTEST_REPETITION_SECONDS]
    known = [(value, step) for step in long_enough if (value := gather_evidence(step, step, figure).before)]
    if len(known) <= 1 or len({step.work_unit for _, step in known}) > 1:
        return None
    (value, best), (next_value, following), *_ = ranked = sorted(known, key=lambda each: -figure.better * each[0])
    others = [step for _, step in ranked[1:]]
    evidence = [gather_evidence(other, best, figure) for other in others]
    barred = [
        find_obstacle(check_comparability(other, best), metric, same=is_same_recording(other, best)) for other in others
    ]
    tested = [each.contrast for each, bar in zip(evidence, barred, strict=True) if each.contrast and not bar]
    levels = {id(each): level for each, level in zip(tested, find_holm_levels(tested), strict=True)}
    verdicts = {
        other.label: (bar or judge(each, levels.get(id(each.contrast), LEVEL), max(len(tested), 1))).verdict
        for other, each, bar in zip(others, evidence, barred, strict=True)
    }
    ends = [end / next_value for end in evidence[0].contrast.interval()] if evidence[0].contrast else [inf, inf]
    # find the weakest verdict; a verdict not listed counts as no clear change
    order = (Verdict.BETTER, Verdict.UNCONFIRMED, Verdict.NOT_ENOUGH_DATA, Verdict.NO_CLEAR_CHANGE)
    weakest = max(order.index(each) if each in order else len(order) - 1 for each in verdicts.values())
    labels = {step.label for _, step in known}
    return BestGroup(
        metric=metric,
        unit=figure.unit,
        label=best.label,
        value=value,
        next=following.label,
        next_value=next_value,
        change=value / next_value - 1,
        interval=(ends[0], ends[1]) if all(map(isfinite, ends)) else None,
        verdict=order[weakest],
        rivals=tuple(label for label, verdict in verdicts.items() if verdict is not Verdict.BETTER),
        unconfirmed=tuple(label for label, verdict in verdicts.items() if verdict is Verdict.UNCONFIRMED),
        unknown=tuple(step.label for step in steps if step.label not in labels),
        tested=len(verdicts),
        lower_quality=tuple(_find_lower_quality(best, steps, goals)),
    )


def _find_lower_quality(best: Step, steps: Sequence[Step], goals: TrainingGoals) -> Iterator[QualityChange]:
    changes = [each for other in steps if other is not best for each in compare_quality(other, best, goals)]
    fallen = [change for change in changes if change.leading and change.fell]
    for name in dict.fromkeys(change.name for change in fallen):
        each = (change for change in fallen if change.name == name)
        yield max(each, key=lambda change: inf if change.difference is None else abs(change.difference))


def estimate_effects(steps: Sequence[Step], factors: Sequence[Factor], metric: str) -> FigureEffects | None:
    """Return the effects of settings, or None if units differ, a value is 0, or nothing varied."""
    figure = BY_METRIC[metric]
    relative = figure.role is figures.FigureRole.WORK
    runs = [run for step in steps for run in step.runs]
    singles = [replace(step, runs=(run,), values=figures.read_run(run)) for step in steps for run in step.runs]
    found = [gather_evidence(single, single, figure) for single in singles]
    # use settled values if they are known for all runs, otherwise values for whole recordings
    steady = metric == TRAINING_RATE or all(each.steady for each in found if each.before is not None)
    values = [each.before if steady else each.whole.before for each in found]
    known = [(run, value) for run, value in zip(runs, values, strict=True) if value is not None]
    if relative and (len({run.work_unit for run, _ in known}) > 1 or any(value <= 0 for _, value in known)):
        return None
    columns = [(factor, [factor.value(run.info) for run, _ in known]) for factor in factors]
    columns = [(factor, column) for factor, column in columns if len(set(column)) > 1]
    if not columns:
        return None
    model = LinearModel(
        levels=tuple(tuple(map(order_levels(column).index, column)) for _, column in columns),
        values=np.array([log(value) if relative else value for _, value in known]),
    )
    shortest = min(recorded_seconds([run.analysis]) for run, _ in known)
    if relative and metric != TRAINING_RATE:
        # a figure for the whole run needs no allowance unless the run is too short
        shortest = 0.0 if shortest < figures.SHORTEST_SECONDS else inf
    return FigureEffects(
        metric=metric,
        unit=figure.unit,
        better=figure.better,
        relative=relative,
        runs=len(known),
        missing_runs=len(runs) - len(known),
        degrees=model.degrees,
        additive=model.is_additive(LEVEL) if len(columns) > 1 else None,
        settings=tuple(_describe_settings(model, columns, figure, figure.allow_slow_change(shortest))),
    )


def _describe_settings(
    model: "LinearModel", columns: Sequence[tuple[Factor, list[str | None]]], figure: figures.Figure, allowance: float
) -> Iterator[SettingEffect]:
    is_work = figure.role is figures.FigureRole.WORK
    finest, ratio_of = (figures.FINEST_RATIO, 1.0) if is_work else (figure.finest, None)
    known = [model.is_estimable(place) for place in range(len(columns))]
    effects = {
        (place, level): model.effect(place, level, finest, ratio_of)
        for place, codes in enumerate(model.levels)
        for level in range(1, max(codes) + 1)
        if known[place]
    }
    # apply Holm's correction to all effects on this figure
    holm = dict(zip(effects, find_holm_levels([*effects.values()]), strict=True))
    for place, (factor, column) in enumerate(columns):
        counts = Counter(model.levels[place])
        levels = []
        for level, value in enumerate(order_levels(column)):
            found = LevelEffect(value=value, runs=counts[level])
            if effect := effects.get((place, level)):
                fewest = min(counts[level], counts[0])
                verdict = _judge(effect, holm[place, level], figure, fewest=fewest, allowance=allowance)
                interval = effect.interval() if model.degrees else None
                found = replace(found, change=effect.difference, interval=interval, verdict=verdict)
            levels.append(found)
        mixed = () if known[place] else _find_confounded(model, place, known)
        yield SettingEffect(
            factor=factor, levels=tuple(levels), confounded_with=tuple(columns[other][0] for other in mixed)
        )


def _judge(
    effect: DifferenceEstimate, level: float, figure: figures.Figure, *, fewest: int, allowance: float
) -> Verdict:
    # if the scatter is unknown, slow changes in load may explain a change up to the allowance
    is_sure = effect.degrees >= 1
    if not is_sure and abs(effect.change) <= allowance:
        return Verdict.NOT_ENOUGH_DATA
    if not (effect.excludes_zero(level) if is_sure else abs(effect.difference) > figure.margin(1.0)):
        return Verdict.NO_CLEAR_CHANGE
    if not is_sure or fewest == 1:
        return Verdict.UNCONFIRMED
    gain = effect.change * figure.better
    return Verdict.BETTER if gain > 0 else Verdict.WORSE if gain < 0 else Verdict.DIFFERS


def _find_confounded(model: "LinearModel", place: int, known: Sequence[bool]) -> list[int]:
    # the settings without which the effect is estimable, or all if there are many, since each requires a fit
    others = [other for other in range(len(known)) if other != place and not known[other]]
    alone = []
    for other in others if len(others) <= _MOST_TRIED else []:
        left = tuple(codes for at, codes in enumerate(model.levels) if at != other)
        if LinearModel(levels=left, values=model.values).is_estimable(place - (other < place)):
            alone.append(other)
    return alone or others


@dataclass(frozen=True, kw_only=True)
class LinearModel:
    """A least-squares model: a constant, and an effect for each level of a factor except the first."""

    levels: Levels
    values: FloatArray

    @cached_property
    def _design(self) -> FloatArray:
        return _build_design(self.levels)

    @cached_property
    def _inverse(self) -> FloatArray:
        return np.asarray(np.linalg.pinv(self._design), dtype=np.float64)

    @cached_property
    def degrees(self) -> int:
        return len(self.values) - _count_effects(self.levels)

    @cached_property
    def residual_squares(self) -> float:
        residuals = self.values - self._design @ (self._inverse @ self.values)
        return float(residuals @ residuals)

    def is_estimable(self, factor: int) -> bool:
        others = (*self.levels[:factor], *self.levels[factor + 1 :])
        return _count_effects(self.levels) == _count_effects(others, len(self.values)) + max(self.levels[factor])

    def effect(self, factor: int, level: int, finest: float = 0.0, ratio_of: float | None = None) -> DifferenceEstimate:
        """Return the effect of a level. `finest` sets the minimum error."""
        weights = self._inverse[sum(map(max, self.levels[:factor])) + level]
        change, scatter = float(weights @ self.values), sqrt(self.residual_squares / max(self.degrees, 1))
        error = max(scatter, finest / sqrt(12)) * sqrt(float(weights @ weights))
        return estimate_from_scatter(change, error, self.degrees, ratio_of=ratio_of)

    def is_additive(self, level: float) -> bool | None:
        # lack-of-fit test: compare the residual beyond the scatter of repetitions with that scatter; None if nothing
        # was repeated or the model has no degrees of freedom left
        from scipy import special

        cells = np.unique(np.array(self.levels), axis=1, return_inverse=True)[1].ravel()
        counts = np.bincount(cells)
        means = np.bincount(cells, self.values) / counts
        pure, repeated = float(((self.values - means[cells]) ** 2).sum()), len(cells) - len(counts)
        misfit = self.degrees - repeated
        if repeated < 1 or misfit < 1 or pure <= 0:
            return None
        ratio = max(self.residual_squares - pure, 0.0) / misfit / (pure / repeated)
        return float(special.fdtrc(misfit, repeated, ratio)) >= 1 - level


def _build_design(levels: Levels, observations: int = 0) -> FloatArray:
    columns = [np.ones(observations or len(levels[0]))]
    for factor in levels:
        columns += [(np.array(factor) == level).astype(np.float64) for level in range(1, max(factor) + 1)]
    return np.column_stack(columns)


def _count_effects(levels: Levels, observations: int = 0) -> int:
    return int(np.linalg.matrix_rank(_build_design(levels, observations)))

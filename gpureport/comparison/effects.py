"""The effect of each setting that varied over the runs of a study, with all others taken into account."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import expm1, log, sqrt

import numpy as np

from gpureport.columns import FloatArray
from gpureport.comparison.estimate import LEVEL, RATIO_ALLOWANCE, allow_logarithm, allow_points, student
from gpureport.comparison.evidence import gather_evidence
from gpureport.comparison.factors import Factor, order_levels
from gpureport.comparison.figures import (
    BY_METRIC,
    FINEST_RATIO,
    SHORTEST_SECONDS,
    TRAINING_RATE,
    Figure,
    FigureRole,
    read_run,
    recorded_seconds,
)
from gpureport.comparison.run import SampledRun
from gpureport.comparison.steps import Step
from gpureport.comparison.verdict import Verdict

_TOLERANCE = 1e-9
"""Relative size below which a number of the design is one of rounding."""

_LARGEST = 50.0
"""Logarithm beyond which no change lies."""

_MOST_TRIED = 12
"""Settings left out one by one to find which changed together with another."""


@dataclass(frozen=True, kw_only=True)
class LinearModel:
    """A constant and one effect for each level of each factor but its first, by least squares.

    The design need not settle every effect. `levels` are for every factor the level of each observation, from 0.
    """

    levels: tuple[tuple[int, ...], ...]
    values: FloatArray

    @cached_property
    def design(self) -> FloatArray:
        """One row per observation: the constant, then a column per level but the first of each factor."""
        columns = [np.ones(len(self.values))]
        for factor in self.levels:
            columns += [(np.array(factor) == level).astype(np.float64) for level in range(1, max(factor) + 1)]
        return np.column_stack(columns)

    @cached_property
    def degrees(self) -> int:
        """Observations beyond those that the effects use up: residual degrees of freedom."""
        return len(self.values) - int(np.linalg.matrix_rank(self.design))

    @cached_property
    def residual_squares(self) -> float:
        """Sum of the squares that the model leaves."""
        residuals = self.values - self.design @ (self._inverse @ self.values)
        return float(residuals @ residuals)

    @cached_property
    def _inverse(self) -> FloatArray:
        return np.asarray(np.linalg.pinv(self.design), dtype=np.float64)

    @cached_property
    def _projection(self) -> FloatArray:
        """Onto the contrasts that the design can estimate: those stay as they are, all others change."""
        return np.asarray(self._inverse @ self.design, dtype=np.float64)

    def _contrast(self, factor: int, level: int) -> FloatArray:
        contrast = np.zeros(self.design.shape[1])
        contrast[sum(map(max, self.levels[:factor])) + level] = float(level > 0)
        return contrast

    def is_estimable(self, factor: int) -> bool:
        """Return whether the design separates the effects of a factor from all others."""
        contrasts = (self._contrast(factor, level) for level in range(1, max(self.levels[factor]) + 1))
        return all(float(np.abs(each @ self._projection - each).max()) < _TOLERANCE * len(each) for each in contrasts)

    def effect(self, factor: int, level: int, finest: float = 0.0) -> tuple[float, float | None]:
        """Return the effect of a level against the first of its factor, and its standard error.

        The error is None where no degree of freedom is left.

        Args:
            factor: one that `is_estimable`.
            level: its level.
            finest: step in which the values were written down; they scatter by rounding at least.
        """
        weights = self._contrast(factor, level) @ self._inverse
        estimate = float(weights @ self.values)
        if self.degrees < 1:
            return estimate, None
        scatter = max(sqrt(self.residual_squares / self.degrees), finest / sqrt(12))
        return estimate, scatter * sqrt(float(weights @ weights))

    def is_additive(self, level: float) -> bool | None:
        """Return whether the factors work independently of each other, as far as repetitions show.

        The test of lack of fit: what the model leaves beyond the scatter of repetitions, against that scatter. None
        where no setting was repeated, or the model has an effect for every setting.

        Args:
            level: probability with which a design of independent factors passes.
        """
        from scipy import special  # noqa: PLC0415 - most commands need none

        cells = list(zip(*self.levels, strict=True))
        places = {cell: [at for at, other in enumerate(cells) if other == cell] for cell in dict.fromkeys(cells)}
        pure = sum(float(((self.values[at] - self.values[at].mean()) ** 2).sum()) for at in places.values())
        repeated = len(cells) - len(places)
        misfit = self.degrees - repeated
        if repeated < 1 or misfit < 1 or pure <= 0:
            return None
        ratio = max(self.residual_squares - pure, 0.0) / misfit / (pure / repeated)
        return float(special.fdtrc(misfit, repeated, ratio)) >= 1 - level


def student_tails(ratio: float, degrees: int) -> float:
    """Return the probability that a Student t lies as far from zero as a ratio, on either side."""
    from scipy import special  # noqa: PLC0415 - most commands need none

    return float(2 * special.stdtr(degrees, -abs(ratio)))


def adjust_by_holm(probabilities: Sequence[float]) -> list[float]:
    """Return probabilities of chance adjusted for their number, after S. Holm (1979)."""
    adjusted, reached = [1.0] * len(probabilities), 0.0
    for done, place in enumerate(sorted(range(len(probabilities)), key=probabilities.__getitem__)):
        reached = adjusted[place] = max(reached, min(probabilities[place] * (len(probabilities) - done), 1.0))
    return adjusted


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelEffect:
    """One value of a setting against its first, and how many runs have it; None is the absence of the setting.

    `change` is relative (0.24 is 24% more), of a share the difference; None where the design does not tell it. The
    verdict allows for the number of effects of the figure. Without an interval it is `unconfirmed` at most, and `not
    enough data` where slow changes of a load explain such an effect in recordings this short.
    """

    value: str | None
    runs: int
    change: float | None = None
    interval: tuple[float, float] | None = None
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingEffect:
    """The effect of one setting on one figure, each of its values in order against the first.

    `confounded_with` are the settings that changed together with it, so that nothing is said of either.
    """

    factor: Factor
    levels: tuple[LevelEffect, ...]
    confounded_with: tuple[Factor, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureEffects:
    """What every setting did to one figure, by a linear model of its logarithm, of a share of itself.

    `degrees` are runs beyond those that the effects use up; 0 leaves no interval. `additive` is whether the
    settings work independently of each other, as far as repetitions show; None where they do not.
    """

    metric: str
    unit: str
    better: int
    relative: bool
    runs: int
    missing_runs: int
    degrees: int
    additive: bool | None
    settings: tuple[SettingEffect, ...]


def estimate_effects(steps: Sequence[Step], factors: Sequence[Factor], metric: str) -> FigureEffects | None:
    """Return what each setting did to a figure; None where nothing can be said.

    That is so where the work is in several units, and where no setting varied in the runs that have the figure.

    Args:
        steps: the groups of a study.
        factors: the settings.
        metric: the figure; one per unit of work, or a share.
    """
    figure = BY_METRIC[metric]
    relative = figure.role is FigureRole.WORK
    runs = [run for step in steps for run in step.runs]
    values = read_run_figures(steps, metric)
    known = [(run, value) for run, value in zip(runs, values, strict=True) if value is not None]
    if relative and (len({run.work_unit for run, _ in known}) > 1 or any(value <= 0 for _, value in known)):
        return None
    columns = [(factor, [factor.value(run.analysis.run) for run, _ in known]) for factor in factors]
    columns = [(factor, column) for factor, column in columns if len(set(column)) > 1]
    if not columns:
        return None
    model = LinearModel(
        levels=tuple(tuple(map(order_levels(column).index, column)) for _, column in columns),
        values=np.array([log(value) if relative else value for _, value in known]),
    )
    allowance = _allow_slow_changes([run for run, _ in known], figure)
    return FigureEffects(
        metric=metric,
        unit=figure.unit,
        better=figure.better,
        relative=relative,
        runs=len(known),
        missing_runs=len(runs) - len(known),
        degrees=model.degrees,
        additive=model.is_additive(LEVEL) if len(columns) > 1 else None,
        settings=tuple(_describe_settings(model, columns, figure, allowance)),
    )


def read_run_figures(steps: Sequence[Step], metric: str) -> list[float | None]:
    """Return a figure of each run: settled, if that is known of all, else of whole recordings."""
    figure = BY_METRIC[metric]
    singles = [replace(step, runs=(run,), values=read_run(run)) for step in steps for run in step.runs]
    found = [gather_evidence(single, single, figure) for single in singles]
    steady = all(evidence.steady for evidence in found if evidence.before is not None)
    return [evidence.before if steady or metric == TRAINING_RATE else evidence.whole.before for evidence in found]


def _allow_slow_changes(runs: Sequence[SampledRun], figure: Figure) -> float:
    """Return the largest effect of slow changes in the shortest recording, as between two single runs."""
    shortest = min(recorded_seconds([run.analysis]) for run in runs)
    if figure.role is not FigureRole.WORK:
        return allow_points(shortest)
    if figure.metric == TRAINING_RATE:
        return allow_logarithm(shortest)
    return log(RATIO_ALLOWANCE) if shortest < SHORTEST_SECONDS else 0.0


def _describe_settings(
    model: LinearModel, columns: Sequence[tuple[Factor, list[str | None]]], figure: Figure, allowance: float
) -> Iterator[SettingEffect]:
    """Yield the effect of each setting; verdicts allow for all effects of the figure."""
    finest = FINEST_RATIO if figure.role is FigureRole.WORK else figure.finest
    known = [model.is_estimable(place) for place in range(len(columns))]
    effects = {
        (place, level): model.effect(place, level, finest)
        for place, codes in enumerate(model.levels)
        for level in range(1, max(codes) + 1)
        if known[place]
    }
    tails = {
        key: student_tails(estimate / error, model.degrees)
        for key, (estimate, error) in effects.items()
        if error is not None
    }
    adjusted = dict(zip(tails, adjust_by_holm([*tails.values()]), strict=True))
    for place, (factor, column) in enumerate(columns):
        counts = [model.levels[place].count(level) for level in range(max(model.levels[place]) + 1)]
        levels = [LevelEffect(value=value, runs=runs) for value, runs in zip(order_levels(column), counts, strict=True)]
        for level in range(1, len(levels) if known[place] else 1):
            estimate, error = effects[place, level]
            fewest = min(counts[level], counts[0])
            levels[level] = replace(
                levels[level],
                change=_convert(estimate, figure),
                interval=_estimate_interval(estimate, error, model.degrees, figure),
                verdict=_judge(estimate, adjusted.get((place, level)), figure, fewest=fewest, allowance=allowance),
            )
        mixed = () if known[place] else _find_confounded(model, place, known, [factor for factor, _ in columns])
        yield SettingEffect(factor=factor, levels=tuple(levels), confounded_with=mixed)


def _convert(effect: float, figure: Figure) -> float:
    """Return an effect on a logarithm as a relative change, on a share as it is."""
    return expm1(min(effect, _LARGEST)) if figure.role is FigureRole.WORK else effect


def _estimate_interval(
    estimate: float, error: float | None, degrees: int, figure: Figure
) -> tuple[float, float] | None:
    if error is None:
        return None
    half = student((1 + LEVEL) / 2, degrees) * error
    return _convert(estimate - half, figure), _convert(estimate + half, figure)


def _judge(estimate: float, chance: float | None, figure: Figure, *, fewest: int, allowance: float) -> Verdict:
    """Return what may be said of an effect.

    Args:
        estimate: the effect, of a figure per unit of work that on its logarithm.
        chance: probability of such an effect by chance, adjusted for all effects of the figure; None without scatter.
        figure: the figure.
        fewest: runs of the level, or of the first one where it has fewer.
        allowance: largest effect that slow changes of a load explain, where no scatter is known.
    """
    if chance is None and abs(estimate) <= allowance:
        return Verdict.NOT_ENOUGH_DATA
    is_shown = abs(_convert(estimate, figure)) > figure.margin(1.0) if chance is None else chance <= 1 - LEVEL
    if not is_shown:
        return Verdict.NO_CLEAR_CHANGE
    if chance is None or fewest == 1:
        return Verdict.UNCONFIRMED
    gain = estimate * figure.better
    return Verdict.BETTER if gain > 0 else Verdict.WORSE if gain < 0 else Verdict.DIFFERS


def _find_confounded(
    model: LinearModel, place: int, known: Sequence[bool], factors: Sequence[Factor]
) -> tuple[Factor, ...]:
    """Return the settings that changed together with one: those without which its effect could be told.

    Of very many settings all that are confounded are returned, for each try is a fit of its own.
    """
    others = [other for other in range(len(factors)) if other != place and not known[other]]
    alone = []
    for other in others if len(others) <= _MOST_TRIED else []:
        left = tuple(codes for at, codes in enumerate(model.levels) if at != other)
        if LinearModel(levels=left, values=model.values).is_estimable(place - (other < place)):
            alone.append(other)
    return tuple(factors[other] for other in alone or others)

"""The effect of each setting that varied over the runs of a study, with all others taken into account."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import expm1, log, sqrt

import numpy as np

from gpureport.columns import FloatArray
from gpureport.comparison import figures
from gpureport.comparison.estimate import LEVEL, RATIO_ALLOWANCE, allow_logarithm, allow_points, two_sided
from gpureport.comparison.evidence import gather_evidence
from gpureport.comparison.factors import Factor, order_levels
from gpureport.comparison.run import SampledRun
from gpureport.comparison.steps import Step
from gpureport.comparison.verdict import Verdict

_LARGEST = 50.0  # logarithm beyond which no change lies
_MOST_TRIED = 12  # settings left out one by one to find which changed together with another
Levels = tuple[tuple[int, ...], ...]
"""For every factor the level of each observation, from 0."""


@dataclass(frozen=True, kw_only=True)
class LinearModel:
    """A constant and one effect for each level of each factor but its first, by least squares."""

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
        """Observations beyond those that the effects use up: residual degrees of freedom."""
        return len(self.values) - _count_effects(self.levels)

    @cached_property
    def residual_squares(self) -> float:
        """Sum of the squares that the model leaves."""
        residuals = self.values - self._design @ (self._inverse @ self.values)
        return float(residuals @ residuals)

    def is_estimable(self, factor: int) -> bool:
        """Return whether the design separates the effects of a factor from all others."""
        others = (*self.levels[:factor], *self.levels[factor + 1 :])
        return _count_effects(self.levels) == _count_effects(others, len(self.values)) + max(self.levels[factor])

    def effect(self, factor: int, level: int, finest: float = 0.0) -> tuple[float, float | None]:
        """Return the effect of a level of a factor that `is_estimable` against its first, and its standard error.

        The error is None where no degree of freedom is left; values scatter by rounding to `finest` at least.
        """
        weights = self._inverse[sum(map(max, self.levels[:factor])) + level]
        estimate = float(weights @ self.values)
        if self.degrees < 1:
            return estimate, None
        scatter = max(sqrt(self.residual_squares / self.degrees), finest / sqrt(12))
        return estimate, scatter * sqrt(float(weights @ weights))

    def is_additive(self, level: float) -> bool | None:
        """Return whether the factors work independently of each other, as far as repetitions show.

        The test of lack of fit: what the model leaves beyond the scatter of repetitions, against that scatter. None
        where no setting was repeated, or the model has an effect for every setting. A design of independent factors
        passes with the probability `level`.
        """
        from scipy import special  # noqa: PLC0415 - most commands need none

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
    """Return one row per observation: the constant, then a column per level but the first of each factor."""
    columns = [np.ones(observations or len(levels[0]))]
    for factor in levels:
        columns += [(np.array(factor) == level).astype(np.float64) for level in range(1, max(factor) + 1)]
    return np.column_stack(columns)


def _count_effects(levels: Levels, observations: int = 0) -> int:
    return int(np.linalg.matrix_rank(_build_design(levels, observations)))


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
    """One value of a setting against its first; None is its absence, and what is not known."""

    value: str | None
    runs: int
    change: float | None = None
    interval: tuple[float, float] | None = None
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingEffect:
    """The effect of one setting on one figure, or the settings that changed together with it."""

    factor: Factor
    levels: tuple[LevelEffect, ...]
    confounded_with: tuple[Factor, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureEffects:
    """What every setting did to one figure, by a linear model of its logarithm, of a share of itself."""

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
    """Return what each setting did to a figure per unit of work, or a share, over the groups of a study.

    None where the work is in several units, and where no setting varied in the runs that have the figure.
    """
    figure = figures.BY_METRIC[metric]
    relative = figure.role is figures.FigureRole.WORK
    runs = [run for step in steps for run in step.runs]
    values = _read_values(steps, metric)
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


def _read_values(steps: Sequence[Step], metric: str) -> list[float | None]:
    """Return a figure of each run: settled, if that is known of all, else of whole recordings."""
    singles = [replace(step, runs=(run,), values=figures.read_run(run)) for step in steps for run in step.runs]
    found = [gather_evidence(single, single, figures.BY_METRIC[metric]) for single in singles]
    steady = all(evidence.steady for evidence in found if evidence.before is not None)
    return [
        evidence.before if steady or metric == figures.TRAINING_RATE else evidence.whole.before for evidence in found
    ]


def _allow_slow_changes(runs: Sequence[SampledRun], figure: figures.Figure) -> float:
    """Return the largest effect of slow changes in the shortest recording, as between two single runs."""
    shortest = min(figures.recorded_seconds([run.analysis]) for run in runs)
    if figure.role is not figures.FigureRole.WORK:
        return allow_points(shortest)
    if figure.metric == figures.TRAINING_RATE:
        return allow_logarithm(shortest)
    return log(RATIO_ALLOWANCE) if shortest < figures.SHORTEST_SECONDS else 0.0


def _describe_settings(
    model: LinearModel, columns: Sequence[tuple[Factor, list[str | None]]], figure: figures.Figure, allowance: float
) -> Iterator[SettingEffect]:
    finest = figures.FINEST_RATIO if figure.role is figures.FigureRole.WORK else figure.finest
    known = [model.is_estimable(place) for place in range(len(columns))]
    effects = {
        (place, level): model.effect(place, level, finest)
        for place, codes in enumerate(model.levels)
        for level in range(1, max(codes) + 1)
        if known[place]
    }
    tails = {key: student_tails(effect / error, model.degrees) for key, (effect, error) in effects.items() if error}
    chances = dict(zip(tails, adjust_by_holm([*tails.values()]), strict=True))
    for place, (factor, column) in enumerate(columns):
        codes = model.levels[place]
        levels = []
        for level, value in enumerate(order_levels(column)):
            found = LevelEffect(value=value, runs=codes.count(level))
            if (effect := effects.get((place, level))) is not None:
                estimate, error = effect
                half = None if error is None else two_sided(LEVEL, model.degrees) * error
                chance, fewest = chances.get((place, level)), min(found.runs, codes.count(0))
                found = replace(
                    found,
                    change=_convert(estimate, figure),
                    interval=None
                    if half is None
                    else (_convert(estimate - half, figure), _convert(estimate + half, figure)),
                    verdict=_judge(estimate, chance, figure, fewest=fewest, allowance=allowance),
                )
            levels.append(found)
        mixed = () if known[place] else _find_confounded(model, place, known)
        yield SettingEffect(
            factor=factor, levels=tuple(levels), confounded_with=tuple(columns[other][0] for other in mixed)
        )


def _convert(effect: float, figure: figures.Figure) -> float:
    return expm1(min(effect, _LARGEST)) if figure.role is figures.FigureRole.WORK else effect


def _judge(estimate: float, chance: float | None, figure: figures.Figure, *, fewest: int, allowance: float) -> Verdict:
    """Return what may be said of an effect, of a figure per unit of work that on its logarithm.

    Its probability by `chance`, adjusted for all effects of the figure, is None without scatter: slow changes of a load
    explain as much as the `allowance` then. `fewest` are the runs of the level, or of the first if those are fewer.
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


def _find_confounded(model: LinearModel, place: int, known: Sequence[bool]) -> list[int]:
    """Return the settings that changed together with one: those without which its effect could be told.

    Of very many settings all that are confounded are returned, for each try is a fit of its own.
    """
    others = [other for other in range(len(known)) if other != place and not known[other]]
    alone = []
    for other in others if len(others) <= _MOST_TRIED else []:
        left = tuple(codes for at, codes in enumerate(model.levels) if at != other)
        if LinearModel(levels=left, values=model.values).is_estimable(place - (other < place)):
            alone.append(other)
    return alone or others

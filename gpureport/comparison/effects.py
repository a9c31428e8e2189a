"""The effect of each setting that varied over the runs of a study, with all others taken into account."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import log, sqrt

import numpy as np

from gpureport.columns import FloatArray
from gpureport.comparison import estimate, figures
from gpureport.comparison.estimate import LEVEL, Basis, DifferenceEstimate, Ends, two_sided
from gpureport.comparison.evidence import gather_evidence
from gpureport.comparison.factors import Factor, order_levels
from gpureport.comparison.run import SampledRun
from gpureport.comparison.steps import Step
from gpureport.comparison.verdict import Verdict

_MOST_TRIED = 12  # settings left out one by one to find which changed together with another
Levels = tuple[tuple[int, ...], ...]  # for every factor the level of each observation, from 0


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

    def effect(self, factor: int, level: int, finest: float = 0.0, ratio_of: float | None = None) -> DifferenceEstimate:
        """Return the effect of a level of a factor that `is_estimable` against its first.

        Nothing shows how sure it is where no degree is left; values scatter by rounding to `finest` at least.
        """
        weights = self._inverse[sum(map(max, self.levels[:factor])) + level]
        change, scatter = float(weights @ self.values), sqrt(self.residual_squares / max(self.degrees, 1))
        error = max(scatter, finest / sqrt(12)) * sqrt(float(weights @ weights))

        def ends(share: float) -> Ends:
            half = two_sided(share, self.degrees) * error
            return change - half, change + half

        return DifferenceEstimate(
            change=change, basis=Basis.REPLICATES, ends=ends, degrees=self.degrees, ratio_of=ratio_of
        )

    def is_additive(self, level: float) -> bool | None:
        """Return whether the factors work independently of each other, as far as repetitions show.

        The test of lack of fit: what the model leaves beyond the scatter of repetitions, against that scatter. None
        where no setting was repeated, or the model has an effect for every setting. A design of independent factors
        passes with the probability `level`.
        """
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
    """Return one row per observation: the constant, then a column per level but the first of each factor."""
    columns = [np.ones(observations or len(levels[0]))]
    for factor in levels:
        columns += [(np.array(factor) == level).astype(np.float64) for level in range(1, max(factor) + 1)]
    return np.column_stack(columns)


def _count_effects(levels: Levels, observations: int = 0) -> int:
    return int(np.linalg.matrix_rank(_build_design(levels, observations)))


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
        return estimate.allow_points(shortest)
    if figure.metric == figures.TRAINING_RATE:
        return estimate.allow_logarithm(shortest)
    return log(estimate.RATIO_ALLOWANCE) if shortest < figures.SHORTEST_SECONDS else 0.0


def _describe_settings(
    model: LinearModel, columns: Sequence[tuple[Factor, list[str | None]]], figure: figures.Figure, allowance: float
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
    # verdicts allow for all effects of the figure
    holm = dict(zip(effects, estimate.find_holm_levels([*effects.values()]), strict=True))
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
    """Return what may be said of an effect at the level that all effects of its figure leave it.

    Where nothing shows its scatter, slow changes of a load explain as much as the `allowance`. `fewest` are the runs of
    its level, or of the first if those are fewer.
    """
    is_sure = effect.degrees >= 1
    if not is_sure and abs(effect.change) <= allowance:
        return Verdict.NOT_ENOUGH_DATA
    if not (effect.excludes_zero(level) if is_sure else abs(effect.difference) > figure.margin(1.0)):
        return Verdict.NO_CLEAR_CHANGE
    if not is_sure or fewest == 1:
        return Verdict.UNCONFIRMED
    gain = effect.change * figure.better
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

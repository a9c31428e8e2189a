"""The effect of each setting that varied over the runs of a study, with all others taken into account."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import expm1, log

import numpy as np

from gpureport.comparison.estimate import LEVEL, RATIO_ALLOWANCE, allow_logarithm, allow_points, student
from gpureport.comparison.evidence import gather_evidence
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
from gpureport.comparison.statistics.linear_model import LinearModel, adjust_by_holm, student_tails
from gpureport.comparison.steps import Step
from gpureport.comparison.study.factors import Factor, order_values
from gpureport.comparison.verdict import Verdict

_LARGEST = 50.0
"""Logarithm beyond which no change lies."""

_MOST_TRIED = 12
"""Settings that are left out one by one, to find which of them changed together with another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelEffect:
    """One value of a setting against its first.

    Attributes:
        value: of the setting; None where runs do not have it.
        runs: how many have this value.
        change: relative change of the figure (0.24 is 24% more), of a share the difference; None where the design
            does not tell it.
        interval: ends of its 95% interval; None where no run is left to tell the scatter.
        verdict: allows for the number of effects of the figure; without an interval `unconfirmed (one run each)` at
            most, and `not enough data` where slow changes of a load explain such an effect in recordings this short;
            None of the first value, and where nothing is told.
    """

    value: str | None
    runs: int
    change: float | None = None
    interval: tuple[float, float] | None = None
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingEffect:
    """The effect of one setting on one figure.

    Attributes:
        factor: the setting.
        levels: its values in order; the first is what the others are set against.
        confounded_with: settings that changed together with it, so that nothing is said of either; none where the
            design tells them apart.
    """

    factor: Factor
    levels: tuple[LevelEffect, ...]
    confounded_with: tuple[Factor, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureEffects:
    """What every setting did to one figure, by a linear model of its logarithm, of a share of itself.

    Attributes:
        metric: the figure.
        unit: its base unit.
        better: 1 where more is better, -1 where less is.
        relative: whether changes are shares of the figure at the first value.
        runs: how many have the figure.
        missing_runs: how many do not, and are left out.
        degrees: runs beyond those that the effects use up; 0 leaves no interval.
        additive: whether the settings work independently of each other, as far as repetitions tell; None where they
            do not.
        settings: the effect of each, those that make the groups first.
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
    return FigureEffects(
        metric=metric,
        unit=figure.unit,
        better=figure.better,
        relative=relative,
        runs=len(known),
        missing_runs=len(runs) - len(known),
        degrees=model.degrees,
        additive=model.is_additive(LEVEL) if len(columns) > 1 else None,
        settings=tuple(
            _describe_settings(model, columns, figure, _allow_slow_changes([run for run, _ in known], figure))
        ),
    )


def read_run_figures(steps: Sequence[Step], metric: str) -> list[float | None]:
    """Return a figure of each run, of what had settled where that is known of all, else of whole recordings."""
    figure = BY_METRIC[metric]
    singles = [_single_step(step, run) for step in steps for run in step.runs]
    found = [gather_evidence(single, single, figure) for single in singles]
    steady = all(evidence.steady for evidence in found if evidence.before is not None)
    return [evidence.before if steady or metric == TRAINING_RATE else evidence.whole.before for evidence in found]


def _single_step(step: Step, run: SampledRun) -> Step:
    return replace(step, runs=(run,), values=read_run(run))


def _allow_slow_changes(runs: Sequence[SampledRun], figure: Figure) -> float:
    """Return the largest effect that slow changes explain in the shortest recording, as between two single runs."""
    shortest = min(recorded_seconds([run.analysis]) for run in runs)
    if figure.role is not FigureRole.WORK:
        return allow_points(shortest)
    if figure.metric == TRAINING_RATE:
        return allow_logarithm(shortest)
    return log(RATIO_ALLOWANCE) if shortest < SHORTEST_SECONDS else 0.0


def order_levels(column: Sequence[str | None]) -> list[str | None]:
    """Return the different values of a setting in order, its absence last."""
    known = order_values(value for value in column if value is not None)
    return [*known, *([None] if None in column else [])]


def _describe_settings(
    model: LinearModel, columns: Sequence[tuple[Factor, list[str | None]]], figure: Figure, allowance: float
) -> Iterator[SettingEffect]:
    """Yield the effect of each setting, its verdicts allowing for all effects of the figure."""
    finest = FINEST_RATIO if figure.role is FigureRole.WORK else figure.finest
    known = [model.is_estimable(place) for place in range(len(columns))]
    effects = {
        (place, level): model.effect(place, level, finest)
        for place, codes in enumerate(model.levels)
        for level in range(1, max(codes) + 1)
        if known[place]
    }
    scattered = [key for key, (_, error) in effects.items() if error is not None]
    chances = [
        student_tails(estimate / error, model.degrees) for estimate, error in effects.values() if error is not None
    ]
    adjusted = dict(zip(scattered, adjust_by_holm(chances), strict=True))
    for place, (factor, column) in enumerate(columns):
        levels = [LevelEffect(value=order_levels(column)[0], runs=model.levels[place].count(0))]
        for level, value in list(enumerate(order_levels(column)))[1:]:
            key = (place, level)
            runs = model.levels[place].count(level)
            plain = LevelEffect(value=value, runs=runs)
            fewest = min(runs, levels[0].runs)
            if key in effects:
                estimate, error = effects[key]
                plain = replace(
                    plain,
                    change=_convert(estimate, figure),
                    interval=_estimate_interval(estimate, error, model.degrees, figure),
                    verdict=_judge_effect(estimate, adjusted.get(key), figure, fewest=fewest, allowance=allowance),
                )
            levels.append(plain)
        mixed = () if known[place] else _find_confounded(model, place, known, [factor for factor, _ in columns])
        yield SettingEffect(factor=factor, levels=tuple(levels), confounded_with=mixed)


def _convert(effect: float, figure: Figure) -> float:
    """Return an effect on a logarithm as a relative change, and one on a share as it is."""
    return expm1(min(effect, _LARGEST)) if figure.role is FigureRole.WORK else effect


def _estimate_interval(
    estimate: float, error: float | None, degrees: int, figure: Figure
) -> tuple[float, float] | None:
    if error is None:
        return None
    half = student((1 + LEVEL) / 2, degrees) * error
    return _convert(estimate - half, figure), _convert(estimate + half, figure)


def _judge_effect(estimate: float, chance: float | None, figure: Figure, *, fewest: int, allowance: float) -> Verdict:
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

    Of very many settings all that are not told apart are returned, for each try is a fit of its own.
    """
    others = [other for other in range(len(factors)) if other != place and not known[other]]
    few = others if len(others) <= _MOST_TRIED else []
    alone = [other for other in few if _is_estimable_without(model, place, other)]
    return tuple(factors[other] for other in alone or others)


def _is_estimable_without(model: LinearModel, place: int, other: int) -> bool:
    left = [codes for at, codes in enumerate(model.levels) if at != other]
    return LinearModel(levels=tuple(left), values=model.values).is_estimable(place - (other < place))

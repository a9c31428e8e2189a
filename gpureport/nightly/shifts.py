"""When a figure changed: shifts of its level over a window of nights, never between two alone, beyond their noise."""

from dataclasses import dataclass
from itertools import pairwise
from math import erf, exp, pi, sqrt
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpureport.columns import FloatArray

SHORTEST = 3
"""Values a level lasts at least: one or two that lie apart are outliers."""
_MOST_LEVELS = 256
_CLIP = 2.5
"""Differences are clipped at so many deviations, so that outliers and shifts do not count as noise."""
_CENTRE_CLIP = 2.0
"""The same for the values of a level when its centre is estimated."""
_TO_DEVIATION = 1.4826
"""A median absolute deviation of a normal distribution, as its standard deviation."""
_USUAL = 0.5
_USUAL_NIGHTS = 60
"""Correlation of a night with the one before that is assumed, and how many nights that assumption is worth."""
_HIGHEST = 0.8
"""Highest correlation that is believed: what drifts looks like 1, and the deviation would have no bound. Chosen, not
measured: at 0.8 it is 1.6 times what the differences from night to night show."""
_DOUBT = 0.3
"""Standard errors of the correlation that are added to it: one taken for too low makes chance pass for a change."""
_INSIDE = erf(_CLIP / sqrt(2)) - 2 * _CLIP * exp(-(_CLIP**2) / 2) / sqrt(2 * pi)
_VARIANCE_LEFT = _INSIDE + _CLIP**2 * (1 - erf(_CLIP / sqrt(2)))
"""Part of its variance that a normal distribution keeps when clipped at the reach."""
FEWEST = 10
"""Nights with a value that are needed to detect changes."""
WINDOW = 365
"""The newest nights that are looked at."""
_PENALTY = 5.0
"""What a step costs, in deviations."""
_LIMIT = 4.5
_LIMIT_OF_FEW = 9.0
"""Standard errors a step must have, and how many times more, divided by the nights: few tell less of the noise.

Chosen by simulation of twenty figures over sixty nights at a correlation of 0.5: 20 of 3060 nights raise an alarm, and
a step of five deviations is told by its third night in seven cases of ten. At 4.3 there are 27 such nights; at 4.6
there are 13, and fewer than seven cases.
"""
_APART = 2.5
_YOUNG = 2 * SHORTEST
"""Deviations by which a level younger than so many nights keeps apart, in three of them, from the level beside it.

A single large shock fades over the nights after it, and its mean over three of them is no level.
"""
_LEVEL = 1.96
_LEVEL_OF_FEW = 4.0
"""The same of the ends of a 95% interval."""
_GRADUAL = 0.8
"""How much closer than two levels a straight line must be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NightNoise:
    """What varies from night to night: a process in which each night resembles the one before (AR(1))."""

    deviation: float
    correlation: float

    def levels(self, before: "FloatArray", after: "FloatArray") -> tuple[float, float, float]:
        """Return the levels of nights before and after a step, and the standard error of their difference.

        Generalised least squares: where a night resembles the one before, the first night of a level tells more than
        any later one. Values far from the median of their level are pulled in.
        """
        reach = _CENTRE_CLIP * self.deviation
        centred = [np.clip(part, np.median(part) - reach, np.median(part) + reach) for part in (before, after)]
        values = np.concatenate(centred)
        places = np.arange(len(values)) >= len(before)
        design = self._prewhiten(np.column_stack([~places, places]).astype(np.float64))
        spread = np.linalg.inv(design.T @ design)
        old, new = spread @ (design.T @ self._prewhiten(values[:, None])[:, 0])
        # what a night adds to what it takes from the one before
        shock = self.deviation * sqrt(1 - self.correlation**2)
        return float(old), float(new), shock * sqrt(spread[0, 0] + spread[1, 1] - 2 * spread[0, 1])

    def _prewhiten(self, rows: "FloatArray") -> "FloatArray":
        first = sqrt(1 - self.correlation**2) * rows[:1]
        return np.concatenate([first, rows[1:] - self.correlation * rows[:-1]])


def estimate_noise(values: "FloatArray", grain: float) -> NightNoise:
    """Return the noise of a series without steps, or with few; the grain is the least deviation to be assumed.

    Differences between values one and two places apart know nothing of levels and little of drifts.
    """
    one = _robust_deviation(np.diff(values)) ** 2
    correlation = _estimate_correlation(values, one)
    deviation = sqrt(one / (2 * (1 - correlation)))
    return NightNoise(deviation=max(deviation, grain), correlation=correlation)


def estimate_noise_about_levels(parts: "Sequence[FloatArray]", grain: float) -> NightNoise:
    """Return the noise of a series about its levels, of three values or more, told from what each night adds."""
    values = np.concatenate([part - np.median(part) for part in parts])
    correlation = _estimate_correlation(values, _robust_deviation(np.diff(values)) ** 2)
    shock = _robust_deviation(values[1:] - correlation * values[:-1])
    # each level has taken a part of the noise with it
    wider = sqrt(len(values) / max(len(values) - len(parts), 1))
    deviation = wider * shock / sqrt(1 - correlation**2)
    return NightNoise(deviation=max(deviation, grain), correlation=correlation)


def _estimate_correlation(values: "FloatArray", one: float) -> float:
    two = _robust_deviation(values[2:] - values[:-2]) ** 2
    nights, worth = len(values), len(values) + _USUAL_NIGHTS
    seen = min(max(two / one - 1, 0.0), _HIGHEST) if one else _USUAL
    likely = (nights * seen + _USUAL_NIGHTS * _USUAL) / worth
    return min(likely + _DOUBT * sqrt((1 - likely * likely) / worth), _HIGHEST)


def _robust_deviation(differences: "FloatArray") -> float:
    """Return the standard deviation about zero; a mean where most differences are zero."""
    sizes = np.abs(differences)
    unit = _TO_DEVIATION * float(np.median(sizes)) or sqrt(pi / 2) * float(sizes.mean())
    clipped = np.minimum(sizes, _CLIP * unit)
    return sqrt(float((clipped * clipped).mean()) / _VARIANCE_LEFT)


def fit_levels(values: "FloatArray", penalty: float) -> tuple[int, ...]:
    """Return where each level begins in the fit with the least sum of absolute distances and of penalties, one a step.

    It is the exact minimum over levels that are values of the series (quantiles of it where it is long), each held
    for SHORTEST values or longer. NaN is no value.
    """
    count = len(values)
    if count < 2 * SHORTEST:
        return (0,) if count else ()
    levels = np.unique(values)
    if len(levels) > _MOST_LEVELS:
        levels = np.quantile(levels, np.linspace(0, 1, _MOST_LEVELS))
    # the cost of the best fits so far and where their last level began: a row for each level, a column for how long
    # it has lasted, the last one for long enough
    cost = np.full((len(levels), SHORTEST), np.inf)
    cost[:, 0] = np.abs(values[0] - levels)
    start = np.zeros(cost.shape, dtype=np.int64)
    began = [0]
    for place in range(1, count):
        stays = cost[:, -1] <= cost[:, -2]
        fresh, held = np.full(len(levels), cost[:, -1].min() + penalty), np.where(stays, cost[:, -1], cost[:, -2])
        since = np.where(stays, start[:, -1], start[:, -2])
        cost = np.column_stack([fresh, cost[:, :-2], held]) + np.abs(values[place] - levels)[:, None]
        start = np.column_stack([np.full(len(levels), place), start[:, :-2], since])
        began.append(int(start[np.argmin(cost[:, -1]), -1]))
    found, at = [], count
    while at > 0:
        at = began[at - 1]
        found.append(at)
    return tuple(reversed(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelShift:
    """One change of the level of a series: the first value that shows it, and the 95% interval of its size."""

    place: int
    before: float
    after: float
    low: float
    high: float
    gradual: bool

    @property
    def difference(self) -> float:
        return self.after - self.before


def detect_changes(
    values: "FloatArray", *, smallest: float, relative: float = 0.0, grain: float = 0.0
) -> tuple[LevelShift, ...]:
    """Return the changes of a series, the earliest first; only the newest `WINDOW` of its nights are looked at.

    Changes smaller than that size, or that share of the level before, do not matter. The grain is the least deviation
    from night to night to be assumed.
    """
    first = max(len(values) - WINDOW, 0)
    recent = values[first:]
    if len(recent) < FEWEST:
        return ()
    edges = [*fit_levels(recent, _PENALTY * estimate_noise(recent, grain).deviation), len(recent)]
    while True:
        # of each step that is left: one that was none had taken part of the noise with it
        parts = [recent[start:end] for start, end in pairwise(edges)]
        noise = estimate_noise_about_levels(parts, grain)
        signs = []
        for old, new in pairwise(parts):
            before, after, error = noise.levels(old, new)
            size = abs(after - before)
            is_held = _is_occupied(old, before, after, noise) and _is_occupied(new, after, before, noise)
            matters = is_held and size >= max(smallest, relative * abs(before))
            signs.append((size / error if error else np.inf) if matters else 0.0)
        if not signs or min(signs) >= _LIMIT * (1 + _LIMIT_OF_FEW / len(recent)):
            break
        del edges[int(np.argmin(signs)) + 1]
    return tuple(
        _describe_shift(*pair, noise, first + edge, len(recent))
        for pair, edge in zip(pairwise(parts), edges[1:-1], strict=True)
    )


def _is_occupied(values: "FloatArray", level: float, other: float, noise: NightNoise) -> bool:
    near = np.abs(values - level) < np.abs(values - other)
    if len(values) < _YOUNG:
        near &= (values - other) * np.sign(level - other) > _APART * noise.deviation
    return int(near.sum()) >= SHORTEST


def _describe_shift(old: "FloatArray", new: "FloatArray", noise: NightNoise, place: int, nights: int) -> LevelShift:
    before, after, error = noise.levels(old, new)
    # a level lies within its values: of zeros it is zero, without rounding errors
    before, after = (
        min(max(level, float(part.min())), float(part.max())) for level, part in ((before, old), (after, new))
    )
    # with few nights the deviation itself is not well known
    reach = _LEVEL * (1 + _LEVEL_OF_FEW / nights) * error
    low, high = after - before - reach, after - before + reach
    return LevelShift(place=place, before=before, after=after, low=low, high=high, gradual=_is_gradual(old, new))


def _is_gradual(old: "FloatArray", new: "FloatArray") -> bool:
    values = np.concatenate([old, new])
    places = np.arange(len(values))
    line = np.polyval(np.polyfit(places, values, 1), places)
    level = np.where(places < len(old), np.median(old), np.median(new))
    by_line, by_levels = (float(np.abs(values - fit).sum()) for fit in (line, level))
    return by_line < _GRADUAL * by_levels


def select_new_shifts(found: tuple[LevelShift, ...], before: tuple[LevelShift, ...]) -> tuple[LevelShift, ...]:
    """Return those of the changes of a series that it does not show without its newest value."""
    return tuple(
        step
        for step in found
        if all(abs(step.place - old.place) > SHORTEST or step.difference * old.difference <= 0 for old in before)
    )

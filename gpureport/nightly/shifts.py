"""Detects shifts in a figure's level that exceed its noise, over many nights."""

from dataclasses import dataclass
from itertools import pairwise
from math import erf, exp, pi, sqrt
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpureport.columns import FloatArray

SHORTEST = 3
"""Minimum number of values in a level. One or two deviating values are outliers."""
_LEFT = 0.1
"""Maximum share of a change that may remain for it to count as undone."""
_MOST_LEVELS = 256
_CLIP = 2.5
"""Number of deviations at which differences are clipped, so that outliers do not count as noise."""
_CENTRE_CLIP = 2.0
"""Number of deviations at which the values of a level are clipped to estimate its centre."""
_TO_DEVIATION = 1.4826
"""Ratio of standard deviation to median absolute deviation in a normal distribution."""
_USUAL = 0.5
_USUAL_NIGHTS = 60
"""The assumed correlation of a night with the previous one, and its weight in nights."""
_HIGHEST = 0.8
"""Maximum correlation to assume. Drift would yield a correlation of 1 and an unbounded deviation."""
_DOUBT = 0.3
"""Standard errors added to the correlation. If the sum is too low, chance looks like a change."""
_INSIDE = erf(_CLIP / sqrt(2)) - 2 * _CLIP * exp(-(_CLIP**2) / 2) / sqrt(2 * pi)
_VARIANCE_LEFT = _INSIDE + _CLIP**2 * (1 - erf(_CLIP / sqrt(2)))
"""Share of a normal distribution's variance that remains after clipping at `_CLIP`."""
FEWEST = 10
"""Minimum number of nights with a value to detect changes."""
WINDOW = 365
"""Number of most recent nights to examine."""
_PENALTY = 5.0
"""The cost of a step, in deviations."""
_LIMIT = 4.5
_LIMIT_OF_FEW = 9.0
"""A step must exceed `_LIMIT` * (1 + `_LIMIT_OF_FEW` / nights) standard errors, as a short series shows less noise.

In simulations at a correlation of 0.5, 20 of 3060 nights raise an alarm, and a limit of 4.6 detects too few steps.
"""
_APART = 2.5
_YOUNG = 2 * SHORTEST
"""In a level of fewer than `_YOUNG` nights, three nights must be at least `_APART` deviations from the next level.

A single large shock fades over the following nights, so the mean of three such nights is not a level.
"""
_LEVEL = 1.96
_LEVEL_OF_FEW = 4.0
"""Number of standard errors to each end of a 95% interval, and a term that widens it for few nights."""
_GRADUAL = 0.8
"""A change is gradual if distances from a line are below this share of those from two levels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NightNoise:
    """The variation from night to night, in which each night resembles the one before (AR(1))."""

    deviation: float
    correlation: float

    def levels(self, before: "FloatArray", after: "FloatArray") -> tuple[float, float, float]:
        """Return the levels before and after a step, and the standard error of their difference.

        Levels are fitted by generalised least squares, because similar successive nights add less information. Values
        far from the median of their level are clipped.
        """
        reach = _CENTRE_CLIP * self.deviation
        centred = [np.clip(part, np.median(part) - reach, np.median(part) + reach) for part in (before, after)]
        values = np.concatenate(centred)
        places = np.arange(len(values)) >= len(before)
        design = self._prewhiten(np.column_stack([~places, places]).astype(np.float64))
        spread = np.linalg.inv(design.T @ design)
        old, new = spread @ (design.T @ self._prewhiten(values[:, None])[:, 0])
        # deviation of the part of a value that the night before does not predict
        shock = self.deviation * sqrt(1 - self.correlation**2)
        return float(old), float(new), shock * sqrt(spread[0, 0] + spread[1, 1] - 2 * spread[0, 1])

    def _prewhiten(self, rows: "FloatArray") -> "FloatArray":
        first = sqrt(1 - self.correlation**2) * rows[:1]
        return np.concatenate([first, rows[1:] - self.correlation * rows[:-1]])


def estimate_noise(values: "FloatArray", grain: float) -> NightNoise:
    """Return the noise in a series with few or no steps; `grain` is the minimum deviation to assume.

    Differences between values one and two nights apart are unaffected by levels, and barely affected by drift.
    """
    one = _robust_deviation(np.diff(values)) ** 2
    correlation = _estimate_correlation(values, one)
    deviation = sqrt(one / (2 * (1 - correlation)))
    return NightNoise(deviation=max(deviation, grain), correlation=correlation)


def estimate_noise_about_levels(parts: "Sequence[FloatArray]", grain: float) -> NightNoise:
    """Return the noise around levels of three or more values, from each night's innovation."""
    values = np.concatenate([part - np.median(part) for part in parts])
    correlation = _estimate_correlation(values, _robust_deviation(np.diff(values)) ** 2)
    shock = _robust_deviation(values[1:] - correlation * values[:-1])
    # each fitted level has absorbed part of the noise
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
    """Return a robust standard deviation around zero, based on the mean size if most are zero."""
    sizes = np.abs(differences)
    unit = _TO_DEVIATION * float(np.median(sizes)) or sqrt(pi / 2) * float(sizes.mean())
    clipped = np.minimum(sizes, _CLIP * unit)
    return sqrt(float((clipped * clipped).mean()) / _VARIANCE_LEFT)


def fit_levels(values: "FloatArray", penalty: float) -> tuple[int, ...]:
    """Return the start of each level in the fit with the smallest sum of distances and step penalties.

    The fit is optimal among levels of at least SHORTEST values that equal a value or, in a long series, a quantile.
    Values must not be NaN.
    """
    count = len(values)
    if count < 2 * SHORTEST:
        return (0,) if count else ()
    levels = np.unique(values)
    if len(levels) > _MOST_LEVELS:
        levels = np.quantile(levels, np.linspace(0, 1, _MOST_LEVELS))
    # a row is a last level, a column its length so far (the last: any sufficient length); a cell contains the cost of
    # the best fit and the start of that level
    cost = np.full((len(levels), SHORTEST), np.inf)
    cost[:, 0] = np.abs(values[0] - levels)
    start = np.zeros(cost.shape, dtype=np.int64)
    began = [0]
    for place in range(1, count):
        stays = cost[:, -1] <= cost[:, -2]
        fresh = np.full(len(levels), cost[:, -1].min() + penalty)
        held = np.where(stays, cost[:, -1], cost[:, -2])
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
    """A change in level: the index of its first value, and the 95% interval of its size."""

    place: int
    before: float
    after: float
    low: float
    high: float
    gradual: bool

    @property
    def difference(self) -> float:
        return self.after - self.before

    def is_undone_at(self, level: float) -> bool:
        return (level - self.before) * self.difference <= _LEFT * self.difference**2


def detect_changes(
    values: "FloatArray", *, smallest: float, relative: float = 0.0, grain: float = 0.0
) -> tuple[LevelShift, ...]:
    """Return the changes in a series, earliest first; only its newest `WINDOW` nights are examined.

    Changes below `smallest`, or below the share `relative` of the previous level, are ignored. `grain` is the minimum
    night-to-night deviation to assume.
    """
    first = max(len(values) - WINDOW, 0)
    recent = values[first:]
    if len(recent) < FEWEST:
        return ()
    edges = [*fit_levels(recent, _PENALTY * estimate_noise(recent, grain).deviation), len(recent)]
    while True:
        # measure the noise again for the remaining steps, as a false step absorbs part of it
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
    # keep a level within the range of its values, so that it is exactly zero if all are
    before, after = (
        min(max(level, float(part.min())), float(part.max())) for level, part in ((before, old), (after, new))
    )
    # with few nights, the deviation itself is uncertain
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
    """Return the changes in `found` that are not in `before`, which lacked the newest value."""
    return tuple(
        step
        for step in found
        if all(abs(step.place - old.place) > SHORTEST or step.difference * old.difference <= 0 for old in before)
    )


def keep_shifts(fits: list[tuple[LevelShift, ...]]) -> tuple[LevelShift, ...]:
    """Return the newest fit (the first), or an older one that has all its shifts and more."""
    fuller = (fit for fit in fits if len(fit) > len(fits[0]) and not select_new_shifts(fits[0], fit))
    return next(fuller, fits[0])

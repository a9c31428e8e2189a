"""The noise of a figure, how much it differs between correlated nights without a change, and the levels beneath it."""

from dataclasses import dataclass
from math import erf, exp, pi, sqrt
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpureport.columns import FloatArray

SHORTEST = 3
"""Values a level lasts at least: one or two that lie apart are outliers."""

_MOST_LEVELS = 256

_REACH = 2.5
"""Differences are clipped at so many deviations, so that outliers and shifts do not count as noise."""

_CENTRE_REACH = 2.0
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

_INSIDE = erf(_REACH / sqrt(2)) - 2 * _REACH * exp(-(_REACH**2) / 2) / sqrt(2 * pi)
_VARIANCE_LEFT = _INSIDE + _REACH**2 * (1 - erf(_REACH / sqrt(2)))
"""Part of its variance that a normal distribution keeps when clipped at the reach."""


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
        values = np.concatenate([self._clip_to_median(before), self._clip_to_median(after)])
        places = np.arange(len(values)) >= len(before)
        design = self._prewhiten(np.column_stack([~places, places]).astype(np.float64))
        spread = np.linalg.inv(design.T @ design)
        old, new = spread @ (design.T @ self._prewhiten(values[:, None])[:, 0])
        # what a night adds to what it takes from the one before
        shock = self.deviation * sqrt(1 - self.correlation**2)
        return float(old), float(new), shock * sqrt(spread[0, 0] + spread[1, 1] - 2 * spread[0, 1])

    def _clip_to_median(self, values: "FloatArray") -> "FloatArray":
        median, reach = float(np.median(values)), _CENTRE_REACH * self.deviation
        return np.clip(values, median - reach, median + reach)

    def _prewhiten(self, rows: "FloatArray") -> "FloatArray":
        """Return rows less what they take from the one before, all equally uncertain."""
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
    """Return the correlation from one night to the next, whose differences have a variance of `one`."""
    two = _robust_deviation(values[2:] - values[:-2]) ** 2
    nights, worth = len(values), len(values) + _USUAL_NIGHTS
    seen = min(max(two / one - 1, 0.0), _HIGHEST) if one else _USUAL
    likely = (nights * seen + _USUAL_NIGHTS * _USUAL) / worth
    return min(likely + _DOUBT * sqrt((1 - likely * likely) / worth), _HIGHEST)


def _robust_deviation(differences: "FloatArray") -> float:
    """Return the standard deviation about zero; a mean where most differences are zero."""
    sizes = np.abs(differences)
    unit = _TO_DEVIATION * float(np.median(sizes)) or sqrt(pi / 2) * float(sizes.mean())
    clipped = np.minimum(sizes, _REACH * unit)
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

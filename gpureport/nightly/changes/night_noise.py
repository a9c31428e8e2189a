"""The noise of a figure: how much it differs between correlated nights without a change."""

from dataclasses import dataclass
from math import erf, exp, pi, sqrt
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpureport.columns import FloatArray

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


def _variance_left_by_clipping() -> float:
    """Return which part of its variance a normal distribution keeps when clipped at the reach."""
    inside = erf(_REACH / sqrt(2)) - 2 * _REACH * exp(-(_REACH**2) / 2) / sqrt(2 * pi)
    return inside + _REACH**2 * (1 - erf(_REACH / sqrt(2)))


_VARIANCE_LEFT = _variance_left_by_clipping()


@dataclass(frozen=True, slots=True, kw_only=True)
class NightNoise:
    """What varies from night to night: a process in which each night resembles the one before (AR(1)).

    Attributes:
        deviation: standard deviation, in the unit of the figure.
        correlation: of a night with the one before.
    """

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
        error = self._shock * sqrt(spread[0, 0] + spread[1, 1] - 2 * spread[0, 1])
        return float(old), float(new), error

    @property
    def _shock(self) -> float:
        """Standard deviation of what a night adds to what it takes from the one before."""
        return self.deviation * sqrt(1 - self.correlation**2)

    def _clip_to_median(self, values: "FloatArray") -> "FloatArray":
        median = float(np.median(values))
        reach = _CENTRE_REACH * self.deviation
        return np.clip(values, median - reach, median + reach)

    def _prewhiten(self, rows: "FloatArray") -> "FloatArray":
        """Return rows less what they take from the one before, all equally uncertain."""
        first = sqrt(1 - self.correlation**2) * rows[:1]
        return np.concatenate([first, rows[1:] - self.correlation * rows[:-1]])


def estimate_noise(values: "FloatArray", grain: float) -> NightNoise:
    """Return the noise of a series without steps, or with few.

    Told from differences between values one and two places apart, which know nothing of levels and little of drifts.

    Args:
        values: at least three, without NaN.
        grain: the least standard deviation to be assumed.
    """
    one = _robust_deviation(np.diff(values)) ** 2
    correlation = _estimate_correlation(values, one)
    deviation = sqrt(one / (2 * (1 - correlation)))
    return NightNoise(deviation=max(deviation, grain), correlation=correlation)


def estimate_noise_about_levels(parts: "Sequence[FloatArray]", grain: float) -> NightNoise:
    """Return the noise of a series about its levels, told from what each night adds to the one before.

    Args:
        parts: the values of each level, one level after another, three or more of each.
        grain: the least standard deviation to be assumed.
    """
    values = np.concatenate([part - np.median(part) for part in parts])
    correlation = _estimate_correlation(values, _robust_deviation(np.diff(values)) ** 2)
    shock = _robust_deviation(values[1:] - correlation * values[:-1])
    # each level has taken a part of the noise with it
    wider = sqrt(len(values) / max(len(values) - len(parts), 1))
    deviation = wider * shock / sqrt(1 - correlation**2)
    return NightNoise(deviation=max(deviation, grain), correlation=correlation)


def _estimate_correlation(values: "FloatArray", one: float) -> float:
    """Return the correlation of a night with the one before, nearer to the usual one the fewer the nights.

    Args:
        values: the series.
        one: variance of its differences from night to night.
    """
    two = _robust_deviation(values[2:] - values[:-2]) ** 2
    nights = len(values)
    seen = min(max(two / one - 1, 0.0), _HIGHEST) if one else _USUAL
    worth = nights + _USUAL_NIGHTS
    likely = (nights * seen + _USUAL_NIGHTS * _USUAL) / worth
    return min(likely + _DOUBT * sqrt((1 - likely * likely) / worth), _HIGHEST)


def _robust_deviation(differences: "FloatArray") -> float:
    """Return the standard deviation about zero; a mean where most differences are zero."""
    sizes = np.abs(differences)
    unit = _TO_DEVIATION * float(np.median(sizes)) or sqrt(pi / 2) * float(sizes.mean())
    clipped = np.minimum(sizes, _REACH * unit)
    return sqrt(float((clipped * clipped).mean()) / _VARIANCE_LEFT)

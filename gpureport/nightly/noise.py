"""How far a figure differs from night to night when nothing has changed, with nights that resemble the one before."""

from dataclasses import dataclass
from math import erf, exp, pi, sqrt
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from gpureport.columns import FloatArray

_REACH = 2.5
"""Deviations beyond which a difference counts as no larger, so that outliers and steps do not pass for noise."""

_HELD = 2.0
"""The same for values of a level whose centre is asked for."""

_TO_DEVIATION = 1.4826
"""A median absolute deviation of a normal distribution, as its standard deviation."""

_USUAL = 0.4
_USUAL_NIGHTS = 30
"""Correlation of a night with the one before that is assumed, and how many nights that assumption is worth."""

_HIGHEST = 0.8
"""Highest correlation that is believed: what drifts looks like 1, and the deviation would have no bound. Chosen, not
measured: at 0.8 it is 1.6 times what the differences from night to night show."""
_DOUBT = 0.5
"""Standard errors of the correlation that are added to it: one taken for too low makes chance pass for a change."""


def _left_of_variance() -> float:
    """Return which part of its variance a normal distribution keeps when clipped at the reach."""
    inside = erf(_REACH / sqrt(2)) - 2 * _REACH * exp(-(_REACH**2) / 2) / sqrt(2 * pi)
    return inside + _REACH**2 * (1 - erf(_REACH / sqrt(2)))


_KEPT = _left_of_variance()


@dataclass(frozen=True, slots=True, kw_only=True)
class NightNoise:
    """What varies from night to night: a process in which each night resembles the one before (AR(1)).

    Attributes:
        deviation: standard deviation, in the unit of the figure.
        correlation: of a night with the one before.
    """

    deviation: float
    correlation: float

    def error(self, nights: int) -> float:
        """Return the standard error of a mean over consecutive nights."""
        lags = np.arange(1, nights)
        alike = float(((1 - lags / nights) * self.correlation**lags).sum())
        return self.deviation * sqrt((1 + 2 * alike) / nights)

    def centre(self, values: "FloatArray") -> float:
        """Return the mean of values that share a level, those far from their median pulled in."""
        median = float(np.median(values))
        reach = _HELD * self.deviation
        return median + float(np.clip(values - median, -reach, reach).mean())


def night_noise(values: "FloatArray", grain: float) -> NightNoise:
    """Return the noise of a series without steps, or with few.

    Told from differences between values one and two places apart, which know nothing of levels and little of drifts.

    Args:
        values: at least three, without NaN.
        grain: the least standard deviation to be assumed.
    """
    one, two = _spread(np.diff(values)) ** 2, _spread(values[2:] - values[:-2]) ** 2
    nights = len(values)
    seen = min(max(two / one - 1, 0.0), _HIGHEST) if one else _USUAL
    worth = nights + _USUAL_NIGHTS
    likely = (nights * seen + _USUAL_NIGHTS * _USUAL) / worth
    correlation = min(likely + _DOUBT * sqrt((1 - likely * likely) / worth), _HIGHEST)
    deviation = sqrt(one / (2 * (1 - correlation)))
    return NightNoise(deviation=max(deviation, grain), correlation=correlation)


def _spread(differences: "FloatArray") -> float:
    """Return the standard deviation about zero; of few differences a mean, where most are exactly zero."""
    sizes = np.abs(differences)
    unit = _TO_DEVIATION * float(np.median(sizes)) or sqrt(pi / 2) * float(sizes.mean())
    clipped = np.minimum(sizes, _REACH * unit)
    return sqrt(float((clipped * clipped).mean()) / _KEPT)

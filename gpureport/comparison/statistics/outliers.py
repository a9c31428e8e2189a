"""The one value among repetitions that stands apart from all others."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev

from gpureport.comparison.statistics import quantiles
from gpureport.comparison.statistics.difference_estimate import find_rounding_error

_FEWEST = 3
"""Values without which none stands apart: of two nobody knows which."""

_CHANCE = 0.05
"""Probability that one of values which scatter by chance alone is taken to stand apart (Grubbs's test)."""

_CHANCE_WHERE_SURE = 0.001
"""The same where it is called sure: three values hardly ever suffice, five that agree do (pragmatic)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlier:
    """A value that stands apart.

    Attributes:
        place: its place among the values.
        difference: it less the mean of the others.
        is_sure: whether chance is next to excluded, so that it may be left out.
    """

    place: int
    difference: float
    is_sure: bool


def find_outlier(values: Sequence[float], least: float, finest: float = 0.0) -> Outlier | None:
    """Return the value furthest from the mean of all; None where it is not far, or the others differ as much.

    Args:
        values: one a run.
        least: difference below which none stands apart.
        finest: step in which values were written down; those that agree to the digit scatter by rounding at least.
    """
    if len(values) < _FEWEST:
        return None
    mean = fmean(values)
    place = max(range(len(values)), key=lambda each: abs(values[each] - mean))
    others = [*values[:place], *values[place + 1 :]]
    difference = values[place] - fmean(others)
    scatter = max(stdev(others), find_rounding_error(finest, [1])) * sqrt(1 + 1 / len(others))

    def is_beyond(chance: float) -> bool:
        # any of the values might have been the furthest, to either side
        limit = quantiles.student(1 - chance / (2 * len(values)), len(others) - 1)
        return abs(difference) >= max(least, limit * scatter)

    if not is_beyond(_CHANCE):
        return None
    return Outlier(place=place, difference=difference, is_sure=is_beyond(_CHANCE_WHERE_SURE))

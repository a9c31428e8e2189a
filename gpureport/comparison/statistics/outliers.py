"""The one value among repetitions that stands apart from all others."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev

from gpureport.comparison.statistics import quantiles
from gpureport.comparison.statistics.difference_estimate import LEVEL

_FEWEST = 3
"""Values without which none stands apart: of two nobody knows which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlier:
    """A value that stands apart.

    Attributes:
        place: its place among the values.
        difference: it less the mean of the others.
    """

    place: int
    difference: float


def find_outlier(values: Sequence[float], least: float) -> Outlier | None:
    """Return the value furthest from the others; None where it is not far, or chance puts one of so many as far.

    One set of equal repetitions in twenty holds such a value by chance, at most (Student's t of each against the
    others, with Bonferroni's correction for their number, as in Grubbs' test).

    Args:
        values: one a run.
        least: difference below which none stands apart.
    """
    if len(values) < _FEWEST:
        return None
    count, found = len(values), []
    deviations = quantiles.student(1 - (1 - LEVEL) / 2 / count, count - 2) * sqrt(1 + 1 / (count - 1))
    for place, value in enumerate(values):
        others = [*values[:place], *values[place + 1 :]]
        difference = value - fmean(others)
        if abs(difference) >= max(least, deviations * stdev(others)):
            found.append(Outlier(place=place, difference=difference))
    return max(found, key=lambda each: abs(each.difference), default=None)

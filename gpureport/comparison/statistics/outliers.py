"""The one value among repetitions that stands apart from all others."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

_FEWEST = 3
"""Values without which none stands apart: of two nobody knows which."""

_DEVIATIONS = 6.0
"""Standard deviations of the others by which a value stands apart (pragmatic)."""


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
    """Return the value furthest from the others; None where it is not far, or the others differ as much.

    Args:
        values: one a run.
        least: difference below which none stands apart.
    """
    if len(values) < _FEWEST:
        return None
    found = []
    for place, value in enumerate(values):
        others = [*values[:place], *values[place + 1 :]]
        difference = value - fmean(others)
        if abs(difference) >= max(least, _DEVIATIONS * stdev(others)):
            found.append(Outlier(place=place, difference=difference))
    return max(found, key=lambda each: abs(each.difference), default=None)

"""How many runs would narrow the interval of a difference between runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, sqrt

from gpureport.comparison.statistics import quantiles
from gpureport.comparison.statistics.difference_estimate import LEVEL, estimate_between_runs

MOST_RUNS = 20
"""Runs of a step beyond which nobody repeats a job for a comparison (pragmatic)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInterval:
    """The interval of a difference between runs.

    Attributes:
        counts: runs on the side that can get more, and on the other.
        half_width: half its width.
        least: half-width that no number of runs narrows, in the same unit.
    """

    counts: tuple[int, int]
    half_width: float
    least: float


def estimate_runs_for_interval(now: RunInterval, half_width: float, *, on_both: bool = False) -> int | None:
    """Return how many runs the first side needs, or both where both can get more; None above `MOST_RUNS`.

    Args:
        now: the interval.
        half_width: half of the width that is wanted.
        on_both: whether runs are added to both sides, not to the first alone.
    """
    if half_width <= 0 or now.least > half_width:
        return None
    first, other = now.counts
    unit = now.half_width / _width(first, other)
    start = max(now.counts) if on_both else first
    sides = [(runs, runs if on_both else other) for runs in range(start, MOST_RUNS + 1)]
    return next((runs for runs, beside in sides if unit * _width(runs, beside) <= half_width), None)


def _width(first: int, other: int) -> float:
    return quantiles.student((1 + LEVEL) / 2, first + other - 2) * sqrt(1 / first + 1 / other)


def estimate_interval_of_next_run(values: Sequence[float], finest: float, least: float) -> float:
    """Return the half-width of the interval by which one more run would be compared with several.

    Args:
        values: one figure a run, two or more.
        finest: step in which values were written down.
        least: half-width below which the interval does not go.
    """
    found = estimate_between_runs(values, [sum(values) / len(values)], finest, least)
    return inf if found is None else found.half_width


def find_smallest_ratio(half_width: float) -> float:
    """Return the relative change that one more run can be held to, from the half-width of its logarithm.

    Even one at the upper end of the interval is then known finely enough.
    """
    return exp(2 * half_width) - exp(half_width) if half_width < 1 else inf

"""How many more runs, or how much longer ones, would narrow the interval of a difference between runs."""

from collections.abc import Iterator, Sequence
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
        counts: runs on either side.
        half_width: half its width.
        least: half-width that no number of runs narrows, in the same unit.
        seconds: length of the shortest run.
    """

    counts: tuple[int, int]
    half_width: float
    least: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MoreData:
    """What would narrow an interval enough; either is by itself.

    Attributes:
        runs: runs that a side which grows would need; None above `MOST_RUNS`.
        seconds: length that runs would need, as many as there are; never less than they have.
    """

    runs: int | None
    seconds: float


def estimate_more_data(now: RunInterval, half_width: float, *, grows: tuple[bool, bool]) -> MoreData:
    """Return what would narrow the interval of a difference between runs.

    The scatter of runs is taken to shrink with the root of their length, as means of what varies within them do;
    what no number of runs narrows shrinks with the length itself.

    Args:
        now: the interval.
        half_width: half of the width that is wanted.
        grows: whether runs are added to the one side, and to the other; both then have as many.
    """
    if half_width <= 0:
        return MoreData(runs=None, seconds=inf)
    scatter = (now.half_width / half_width) ** 2 if now.half_width > now.least else 1.0
    return MoreData(
        runs=_count_runs(now, half_width, grows), seconds=now.seconds * max(scatter, now.least / half_width, 1.0)
    )


def _count_runs(now: RunInterval, half_width: float, grows: tuple[bool, bool]) -> int | None:
    if now.least > half_width or now.counts == (1, 1):
        # one run a side shows nothing of how far runs differ
        return None
    unit = now.half_width / _width(now.counts)
    return next((runs for runs, counts in _grow(now.counts, grows) if unit * _width(counts) <= half_width), None)


def _grow(counts: tuple[int, int], grows: tuple[bool, bool]) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield how many runs a side that grows has, and how many both have, from as many as there are."""
    fewest = max(count for count, is_growing in zip(counts, grows, strict=True) if is_growing)
    for runs in range(fewest, MOST_RUNS + 1):
        yield runs, (runs if grows[0] else counts[0], runs if grows[1] else counts[1])


def _width(counts: tuple[int, int]) -> float:
    """Return the half-width of an interval in standard deviations of runs."""
    return quantiles.student((1 + LEVEL) / 2, sum(counts) - 2) * sqrt(1 / counts[0] + 1 / counts[1])


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

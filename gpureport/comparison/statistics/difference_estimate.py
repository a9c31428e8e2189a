"""The difference between two steps with its interval, from one run each or from several."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import fsum, hypot, inf, sqrt

from gpureport.comparison.statistics import quantiles
from gpureport.comparison.statistics.mean_estimate import MeanEstimate
from gpureport.comparison.statistics.slow_changes import LONG_SECONDS

LEVEL = 0.95
"""Probability with which an interval holds the true difference."""

_POWER = 0.8
"""Probability with which a difference as large as the detectable one is shown."""

_WELCH = 3
"""Runs a side from which each side's scatter speaks for itself."""

_MOST_RUNS = 1000


class Basis(StrEnum):
    """What the uncertainty of a difference was estimated from."""

    WITHIN_RUN = "within-run"
    REPLICATES = "replicates"


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceEstimate:
    """The difference between two steps.

    Attributes:
        difference: after - before.
        basis: what its uncertainty was estimated from.
        interval: the ends of the interval that holds it at a level.
        reach: how many times half the interval a difference must measure to be shown four times in five.
        scatter: the same by the scatter within the runs alone, where `interval` also allows for changes too slow for
            short recordings; None elsewhere.
        least: half-width that no number of runs narrows.
    """

    difference: float
    basis: Basis
    interval: Callable[[float], tuple[float, float]]
    reach: float
    scatter: "DifferenceEstimate | None" = None
    least: float = 0.0

    @property
    def half_width(self) -> float:
        """Half the width of the interval at LEVEL."""
        low, high = self.interval(LEVEL)
        return (high - low) / 2

    @property
    def detectable(self) -> float:
        """Size of a difference that recordings like these would show four times in five."""
        own = self.scatter or self
        return self.half_width + own.half_width * (self.reach - 1)

    def excludes_zero(self, level: float = LEVEL) -> bool:
        """Whether zero lies outside the interval."""
        low, high = self.interval(level)
        return low > 0 or high < 0

    def convert(self, amount: Callable[[float], float]) -> "DifferenceEstimate":
        """Return the difference in another unit, to which `amount` takes it and both ends of its interval."""

        def interval(level: float) -> tuple[float, float]:
            low, high = self.interval(level)
            return amount(low), amount(high)

        return replace(
            self,
            difference=amount(self.difference),
            interval=interval,
            scatter=self.scatter and self.scatter.convert(amount),
            least=amount(self.least),
        )


def estimate_within_runs(before: MeanEstimate, after: MeanEstimate, *, allowance: float = 0.0) -> DifferenceEstimate:
    """Return the difference of one run against another, as sure as their own scatter makes it (MOVER).

    Args:
        before: mean of the earlier run.
        after: mean of the later run.
        allowance: half-width below which the interval does not go, for changes too slow for short recordings.
    """
    difference = after.mean - before.mean

    def interval(level: float) -> tuple[float, float]:
        low_before, high_before = before.interval(level)
        low_after, high_after = after.interval(level)
        below = hypot(after.mean - low_after, high_before - before.mean)
        above = hypot(high_after - after.mean, before.mean - low_before)
        return difference - below, difference + above

    degrees = min(before.between.degrees, after.between.degrees)
    found = DifferenceEstimate(difference=difference, basis=Basis.WITHIN_RUN, interval=interval, reach=_reach(degrees))
    return _widen(found, allowance) if allowance > 0 else found


def _widen(found: DifferenceEstimate, allowance: float) -> DifferenceEstimate:
    """Return a difference whose interval reaches as far as an allowance, to either side."""

    def interval(level: float) -> tuple[float, float]:
        low, high = found.interval(level)
        return min(low, found.difference - allowance), max(high, found.difference + allowance)

    return replace(found, interval=interval, scatter=found)


def estimate_between_runs(
    before: Sequence[float], after: Sequence[float], finest: float = 0.0, least: float = 0.0
) -> DifferenceEstimate | None:
    """Return the difference of the means of runs, each run one observation; None with one run on either side.

    Welch's t from three runs a side on; with fewer, both sides are taken to scatter alike, and Student's t pools them.

    Args:
        before: one figure a run.
        after: the same of the later step.
        finest: step in which values were written down; runs that agree to the digit scatter by rounding at least.
        least: half-width below which the interval does not go: what all runs of a side may be off by alike.
    """
    counts = len(before), len(after)
    if min(counts) < 1 or sum(counts) < 3:  # noqa: PLR2004 - two figures have no scatter
        return None
    means = [fsum(side) / len(side) for side in (before, after)]
    squares = [fsum((value - mean) ** 2 for value in side) for side, mean in zip((before, after), means, strict=True)]
    error, degrees = _welch(squares, counts) if min(counts) >= _WELCH else _pooled(squares, counts)
    error = max(error, find_rounding_error(finest, counts))
    difference = means[1] - means[0]

    def interval(level: float) -> tuple[float, float]:
        half = max(quantiles.student((1 + level) / 2, degrees) * error, least)
        return difference - half, difference + half

    return DifferenceEstimate(
        difference=difference, basis=Basis.REPLICATES, interval=interval, reach=_reach(degrees), least=least
    )


def find_rounding_error(finest: float, counts: Sequence[int]) -> float:
    """Return the standard error that rounding alone gives a mean, or the difference of two means.

    Args:
        finest: step in which values were written down.
        counts: how many values each mean is over.
    """
    return finest / sqrt(12) * sqrt(fsum(1 / count for count in counts))


def _welch(squares: Sequence[float], counts: Sequence[int]) -> tuple[float, float]:
    """Return the standard error of the difference and its degrees of freedom, each side's scatter its own.

    The degrees are those B. Welch gave in 1947, no more than pooled ones. The better known ones of Satterthwaite are
    too few for three runs a side: an interval of 95% holds 96.5%, and a tenth of the differences shown is lost.
    Where the means of one side alone are skewed, an interval holds 89 to 91%, by Satterthwaite's degrees 91%, and by
    medians 88%.
    """
    parts = [square / (count - 1) / count for square, count in zip(squares, counts, strict=True)]
    whole = fsum(parts)
    most = float(sum(counts) - 2)
    if whole == 0:
        return 0.0, most
    shares = [part / whole for part in parts]
    degrees = 1 / fsum(share**2 / (count + 1) for share, count in zip(shares, counts, strict=True)) - 2
    return sqrt(whole), min(degrees, most)


def _pooled(squares: Sequence[float], counts: Sequence[int]) -> tuple[float, float]:
    degrees = sum(counts) - 2
    return sqrt(fsum(squares) / degrees * (1 / counts[0] + 1 / counts[1])), float(degrees)


def _reach(degrees: float) -> float:
    return 1 + quantiles.student(_POWER, degrees) / quantiles.student((1 + LEVEL) / 2, degrees) if degrees >= 1 else inf


def estimate_seconds_needed(contrast: DifferenceEstimate, seconds: float, half_width: float) -> float:
    """Return how long each run must be for an interval of plus and minus `half_width`: it shrinks with the root."""
    if contrast.scatter is None:
        return seconds * (contrast.half_width / half_width) ** 2
    return max(LONG_SECONDS, seconds * (contrast.scatter.half_width / half_width) ** 2)


def estimate_runs_needed(before: Sequence[float], after: Sequence[float], half_width: float) -> int | None:
    """Return how many runs a side give an interval of plus and minus `half_width`; None above a thousand."""
    means = [fsum(side) / len(side) for side in (before, after)]
    squares = fsum((value - mean) ** 2 for side, mean in zip((before, after), means, strict=True) for value in side)
    spread = sqrt(squares / (len(before) + len(after) - 2))
    for runs in range(2, _MOST_RUNS + 1):
        if quantiles.student((1 + LEVEL) / 2, 2 * runs - 2) * spread * sqrt(2 / runs) <= half_width:
            return runs
    return None

"""Means of series and differences between steps, with their uncertainty.

The error of a run's mean is estimated from nearly independent batches. Rare gaps are modelled separately.
The interval of a difference combines the intervals of two single runs (MOVER), or uses the scatter of repeated runs
(Student, Welch).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from math import exp, fsum, hypot, inf, sqrt
from statistics import fmean, stdev

import numpy as np

from gpureport.columns import BoolArray, FloatArray

LEVEL = 0.95
FEWEST_BATCHES, _MOST_BATCHES = 6, 30
_MANY_GAPS = 20  # Minimum number of gaps for batches to represent them well enough.
# With twice this many samples or more, neighbours are averaged, as transforming all samples would be slow.
_LONG = 16_384
_POWER, _SURE, _NONE = 0.8, 0.99865, 1e-24
Ends = tuple[float, float]


@cache
def student(share: float, degrees: float) -> float:
    from scipy import special

    return float(special.stdtrit(degrees, share))


def two_sided(level: float, degrees: float) -> float:
    return student((1 + level) / 2, degrees) if degrees >= 1 else inf


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanEstimate:
    mean: float
    error: float
    degrees: int  # Zero if there are too few samples.
    drop: float = 0.0  # The mean outside gaps minus the mean within gaps.
    gaps: tuple[float, ...] = ()  # Lengths of gaps as shares of time, if modelled separately.
    seen: int = 0  # Number of gaps, however modelled.

    def interval(self, level: float) -> Ends:
        """Return the confidence interval for the mean. MOVER combines the errors from batches and gaps."""
        half = two_sided(level, self.degrees) * self.error if self.degrees else inf
        less = more = 0.0
        if self.gaps:
            share, (low, high) = fsum(self.gaps), find_gap_share_interval(self.gaps, level)
            less, more = sorted((self.drop * (share - high), self.drop * (share - low)))
        return self.mean - hypot(half, less), self.mean + hypot(half, more)


def batch_means(values: FloatArray, finest: float = 0.0) -> MeanEstimate:
    """Return the mean of samples in time order, without NaN. `finest` is the rounding step."""
    count = len(values)
    if count < FEWEST_BATCHES:
        return MeanEstimate(mean=float(values.mean()) if count else float("nan"), error=inf, degrees=0)
    batches = int(np.clip(count // find_batch_length(values), FEWEST_BATCHES, _MOST_BATCHES))
    length = count // batches
    means = values[count - batches * length :].reshape(batches, length).mean(axis=1)
    error = max(float(means.std(ddof=1)) / sqrt(batches), finest / sqrt(12))
    return MeanEstimate(mean=float(values.mean()), error=error, degrees=batches - 1)


def estimate_mean(values: FloatArray, idle: BoolArray, finest: float = 0.0) -> MeanEstimate:
    # batches do not show how rare gaps are; gaps occur at random and have random lengths, so the time lost to them is a
    # compound Poisson sum
    edges = np.flatnonzero(np.diff(np.concatenate([[False], idle, [False]]).astype(np.int8)))
    lengths = edges[1::2] - edges[::2]
    if not 0 < len(lengths) < _MANY_GAPS or idle.all():
        return replace(batch_means(values, finest), seen=len(lengths))
    between = batch_means(values[~idle], finest)
    return replace(
        between,
        mean=float(values.mean()),
        drop=between.mean - float(values[idle].mean()),
        gaps=tuple((lengths / len(values)).tolist()),
        seen=len(lengths),
    )


def find_gap_share_interval(gaps: Sequence[float], level: float) -> Ends:
    """Return the confidence interval for the share of time lost to a few gaps (Fay and Feuer, 1997)."""
    from scipy import special

    tail, total, squares = (1 - level) / 2, fsum(gaps), fsum(gap**2 for gap in gaps)
    more, wider = total + max(gaps), squares + max(gaps) ** 2
    low = squares / total * special.gammaincinv(total**2 / squares, tail)
    return float(low), min(float(wider / more * special.gammaincinv(more**2 / wider, 1 - tail)), 1.0)


def find_autocovariance(values: FloatArray) -> FloatArray:
    count = len(values)
    spectrum = np.fft.rfft(values - values.mean(), 1 << (2 * count - 1).bit_length())
    return np.asarray(np.fft.irfft(np.abs(spectrum) ** 2)[:count] / count, dtype=np.float64)


def find_correlation_time(covariance: FloatArray) -> float:
    """Return the autocorrelation time in samples, summed over lags up to five times as long (Sokal, 1989)."""
    if covariance[0] < _NONE:
        return 1.0
    times = 1 + 2 * np.cumsum(covariance[1:] / covariance[0])
    spanned = np.flatnonzero(np.arange(1, len(covariance)) >= 5 * times)
    return max(1.0, float(times[spanned[0]] if len(spanned) else times.max()))


def find_block_length(covariance: FloatArray) -> float:
    """Return the block length for the circular block bootstrap (Politis and White, 2004; corrected 2009)."""
    count = len(covariance)
    if count < 10 or covariance[0] < _NONE:  # noqa: PLR2004 - fewer lags do not show where correlation ends
        return 1.0
    in_row = max(5, int(np.ceil(np.sqrt(np.log10(count)))))
    longest = min(int(np.ceil(np.sqrt(count))) + in_row, count - 1)
    quiet = np.abs(covariance[1 : longest + 1] / covariance[0]) < 2 * np.sqrt(np.log10(count) / count)
    calm = np.flatnonzero(np.convolve(quiet, np.ones(in_row), "valid") >= in_row if longest >= in_row else [])
    loud = np.flatnonzero(~quiet)
    end = int(calm[0]) if len(calm) else int(loud[-1]) + 1 if len(loud) else 1
    last = min(2 * max(end, 1), longest)
    lags = np.arange(1, last + 1)
    weighted = np.minimum(1.0, 2 * (1 - lags / last)) * covariance[1 : last + 1]
    spread, slope = covariance[0] + 2 * float(weighted.sum()), 2 * float((lags * weighted).sum())
    length = (1.5 * slope**2 / spread**2 * count) ** (1 / 3) if spread else 1.0
    return float(np.clip(length, 1.0, np.ceil(min(3 * np.sqrt(count), count / 3))))


def find_batch_length(values: FloatArray) -> float:
    """Return the batch length: the longer of Politis and White's block length and four correlation times."""
    every = -(-len(values) // _LONG) if len(values) >= 2 * _LONG else 1
    if every > 1:
        # averaging neighbours keeps long correlations; along short rows, `mean` would take three times as long
        values = np.einsum("ij->i", values[: len(values) // every * every].reshape(-1, every)) / every
    covariance = find_autocovariance(values)
    return every * max(find_block_length(covariance), 4 * find_correlation_time(covariance))


def count_unsettled(values: FloatArray) -> int:
    """Return how many samples at the beginning are unsettled (MSER-5; White, Cobb and Spratt, 2000)."""
    # MSER-5 also cuts a beginning that is merely noisier than the rest, so a cut is made only if the parts' means
    # differ by three standard errors. The values must not contain gaps, as MSER-5 would cut all up to the last gap
    count = len(values) // 5
    if count < 10:  # noqa: PLR2004 - with fewer batches, nothing is cut
        return 0
    means = values[: count * 5].reshape(count, 5).mean(axis=1)
    means -= means.mean()
    left = np.arange(count, 0, -1)
    sums, squares = (np.cumsum(each[::-1])[::-1] for each in (means, means**2))
    cut = int(np.argmin(((squares - sums**2 / left) / left**2)[: count // 2 + 1])) * 5
    if cut == 0:
        return 0
    rest = batch_means(values[cut:])
    # the beginning is as correlated as the rest, so the variance of its mean is inversely proportional to its length
    limit = student(_SURE, rest.degrees) * rest.error * sqrt(1 + (len(values) - cut) / cut)
    return cut if abs(float(values[:cut].mean()) - rest.mean) > limit else 0


class Basis(StrEnum):
    WITHIN_RUN = "within-run"
    REPLICATES = "replicates"


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceEstimate:
    """`change` is after minus before, on the scale of the estimate."""

    change: float
    basis: Basis
    ends: Callable[[float], Ends] = field(repr=False)  # the interval at a level, from scatter alone
    degrees: float
    floor: float = 0.0  # Minimum half-width, for slow changes that short runs miss or an error common to all.
    ratio_of: float | None = None  # The earlier value, if the scale is logarithmic.

    @property
    def difference(self) -> float:
        return self._amount(self.change)

    def interval(self, level: float = LEVEL) -> Ends:
        low, high = self.ends(level)
        return self._amount(min(low, self.change - self.floor)), self._amount(max(high, self.change + self.floor))

    @property
    def half_width(self) -> float:
        low, high = self.interval()
        return (high - low) / 2

    @property
    def scatter(self) -> float:
        low, high = map(self._amount, self.ends(LEVEL))
        return (high - low) / 2

    @property
    def least(self) -> float:
        """The smallest half-width that more runs can achieve."""
        return self._amount(self.floor)

    @property
    def detectable(self) -> float:
        """The size of a difference that recordings like these would detect four times out of five."""
        reach = student(_POWER, self.degrees) / two_sided(LEVEL, self.degrees) if self.degrees >= 1 else inf
        return self.half_width + self.scatter * reach

    def excludes_zero(self, level: float = LEVEL) -> bool:
        return excludes_zero(self.interval(level))

    def _amount(self, change: float) -> float:
        return change if self.ratio_of is None else self.ratio_of * (exp(min(change, 50.0)) - 1)


def excludes_zero(ends: Ends) -> bool:
    return ends[0] > 0 or ends[1] < 0


def estimate_within_runs(
    before: MeanEstimate, after: MeanEstimate, floor: float = 0.0, ratio_of: float | None = None
) -> DifferenceEstimate:
    """Return the difference between two runs, based on the scatter within each (MOVER; Zou and Donner, 2008)."""
    change, degrees = after.mean - before.mean, min(before.degrees, after.degrees)

    def ends(level: float) -> Ends:
        (low_before, high_before), (low_after, high_after) = before.interval(level), after.interval(level)
        below = hypot(after.mean - low_after, high_before - before.mean)
        above = hypot(high_after - after.mean, before.mean - low_before)
        return change - below, change + above

    return DifferenceEstimate(
        change=change, basis=Basis.WITHIN_RUN, ends=ends, degrees=degrees, floor=floor, ratio_of=ratio_of
    )


def estimate_from_scatter(
    change: float, error: float, degrees: float, least: float = 0.0, ratio_of: float | None = None
) -> DifferenceEstimate:
    """Return a difference with a Student's t interval, whose half-width is at least `least`."""

    def ends(level: float) -> Ends:
        half = two_sided(level, degrees) * error
        return change - half, change + half

    return DifferenceEstimate(
        change=change, basis=Basis.REPLICATES, ends=ends, degrees=degrees, floor=least, ratio_of=ratio_of
    )


def estimate_between_runs(
    before: Sequence[float],
    after: Sequence[float],
    finest: float = 0.0,
    least: float = 0.0,
    ratio_of: float | None = None,
) -> DifferenceEstimate | None:
    # Welch's t is used for three or more runs per side; for fewer, Student's t, which assumes equal scatter and pools
    # both sides. The degrees of freedom are those of Welch (1947), but at most the pooled ones; Satterthwaite's formula
    # gives too few for three runs per side. Runs that agree still scatter by `finest`, the rounding step of values
    counts = len(before), len(after)
    if min(counts) < 1 or sum(counts) < 3:  # noqa: PLR2004 - two values have no scatter
        return None
    means = [fsum(side) / len(side) for side in (before, after)]
    squares = [fsum((value - mean) ** 2 for value in side) for side, mean in zip((before, after), means, strict=True)]
    degrees = float(sum(counts) - 2)
    variance = fsum(squares) / degrees * (1 / counts[0] + 1 / counts[1])
    if min(counts) >= 3:  # noqa: PLR2004 - each side has its own scatter
        parts = [square / (count - 1) / count for square, count in zip(squares, counts, strict=True)]
        if variance := fsum(parts):
            shares = ((part / variance) ** 2 / (count + 1) for part, count in zip(parts, counts, strict=True))
            degrees = min(1 / fsum(shares) - 2, degrees)
    error = max(sqrt(variance), _find_rounding_error(finest, counts))
    return estimate_from_scatter(means[1] - means[0], error, degrees, least, ratio_of)


def _find_rounding_error(finest: float, counts: Sequence[int]) -> float:
    return finest / sqrt(12) * sqrt(fsum(1 / count for count in counts))


def estimate_mean_of_runs(values: Sequence[float], finest: float = 0.0, least: float = 0.0) -> tuple[float, Ends]:
    count = len(values)
    error = max(stdev(values) / sqrt(count), _find_rounding_error(finest, [count]))
    return fmean(values), estimate_from_scatter(fmean(values), error, count - 1, least).interval()


def find_holm_levels(family: Sequence[DifferenceEstimate | None]) -> list[float]:
    """Return the level of each test, so that the chance of a false claim is at most 5% (Holm, 1979)."""
    left, levels = list(range(len(family))), [LEVEL] * len(family)
    while left:
        level = 1 - (1 - LEVEL) / len(left)
        shown = [place for place in left if (found := family[place]) is not None and found.excludes_zero(level)]
        for place in shown or left:
            levels[place] = level
        if not shown:
            break
        left = [place for place in left if place not in shown]
    return levels

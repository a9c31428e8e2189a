"""The mean of one run with its interval: what lies between gaps by batch means, a few gaps by counting them."""

from dataclasses import dataclass

import numpy as np

from gpureport.columns import BoolArray, FloatArray
from gpureport.comparison.statistics.batch_means import BatchMeans, batch_means
from gpureport.comparison.statistics.gap_count import GapCount, gap_lengths

MANY_GAPS = 20
"""Gaps from which a mean over time holds enough of them to speak for itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanEstimate:
    """The mean of a run.

    Attributes:
        mean: over all samples.
        between: mean and error of what lies between gaps; of all samples where gaps are not counted.
        drop: how much lower the mean is within gaps than between them; negative where it is higher.
        gaps: counted gaps; None where there are none, or enough for batch means.
        seen: how many gaps there are.
    """

    mean: float
    between: BatchMeans
    drop: float = 0.0
    gaps: GapCount | None = None
    seen: int = 0

    def interval(self, level: float) -> tuple[float, float]:
        """Return the ends of the interval that holds the mean at a level such as 0.95.

        The two parts are joined by the method of variance estimates recovery (MOVER; G. Zou and A. Donner, 2008).
        """
        half = self.between.half_width(level)
        if self.gaps is None:
            return self.mean - half, self.mean + half
        low, high = self.gaps.interval(level)
        effects = sorted((self.drop * (self.gaps.share - high), self.drop * (self.gaps.share - low)))
        return self.mean - float(np.hypot(half, effects[0])), self.mean + float(np.hypot(half, effects[1]))


def mean_estimate(values: FloatArray, idle: BoolArray, finest: float = 0.0) -> MeanEstimate:
    """Return the mean of a series and how sure it is.

    Args:
        values: samples of equal length in the order of time, none of them NaN.
        idle: which of them lie in a gap.
        finest: step in which values were written down.
    """
    lengths = gap_lengths(idle)
    if not 0 < len(lengths) < MANY_GAPS or idle.all():
        every = batch_means(values, finest)
        return MeanEstimate(mean=every.mean, between=every, seen=len(lengths))
    between = batch_means(values[~idle], finest)
    return MeanEstimate(
        mean=float(values.mean()),
        between=between,
        drop=between.mean - float(values[idle].mean()),
        gaps=GapCount(lengths=tuple((lengths / len(values)).tolist())),
        seen=len(lengths),
    )

"""Means of a sampled quantity over buckets of time, each value weighted with the time it stands for."""

from dataclasses import dataclass

import numpy as np

from gpureport.columns import FloatArray

SHORTEST = 1e-3
"""Share of a bucket below which values do not cover it; the same in seconds is the shortest axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CumulativeSums:
    """Seconds that values stand for, and their sum weighted with them, up to each bound of their stretches."""

    bounds: FloatArray
    seconds: FloatArray
    total: FloatArray

    def means(self, edges: FloatArray) -> FloatArray:
        """Return the mean of each bucket, weighted with the time each value stands for; NaN where none lies in it.

        The rising edges of the buckets cut through values where they must, so that shares stay true and the sampling
        does not beat against the buckets.
        """
        if not len(self.bounds):
            return np.full(len(edges) - 1, np.nan)
        covered = np.diff(np.interp(edges, self.bounds, self.seconds))
        total = np.diff(np.interp(edges, self.bounds, self.total))
        empty = covered <= SHORTEST * np.diff(edges)
        means: FloatArray = np.where(empty, np.nan, total / np.where(empty, 1.0, covered))
        return means


def accumulate(starts: FloatArray, ends: FloatArray, values: FloatArray) -> CumulativeSums:
    """Return values added up over time, each over its stretch; these are in order and apart. NaN is no value."""
    known = ~np.isnan(values)
    bounds = np.maximum.accumulate(np.column_stack([starts[known], ends[known]]).ravel())
    seconds = bounds[1::2] - bounds[::2]
    sums = np.zeros((2, 2 * len(seconds)))
    sums[:, 1::2] = np.cumsum([seconds, seconds * values[known]], axis=1)
    sums[:, 2::2] = sums[:, 1:-1:2]
    return CumulativeSums(bounds=bounds, seconds=sums[0], total=sums[1])

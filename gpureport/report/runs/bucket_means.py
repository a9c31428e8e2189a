"""Means of a sampled quantity over buckets of time, each value weighted with the time it stands for."""

from dataclasses import dataclass

import numpy as np

from gpureport.columns import FloatArray

SHORTEST = 1e-3
"""Share of a bucket below which values do not cover it; the same in seconds is the shortest axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CumulativeSums:
    """Cumulative sums over time, which give the mean of any stretch.

    Attributes:
        bounds: where the stretch that a value stands for begins, and where it ends, one after the other.
        seconds: time that values stand for up to each bound.
        total: sum of the values up to there, each times the seconds it stands for.
    """

    bounds: FloatArray
    seconds: FloatArray
    total: FloatArray

    def means(self, edges: FloatArray) -> FloatArray:
        """Return the mean of each bucket, weighted with the time each value stands for; NaN where none lies in it.

        The bucket's edges cut through values where they must, so that shares stay true and the sampling does not beat
        against the buckets.

        Args:
            edges: edges of the buckets, rising.
        """
        if not len(self.bounds):
            return np.full(len(edges) - 1, np.nan)
        covered = np.diff(np.interp(edges, self.bounds, self.seconds))
        empty = covered <= SHORTEST * np.diff(edges)
        total = np.diff(np.interp(edges, self.bounds, self.total))
        means: FloatArray = np.where(empty, np.nan, total / np.where(empty, 1.0, covered))
        return means


def accumulate(starts: FloatArray, ends: FloatArray, values: FloatArray) -> CumulativeSums:
    """Return values added up over time.

    Args:
        starts: where the stretch each value stands for begins, rising.
        ends: where it ends; stretches do not overlap.
        values: one value a stretch, NaN where there is none.
    """
    known = ~np.isnan(values)
    bounds = np.maximum.accumulate(np.column_stack([starts[known], ends[known]]).ravel())
    seconds = bounds[1::2] - bounds[::2]
    return CumulativeSums(bounds=bounds, seconds=_running_sums(seconds), total=_running_sums(seconds * values[known]))


def _running_sums(amounts: FloatArray) -> FloatArray:
    sums = np.zeros(2 * len(amounts))
    np.cumsum(amounts, out=sums[1::2])
    sums[2::2] = sums[1:-1:2]
    return sums

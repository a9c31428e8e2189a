"""Samples aggregated over buckets of equal length: smallest, mean and largest value of each."""

from dataclasses import dataclass

import numpy as np

from gpureport.columns import FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeBuckets:
    """The buckets of a device that hold a sample.

    Attributes:
        times: middle of each, in microseconds.
        first: row of the first sample of each.
    """

    times: IntArray
    first: IntArray

    def aggregate(self, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return smallest, mean and largest value of each bucket, NaN where it holds no value."""
        if not len(self.first):
            return values, values, values
        known = ~np.isnan(values)
        count = np.add.reduceat(known, self.first, dtype=np.int64)
        empty = count == 0
        low = np.minimum.reduceat(np.where(known, values, np.inf), self.first)
        high = np.maximum.reduceat(np.where(known, values, -np.inf), self.first)
        total = np.add.reduceat(np.where(known, values, 0.0), self.first)
        low[empty] = high[empty] = total[empty] = np.nan
        return low, total / np.maximum(count, 1), high


def group_into_buckets(times: IntArray, started: int, seconds: int) -> TimeBuckets:
    """Return the buckets that samples fall into.

    Args:
        times: microseconds, never decreasing.
        started: where the first bucket begins.
        seconds: length of a bucket.
    """
    length = seconds * 1_000_000
    places = (times - started) // length
    first = np.flatnonzero(np.diff(places, prepend=places[:1] - 1))
    return TimeBuckets(times=started + places[first] * length + length // 2, first=first)

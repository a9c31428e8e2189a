"""Means of a device's values over many stretches of time at once, by sums up to each row."""

import numpy as np

from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.columns import FloatArray, IntArray


def find_stretch_rows(series: DeviceSeries, starts: IntArray, ends: IntArray) -> tuple[IntArray, IntArray]:
    """Return the first and the past-the-end row whose values speak of times within each stretch [start, end)."""
    first, stop = (np.searchsorted(series.times, edges + series.shift) for edges in (starts, ends))
    return first, stop


def average_stretches(values: FloatArray, first: IntArray, stop: IntArray) -> FloatArray:
    """Return the mean of the values of each stretch of rows, those that are NaN left out; NaN where all are.

    The sums of metrics are exact as float64: they hold 24 bits each, and all of one metric are of like size.
    """
    known = ~np.isnan(values)
    sums = np.concatenate([[0.0], np.cumsum(np.where(known, values, 0.0))])
    counts = np.concatenate([[0], np.cumsum(known)])
    count = counts[stop] - counts[first]
    return np.where(count > 0, (sums[stop] - sums[first]) / np.maximum(count, 1), np.nan)

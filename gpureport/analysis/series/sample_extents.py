"""How much of the time around it each sample owns."""

import numpy as np

from gpureport import columns, sampling_rate
from gpureport.columns import IntArray
from gpureport.data_quality import gap_seconds
from gpureport.sampling_rate import SamplingRate

_LONGEST_SIDE_INTERVALS = 1.25


def measure_sample_extents(
    times: IntArray, rate: SamplingRate, *, bridged: bool = False
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return the microseconds each sample owns before and after it, the rows after gaps, and those after pauses.

    Args:
        times: stamps in microseconds, never decreasing.
        rate: how far apart they are.
        bridged: whether samples own all time between them except log gaps, however far apart they are.
    """
    steps = np.diff(times)
    edge, cap, longest = (columns.repeat_value(limit, len(steps)) for limit in _compute_limits(rate.interval))
    if rate.slow:
        edge, cap, longest = edge.copy(), cap.copy(), longest.copy()
    for stretch in rate.slow:
        rows = sampling_rate.distances_inside(times, stretch)
        edge[rows], cap[rows], longest[rows] = _compute_limits(stretch.interval)
    far = np.flatnonzero(steps > 2 * cap)
    wide = steps[far] > longest[far]
    gaps, pauses = far[wide], far[~wide]
    half = steps >> 1
    left, right = np.append(edge[:1], steps - half), np.append(half, edge[-1:])
    if not bridged:
        right[pauses] = left[pauses + 1] = cap[pauses]
    right[gaps] = left[gaps + 1] = edge[gaps]
    return left, right, gaps + 1, pauses + 1


def _compute_limits(interval: float) -> tuple[np.int64, np.int64, np.float64]:
    """Return the microseconds a sample owns beside a gap, those it owns at most, and those of the longest pause."""
    edge, cap = (np.int64(np.rint(interval * share * 1e6)) for share in (0.5, _LONGEST_SIDE_INTERVALS))
    return edge, cap, np.float64(gap_seconds(interval) * 1e6)

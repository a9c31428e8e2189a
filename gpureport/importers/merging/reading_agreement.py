"""Whether two recorders of different kinds watched the same GPU, judged by means over some seconds.

Tools average over different windows and round their stamps to a second, so that single readings need not agree.
Measured on ten recorders of one GPU: none was taken for that of another.
"""

from dataclasses import dataclass

import numpy as np

from gpureport.columns import FloatArray, IntArray
from gpureport.importers.recorders.same_gpu import Agreement, Series

_BIN_INTERVALS = 5
"""Intervals of the coarser log that a mean covers (pragmatic)."""
_SHORTEST_BIN = 5_000_000
_BINS = 6
"""Means of both that a judgement needs (pragmatic)."""


@dataclass(frozen=True, slots=True)
class _Tolerance:
    """How far means of one GPU may lie apart, in the base unit and as a share of the level (pragmatic)."""

    step: float
    share: float = 0.0


_TOLERANCES = {
    "gpu_utilization_ratio": _Tolerance(0.1),
    "gpu_power_watts": _Tolerance(5.0, 0.08),
    "gpu_temperature_celsius": _Tolerance(2.5),
    "gpu_memory_used_bytes": _Tolerance(2.0**30, 0.02),
}


def compare_readings(one: Series, other: Series, pace: int) -> Agreement:
    """Return whether two series are of one GPU; DIFFERENT where any metric lies apart.

    Args:
        one: readings of one recorder.
        other: readings of another.
        pace: interval of the coarser one, in microseconds.
    """
    width = max(_BIN_INTERVALS * pace, _SHORTEST_BIN)
    found = Agreement.UNKNOWN
    for name, tolerance in _TOLERANCES.items():
        mine, theirs = _shared_means(one, other, name, width)
        if len(mine) < _BINS:
            continue
        apart = float(np.abs(mine - theirs).mean())
        if apart > tolerance.step + tolerance.share * float(np.abs(mine).mean()):
            return Agreement.DIFFERENT
        found = Agreement.SAME
    return found


def _shared_means(one: Series, other: Series, name: str, width: int) -> tuple[FloatArray, FloatArray]:
    """Return the means of both series over the stretches in which both have readings."""
    (bins, mine), (others, theirs) = (_means(each.times, each.values[name], width) for each in (one, other))
    _, here, there = np.intersect1d(bins, others, assume_unique=True, return_indices=True)
    return mine[here], theirs[there]


def _means(times: IntArray, values: FloatArray, width: int) -> tuple[IntArray, FloatArray]:
    known = ~np.isnan(values)
    bins, places = np.unique(times[known] // width, return_inverse=True)
    counts = np.bincount(places, minlength=len(bins))
    return bins, np.bincount(places, weights=values[known], minlength=len(bins)) / np.maximum(counts, 1)

"""Times of samples in few bytes: deltas in tenths of the sampling interval, as variable-length integers."""

import numpy as np

from gpureport.columns import IntArray

_TENTHS = 10
_BITS = 7


def time_unit(interval: float) -> int:
    """Return the microseconds that times are rounded to, from the median seconds between samples."""
    return max(round(interval * 1e6 / _TENTHS), 1)


def time_deltas(times: IntArray, unit: int) -> IntArray:
    """Return the time between neighbouring samples in units. Times are rounded first, so that errors do not add up.

    Args:
        times: microseconds, never decreasing.
        unit: microseconds of a unit.
    """
    places = np.rint((times - times[:1]) / unit).astype(np.int64)
    return np.diff(places, prepend=0)


def encode_varints(numbers: IntArray) -> bytes:
    """Return non-negative integers as LEB128: seven bits a byte, lowest first, the eighth set on all but the last."""
    lengths = np.ones(len(numbers), dtype=np.int64)
    for shift in range(_BITS, 63, _BITS):
        lengths += numbers >> shift > 0
    ends = np.cumsum(lengths)
    out = np.zeros(int(ends[-1]) if len(ends) else 0, dtype=np.uint8)
    for place in range(int(lengths.max(initial=0))):
        rows = lengths > place
        more = lengths[rows] > place + 1
        out[ends[rows] - lengths[rows] + place] = (numbers[rows] >> (_BITS * place) & 127) | (more << _BITS)
    return out.tobytes()

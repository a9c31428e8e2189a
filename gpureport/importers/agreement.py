"""Whether two processes that wrote to one log watched the same GPU, judged by what they read at the same time."""

import numpy as np

from gpureport.columns import FloatArray, IntArray

SLOW = ("gpu_temperature_celsius", "gpu_memory_used_bytes")
"""Columns that hardly change between two reads of one GPU some tenths of a second apart."""
_PAIRS = 30
_TEMPERATURES = 5
_CLOSE_DEGREES = 1.0
_CLOSE_BYTES = 64 * 2**20
_SHARE = 0.95
"""Nodes of one job warm up alike, but not to the degree all the time (pragmatic)."""


def same_gpus(
    times: IntArray, devices: IntArray, writers: IntArray, slow: tuple[FloatArray, FloatArray], pace: int
) -> bool:
    """Return whether every device is plainly one GPU for all its writers.

    Args:
        times: time of each row, in microseconds.
        devices: device of each row.
        writers: writer of each row, from 1; less for a row that is left out.
        slow: values of the columns of SLOW, NaN where there is none.
        pace: interval of the log, in microseconds.
    """
    verdicts = []
    for device in np.unique(devices).tolist():
        rows = np.flatnonzero((devices == device) & (writers > 0))
        rows = rows[np.argsort(times[rows], kind="stable")]
        first, *others = np.unique(writers[rows]).tolist() or [0]
        base = rows[writers[rows] == first]
        for writer in others:
            other = rows[writers[rows] == writer]
            near = base[np.clip(np.searchsorted(times[base], times[other]), 0, len(base) - 1)]
            close = np.abs(times[near] - times[other]) <= pace
            verdicts.append(_agree([column[near[close]] for column in slow], [column[other[close]] for column in slow]))
    return bool(verdicts) and all(verdicts)


def _agree(ones: list[FloatArray], others: list[FloatArray]) -> bool:
    """Return whether temperatures vary and match to the degree, and memory too where both hold it."""
    degrees, read = ones[0] - others[0], ~np.isnan(ones[0] - others[0])
    if read.sum() < _PAIRS or len(np.unique(ones[0][read])) < _TEMPERATURES:
        return False
    amounts = (ones[1] - others[1])[~np.isnan(ones[1] - others[1])]
    warm = float((np.abs(degrees[read]) <= _CLOSE_DEGREES).mean())
    full = float((np.abs(amounts) <= _CLOSE_BYTES).mean()) if len(amounts) else 1.0
    return min(warm, full) >= _SHARE

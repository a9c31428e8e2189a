"""Rows of one device that come from two GPUs in turn, which no column tells apart."""

import numpy as np

from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.columns import FloatArray

JUMPS = {
    "gpu_memory_used_bytes": 4 * 2.0**20,  # By; memory is taken in pages of 2 MiB
    "gpu_temperature_celsius": 6.0,  # Cel; no GPU warms or cools this much from row to row
}
"""Metrics that never jump to and fro on one GPU, and the least jump where rows of two GPUs alternate."""

RETURN_SHARE = 0.25
"""Share of the jump by which a value may differ from the one two rows before (pragmatic: values of each drift)."""

ROWS = 30.0  # rows; no cache is emptied and filled again as often in step with a recorder
"""Rows in a row that must jump to and fro."""


def has_alternating_rows(series: DeviceSeries) -> bool:
    """Return whether rows come from two GPUs in turn: two machines or recorders wrote one log."""
    return any(
        _jumps_to_and_fro(series.known_values(name), limit)
        for name, limit in JUMPS.items()
        if len(series) >= ROWS and series.is_recorded(name)
    )


def _jumps_to_and_fro(known: FloatArray, least: float) -> bool:
    jump = np.abs(known[1:-1] - known[:-2])
    back = np.abs(known[2:] - known[:-2])
    first, stop = intervals.find_runs((jump >= least) & (back <= RETURN_SHARE * jump))
    return bool((stop - first >= ROWS).any())

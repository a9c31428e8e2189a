"""Power readings that cannot be right: energy and all else from power is left out then."""

from typing import TYPE_CHECKING

import numpy as np

from gpureport.columns import FloatArray

if TYPE_CHECKING:
    from gpureport.analysis.series.device_series import DeviceSeries

POWER_METRICS = ("gpu_power_watts", "gpu_power_instant_watts")
"""Metrics that are checked."""
HIGHEST_POWER = 2000.0  # W; twice what the largest board of the GPU table draws, a B200 with 1,000 W
"""Mean power that no board draws: in milliwatts, or a sum over boards."""
_LOWEST = 0.5  # W; a laptop's GPU at rest draws more
_UNCHANGED = 120.0  # s; sensors report anew several times a second
_WARMED = 5.0  # Cel; less is rounding, or the room
_SWING = 0.5  # of utilisation, without the lowest and the highest tenth: a GPU at work draws several times as much


def explain_implausible_power(series: "DeviceSeries", power: FloatArray) -> str:
    """Return what is wrong with a GPU's power, as words after `The power of GPU 0`; empty if nothing is.

    Args:
        series: the GPU.
        power: its readings as recorded, with NaN for none.
    """
    known = ~np.isnan(power)
    if not known.any():
        return ""
    weights = series.seconds[known]
    mean = float(np.average(power[known], weights=weights if weights.sum() > 0 else None))
    degrees, used = (series.known_values(name) for name in ("gpu_temperature_celsius", "gpu_utilization_ratio"))
    low, high = np.quantile(used, [0.1, 0.9]) if len(used) else (0.0, 0.0)
    first, warmed = power[known][0], float(np.ptp(degrees)) if len(degrees) else 0.0
    # a board at rest, or at its limit, may stay at one whole watt while its temperature changes
    stands = (power[known] == first).all() and weights.sum() >= _UNCHANGED and warmed >= _WARMED
    if stands and (first % 1 or high - low >= _SWING):
        return f"stays at {first:.4g} W to the last digit while temperature changes by {warmed:.0f} °C"
    if mean > HIGHEST_POWER:
        return f"averages {mean:,.0f} W, more than any board draws"
    return f"averages {mean:.2g} W, less than any GPU draws" if mean < _LOWEST else ""

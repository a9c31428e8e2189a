"""Power readings that cannot be right: energy and every other figure from power is left out then."""

from typing import TYPE_CHECKING

import numpy as np

from gpureport.columns import BoolArray, FloatArray

if TYPE_CHECKING:
    from gpureport.analysis.series.device_series import DeviceSeries

HIGHEST_POWER = 2000.0  # W; twice what the largest board of the GPU table draws, a B200 with 1,000 W
"""Mean power that no board draws: the unit is milliwatts, or several boards are summed."""
ABOVE_LIMIT = 2.0  # limits that users raise stay below 1.4 of what a board ships with
"""Mean power as a multiple of the highest limit known that no board reaches."""
UNCHANGED_TIME = 120.0  # s; sensors report anew several times a second
"""Time over which power must not change at all, to the last digit."""
UTILISATION_SWING = 0.5  # from a waiting GPU to one at work, which draws several times as much
"""By how much utilisation must differ meanwhile, without the lowest and the highest tenth."""
TEMPERATURE_CHANGE, TEMPERATURE_SWING = 3.0, 10.0  # Cel; a degree or two is rounding, or the room
"""By how much temperature must change meanwhile; by the second where utilisation was not recorded."""

_UTILISATION, _TEMPERATURE = "gpu_utilization_ratio", "gpu_temperature_celsius"
_LIMITS = ("gpu_power_limit_watts", "gpu_power_limit_requested_watts", "gpu_power_limit_default_watts")
POWER_METRICS = ("gpu_power_watts", "gpu_power_instant_watts")
"""Metrics that are checked."""


def explain_implausible_power(series: "DeviceSeries", power: FloatArray) -> str:
    """Return what is wrong with the power of a GPU, in words that follow `The power of GPU 0`; empty where nothing is.

    Args:
        series: the GPU.
        power: its readings as recorded, NaN where there is none.
    """
    known = ~np.isnan(power)
    if not known.any():
        return ""
    low, high = float(power[known].min()), float(power[known].max())
    if low == high and _is_load_changing(series, known):
        return f"stays at {low:.4g} W to the last digit while temperature changes"
    weights = series.seconds[known]
    owned = weights.sum()
    mean = float((power[known] * weights).sum() / owned if owned > 0 else power[known].mean())
    limit = _find_highest_limit(series)
    if mean > HIGHEST_POWER:
        return f"averages {mean:,.0f} W, more than any board draws"
    if limit is not None and mean > ABOVE_LIMIT * limit:
        return f"averages {mean:,.0f} W, although it is limited to {limit:,.0f} W"
    return ""


def _is_load_changing(series: "DeviceSeries", known: BoolArray) -> bool:
    """Return whether utilisation and temperature change while there are readings of power."""
    used, degrees = series.known_values(_UTILISATION), series.known_values(_TEMPERATURE)
    if not len(degrees) or float(series.seconds[known].sum()) < UNCHANGED_TIME:
        return False
    if not len(used):
        return bool(np.ptp(degrees) >= TEMPERATURE_SWING)
    low, high = np.quantile(used, [0.1, 0.9])
    return bool(np.ptp(degrees) >= TEMPERATURE_CHANGE and high - low >= UTILISATION_SWING)


def _find_highest_limit(series: "DeviceSeries") -> float | None:
    """Return the highest power limit in the log, None without one; boards of one name may differ."""
    device = series.device
    logged = [float(series.known_values(name).max()) for name in _LIMITS if series.is_recorded(name)]
    stated = (device.power_limit_watts, device.power_limit_default_watts)
    return max([*logged, *(value for value in stated if value is not None)], default=None)

"""Energy as the integral of sampled power."""

from dataclasses import dataclass

import numpy as np

from gpureport.analysis.series.device_series import DeviceSeries, measure_sample_extents

_POWER = "gpu_power_watts"


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerIntegral:
    """The energy of one GPU by its power samples.

    Attributes:
        joules: the integral.
        seconds: time of the run it covers.
        bridged_seconds: the part of that time that no sample owns; a straight line between its neighbours bridges it.
    """

    joules: float
    seconds: float
    bridged_seconds: float


def integrate_power(series: DeviceSeries) -> PowerIntegral | None:
    """Return the integral of power; None without power readings, or if no sample owns time.

    Power is continuous, so a trapezoid bridges pauses that are too short for a log gap. Each sample counts half-way
    to its neighbours, and half an interval beside a log gap. The time that the first and the last sample own outside
    the run does not count: in 32 s sampled every 10 s it would add a third.
    """
    if not series.is_recorded(_POWER) or series.observed_seconds <= 0:
        return None
    power, owned, inside = series.values(_POWER), series.seconds, series.seconds_in_run
    if series.is_complete(_POWER) and not len(series.pause_rows):
        return PowerIntegral(joules=float(power @ inside), seconds=float(inside.sum()), bridged_seconds=0.0)
    rows = np.flatnonzero(series.known_rows(_POWER))
    if len(rows) == 1:
        # a single value has no neighbour to bridge to
        return _integrate_one_sample(float(power[rows[0]]), float(inside[rows[0]]))
    left, right, _, _ = measure_sample_extents(series.times[rows], series.sampling_rate, bridged=True)
    widths = (left + right) / 1e6
    beyond = (owned - inside)[rows]
    # never negative: where rows without a value lie between, a sample may own more than its two sides
    bridged = max(float(widths.sum() - owned[rows].sum()), 0.0)
    return PowerIntegral(
        joules=float(power[rows] @ np.maximum(widths - beyond, 0)),
        seconds=float(inside[rows].sum()) + bridged,
        bridged_seconds=bridged,
    )


def _integrate_one_sample(watts: float, seconds: float) -> PowerIntegral | None:
    return PowerIntegral(joules=watts * seconds, seconds=seconds, bridged_seconds=0.0) if seconds > 0 else None

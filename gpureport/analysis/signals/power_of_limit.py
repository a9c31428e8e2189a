"""Power of one GPU as a share of what its limit leaves above idle."""

from dataclasses import dataclass

import numpy as np

from gpureport import gpus
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.signals.clock_signals import find_default_limit, read_power_limit
from gpureport.columns import FloatArray
from gpureport.findings import Provenance, Threshold

POWER = "gpu_power_watts"
_IDLE_QUANTILE = 0.02  # of the run, taken for idle: a single lowest reading may be an accident
_IDLE_SHARE = 0.12  # idle power, of the limit, at most, where a run was never idle and the table knows no better
_HELD_SECONDS = 30.0  # for which a power must be reached to stand for the limit: a spike shows no level
AT_WORK: Threshold = Threshold(
    value=0.4,
    unit="1",
    provenance=Provenance.PRAGMATIC,
    source="share of the way from idle power to the limit; an idle L4 kept at high clocks reaches 0.34",
)
"""Mean power above which a GPU works, whatever its utilisation says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerOfLimit:
    """Power per row above idle as a share of what the limit leaves, NaN if null; and its basis.

    The limit is its median; its source is empty for a logged limit in force.
    """

    share: FloatArray
    idle_watts: float
    limit_watts: float
    source: str


def build_power_of_limit(series: DeviceSeries, *, at_least: bool = False) -> PowerOfLimit | None:
    """Return the scale of one GPU; None without power or limit.

    With `at_least`, the power reached for half a minute stands for an unknown limit: the true share is lower. Idle
    power is the lowest of the run or of the GPU table, whichever is less.
    """
    if not series.is_recorded(POWER):
        return None
    power, known = series.values(POWER), series.known_values(POWER)
    limit, source = read_power_limit(series), ""
    if np.isnan(limit).all():
        watts, whose = find_default_limit(series)
        rows = round(_HELD_SECONDS / series.interval) if at_least and series.interval > 0 else 0
        source = f"the default limit {whose}"
        if np.isnan(watts) and 0 < rows <= len(known):
            watts, source = float(np.sort(known)[-rows]), "the highest power recorded, which the limit is not below"
        limit = np.full(len(series), watts)
    median_limit = float(np.nanmedian(limit)) if not np.isnan(limit).all() else float("nan")
    gpu = gpus.find_gpu(series.device.model)
    most_idle = gpu.power_idle_watts.value if gpu and gpu.power_idle_watts else _IDLE_SHARE * median_limit
    idle = min(float(np.quantile(known, _IDLE_QUANTILE)), most_idle)
    room = np.where(np.isnan(limit), median_limit, limit) - idle
    # false, too, where no limit is known
    if not (room > 0).all():
        return None
    return PowerOfLimit(share=(power - idle) / room, idle_watts=idle, limit_watts=median_limit, source=source)


def draws_working_power(series: DeviceSeries, limit: Threshold = AT_WORK) -> bool:
    """Return whether a GPU drew the power of work in the mean; False if unknown."""
    scale = build_power_of_limit(series)
    return scale is not None and float(np.nanmean(scale.share)) > limit.value

"""Limits of a GPU that its readings are held against: of temperature, of power, and its installed memory."""

from collections.abc import Iterator
from math import isfinite

import numpy as np

from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.statistics import memory_reserved
from gpureport.analysis.signals.clock_signals import gather_signals
from gpureport.report.model.time_charts import MetricLimit
from gpureport.report.wording import display


def find_limits(series: DeviceSeries) -> tuple[MetricLimit, ...]:
    """Return the limits that are known of a GPU."""
    return tuple(limit for limit in _list_limits(series) if isfinite(limit.value))


def _list_limits(series: DeviceSeries) -> Iterator[MetricLimit]:
    signals = gather_signals(series)
    hottest = signals.temperature_limit
    yield MetricLimit(metric="gpu_temperature_celsius", value=hottest, text=f"limit {_whole(hottest, '°C')}")
    known = signals.power_limit[~np.isnan(signals.power_limit)]
    most = float(np.median(known)) if len(known) else float("nan")
    yield MetricLimit(metric="gpu_power_watts", value=most, text=f"limit {_whole(most, 'W')}")
    usable, text = find_usable_memory(series)
    yield MetricLimit(metric="gpu_memory_used_bytes", value=usable, text=text)


def find_usable_memory(series: DeviceSeries) -> tuple[float, str]:
    """Return what a job can get of the memory of a GPU in bytes, and in words; NaN where it is not known."""
    installed = float(series.device.memory_total_bytes or "nan")
    reserved = memory_reserved(series)
    usable = installed - reserved
    return usable, f"{display.memory(usable)} {'usable' if reserved else 'installed'}"


def _whole(value: float, unit: str) -> str:
    return f"{value:,.0f}{display.GAP}{unit}"

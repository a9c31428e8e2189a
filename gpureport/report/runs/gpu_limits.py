"""Limits of a GPU that its readings are held against: of temperature, of power, and its installed memory."""

from math import isfinite

import numpy as np

from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.statistics import memory_reserved
from gpureport.analysis.signals.clock_signals import gather_signals
from gpureport.report.model.time_charts import MetricLimit
from gpureport.report.wording import display


def find_limits(series: DeviceSeries) -> tuple[MetricLimit, ...]:
    """Return the limits that are known of a GPU; of memory what a job can get of it."""
    signals, reserved = gather_signals(series), memory_reserved(series)
    known = signals.power_limit[~np.isnan(signals.power_limit)]
    hottest, most = signals.temperature_limit, float(np.median(known)) if len(known) else float("nan")
    usable = float(series.device.memory_total_bytes or "nan") - reserved
    memory = f"{display.memory(usable)} {'usable' if reserved else 'installed'}" if isfinite(usable) else ""
    limits = (
        ("gpu_temperature_celsius", hottest, f"limit {hottest:,.0f}{display.GAP}°C"),
        ("gpu_power_watts", most, f"limit {most:,.0f}{display.GAP}W"),
        ("gpu_memory_used_bytes", usable, memory),
    )
    return tuple(MetricLimit(metric=name, value=value, text=text) for name, value, text in limits if isfinite(value))

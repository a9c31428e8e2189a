"""Figures of each device over the whole recording, weighted by the time each sample owns."""

from dataclasses import dataclass

import numpy as np

from gpureport import columns
from gpureport.analysis.results import DeviceStatistics, MetricSummary
from gpureport.analysis.series import counter_increments, energy
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.columns import FloatArray
from gpureport.metrics import BY_NAME, Metric, MetricKind

IDLE_RATIO = 0.05
"""Utilisation at or below which a GPU counts as idle."""

BELOW = (0.25, 0.5, 0.7)
"""Limits of utilisation below which the share of time is reported."""

_QUANTILES = np.array([0.05, 0.5, 0.95])
_QUANTUM = {"1": 0.01, "By": 2.0**20, "By/s": 1e6, "W": 0.01, "Cel": 1.0, "Hz": 1e6, "": 1.0, "s": 1e-3, "J": 1e-3}
_OFF_GRID = 1e-6
"""Share by which a value may differ from a step that logs are written in: float32 holds no more digits of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _TimeAtLevels:
    """Values in rising order, each with time spent at it."""

    values: FloatArray
    seconds: FloatArray


def _sort_levels(values: FloatArray, seconds: FloatArray) -> _TimeAtLevels:
    order = values.argsort()
    return _TimeAtLevels(values=values[order], seconds=seconds[order])


def _compute_quantiles(levels: _TimeAtLevels, quantum: float) -> list[float]:
    """Return the lowest values not exceeded for at least 5, 50 and 95% of the time."""
    passed = levels.seconds.cumsum(dtype=np.float64)
    found = levels.values[passed.searchsorted(_QUANTILES * passed[-1] * (1 - 1e-9))]
    steps = np.rint(found / quantum) * quantum
    quantiles: list[float] = np.where(np.abs(found - steps) <= _OFF_GRID * np.abs(found), steps, found).tolist()
    return quantiles


def summarise_metric(series: DeviceSeries, metric: Metric) -> MetricSummary | None:
    """Return the summary of one metric, None where it holds no value.

    A state is summarised as a ratio: its mean is the share of time it was on.
    """
    if not series.is_recorded(metric.name):
        return None
    rows = series.find_known_rows(metric.name)
    values, seconds = series.values(metric.name)[rows], series.seconds[rows]
    changes = 0 if columns.is_constant(values) else int(np.count_nonzero(values[1:] != values[:-1]))
    observed = float(seconds.sum())
    weights = seconds if observed > 0 else np.ones(len(values))
    ends = values[:1] if columns.is_constant(values) else values
    least, most = float(ends.min()), float(ends.max())
    # most bits are never set
    whole, weighted = observed or float(len(values)), float((values * weights).sum()) if least or most else 0.0
    if metric.dtype == "bool":
        levels = _TimeAtLevels(values=np.array([0.0, 1.0]), seconds=np.array([whole - weighted, weighted]))
    else:
        levels = _sort_levels(values, weights)
    p5, p50, p95 = _compute_quantiles(levels, _QUANTUM[metric.unit])
    limits = BELOW if metric.name == "gpu_utilization_ratio" else ()
    return MetricSummary(
        metric=metric.name,
        mean=weighted / whole,
        sample_mean=float(values.sum() / len(values)) if least or most else 0.0,
        p5=p5,
        p50=p50,
        p95=p95,
        max=most,
        min=least,
        seconds=observed,
        samples=len(values),
        changes=changes,
        repeated_ratio=None if len(values) == 1 else 1 - changes / (len(values) - 1),
        refresh_seconds=None,
        effective_samples=max(series.count_readings(metric.name, rows), changes + 1),
        below=tuple((limit, float(weights[np.flatnonzero(values < limit - 1e-6)].sum()) / whole) for limit in limits),
    )


def _measure_idle_seconds(series: DeviceSeries) -> float | None:
    if not series.is_recorded("gpu_utilization_ratio"):
        return None
    idle = series.values("gpu_utilization_ratio") <= IDLE_RATIO + 1e-6
    return float(series.seconds[np.flatnonzero(idle)].sum())


def memory_peak(series: DeviceSeries) -> int | None:
    """Return the highest memory in use in bytes, None when it was not recorded."""
    return _find_highest_bytes(series, "gpu_memory_used_bytes")


def _find_highest_bytes(series: DeviceSeries, metric: str) -> int | None:
    return int(series.known_values(metric).max()) if series.is_recorded(metric) else None


def memory_total(series: DeviceSeries) -> int | None:
    """Return the memory installed in bytes, from the device or its series."""
    if series.device.memory_total_bytes is not None:
        return series.device.memory_total_bytes
    return _find_highest_bytes(series, "gpu_memory_total_bytes")


def memory_reserved(series: DeviceSeries) -> int:
    """Return the memory the driver keeps in bytes, from the device or its series.

    It is 0 where nothing is known of it, and where a log says that the driver keeps all there is, which cannot be.
    """
    kept = series.device.memory_reserved_bytes
    if kept is None:
        kept = _find_highest_bytes(series, "gpu_memory_reserved_bytes") or 0
    total = memory_total(series)
    return kept if total is None or kept < total else 0


def compute_statistics(series: DeviceSeries, sampled: DeviceSeries | None = None) -> DeviceStatistics:
    """Return the figures of one device; counters are left out, since their level means nothing.

    The headroom is of the memory installed, so that runs under drivers that do and do not list reserved memory
    compare; the rules on memory judge by what a job can get, installed less reserved.

    Args:
        series: the samples of jobs.
        sampled: all of its samples where there are others, over which the driver's counter of energy is read.
    """
    metrics = (BY_NAME[name] for name in series.rows.column_names if name in BY_NAME)
    summaries = (
        summarise_metric(series, metric)
        for metric in metrics
        if metric.kind is not MetricKind.COUNTER and metric.name != "clock_event_unknown_bits"
    )
    peak, total = memory_peak(series), memory_total(series)
    drawn = energy.integrate_power(series)
    return DeviceStatistics(
        device=series.device.id,
        metrics=tuple(summary for summary in summaries if summary is not None),
        idle_seconds=_measure_idle_seconds(series),
        memory_peak_bytes=peak,
        memory_headroom_ratio=None if peak is None or not total else 1 - peak / total,
        energy_joules=drawn.joules if drawn else None,
        energy_seconds=drawn.seconds if drawn else None,
        energy_bridged_seconds=drawn.bridged_seconds if drawn else None,
        observed_seconds=series.observed_seconds,
        energy_counter=counter_increments.read_counter(
            sampled or series, "gpu_energy_joules_total", counter_increments.HIGHEST_WATTS
        ),
        power_doubt=series.explain_implausibility("gpu_power_watts"),
    )

"""Figures of each device over the whole recording, weighted by the time each sample owns."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from gpureport import columns
from gpureport.analysis.results import DeviceStatistics, MetricSummary
from gpureport.analysis.series import counter_increments, energy
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.columns import FloatArray, IntArray
from gpureport.metrics import BY_NAME, Metric, MetricKind

IDLE_RATIO = 0.05
"""Utilisation at or below which a GPU counts as idle."""

BELOW = (0.25, 0.5, 0.7)
"""Limits of utilisation below which the share of time is reported."""

_QUANTILES = (0.05, 0.5, 0.95)
_QUANTUM = {"1": 0.01, "By": 2.0**20, "By/s": 1e6, "W": 0.01, "Cel": 1.0, "Hz": 1e6, "": 1.0, "s": 1e-3, "J": 1e-3}
_MOST_LEVELS = 1_000_000
_FEW_STEPS = 2_000
"""Steps of a grid that are counted sooner than those among them that occur are found."""
_OFF_GRID = 1e-2
"""Steps by which a value may lie beside the grid: float32 holds no more digits of it."""
_BLOCK = 16_384
"""Rows looked at together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _TimeAtLevels:
    """Distinct values in rising order, each with the time spent at it."""

    values: FloatArray
    seconds: FloatArray


def _sort_levels(values: FloatArray, seconds: FloatArray, quantum: float, ends: tuple[float, float]) -> _TimeAtLevels:
    """Sort by counting where the values lie on the grid logs are written in, by comparison otherwise."""
    least, most = ends
    if least == most:
        values, seconds = values[:1], seconds.sum(keepdims=True)
    low = np.rint(least / quantum)
    if np.rint(most / quantum) - low < _MOST_LEVELS:
        places = _place_on_grid(values, quantum, low)
        if places is not None:
            steps, places = _list_steps(places)
            weights = np.bincount(places, weights=seconds)
            return _TimeAtLevels(values=(steps + low) * quantum, seconds=np.asarray(weights, dtype=np.float64))
    order = np.argsort(values)
    return _TimeAtLevels(values=values[order], seconds=seconds[order])


def _list_steps(places: IntArray) -> tuple[IntArray, IntArray]:
    """Return steps of a grid in rising order, and which of them each place is; of few places those that occur."""
    count = int(places.max()) + 1
    if count <= max(_FEW_STEPS, len(places)):
        return np.arange(count), places
    steps, numbers = np.unique(places, return_inverse=True)
    return steps, numbers


def _place_on_grid(values: FloatArray, quantum: float, low: float) -> IntArray | None:
    """Return the steps from the lowest of a grid to each value, None where the values do not lie on it.

    Rows are taken in blocks that the cache of the processor holds.
    """
    places = np.empty(len(values), dtype=np.int64)
    for begin in range(0, len(values), _BLOCK):
        steps = values[begin : begin + _BLOCK] / quantum
        whole = np.rint(steps)
        steps -= whole
        if max(steps.max(), -steps.min()) >= _OFF_GRID:
            return None
        whole -= low
        places[begin : begin + _BLOCK] = whole
    return places


def _compute_quantiles(levels: _TimeAtLevels) -> list[float]:
    """Return the lowest values not exceeded for at least 5, 50 and 95% of the time."""
    passed = np.cumsum(levels.seconds)
    places = np.searchsorted(passed, np.array(_QUANTILES) * passed[-1] * (1 - 1e-12))
    return [float(levels.values[place]) for place in np.minimum(places, len(passed) - 1)]


def summarise_metric(series: DeviceSeries, metric: Metric) -> MetricSummary | None:
    """Return the summary of one metric, None where it holds no value.

    A state is summarised as a ratio: its mean is the share of time it was on.
    """
    if not series.is_recorded(metric.name):
        return None
    values, seconds = series.values(metric.name), series.seconds
    refresh = series.refresh(metric.name)
    if series.is_complete(metric.name):
        effective = series.count_readings(metric.name, slice(None))
    else:
        rows = np.flatnonzero(series.known_rows(metric.name))
        effective = series.count_readings(metric.name, rows)
        values, seconds = values[rows], seconds[rows]
    weights = seconds if seconds.sum() > 0 else np.ones(len(values))
    ends = values[:1] if columns.is_constant(values) else values
    least, most = float(ends.min()), float(ends.max())
    # most bits are never set
    whole, weighted = float(weights.sum()), float((values * weights).sum()) if least or most else 0.0
    if series.rows.schema.field(metric.name).type == pa.bool_():
        levels = _TimeAtLevels(values=np.array([0.0, 1.0]), seconds=np.array([whole - weighted, weighted]))
    else:
        levels = _sort_levels(values, weights, _QUANTUM[metric.unit], (least, most))
    p5, p50, p95 = _compute_quantiles(levels)
    limits = BELOW if metric.name == "gpu_utilization_ratio" else ()
    return MetricSummary(
        metric=metric.name,
        mean=weighted / whole,
        sample_mean=float(values.mean()) if least or most else 0.0,
        p5=p5,
        p50=p50,
        p95=p95,
        max=most,
        min=least,
        seconds=float(seconds.sum()),
        samples=refresh.rows,
        changes=refresh.changes,
        repeated_ratio=refresh.repeated_ratio,
        refresh_seconds=refresh.seconds,
        effective_samples=max(effective, refresh.changes + 1),
        below=tuple((limit, float(weights[np.flatnonzero(values < limit - 1e-6)].sum()) / whole) for limit in limits),
    )


def _measure_idle_seconds(series: DeviceSeries) -> float | None:
    if not series.is_recorded("gpu_utilization_ratio"):
        return None
    idle = series.values("gpu_utilization_ratio") <= IDLE_RATIO + 1e-6
    return float(series.seconds[np.flatnonzero(idle)].sum())


def memory_peak(series: DeviceSeries) -> int | None:
    """Return the highest memory in use in bytes, None when it was not recorded."""
    used = series.values("gpu_memory_used_bytes")
    return int(np.nanmax(used)) if series.is_recorded("gpu_memory_used_bytes") else None


def memory_total(series: DeviceSeries) -> int | None:
    """Return the memory installed in bytes, from the device or its series."""
    if series.device.memory_total_bytes is not None:
        return series.device.memory_total_bytes
    total = series.values("gpu_memory_total_bytes")
    return int(np.nanmax(total)) if series.is_recorded("gpu_memory_total_bytes") else None


def memory_reserved(series: DeviceSeries) -> int:
    """Return the memory the driver keeps in bytes, from the device or its series.

    It is 0 where nothing is known of it, and where a log says that the driver keeps all there is, which cannot be.
    """
    kept = series.device.memory_reserved_bytes
    if kept is None:
        reserved = series.values("gpu_memory_reserved_bytes")
        kept = int(np.nanmax(reserved)) if series.is_recorded("gpu_memory_reserved_bytes") else 0
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
        observed_seconds=float(series.seconds.sum()),
        energy_counter=counter_increments.read_counter(
            sampled or series, "gpu_energy_joules_total", counter_increments.HIGHEST_WATTS
        ),
        power_doubt=series.explain_implausibility("gpu_power_watts"),
    )

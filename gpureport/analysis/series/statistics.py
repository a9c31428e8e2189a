"""Figures of each device over the recording, weighted by the time of each sample."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpureport.analysis.names import MEMORY, POWER, UTILISATION
from gpureport.analysis.results import CounterReading, DeviceStatistics, MetricSummary
from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import HIGHEST_POWER, DeviceSeries, measure_sample_extents
from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.metrics import BY_NAME, Metric, MetricKind

IDLE_RATIO = 0.05  # utilisation at or below which a GPU counts as idle

BELOW = (0.25, 0.5, 0.7)  # limits of utilisation below which the share of time is reported

_QUANTILES = np.array([0.05, 0.5, 0.95])
_QUANTUM = {"1": 0.01, "By": 2.0**20, "By/s": 1e6, "W": 0.01, "Cel": 1.0, "Hz": 1e6, "": 1.0, "s": 1e-3, "J": 1e-3}
_OFF_GRID = 1e-6
"""Share by which a value may differ from a logged step: float32 holds no more digits."""


_READ_DELAY_SECONDS = 1.0
"""Seconds by which a counter, read later, may run ahead of its row's stamp."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterIncrements:
    """The largest increment of some counters per step between rows that hold all of them; 0 if unknown."""

    rows: IntArray
    times: IntArray
    amounts: FloatArray
    in_gap: BoolArray
    reading: CounterReading


def measure_increments(series: DeviceSeries, metrics: Sequence[str], most: float) -> CounterIncrements | None:
    """Return the increments of counters of one GPU, None without two rows that hold all of them.

    A counter that falls was reset: its new value counts, and the increment before is unknown. Increments no GPU can
    reach, faster than `most` in their unit per second, are left out.
    """
    values = np.stack([series.values(metric) for metric in metrics])
    rows = np.flatnonzero(~np.isnan(values).any(axis=0)).astype(np.int64)
    if len(rows) < 2:  # noqa: PLR2004 - a step has two ends
        return None
    recorded, times = values[:, rows], series.times[rows]
    steps, seconds = np.diff(recorded, axis=1), np.diff(times) / 1e6
    has_fallen = steps < 0
    increments = np.where(has_fallen, recorded[:, 1:], steps)
    possible = increments <= most * (seconds + _READ_DELAY_SECONDS)
    amounts = np.where(possible, increments, 0.0).max(axis=0)
    in_gap = intervals.overlap_seconds(times[:-1], times[1:], intervals.to_spans(series.gaps)) > 0
    reading = CounterReading(
        total=float(amounts.sum()),
        in_gaps=float(amounts[in_gap].sum()),
        seconds=float(seconds.sum()),
        restarts=int(has_fallen.sum()),
        impossible=int((~possible & ~has_fallen).sum()),
    )
    return CounterIncrements(rows=rows, times=times, amounts=amounts, in_gap=in_gap, reading=reading)


def read_counter(series: DeviceSeries, metric: str, most: float) -> CounterReading | None:
    steps = measure_increments(series, [metric], most) if series.is_recorded(metric) else None
    return steps.reading if steps else None


def _compute_quantiles(values: FloatArray, seconds: FloatArray, quantum: float) -> list[float]:
    """Return the lowest values not exceeded for 5, 50 and 95% of the time."""
    order = values.argsort()
    passed = seconds[order].cumsum(dtype=np.float64)
    found = values[order[passed.searchsorted(_QUANTILES * passed[-1] * (1 - 1e-9))]]
    steps = np.rint(found / quantum) * quantum
    quantiles: list[float] = np.where(np.abs(found - steps) <= _OFF_GRID * np.abs(found), steps, found).tolist()
    return quantiles


def _summarise(series: DeviceSeries, metric: Metric) -> MetricSummary:
    rows = series.find_known_rows(metric.name)
    values, seconds = series.values(metric.name)[rows], series.seconds[rows]
    observed = float(seconds.sum())
    weights = seconds if observed > 0 else np.ones(len(values))
    whole = observed or float(len(values))
    weighted = float((values * weights).sum()) if values.any() else 0.0
    if metric.dtype == "bool":
        levels = np.array([0.0, 1.0]), np.array([whole - weighted, weighted])
    else:
        levels = values, weights
    p5, p50, p95 = _compute_quantiles(*levels, _QUANTUM[metric.unit])
    limits = BELOW if metric.name == UTILISATION else ()
    return MetricSummary(
        metric=metric.name,
        mean=weighted / whole,
        sample_mean=float(values.sum() / len(values)),
        p5=p5,
        p50=p50,
        p95=p95,
        max=float(values.max()),
        min=float(values.min()),
        seconds=observed,
        samples=len(values),
        effective_samples=len(values),
        below=tuple((limit, float(weights[np.flatnonzero(values < limit - 1e-6)].sum()) / whole) for limit in limits),
    )


def memory_peak(series: DeviceSeries, metric: str = MEMORY) -> int | None:
    """Return the highest memory in use in bytes, None if not recorded."""
    return int(series.known_values(metric).max()) if series.is_recorded(metric) else None


def memory_total(series: DeviceSeries) -> int | None:
    """Return the memory installed in bytes, from the device or its series."""
    known = series.device.memory_total_bytes
    return memory_peak(series, "gpu_memory_total_bytes") if known is None else known


def memory_reserved(series: DeviceSeries) -> int:
    """Return the memory the driver keeps in bytes; 0 if unknown, or logged as all of it."""
    kept, total = series.device.memory_reserved_bytes, memory_total(series)
    if kept is None:
        kept = memory_peak(series, "gpu_memory_reserved_bytes") or 0
    return kept if total is None or kept < total else 0


def _integrate_power(series: DeviceSeries) -> tuple[float, float, float] | tuple[None, None, None]:
    """Return energy in joules, the seconds of the run behind it, and those that no sample owns.

    Power is continuous, so a straight line bridges pauses too short for a log gap. Each sample counts half-way to its
    neighbours, and half an interval beside a log gap. Time outside the run does not count: of 32 s sampled every 10 s
    it would add a third.
    """
    rows = np.flatnonzero(series.known_rows(POWER))
    power, owned, inside = series.values(POWER)[rows], series.seconds[rows], series.seconds_in_run[rows]
    if not len(rows) or series.observed_seconds <= 0 or (len(rows) == 1 and inside[0] <= 0):
        return None, None, None
    widths = owned
    # a single value has no neighbour to bridge to
    if len(rows) > 1 and (len(rows) < len(series) or len(series.pause_rows)):
        left, right, _, _ = measure_sample_extents(series.times[rows], series.sampling_rate, bridged=True)
        widths = (left + right) / 1e6
    # between rows without a value a sample may own more than its two sides
    bridged = max(float(widths.sum() - owned.sum()), 0.0)
    joules = float((power * np.maximum(widths - owned + inside, 0)).sum())
    return joules, float(inside.sum()) + bridged, bridged


def compute_statistics(series: DeviceSeries, sampled: DeviceSeries | None = None) -> DeviceStatistics:
    """Return the figures of one device, without counters, whose level means nothing.

    The headroom is of the memory installed, so that runs whose drivers list reserved memory compare with others; the
    rules on memory judge by installed less reserved. `sampled` are all samples where some are outside jobs: the
    driver's counter of energy is read over them.
    """
    metrics = [BY_NAME[name] for name in series.rows.column_names if name in BY_NAME and series.is_recorded(name)]
    left_out = {"clock_event_unknown_bits"} | {each.name for each in metrics if each.kind is MetricKind.COUNTER}
    peak, total = memory_peak(series), memory_total(series)
    joules, seconds, bridged = _integrate_power(series)
    idle = np.flatnonzero(series.values(UTILISATION) <= IDLE_RATIO + 1e-6)
    return DeviceStatistics(
        device=series.device.id,
        metrics=tuple(_summarise(series, metric) for metric in metrics if metric.name not in left_out),
        idle_seconds=float(series.seconds[idle].sum()) if series.is_recorded(UTILISATION) else None,
        memory_peak_bytes=peak,
        memory_headroom_ratio=None if peak is None or not total else 1 - peak / total,
        energy_joules=joules,
        energy_seconds=seconds,
        energy_bridged_seconds=bridged,
        observed_seconds=series.observed_seconds,
        energy_counter=read_counter(sampled or series, "gpu_energy_joules_total", HIGHEST_POWER),
        power_doubt=series.explain_implausibility(POWER),
    )

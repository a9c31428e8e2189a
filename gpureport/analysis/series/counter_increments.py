"""Increments of the driver's counters from reading to reading."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpureport.analysis.results import CounterReading
from gpureport.analysis.series import implausible_power, intervals
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.columns import BoolArray, FloatArray, IntArray

_READ_DELAY_SECONDS = 1.0
"""Seconds by which a counter, read later, may run ahead of its row's stamp."""
HIGHEST_WATTS = implausible_power.HIGHEST_POWER
"""No board draws more power, so no energy counter rises faster."""


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
    """Return the increment of one counter over the recording, None unless read twice."""
    steps = measure_increments(series, [metric], most) if series.is_recorded(metric) else None
    return steps.reading if steps else None

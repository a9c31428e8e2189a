"""Increments of the driver's counters from reading to reading."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpureport.analysis.results import CounterReading
from gpureport.analysis.series import implausible_power, intervals
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.columns import BoolArray, FloatArray, IntArray

_READ_DELAY_SECONDS = 1.0
"""Seconds by which a counter may run ahead of the stamp of its row, since it is read later."""
HIGHEST_WATTS = implausible_power.HIGHEST_POWER
"""No board draws more power, so no energy counter rises faster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterIncrements:
    """Increments of counters in each step between two rows that hold all of them.

    A counter that falls was reset: its new value counts, and the increment before the reset is unknown. Increments
    that no GPU can reach are left out.

    Attributes:
        rows: rows that hold a value, one more than there are steps.
        times: stamps of these rows in microseconds.
        amounts: increments in the unit of the counters, shape (counters, steps); 0 where unknown.
        restarts: how often a counter was reset.
        impossible: increments that were left out.
        in_gap: steps that lie across a log gap.
    """

    rows: IntArray
    times: IntArray
    amounts: FloatArray
    restarts: int
    impossible: int
    in_gap: BoolArray

    @property
    def seconds(self) -> FloatArray:
        """Length of each step."""
        return np.diff(self.times) / 1e6

    def to_reading(self) -> CounterReading:
        """Return the figures of a single counter."""
        (amounts,) = self.amounts
        return CounterReading(
            total=float(amounts.sum()),
            in_gaps=float(amounts[self.in_gap].sum()),
            seconds=float(self.seconds.sum()),
            restarts=self.restarts,
            impossible=self.impossible,
        )


def measure_increments(series: DeviceSeries, metrics: Sequence[str], most: float) -> CounterIncrements | None:
    """Return the increments of counters of one GPU, None with fewer than two rows that hold all of them.

    Args:
        series: the GPU's samples.
        metrics: counters.
        most: the fastest they can rise, in their unit a second.
    """
    values = np.stack([series.values(metric) for metric in metrics])
    rows = np.flatnonzero(~np.isnan(values).any(axis=0)).astype(np.int64)
    if len(rows) < 2:  # noqa: PLR2004 - a step has two ends
        return None
    recorded, times = values[:, rows], series.times[rows]
    steps = np.diff(recorded, axis=1)
    has_fallen = steps < 0
    increments = np.where(has_fallen, recorded[:, 1:], steps)
    possible = increments <= most * (np.diff(times) / 1e6 + _READ_DELAY_SECONDS)
    gaps = intervals.to_spans(series.gaps)
    return CounterIncrements(
        rows=rows,
        times=times,
        amounts=np.where(possible, increments, 0.0),
        restarts=int(has_fallen.sum()),
        impossible=int((~possible & ~has_fallen).sum()),
        in_gap=intervals.overlap_seconds(times[:-1], times[1:], gaps) > 0,
    )


def read_counter(series: DeviceSeries, metric: str, most: float) -> CounterReading | None:
    """Return the increment of one counter over the recording, None unless it was read twice."""
    increments = measure_increments(series, [metric], most) if series.is_recorded(metric) else None
    return None if increments is None else increments.to_reading()

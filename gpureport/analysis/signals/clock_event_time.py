"""When clock events lowered the clock of a GPU, by the driver's counters, placed as exactly as rows allow."""

from dataclasses import dataclass

import numpy as np

from gpureport.analysis.series import counter_increments, intervals
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.metrics import BY_NAME

_FULL = 0.9
"""Share of a step counted from which on the clock was held at both of its ends: counters lag their rows."""
_LEAST = 1e-4
"""Seconds a counter rises by at least; less is rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedTime:
    """Counted time of one GPU, a stretch for each step between readings in which a counter rose.

    A stretch is as long as what was counted where one end of its step is known to be held, and the whole step where
    nothing tells when in it the clock was held. Steps across log gaps have none; their time is in `gap_seconds`.

    Attributes:
        start: beginning of each stretch in microseconds, rising.
        end: its end.
        seconds: what was counted in it.
        gap_seconds: what was counted across log gaps.
        held_rows: rows at which the clock was held, by their bit or since all the time beside them was counted.
        adjacent_rows: rows next to a step in which a counter rose.
    """

    start: IntArray
    end: IntArray
    seconds: FloatArray
    gap_seconds: float
    held_rows: BoolArray
    adjacent_rows: BoolArray

    @property
    def spans(self) -> Spans:
        """Every stretch."""
        return intervals.union(np.column_stack([self.start, self.end]))

    @property
    def total_seconds(self) -> float:
        """All that was counted, in seconds."""
        return float(self.seconds.sum()) + self.gap_seconds

    def measure_seconds_within(self, stretches: Spans) -> float:
        """Return the seconds counted in some stretches of time."""
        width = np.maximum(self.end - self.start, 1) / 1e6
        return float((self.seconds * intervals.overlap_seconds(self.start, self.end, stretches) / width).sum())

    def compute_row_shares(self, series: DeviceSeries, stretches: Spans) -> FloatArray:
        """Return the share of each row's cell that was counted in some stretches of time."""
        is_inside = intervals.contains(stretches, (self.start + self.end) // 2)
        if not is_inside.any():
            return np.zeros(len(series))
        edges = np.column_stack([self.start[is_inside], self.end[is_inside]]).ravel()
        counted = np.cumsum(self.seconds[is_inside])
        so_far = np.column_stack([counted - self.seconds[is_inside], counted]).ravel()
        inside = np.interp(series.end, edges, so_far) - np.interp(series.start, edges, so_far)
        return np.clip(inside / np.maximum(series.seconds, 1e-6), 0, 1)


def counter_name(reason: str) -> str:
    """Return the counter of a clock event reason."""
    return f"clock_event_{reason}_seconds_total"


def measure_counted_time(series: DeviceSeries, *reasons: str) -> CountedTime | None:
    """Return the time counted for clock event reasons, None where no counter of theirs was read twice.

    Where several counters rise in one step, it is the largest of these rises, since they may have run at once.
    """
    names = [counter_name(reason) for reason in reasons if counter_name(reason) in BY_NAME]
    names = [name for name in names if series.is_recorded(name)]
    increments = counter_increments.measure_increments(series, names, 1.0) if names else None
    if increments is None:
        return None
    bits = np.zeros(len(series), dtype=np.bool_)
    for reason in reasons:
        bits |= series.values(f"clock_event_{reason}") > 0
    seconds = increments.amounts.max(axis=0)
    has_risen = seconds > _LEAST
    held_rows, adjacent_rows = bits[increments.rows], np.zeros(len(increments.rows), dtype=np.bool_)
    for steps, marked in ((has_risen & (seconds >= _FULL * increments.seconds), held_rows), (has_risen, adjacent_rows)):
        marked[:-1] |= steps
        marked[1:] |= steps
    start, end = _place_counted_time(increments.times, seconds, held_rows)
    is_placed = has_risen & ~increments.in_gap
    return CountedTime(
        start=start[is_placed],
        end=end[is_placed],
        seconds=seconds[is_placed],
        gap_seconds=float(seconds[increments.in_gap].sum()),
        held_rows=_mark_rows(increments.rows[held_rows], len(series)) | bits,
        adjacent_rows=_mark_rows(increments.rows[adjacent_rows], len(series)),
    )


def _place_counted_time(times: IntArray, seconds: FloatArray, is_held: BoolArray) -> tuple[IntArray, IntArray]:
    """Return where the counted time lies in each step: at its throttled end, or all over it."""
    since, until = times[:-1], times[1:]
    length = np.minimum(np.round(seconds * 1e6).astype(np.int64), until - since)
    start = np.where(is_held[1:] & ~is_held[:-1], until - length, since)
    end = np.where(is_held[:-1] & ~is_held[1:], since + length, until)
    return start, end


def _mark_rows(rows: IntArray, length: int) -> BoolArray:
    marked = np.zeros(length, dtype=np.bool_)
    marked[rows] = True
    return marked

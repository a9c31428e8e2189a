"""Operations on spans: sorted, disjoint, half-open intervals in microseconds."""

from collections.abc import Callable, Iterable
from functools import reduce

import numpy as np

from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.findings import Interval

Spans = IntArray  # one start and end per row, sorted and disjoint
NO_SPANS: Spans = np.empty((0, 2), dtype=np.int64)


def to_spans(intervals: Iterable[Interval]) -> Spans:
    return union(np.array([(one.start, one.end) for one in intervals], dtype=np.int64).reshape(-1, 2))


def to_intervals(stretches: Spans) -> tuple[Interval, ...]:
    return tuple(Interval(start, end) for start, end in stretches.tolist())


def union(stretches: Spans, within: int = 0) -> Spans:
    """Return sorted, disjoint intervals, joined if at most `within` microseconds apart."""
    starts, ends = stretches[stretches[:, 1] > stretches[:, 0]].T
    if len(starts) == 0:
        return NO_SPANS
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    reach = np.maximum.accumulate(ends)
    fresh = np.flatnonzero(starts[1:] > reach[:-1] + within) + 1
    return np.column_stack([starts[np.append(0, fresh)], reach[np.append(fresh, len(starts)) - 1]])


def row_spans(starts: IntArray, ends: IntArray, rows: BoolArray) -> Spans:
    """Return the time that selected rows cover. All rows are sorted and disjoint."""
    first, stop = find_runs(rows, np.append(False, starts[1:] > ends[:-1]))
    return union(np.column_stack([starts[first], ends[stop - 1]]))


def total_seconds(stretches: Spans) -> float:
    return float((stretches[:, 1] - stretches[:, 0]).sum() / 1e6)


def covers(known: Spans, spans: Spans) -> bool:
    return 2 * total_seconds(intersection(known, spans)) >= total_seconds(spans)


def drop_shorter(stretches: Spans, seconds: float) -> Spans:
    return stretches[stretches[:, 1] - stretches[:, 0] >= seconds * 1e6]


def contains(stretches: Spans, times: IntArray) -> BoolArray:
    """Return which of the ascending times lie within intervals."""
    edges = np.maximum.accumulate(np.searchsorted(times, stretches.ravel()))
    return np.repeat(np.arange(len(edges) + 1) % 2 == 1, np.diff(edges, prepend=0, append=len(times)))


def _combine(left: Spans, right: Spans, keep: Callable[[BoolArray, BoolArray], BoolArray]) -> Spans:
    edges = np.unique(np.concatenate([left.ravel(), right.ravel()]))
    first, stop = find_runs(keep(contains(left, edges), contains(right, edges)))
    return np.column_stack([edges[first], edges[stop]])


def intersection(left: Spans, right: Spans) -> Spans:
    return _combine(left, right, lambda one, other: one & other) if len(left) and len(right) else NO_SPANS


def difference(left: Spans, right: Spans) -> Spans:
    return _combine(left, right, lambda one, other: one & ~other) if len(left) and len(right) else left


def leave_out_common(spans: Spans, others: Iterable[Spans]) -> Spans:
    return difference(spans, reduce(intersection, others, spans))


def overlap_seconds(starts: IntArray, ends: IntArray, stretches: Spans) -> FloatArray:
    before_start, before_end = measure_covered_before(stretches, np.stack([starts, ends]))
    return np.asarray((before_end - before_start) / 1e6, dtype=np.float64)


def measure_covered_before(stretches: Spans, times: IntArray) -> IntArray:
    if len(stretches) == 0:
        return np.zeros_like(times)
    begun = np.searchsorted(stretches[:, 0], times, side="right")
    lengths = np.concatenate([[0], np.cumsum(stretches[:, 1] - stretches[:, 0])])
    return lengths[begun] - np.where(begun > 0, np.maximum(stretches[begun - 1, 1] - times, 0), 0)


def find_runs(mask: BoolArray, breaks: BoolArray | None = None) -> tuple[IntArray, IntArray]:
    """Return each run's first row and the row after its last. Rows in `breaks` start a new run."""
    is_apart = ~(mask[1:] & mask[:-1])
    if breaks is not None:
        is_apart |= breaks[1:]
    first = np.flatnonzero(mask & np.append(True, is_apart))
    last = np.flatnonzero(mask & np.append(is_apart, True))
    return first, last + 1


def find_hysteresis_runs(
    values: FloatArray, *, enter: float, leave: float, breaks: BoolArray | None = None
) -> tuple[IntArray, IntArray]:
    """Return runs of rows at or below `leave` (or NaN) that reach `enter`."""
    first, stop = find_runs(~(values > leave), breaks)
    low, _ = find_runs(values <= enter, breaks)
    deep = np.searchsorted(low, stop) > np.searchsorted(low, first)
    return first[deep], stop[deep]

"""Algebra of stretches of time, vectorised: arrays of shape (n, 2), int64 microseconds, half-open, sorted, disjoint."""

from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.findings import Finding, Interval

Spans = IntArray
"""Stretches of time: start and end a row, sorted and disjoint."""

NO_SPANS: Spans = np.empty((0, 2), dtype=np.int64)
"""No stretch of time."""

_BLOCK = 131_072
"""Rows looked at together."""

_FEW = 4
"""Share of the rows, one in so many, below which each is looked up: looking at all of them costs no more from there."""


def to_spans(intervals: Iterable[Interval]) -> Spans:
    """Return the union of intervals in any order."""
    rows = [(interval.start, interval.end) for interval in intervals]
    return union(np.array(rows, dtype=np.int64)) if rows else NO_SPANS


def collect_finding_spans(findings: Iterable[Finding], device: str, kinds: Collection[str]) -> Spans:
    """Return when findings of some kinds apply to a device; those without devices apply to all."""
    return to_spans(
        interval
        for found in findings
        if found.kind in kinds and (not found.devices or device in found.devices)
        for interval in found.intervals
    )


def to_intervals(stretches: Spans) -> tuple[Interval, ...]:
    """Return stretches as values that can cross a module border."""
    return tuple(Interval(int(start), int(end)) for start, end in stretches)


def union(stretches: Spans, within: int = 0) -> Spans:
    """Return sorted, disjoint stretches that cover the same time, joining those at most `within` apart.

    Args:
        stretches: starts and ends in any order, overlaps allowed; empty ones vanish.
        within: widest hole that is closed, in microseconds.
    """
    starts, ends = stretches[:, 0], stretches[:, 1]
    filled = ends > starts
    if not filled.all():
        starts, ends = starts[filled], ends[filled]
    if len(starts) == 0:
        return NO_SPANS
    if (starts[1:] < starts[:-1]).any():
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
    reach = np.maximum.accumulate(ends)
    fresh = np.flatnonzero(starts[1:] > reach[:-1] + within) + 1
    first = np.concatenate([[0], fresh])
    last = np.append(fresh, len(starts)) - 1
    return np.column_stack([starts[first], reach[last]])


def rows_to_spans(starts: IntArray, ends: IntArray, rows: BoolArray) -> Spans:
    """Return the time that some of the cells [start, end) cover, which are in order and do not overlap."""
    breaks = np.zeros(len(rows), dtype=np.bool_)
    np.greater(starts[1:], ends[:-1], out=breaks[1:])
    first, stop = find_runs(rows, breaks)
    return union(np.column_stack([starts[first], ends[stop - 1]]))


def total_seconds(stretches: Spans) -> float:
    """Return the time covered."""
    return float((stretches[:, 1] - stretches[:, 0]).sum() / 1e6)


def drop_shorter(stretches: Spans, seconds: float) -> Spans:
    """Return the stretches no shorter than `seconds`."""
    return stretches[stretches[:, 1] - stretches[:, 0] >= seconds * 1e6]


def contains(stretches: Spans, times: IntArray) -> BoolArray:
    """Return which moments lie inside."""
    return np.asarray(np.searchsorted(stretches.ravel(), times, side="right") % 2 == 1, dtype=np.bool_)


def _combine(left: Spans, right: Spans, keep: Callable[[BoolArray, BoolArray], BoolArray]) -> Spans:
    edges = np.unique(np.concatenate([left.ravel(), right.ravel()]))
    inside = keep(contains(left, edges), contains(right, edges))
    first, stop = find_runs(inside)
    return np.column_stack([edges[first], edges[stop]])


def intersection(left: Spans, right: Spans) -> Spans:
    """Return the time covered by both."""
    return _combine(left, right, lambda one, other: one & other) if len(left) and len(right) else NO_SPANS


def difference(left: Spans, right: Spans) -> Spans:
    """Return the time covered by `left` alone."""
    return _combine(left, right, lambda one, other: one & ~other) if len(left) and len(right) else left


def overlap_seconds(starts: IntArray, ends: IntArray, stretches: Spans) -> FloatArray:
    """Return how many seconds of each cell [start, end) the stretches cover."""
    if len(stretches) == 0 or len(starts) == 0:
        return np.zeros(len(starts))
    if len(stretches) >= len(starts) or _is_decreasing(starts) or _is_decreasing(ends):
        return np.asarray(
            (_measure_covered_before(stretches, ends) - _measure_covered_before(stretches, starts)) / 1e6,
            dtype=np.float64,
        )
    # cells in order are many beside few stretches: all but those at their edges lie inside or outside
    begun, over = np.searchsorted(ends, stretches[:, 0], side="right"), np.searchsorted(starts, stretches[:, 1])
    first, stop = np.searchsorted(starts, stretches[:, 0]), np.searchsorted(ends, stretches[:, 1], side="right")
    if _FEW * int(np.maximum(stop - first, 0).sum()) < len(starts):
        found, rows = np.zeros(len(starts)), _expand_ranges(first, stop)
        found[rows] = (ends[rows] - starts[rows]) / 1e6
    else:
        found = np.asarray((ends - starts) / 1e6, dtype=np.float64)
        found *= _mark_ranges(first, stop, len(starts))
    cut = np.concatenate([_expand_ranges(begun, first), _expand_ranges(stop, over)])
    found[cut] = (_measure_covered_before(stretches, ends[cut]) - _measure_covered_before(stretches, starts[cut])) / 1e6
    return found


def _is_decreasing(times: IntArray) -> bool:
    return bool((times[1:] < times[:-1]).any())


def _mark_ranges(first: IntArray, stop: IntArray, length: int) -> BoolArray:
    """Return which of so many rows lie in ranges given by first and past-the-end row, both never falling."""
    edges = np.maximum.accumulate(np.column_stack([first, stop]).ravel())
    inside = np.arange(len(edges) + 1) % 2 == 1
    return np.repeat(inside, np.diff(edges, prepend=0, append=length))


def _expand_ranges(first: IntArray, stop: IntArray) -> IntArray:
    """Return the rows of all ranges, one after the other; a range that ends before it begins has none."""
    lengths = np.maximum(stop - first, 0)
    before = np.cumsum(lengths) - lengths
    return np.asarray(np.repeat(first - before, lengths) + np.arange(lengths.sum()), dtype=np.int64)


def _accumulate_lengths(stretches: Spans) -> IntArray:
    """Return the time that is covered before each stretch, and by all."""
    return np.concatenate([[0], np.cumsum(stretches[:, 1] - stretches[:, 0])])


def _measure_covered_before(stretches: Spans, times: IntArray) -> IntArray:
    """Return how much time the stretches cover before each moment, in microseconds."""
    begun = np.searchsorted(stretches[:, 0], times, side="right")
    unfinished = np.maximum(stretches[begun - 1, 1] - times, 0)
    return np.asarray(_accumulate_lengths(stretches)[begun] - np.where(begun > 0, unfinished, 0), dtype=np.int64)


def find_runs(mask: BoolArray, breaks: BoolArray | None = None) -> tuple[IntArray, IntArray]:
    """Return first and past-the-end row of each run of true.

    Args:
        mask: one truth a row.
        breaks: rows at which a run ends and another may begin.
    """
    (edges,) = _find_edges(mask, lambda part: part)
    return _split_at_breaks(edges, breaks)


def _find_edges(values: npt.NDArray[Any], *tests: Callable[[npt.NDArray[Any]], BoolArray]) -> list[IntArray]:
    """Return for each test the rows at which it begins to hold, and no longer does, in turn.

    Only these rows are kept, block by block, so that what each block needs in between stays in the cache of the
    processor and the values are read once.
    """
    found: list[list[npt.ArrayLike]] = [[[]] for _ in tests]
    holds = [False] * len(tests)
    for begin in range(0, len(values), _BLOCK):
        part = values[begin : begin + _BLOCK]
        for number, test in enumerate(tests):
            mask = test(part)
            if mask[0] != holds[number]:
                found[number].append([begin])
            found[number].append(np.flatnonzero(mask[1:] != mask[:-1]) + (begin + 1))
            holds[number] = bool(mask[-1])
    ends: list[npt.ArrayLike] = [[len(values)] if held else [] for held in holds]
    return [np.concatenate([*rows, end]).astype(np.int64) for rows, end in zip(found, ends, strict=True)]


def _split_at_breaks(edges: IntArray, breaks: BoolArray | None) -> tuple[IntArray, IntArray]:
    """Return first and past-the-end row of runs, those parted in which a break lies."""
    first, stop = edges[::2], edges[1::2]
    if breaks is None or len(first) == 0:
        return first, stop
    rows = np.flatnonzero(breaks)
    run = np.searchsorted(first, rows, side="left") - 1
    within = rows[(run >= 0) & (rows < stop[run])]
    return np.sort(np.append(first, within)), np.sort(np.append(stop, within))


def find_hysteresis_runs(
    values: FloatArray, *, enter: float, leave: float, breaks: BoolArray | None = None
) -> tuple[IntArray, IntArray]:
    """Return runs of rows at or below `leave` that reach `enter` or less; NaN keeps the state it finds.

    Args:
        values: one value a row.
        enter: limit at least one row of a run must not exceed.
        leave: limit that ends a run when exceeded, not below `enter`.
        breaks: rows at which a run ends and another may begin.
    """
    still, idle = _find_edges(values, lambda part: ~(part > leave), lambda part: part <= enter)
    first, stop = _split_at_breaks(still, breaks)
    low, _ = _split_at_breaks(idle, breaks)
    deep = np.searchsorted(low, stop) > np.searchsorted(low, first)
    return first[deep], stop[deep]

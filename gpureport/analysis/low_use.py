"""When GPUs work only part of the time and no other kind says why; the rule and the attribution share it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gpureport.analysis import intervals
from gpureport.analysis.base import Context
from gpureport.analysis.bins import Grid, grid, middle, rolling_mean
from gpureport.analysis.cells import Cells
from gpureport.analysis.intervals import Spans
from gpureport.analysis.phases import UTILISATION
from gpureport.columns import FloatArray
from gpureport.findings import Interval

EXPLAINED = ("cpu_bound", "idle_gap", "startup_idle", "tail_idle", "hollow_util")
"""Kinds whose time is theirs: it is left out of the mean and of the episodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What makes an episode: ratios, seconds and rows.

    Attributes:
        enter: mean utilisation that an episode must reach.
        leave: mean that ends it when exceeded.
        idle: mean below which a GPU is unused rather than underused.
        over: seconds the mean is taken over, at least, which an episode must also last.
        rows: samples the mean is taken over, at least.
    """

    enter: float
    leave: float
    idle: float
    over: float
    rows: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LowUse:
    """Stretches of low use of each GPU, log gaps and explained time left out.

    Attributes:
        spans: by device id; without the devices that have none.
        lowest: lowest mean reached, as a ratio; NaN without an episode.
        mean_seconds: time that mean is taken over.
    """

    spans: Mapping[str, Spans]
    lowest: float
    mean_seconds: float


def needed_seconds(context: Context, limits: Limits) -> float:
    """Return the shortest recording in which an episode can be seen."""
    width = max([1.0, *(cells.interval for cells in context.gpus().values())])
    return max(limits.over, limits.rows * width)


def find(context: Context, limits: Limits) -> LowUse:
    """Return the episodes of the GPUs that work, taken together by their median."""
    working = {name: one for name, one in context.gpus().items() if name in context.active}
    if context.window is None:
        return LowUse(spans={}, lowest=float("nan"), mean_seconds=limits.over)
    bins = grid(context.window, list(working.values()))
    length = max(round(limits.over / bins.width), round(limits.rows))
    mean = _mean(context, bins, working, length)
    mean[mean < limits.idle] = 1.0
    first, stop = intervals.hysteresis(mean, enter=limits.enter, leave=limits.leave)
    inside = bins.mask(first, stop)
    episodes = bins.spans(inside, limits.over, length * bins.width)
    episodes = intervals.intersection(episodes, intervals.spans([context.window]))
    own = {name: _own(context, one, episodes) for name, one in working.items()}
    kept = [
        Interval(int(start), int(end))
        for start, end in episodes
        if max((_within(spans, int(start), int(end)) for spans in own.values()), default=0.0) >= limits.over
    ]
    spans = {name: intervals.intersection(one, intervals.spans(kept)) for name, one in own.items()}
    return LowUse(
        spans={name: one for name, one in spans.items() if len(one)},
        lowest=float(np.nanmin(mean[inside])) if kept else float("nan"),
        mean_seconds=length * bins.width,
    )


def _mean(context: Context, bins: Grid, working: dict[str, Cells], length: int) -> FloatArray:
    """Return the rolling mean of the GPUs' median, explained bins left out."""
    numbers = np.arange(bins.count)
    starts, ends = bins.edges(numbers, "right"), bins.edges(numbers + 1, "left")
    series = []
    for device, cells in working.items():
        explained = intervals.of_kinds(context.found, device, EXPLAINED)
        left_out = intervals.overlap(starts, ends, explained) > 0
        series.append(np.where(left_out, np.nan, bins.mean(cells, UTILISATION)))
    return rolling_mean(middle(series), length)


def _within(spans: Spans, start: int, end: int) -> float:
    return float(intervals.overlap(np.array([start]), np.array([end]), spans)[0])


def _own(context: Context, cells: Cells, episodes: Spans) -> Spans:
    """Return the sampled part of the episodes that nothing else explains."""
    start, end = cells.tiles(context.whole)
    known = ~np.isnan(cells.values(UTILISATION))
    sampled = intervals.union(np.column_stack([start[known], end[known]]))
    left = intervals.intersection(episodes, sampled)
    return intervals.difference(left, intervals.of_kinds(context.found, cells.device.id, EXPLAINED))


def unused_seconds(context: Context, cells: Cells, spans: Spans) -> float:
    """Return the GPU time in the stretches in which no kernel ran."""
    start, end = cells.tiles(context.whole)
    unused = 1 - np.clip(cells.values(UTILISATION), 0, 1)
    return float(np.nansum(unused * intervals.overlap(start, end, spans)))

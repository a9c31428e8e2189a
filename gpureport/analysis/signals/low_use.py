"""When GPUs work only part of the time and no other kind explains it; rules and attribution share this."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gpureport.analysis import missing_metrics
from gpureport.analysis.job.phases import POINT_SAMPLE_SECONDS, UTILISATION
from gpureport.analysis.rulebook import Context
from gpureport.analysis.series import intervals
from gpureport.analysis.series.bins import Grid, build_grid, median_over_devices, rolling_mean
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.signals.core_count import CPU
from gpureport.analysis.signals.waits import wait_episodes, waiting_gpus
from gpureport.analysis.thresholds import literature, pragmatic
from gpureport.columns import FloatArray
from gpureport.findings import Interval, NotJudged

BELOW = literature(0.70, "1", "published advice calls more than 70% generally good (neptune.ai blog)")
"""Mean utilisation that calls for no change."""
ENTER = pragmatic(0.64, "1", "use below 70% is low, and a mean of 30 samples may be off by 6 points")
LEAVE = pragmatic(0.72, "1", "70% with room for the same error")
IDLE = pragmatic(0.08, "1", "below it a GPU is unused rather than underused")
OVER = pragmatic(120.0, "s", "longer than an evaluation pass between two training phases")
ROWS = 30.0  # rows; fewer point samples do not make a mean
SHORTEST = pragmatic(30.0, "s", "averages over many training steps; a shorter job shows little but its start")
FEWEST = 10.0  # rows; fewer samples do not even show the error of their mean
WATCHED = 0.5  # share of the time with low use; with less of it the CPU was not watched
"""Thresholds of both kinds, as `Limits` says what each of the others is."""

LOW_USE_KINDS = ("underutilised", "low_util_cause_unknown")
"""Kinds that share the computation, with and without a CPU series."""
EXPLAINING_KINDS = (*waiting_gpus.WAIT_KINDS, "idle_gap", "startup_idle", "tail_idle", "hollow_util")
"""Kinds that explain low use; their time is left out of the mean and of the episodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What makes an episode: ratios, seconds and rows.

    Attributes:
        enter: mean utilisation that an episode must reach.
        leave: mean that ends it when exceeded.
        gpu: utilisation below which the mean of a whole episode must lie for certain, where samples are far apart.
        idle: mean below which a GPU is unused rather than underused.
        over: seconds the mean is taken over, at least, which an episode must also last.
        rows: samples the mean is taken over, at least.
        shortest: seconds of work from which on a job too short for an episode is judged by the mean of all of it.
        fewest: samples of such a job; fewer than `rows` must be certain.
    """

    enter: float
    leave: float
    gpu: float
    idle: float
    over: float
    shortest: float
    rows: float = ROWS
    fewest: float = FEWEST


@dataclass(frozen=True, slots=True, kw_only=True)
class LowUse:
    """Stretches of low use of each GPU, log gaps and explained time left out.

    Attributes:
        spans: by device id; without the devices that have none.
        lowest: lowest mean reached, as a ratio; NaN without an episode.
        mean_seconds: time that mean is taken over.
        is_short_job: whether the job is too short for an episode, so that all of it is one.
    """

    spans: Mapping[str, Spans]
    lowest: float
    mean_seconds: float
    is_short_job: bool = False


def explain_too_short(kind: str, context: Context, limits: Limits) -> NotJudged | None:
    """Return that a recording, or its sampled time, is too short for a mean; None if it is long enough."""
    width = max([1.0, *(series.interval for series in context.gpus().values())])
    needed, sampled = max(limits.shortest, limits.rows * width), _measure_sampled_seconds(context)
    if find_low_use(context, limits).spans:
        return None
    if context.whole.seconds < needed:
        return missing_metrics.too_short(kind, context.whole.seconds, needed)
    return missing_metrics.too_short(kind, sampled, needed, "samples cover") if sampled < needed else None


def _measure_sampled_seconds(context: Context) -> float:
    """Return the longest sampled time of any GPU; log gaps do not count."""
    return max((series.observed_seconds for series in context.gpus().values()), default=0.0)


def find_low_use(context: Context, limits: Limits) -> LowUse:
    """Return the episodes of the GPUs that work, taken together by their median."""
    explained = tuple(found for found in context.earlier_findings if found.kind in EXPLAINING_KINDS)
    return context.cached((LowUse, limits, explained), lambda: _compute_low_use(context, limits))


def _compute_low_use(context: Context, limits: Limits) -> LowUse:
    working = {name: one for name, one in context.gpus().items() if name in context.active}
    if context.window is None:
        return LowUse(spans={}, lowest=float("nan"), mean_seconds=limits.over)
    bins = build_grid(context.window, list(working.values()))
    used = _median_unexplained_utilisation(context, bins, working)
    low = _find_episodes(context, bins, used, working, limits)
    return low if low.spans else _judge_short_job(context, context.window, used, working, limits)


def _find_episodes(
    context: Context, bins: Grid, used: FloatArray, working: dict[str, DeviceSeries], limits: Limits
) -> LowUse:
    """Return the stretches with a low rolling mean, none if the recording is too short for such a mean."""
    length = max(round(limits.over / bins.width), round(limits.rows))
    if context.window is None or _measure_sampled_seconds(context) < length * bins.width:
        return LowUse(spans={}, lowest=float("nan"), mean_seconds=limits.over)
    mean = rolling_mean(used, length)
    mean[mean < limits.idle] = 1.0
    first, stop = intervals.find_hysteresis_runs(mean, enter=limits.enter, leave=limits.leave)
    inside = bins.mark_runs(first, stop)
    episodes = bins.mask_to_spans(inside, limits.over, length * bins.width)
    episodes = intervals.intersection(episodes, context.work)
    if not len(episodes):
        return LowUse(spans={}, lowest=float("nan"), mean_seconds=length * bins.width)
    coarse = bins.width > POINT_SAMPLE_SECONDS
    unexplained = {name: _remove_explained(context, one, episodes) for name, one in working.items()}
    covered = [intervals.overlap_seconds(episodes[:, 0], episodes[:, 1], spans) for spans in unexplained.values()]
    long = np.max(covered, axis=0, initial=0.0) >= limits.over if covered else np.zeros(len(episodes), dtype=np.bool_)
    certain = [
        part
        for part in intervals.to_intervals(episodes[long])
        if not coarse or wait_episodes.is_surely_below(used[bins.find_bin_slice(part.start, part.end)], limits.gpu)
    ]
    spans = {name: intervals.intersection(one, intervals.to_spans(certain)) for name, one in unexplained.items()}
    return LowUse(
        spans={name: one for name, one in spans.items() if len(one)},
        lowest=float(np.nanmin(mean[inside])) if certain else float("nan"),
        mean_seconds=length * bins.width,
    )


def _judge_short_job(
    context: Context, window: Interval, used: FloatArray, working: dict[str, DeviceSeries], limits: Limits
) -> LowUse:
    """Return the unexplained time of a job too short for an episode, if its mean is low.

    A mean of few samples, or of samples far apart, must be low for certain. If other kinds explain most of the job,
    the rest is not representative.
    """
    known = used[~np.isnan(used)]
    width = max(1.0, *(one.interval for one in working.values()))
    mean = float(known.mean()) if len(known) else 1.0
    is_certain = len(known) >= limits.rows and width <= POINT_SAMPLE_SECONDS
    is_low = (
        len(known) >= limits.fewest
        and limits.idle <= mean <= limits.enter
        and (is_certain or wait_episodes.is_surely_below(known, limits.gpu))
    )
    job = intervals.to_spans([window])
    unexplained = {name: _remove_explained(context, one, job) for name, one in working.items()} if is_low else {}
    seconds = max(map(intervals.total_seconds, unexplained.values()), default=0.0)
    is_low = limits.shortest <= seconds < max(limits.over, limits.rows * width) and 2 * seconds >= window.seconds
    return LowUse(
        spans={name: one for name, one in unexplained.items() if len(one)} if is_low else {},
        lowest=mean if is_low else float("nan"),
        mean_seconds=seconds,
        is_short_job=True,
    )


def _median_unexplained_utilisation(context: Context, bins: Grid, working: dict[str, DeviceSeries]) -> FloatArray:
    """Return the median over the GPUs in each bin, explained bins left out."""
    numbers = np.arange(bins.count)
    starts, ends = bins.find_bin_edges(numbers, "right"), bins.find_bin_edges(numbers + 1, "left")
    series = []
    for device, device_series in working.items():
        explained = intervals.collect_finding_spans(context.findings_on(device), device, EXPLAINING_KINDS)
        left_out = intervals.overlap_seconds(starts, ends, explained) > 0
        series.append(np.where(left_out, np.nan, bins.average_metric(device_series, UTILISATION)))
    return median_over_devices(series)


def _remove_explained(context: Context, series: DeviceSeries, episodes: Spans) -> Spans:
    """Return the sampled part of the episodes that no other kind explains."""
    left = intervals.intersection(
        episodes, series.memoize(("sampled", context.whole), lambda: _find_sampled_spans(context, series))
    )
    device = series.device.id
    explained = intervals.collect_finding_spans(context.findings_on(device), device, EXPLAINING_KINDS)
    return intervals.difference(left, explained)


def _find_sampled_spans(context: Context, series: DeviceSeries) -> Spans:
    start, end = series.averaging_windows(context.whole)
    known = series.known_rows(UTILISATION)
    return intervals.rows_to_spans(start, end, known)


def is_cpu_recorded(context: Context, device: str, spans: Spans) -> bool:
    """Return whether the CPU beside a GPU was recorded for most of the stretches, so that a cause can be named.

    One kind covers GPUs with a recorded CPU, another kind those without.
    """
    node = context.series[device].device.node
    return any(is_watched(host, (CPU,), spans) for host in context.hosts().values() if host.device.node in {None, node})


def is_watched(host: DeviceSeries, metrics: Sequence[str], spans: Spans) -> bool:
    """Return whether a host recorded all of some metrics at once for at least half of some stretches."""
    known = np.all([~np.isnan(host.values(metric)) for metric in metrics], axis=0)
    seconds = intervals.overlap_seconds(host.start - host.shift, host.end - host.shift, spans)[known].sum()
    return bool(seconds >= WATCHED * intervals.total_seconds(spans))

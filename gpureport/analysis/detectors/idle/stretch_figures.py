"""Figures of a stretch before or after the work: time at rest, time without a job, readings."""

from collections.abc import Iterable, Iterator

import numpy as np

from gpureport.analysis.evidence import compare_with_limit
from gpureport.analysis.job.phases import UTILISATION
from gpureport.analysis.rulebook import Context
from gpureport.analysis.series import intervals
from gpureport.analysis.series.statistics import IDLE_RATIO
from gpureport.findings import Evidence, Interval, Threshold


def measure_resting_seconds(context: Context, interval: Interval, devices: Iterable[str], limit: float) -> float:
    """Return the GPU time within an interval that was sampled at a utilisation of at most `limit`."""
    seconds = 0.0
    for device in devices:
        series = context.series[device]
        start, end = series.averaging_windows(context.whole)
        inside = intervals.overlap_seconds(start, end, intervals.to_spans([interval]))
        seconds += float(inside[series.values(UTILISATION) <= limit + 1e-6].sum())
    return seconds


def measure_no_job_seconds(context: Context, interval: Interval, devices: Iterable[str]) -> float:
    """Return the GPU time within an interval in which no job held a GPU."""
    when = intervals.to_spans([interval])
    free = (context.time_without_job.get(device, intervals.NO_SPANS) for device in devices)
    return sum(intervals.total_seconds(intervals.intersection(when, spans)) for spans in free)


def find_held_time(context: Context, interval: Interval, devices: Iterable[str]) -> tuple[Interval, ...]:
    """Return when a job held any of the GPUs within an interval."""
    free = (context.time_without_job.get(device, intervals.NO_SPANS) for device in devices)
    return intervals.to_intervals(intervals.leave_out_common(intervals.to_spans([interval]), free))


def measure_seconds_of_jobs(context: Context) -> float:
    """Return the length of the run without the time in which no job held a GPU, a mean over its GPUs."""
    return context.whole.seconds - _measure_free_seconds(context) / max(len(context.gpus()), 1)


def name_whole(context: Context) -> str:
    """Return what that length is called."""
    return "the jobs' time" if _measure_free_seconds(context) else "the run"


def _measure_free_seconds(context: Context) -> float:
    """Return the GPU time in which no job held a GPU; measured once for the findings of all GPUs."""
    # contexts that differ in what was free of jobs share what was made
    key = (_measure_free_seconds, id(context.time_without_job))
    return context.cached(key, lambda: measure_no_job_seconds(context, context.whole, context.gpus()))


def measure_idle_or_unused_seconds(context: Context) -> float:
    """Return the GPU time at a utilisation of at most 5%, and the unused share of all other samples."""
    return _measure_unused_seconds(context, IDLE_RATIO + 1e-6)


def measure_unused_seconds(context: Context) -> float:
    """Return the GPU time in which no kernel ran: the unused share of every sample."""
    return _measure_unused_seconds(context, 0.0)


def _measure_unused_seconds(context: Context, idle: float) -> float:
    """Return the unused share of all samples; those at `idle` and less count whole."""
    seconds = 0.0
    for series in context.gpus().values():
        start, end = series.averaging_windows(context.whole)
        used = series.values(UTILISATION)
        unused = np.where(used <= idle, 1.0, 1 - np.clip(used, 0, 1))
        seconds += float(np.nansum(unused * intervals.overlap_seconds(start, end, intervals.to_spans([context.whole]))))
    return seconds


def build_length_evidence(seconds: float, beyond: float, limit: Threshold) -> Evidence:
    """Return how long a stretch lasted, against the shortest that counts; it may have gone on `beyond` the log."""
    return compare_with_limit(
        "duration",
        "length, at most (the log may end an interval late)" if beyond else "length",
        seconds + beyond,
        ">=",
        limit,
    )


def build_share_evidence(share: float, limit: Threshold, context: Context) -> Evidence:
    """Return which share of the run a stretch took, against the share that matters."""
    relation = ">" if share > limit.value else "<="
    return compare_with_limit("duration", f"share of {name_whole(context)}", share, relation, limit)


def _count_readings_per_gpu(context: Context, interval: Interval) -> Iterator[int]:
    for series in context.gpus().values():
        # the last sample of a log lies at the end of the run
        yield series.count_readings(UTILISATION, series.rows_between(interval.start, interval.end + 1))


def count_all_readings(context: Context, interval: Interval) -> int:
    """Return the readings of all GPUs within an interval."""
    return sum(_count_readings_per_gpu(context, interval))


def count_most_readings(context: Context, interval: Interval) -> int:
    """Return the readings of the GPU that has most of them; several GPUs at a time are no proof of how long."""
    return max(_count_readings_per_gpu(context, interval), default=0)

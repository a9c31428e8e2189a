"""When a job holds each GPU, by the memory in use, and which jobs follow each other in one log."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from gpureport.analysis.job import phases
from gpureport.analysis.job.phases import ACTIVE, UTILISATION
from gpureport.analysis.results import Job
from gpureport.analysis.series import intervals, rest_to_work_power
from gpureport.analysis.series.device_series import DeviceSeries, remove_stretches, series_by_device
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.series.statistics import IDLE_RATIO
from gpureport.analysis.thresholds import pragmatic
from gpureport.columns import BoolArray, FloatArray
from gpureport.findings import Interval
from gpureport.metrics import Scope
from gpureport.recording import Recording

EMPTY_MEMORY = 2.0**27  # By; a driver holds less; the context of a process on a data centre's GPU more
"""Memory in use up to which no process holds a GPU."""

DISPLAY_MEMORY = 2.0**26  # By; what windows of a display come and go with
"""Memory in use above the least of the log that a display may account for."""

PROCESS_MEMORY = pragmatic(2.0**29, "By", "a driver or a display holds less; a process with a context more")
"""Memory in use above which some process holds a GPU, whatever the least of the log is."""

FREE_BETWEEN_JOBS = 60.0  # s; an epoch, an evaluation or a restart in a process of its own begins sooner
"""How long a GPU must be empty between two jobs."""

FREE_AT_END = 10.0  # s; an evaluation in a process of its own begins sooner
"""How long a GPU must be empty at the end of the log."""

WORK_WITH_MEMORY = 0.9  # share of the busy samples with memory in use; with less of it memory shows nothing
"""Utilisation lags by a second, so that the last busy sample of a job can be empty."""

_DISPLAY_POWER = 0.4  # drawing windows takes less of the span from the floor to the power of work
"""Share of that span below which a GPU only draws the windows of a display."""
_LEAST_RISE = 5.0  # W; a sensor that moves by less shows no difference between rest and work
"""Watts from the floor to the power of work from which on power is looked at."""
_FEWEST = 2
"""Samples a stretch without a job must have: one alone may be a process that starts again."""
_MEMORY, _PROCESSES, _POWER = "gpu_memory_used_bytes", "gpu_processes", "gpu_power_watts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """Which time of a recording belongs to jobs.

    Attributes:
        jobs: in the order of time; empty where no GPU worked.
        no_job: when no job held a GPU, by device id; a GPU without such time has none.
        series: the samples of each device without that time, keyed by device id.
    """

    jobs: tuple[Job, ...]
    no_job: Mapping[str, Spans]
    series: Mapping[str, DeviceSeries]


def find_jobs(recording: Recording) -> tuple[Job, ...]:
    """Return the jobs of a recording in the order of time; a log of rows that several GPUs share has none."""
    if any(device.mixed for device in recording.run.gpus):
        return ()
    return find_occupancy(series_by_device(recording), Interval(recording.run.started, recording.run.ended)).jobs


def find_occupancy(series: Mapping[str, DeviceSeries], whole: Interval) -> Occupancy:
    """Return which time of a recording belongs to jobs.

    A job lasts while any working GPU has memory in use. Time before the first use of memory is start-up, since the job
    may already run on the CPU. Later, a GPU has no job while its memory is empty and it rests. Without memory
    readings, or if GPUs work with empty memory, all time belongs to one job.
    """
    gpus = {name: one for name, one in series.items() if one.device.scope is Scope.GPU and len(one)}
    active = phases.find_activities(series)
    empty = {name: find_empty_rows(gpus[name]) for name in active}
    first_use = min((_find_first_use(gpus[name], rows) for name, rows in empty.items()), default=whole.end)
    free = {name: _find_free_stretches(gpus[name], rows, first_use, whole) for name, rows in empty.items()}
    free = {name: spans for name, spans in free.items() if len(spans)}
    all_free = _find_time_without_jobs(free, active, whole)
    if len(all_free):
        # a GPU that never works is without a job where the others are
        free |= {name: all_free for name, one in gpus.items() if name not in active and not _has_process(one)}
    series_of_jobs = {name: remove_stretches(one, free[name]) if name in free else one for name, one in series.items()}
    return Occupancy(jobs=tuple(_split_jobs(series_of_jobs, all_free, whole)), no_job=free, series=series_of_jobs)


def _split_jobs(series: Mapping[str, DeviceSeries], all_free: Spans, whole: Interval) -> Iterator[Job]:
    """Yield the stretches in which some GPU is held and any works; a stretch without work is no job."""
    number = 0
    for held in intervals.to_intervals(intervals.difference(intervals.to_spans([whole]), all_free)):
        active = phases.find_activities(series, held)
        window = phases.find_work_window(held, active.values())
        if window is not None:
            number += 1
            yield Job(number=number, interval=held, window=window, active=active)


def _find_time_without_jobs(free: Mapping[str, Spans], active: Mapping[str, Interval], whole: Interval) -> Spans:
    """Return when no GPU that ever works has a job; no time if none ever works."""
    all_free = intervals.to_spans([whole] if active else [])
    for name in active:
        all_free = intervals.intersection(all_free, free.get(name, intervals.NO_SPANS))
    return all_free


def records_occupancy(series: DeviceSeries) -> bool:
    """Return whether a log has metrics that can show that no job holds a GPU."""
    return series.is_recorded(_MEMORY) or series.is_recorded(_PROCESSES)


def find_empty_rows(series: DeviceSeries) -> BoolArray:
    """Return the rows in which a GPU rests with nothing in use; none if its memory does not follow its work."""
    used, power = series.values(UTILISATION), series.values(_POWER)
    none: BoolArray = np.zeros(len(series), dtype=np.bool_)
    for metric, level in ((_MEMORY, _find_empty_memory_limit), (_PROCESSES, _process_limit)):
        held = series.values(metric)
        known = ~np.isnan(held)
        if known.any():
            in_use = held > level(held)
            busy = known & (used > ACTIVE.value)
            working = rest_to_work_power.estimate_working_watts(power, in_use & busy)
            windows = power < _estimate_display_watts(power, working)
            busy &= ~windows
            if not busy.any() or in_use[busy].mean() < WORK_WITH_MEMORY:
                return none
            return known & ~in_use & (~(used > IDLE_RATIO + 1e-6) | windows) & ~(power > working)
    return none


def _find_empty_memory_limit(used: FloatArray) -> float:
    """Return the highest memory in use without a job: next to none, or what a display always holds."""
    return min(max(EMPTY_MEMORY, float(np.nanmin(used)) + DISPLAY_MEMORY), PROCESS_MEMORY.value)


def _process_limit(_: FloatArray) -> float:
    return 0.0


def _estimate_display_watts(watts: FloatArray, working: float) -> float:
    """Return the watts below which a GPU only draws windows; none is below where power at work is not known."""
    floor = float(np.nanmin(watts)) if np.isfinite(working) else working
    rise = working - floor
    return floor + _DISPLAY_POWER * rise if _LEAST_RISE <= rise < np.inf else float("-inf")


def _has_process(series: DeviceSeries) -> bool:
    """Return whether some process holds a GPU that never works."""
    return bool((series.values(_MEMORY) > PROCESS_MEMORY.value).any())


def _find_first_use(series: DeviceSeries, empty: BoolArray) -> int:
    return int(series.start[int(np.argmin(empty))])


def _find_free_stretches(series: DeviceSeries, empty: BoolArray, first_use: int, whole: Interval) -> Spans:
    """Return when a GPU was empty for long enough after any was in use, the end of the log included."""
    if not empty.any():
        return intervals.NO_SPANS
    first, stop = intervals.find_runs(empty & (series.start >= first_use))
    first, stop = first[stop - first >= _FEWEST], stop[stop - first >= _FEWEST]
    start, end = series.start[first], series.end[stop - 1]
    last = stop == len(series)
    needed = np.where(last, FREE_AT_END, FREE_BETWEEN_JOBS) * 1e6
    long = end - start >= needed
    spans: Spans = np.column_stack([start, np.where(last, whole.end, end)])[long].clip(whole.start, whole.end)
    return spans

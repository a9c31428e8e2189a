"""When a job holds each GPU, by memory in use; which jobs follow each other, and which is a restart."""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import pairwise

import numpy as np

from gpureport.analysis.job import phases
from gpureport.analysis.job.phases import ACTIVE, SHORTEST_GAP
from gpureport.analysis.names import CPU, MEMORY, POWER, UTILISATION
from gpureport.analysis.results import Job
from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import DeviceSeries, memoized, remove_stretches, series_by_device
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.series.statistics import IDLE_RATIO
from gpureport.columns import BoolArray, FloatArray
from gpureport.findings import Interval, Provenance, Threshold
from gpureport.metrics import Scope
from gpureport.recording import Recording

EMPTY_MEMORY = 2.0**27
"""Memory in use up to which no process holds a GPU.

By; a driver holds less; the context of a process on a data centre's GPU more.
"""
PROCESS_MEMORY = Threshold(
    value=2.0**29,
    unit="By",
    provenance=Provenance.PRAGMATIC,
    source="a driver or a display holds less; a process with a context more",
)
"""Memory in use above which a process holds a GPU, unless it was in use before the job."""
FREE_BETWEEN_JOBS = 60.0
"""How long a GPU must be empty between two jobs.

s; an epoch, an evaluation or a restart in a process of its own begins sooner.
"""
RESTART_SECONDS = 1800.0
"""Pause up to which a like job is the same one, started again.

s; a scheduler or a person brings a failed job back within half an hour.
"""

_FREE_AT_END = 10.0  # s; an evaluation in a process of its own begins sooner
_DISPLAY_MEMORY = 2.0**26  # By; what windows of a display come and go with
_BASE_SHARE = 1 / 3
"""Share of the memory at work; a job that loads its weights before its first work holds more."""
# of what a display held before; a process that stays holds more beside it
_BASE_DRIFT = 0.2
_DRAWN = 0.5  # share of the samples with some use; a process that waits shows none
_WORK_WITH_MEMORY = 0.9
"""Share of the busy samples with memory in use: utilisation lags, the last one can be empty."""
_DISPLAY_POWER = 0.4
"""Share of the span from the floor to the power of work; drawing windows takes less."""
_DISPLAY_USE = 0.5
"""Share of the utilisation at work, of all of it where there is none; drawing windows takes less."""
# W; a sensor that moves by less shows no difference between rest and work
_LEAST_RISE = 5.0
# samples of a stretch without a job: one alone may be a process that starts again
_FEWEST = 2
_ALIKE = 0.1  # of the memory at work; another job takes another amount
_SERIES = 3  # like jobs in a row; a job that stops twice is rarer
_PROCESSES = "gpu_processes"


Occupancy = tuple[tuple[Job, ...], dict[str, Spans], dict[str, DeviceSeries], dict[str, Interval]]
"""Jobs in order, and by device id: time without a job, samples without it, and sustained activity."""


def find_jobs(recording: Recording) -> tuple[Job, ...]:
    if any(device.mixed for device in recording.run.gpus):
        return ()
    return find_occupancy(series_by_device(recording), Interval(recording.run.started, recording.run.ended))[0]


def find_occupancy(series: Mapping[str, DeviceSeries], whole: Interval, *, is_tracked: bool = False) -> Occupancy:
    """Return which time of a recording belongs to jobs.

    A job lasts while any working GPU has memory in use. Time before the first use of memory is start-up, since the job
    may already run on the CPU, but not half an hour in which the host does less than later. Later, a GPU has no job
    while its memory is empty and it rests. Without memory readings, or if GPUs work with empty memory, all time belongs
    to one job, but for the time between two sessions in one file. The windows of a display are no job.
    A tracker (`is_tracked`) logs all GPUs of its host: those that never hold memory or work are not of its run.
    """
    gpus = {name: one for name, one in series.items() if one.device.scope is Scope.GPU and len(one)}
    at_work = {name: one for name, one in series.items() if not (name in gpus and draws_only_display(one))}
    active = phases.find_activities(at_work)
    empty = {name: find_empty_rows(gpus[name]) for name in active}
    first_use = min((int(gpus[name].start[np.argmin(rows)]) for name, rows in empty.items()), default=whole.end)
    if first_use - whole.start >= RESTART_SECONDS * 1e6 and not _is_host_at_work(series, first_use):
        first_use = whole.start
    pauses = reduce(intervals.intersection, map(_find_session_breaks, gpus.values())) if gpus else intervals.NO_SPANS
    free = {name: _find_free_stretches(gpus[name], rows, first_use, whole) for name, rows in empty.items()}
    free = {name: intervals.union(np.concatenate([spans, pauses])) for name, spans in free.items()}
    free = {name: spans for name, spans in free.items() if len(spans)}
    all_free = intervals.to_spans([whole] if active else [])
    for name in active:
        all_free = intervals.intersection(all_free, free.get(name, intervals.NO_SPANS))
    if len(all_free):
        # a GPU that never works is without a job as the others are, unless a process holds it
        others = (name for name in gpus if name not in active)
        free |= {name: all_free for name in others if not (gpus[name].values(MEMORY) > PROCESS_MEMORY.value).any()}
    if active and is_tracked:
        memory = {name: one.known_values(MEMORY) for name, one in gpus.items() if name not in active}
        foreign = (name for name, used in memory.items() if len(used) and used.max() <= EMPTY_MEMORY)
        free |= dict.fromkeys(foreign, intervals.to_spans([whole]))
    held = {name: remove_stretches(one, free[name]) if name in free else one for name, one in series.items()}
    working = {name: held[name] for name in at_work}
    return tuple(_split_jobs(working, all_free, whole)), free, held, phases.find_activities(working)


def _is_host_at_work(series: Mapping[str, DeviceSeries], first_use: int) -> bool:
    parts = np.array([[0, first_use]]), np.array([[first_use, np.iinfo(np.int64).max // 2]])
    loads = ([one.find_values(CPU, part) for part in parts] for one in series.values())
    return any(len(early) and len(late) and early.mean() >= late.mean() / 2 for early, late in loads)


def _find_session_breaks(series: DeviceSeries) -> Spans:
    """Return the gaps that part two sessions: half an hour, 60 intervals, and all the time recorded."""
    rows = series.gap_rows
    breaks: Spans = np.column_stack([series.end[rows - 1], series.start[rows]])
    return intervals.drop_shorter(breaks, max(RESTART_SECONDS, series.observed_seconds, 60 * series.interval))


def _split_jobs(series: Mapping[str, DeviceSeries], all_free: Spans, whole: Interval) -> Iterator[Job]:
    number = 0
    for held in intervals.to_intervals(intervals.difference(intervals.to_spans([whole]), all_free)):
        active = phases.find_activities(series, held)
        window = phases.find_work_window(held, active.values())
        if window is not None:
            window = held if all(_serves(series[name]) for name in active) else window
            number += 1
            yield Job(number=number, interval=held, window=window, active=active)


def _serves(series: DeviceSeries) -> bool:
    """Return whether a process holds as much memory last as first, and works in bursts for less than half the time."""
    held = series.known_values(MEMORY)
    if not len(held) or np.ptp(held) > _DISPLAY_MEMORY:
        return False
    busy = intervals.rows_to_spans(series.start, series.end, series.values(UTILISATION) > ACTIVE.value)
    bursts = intervals.union(busy, int(SHORTEST_GAP.value * 1e6))
    return len(bursts) > 1 and 2e6 * intervals.total_seconds(bursts) < series.end[-1] - series.start[0]


def draws_only_display(series: DeviceSeries) -> bool:
    """Return whether a GPU never does more than a display asks: some use, with memory held anyway."""
    held, used = series.values(MEMORY), series.values(UTILISATION)
    least = float(np.min(series.known_values(MEMORY), initial=np.inf))
    if not EMPTY_MEMORY < least < PROCESS_MEMORY.value or (held > PROCESS_MEMORY.value).any():
        return False
    busy = used > ACTIVE.value
    return not (used > _DISPLAY_USE).any() and not (held[busy] > least + _DISPLAY_MEMORY).any()


@memoized
def find_empty_rows(series: DeviceSeries) -> BoolArray:
    """Return the rows in which a GPU rests with nothing in use; none if memory does not follow work."""
    used, power = series.values(UTILISATION), series.values(POWER)
    none: BoolArray = np.zeros(len(series), dtype=np.bool_)
    metric = MEMORY if series.is_recorded(MEMORY) else _PROCESSES
    if not series.is_recorded(metric):
        return none
    held, known = series.values(metric), series.known_rows(metric)
    in_use = held > (_find_base_memory(series, held) if metric == MEMORY else 0.0)
    busy = known & (used > ACTIVE.value)
    working, windows = phases.estimate_working_watts(power, in_use & busy), none
    if np.isfinite(working) and (rise := working - float(np.nanmin(power))) >= _LEAST_RISE:
        windows = power < working - (1 - _DISPLAY_POWER) * rise
    elif (in_use & busy).any():
        windows = ~in_use & (used < _DISPLAY_USE * np.median(used[in_use & busy]))
    busy &= ~windows
    if not busy.any() or in_use[busy].mean() < _WORK_WITH_MEMORY:
        return none
    return known & ~in_use & (~(used > IDLE_RATIO + 1e-6) | windows) & ~(power > working)


def _find_base_memory(series: DeviceSeries, held: FloatArray) -> float:
    """Return the highest memory in use without a job: next to none, or what a display always holds.

    Where work takes much more: what was in use before the first work and after the last, or what windows then hold.
    """
    least = min(max(EMPTY_MEMORY, float(np.nanmin(held)) + _DISPLAY_MEMORY), PROCESS_MEMORY.value)
    window = phases.find_activity(series)
    if window is None:
        return least
    edges = np.searchsorted(series.times - series.shift, [window.start, window.end])
    before, work, after = (np.sort(part[~np.isnan(part)]) for part in np.split(held, edges))
    later = series.values(UTILISATION)[edges[1] :]
    is_drawn = bool(np.count_nonzero(later > 0) > _DRAWN * max(len(later), _FEWEST))
    levels = [part[:_FEWEST][-1] for part in (before, after) if len(part)]
    if not len(work) or not levels or not (is_drawn or (len(before) and len(after) >= _FEWEST)):
        return least
    low, high = min(levels), max(levels)
    # windows open beside the job, too, but what doubles is a process that stays
    is_same = high - low <= max(_DISPLAY_MEMORY, low if is_drawn else _BASE_DRIFT * high)
    base = (1 + _BASE_DRIFT) * high if is_drawn else high + _DISPLAY_MEMORY
    return float(max(least, base)) if is_same and high <= _BASE_SHARE * np.median(work) else least


def _find_free_stretches(series: DeviceSeries, empty: BoolArray, first_use: int, whole: Interval) -> Spans:
    first, stop = intervals.find_runs(empty & (series.start >= first_use))
    first, stop = first[stop - first >= _FEWEST], stop[stop - first >= _FEWEST]
    if not len(first):
        return intervals.NO_SPANS
    start, end, last = series.start[first], series.end[stop - 1], stop == len(series)
    long = end - start >= np.where(last, _FREE_AT_END, FREE_BETWEEN_JOBS) * 1e6
    spans: Spans = np.column_stack([start, np.where(last, whole.end, end)])[long].clip(whole.start, whole.end)
    return spans


def find_restart(jobs: Sequence[Job], job: Job, series: Mapping[str, DeviceSeries]) -> Interval | None:
    """Return the pause before a job that restarts the one before it; None for another or the first.

    It begins within half an hour, on the same GPUs with as much memory. Three such jobs in a row are a series.
    """
    near = [each for each in jobs if abs(each.number - job.number) < _SERIES]
    begins = [each.number for before, each in pairwise(near) if _is_alike(before, each, series)]
    if job.number not in begins or {job.number - 1, job.number + 1} & {*begins}:
        return None
    return Interval(jobs[job.number - 2].interval.end, job.interval.start)


def _is_alike(before: Job, job: Job, series: Mapping[str, DeviceSeries]) -> bool:
    pause = (job.interval.start - before.interval.end) / 1e6
    if pause > RESTART_SECONDS or before.active.keys() != job.active.keys():
        return False
    for name in job.active:
        spans = (intervals.to_spans([each.active[name]]) for each in (before, job))
        least, most = sorted(float(np.median(series[name].find_values(MEMORY, span))) for span in spans)
        if most - least > _ALIKE * most:
            return False
    return True

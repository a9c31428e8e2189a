"""Finds when a job holds each GPU, when the GPU is busy, and when jobs restart, from use, power and memory."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from math import fsum

import numpy as np

from gpureport.analysis.results import Job, ObservedJob, Pauses, Phase
from gpureport.analysis.rulebook import Context
from gpureport.analysis.series import CORE, CPU, IOWAIT, JOB, MEMORY, POWER, UTILISATION, intervals
from gpureport.analysis.series.device_series import DeviceSeries, memoized, pick, remove_stretches, series_by_device
from gpureport.analysis.series.statistics import IDLE_RATIO, memory_total
from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.findings import Interval, Provenance, Threshold
from gpureport.metrics import Scope
from gpureport.recording import Recording, Run

POINT_SAMPLE_SECONDS = 2.0  # above this interval, a utilisation value is a point sample
UTILISATION_WINDOW = 1.0  # maximum seconds that one utilisation value covers (NVML)
ACTIVE = Threshold(value=0.12, unit="1", provenance=Provenance.PRAGMATIC, source="stray kernels cause less")
SHORTEST_GAP = 5.0  # seconds; a shorter rest within a job is not an idle gap
NO_WORK, LITTLE_WORK, NO_JOB, STEPS = "no work", "little work", "no job", "steps"
"""Causes of start-up and tail findings; with `STEPS`, the job trained without the GPUs."""
WITHOUT_LASTING_WORK = frozenset({NO_WORK, LITTLE_WORK})
"""Causes of start-up findings about the whole run."""
EMPTY_MEMORY = 2.0**27  # bytes; the context of any process takes more
PROCESS_MEMORY = Threshold(
    value=2.0**29,
    unit="By",
    provenance=Provenance.PRAGMATIC,
    source="a process with a context uses more memory, and a driver or display less",
)
"""If more memory than this is in use, a process holds the GPU."""
FREE_BETWEEN_JOBS = 60.0  # seconds; the next epoch or a restart begins sooner
RESTART_SECONDS = 1800.0  # a similar job that begins sooner is a restart

_SUSTAINED = 3.0  # seconds; an autotuning kernel before the first step is shorter
_SHARE = 0.6  # active share of it; low enough for slow input pipelines
_LEAST_SPAN = 1.0  # watts between rest and work; a smaller difference is sensor noise
_FULL_POWER = 0.9  # quantile of power at work; single peaks do not count
_AT_WORK = 0.5  # utilisation above which the power of a sample is power at work
_COARSE_SHARE = 0.5  # active share for coarse samples, which single kernels do not mislead
_PART_ROWS = 1_000
_FEW_BURSTS = 3  # active samples before sustained activity; fewer may be autotuning
_LIGHT_USE = 0.005
_NEARLY_ALL = 0.9  # share of samples in light use; displays and stray kernels cause less
_MOSTLY = 0.5  # share of host samples at a limit; share of samples in light use if no work follows
_LIGHT, _LIGHT_BEFORE = 30.0, 120.0  # seconds: the shortest wait in a short job, and more than loading a model takes
_MACHINE = {CPU: 0.75, IOWAIT: 0.15}
_CORE = {CORE: 0.96, "process_cpu_cores": 0.96}
"""Loads at which GPUs may be waiting, as in the rules on waits."""

_FREE_AT_END = 10.0  # seconds; an evaluation in a separate process begins sooner
_DISPLAY_MEMORY = 2.0**26  # bytes; a display's windows change memory by at most this
_BASE_SHARE = 1 / 3  # share of memory at work; a job with loaded weights holds more
_BASE_DRIFT = 0.2  # relative change in a display's memory; a process that stays adds more
_DRAWN = 0.5  # share of samples with some use; a process that waits has none
_WORK_WITH_MEMORY = 0.9  # share of busy samples with memory in use; utilisation lags, so the last may differ
_DISPLAY_POWER = 0.4  # share of the rise from the lowest power to that at work; drawing windows takes less
_DISPLAY_USE = 0.5  # share of use at work, or of full use without a job; drawing windows takes less
_LEAST_RISE = 5.0  # watts; a sensor that varies less cannot tell rest from work
_FEWEST = 2  # samples without a job; a single one may mean that a process restarted
_ALIKE = 0.1  # share of the memory at work; a different job differs by more
_TAKEN = 0.1  # share of the memory above the minimum; with less, no job holds the GPU
_OTHER, _OF_PROCESS = 0.1, 0.05  # use above that of displays and monitors; without and with a process's memory
# seconds and rows of steady use around the job; with fewer, a median is unreliable
_OTHER_SECONDS, _OTHER_ROWS = 30.0, 8
_SERIES = 3  # similar jobs in a row that are a series; a job rarely restarts twice

Occupancy = tuple[tuple[Job, ...], dict[str, intervals.Spans], dict[str, DeviceSeries], dict[str, Interval]]


@memoized
def find_activity(series: DeviceSeries, within: Interval | None = None) -> Interval | None:
    """Return the time from a GPU's first to last sustained activity, or None if it has none.

    Activity is sustained if 60% of the samples in the next 3 s (at least 3 intervals) are active.
    Later bursts count if they are at least half as frequent as within the job. If the job works in
    bursts, three or more earlier bursts also count.
    """
    rows = series.find_known_rows(UTILISATION)
    if within is not None:
        rows = rows[(series.times[rows] >= within.start) & (series.times[rows] <= within.end)]
    used, times = series.values(UTILISATION), series.times[rows]
    active, share = used > ACTIVE.value, _SHARE
    if series.interval > POINT_SAMPLE_SECONDS:
        # low utilisation while power is as high as at work means a short pause
        power = series.values(POWER)
        active, share = active | (power > _estimate_working_watts(power, used > _AT_WORK)), _COARSE_SHARE
    active, reach = active[rows], round(max(_SUSTAINED, 3 * series.interval) * 1e6 * 1.05)
    first = _find_sustained(times, active, reach, share)
    ended = _find_sustained(-times[::-1], active[::-1], reach, share)
    if first is None or ended is None:
        return None
    last = len(times) - 1 - ended
    usual = float(active[first : last + 1].mean()) if last > first else 1.0
    if usual < _SHARE and active[:first].sum() >= _FEW_BURSTS:
        first -= _measure_dense_reach(active[:first][::-1], usual / 2)
    last += _measure_dense_reach(active[last + 1 :], usual / 2)
    # if only power shows work, the work began or ended at the sample itself
    begin, end = rows[first], rows[last]
    start = (series.start if used[begin] > ACTIVE.value else series.times)[begin]
    stop = (series.end if used[end] > ACTIVE.value else series.times)[end]
    return Interval(int(start) - series.shift, max(int(stop) - series.shift, int(times[0]) + 1))


def _estimate_working_watts(watts: FloatArray, work: BoolArray) -> float:
    """Return the power halfway between a GPU's lowest power and its power at work."""
    known = watts[work & ~np.isnan(watts)]
    if not len(known):
        return float("inf")
    floor = float(np.nanmin(watts))
    return floor + max(float(np.quantile(known, _FULL_POWER)) - floor, _LEAST_SPAN) / 2


def _find_sustained(times: IntArray, active: BoolArray, reach: int, share: float) -> int | None:
    rows = np.flatnonzero(active)
    # search in parts, since most jobs are active early and a log may cover days
    for first in range(0, len(rows), _PART_ROWS):
        part = rows[first : first + _PART_ROWS]
        ahead = np.searchsorted(times, times[part] + reach, side="right")
        number = np.searchsorted(rows, ahead) - first - np.arange(len(part))
        sustained = part[number >= share * np.maximum(ahead - part, 2)]
        if len(sustained):
            return int(sustained[0])
    return None


def _measure_dense_reach(active: BoolArray, share: float) -> int:
    places = np.flatnonzero(active) + 1
    dense = places[np.arange(1, len(places) + 1) >= share * places]
    return int(dense[-1]) if len(dense) else 0


def _find_activities(series: Mapping[str, DeviceSeries], within: Interval | None = None) -> dict[str, Interval]:
    gpus, hosts = pick(series, Scope.GPU), pick(series, Scope.HOST).values()
    own = {name: find_activity(one, within) for name, one in gpus.items()}
    found = {name: activity for name, activity in own.items() if activity}
    for name in list(found or gpus) if hosts else ():
        one, active = gpus[name], found.get(name)
        inside = within or Interval(int(one.times[0]), int(one.times[-1]))
        if light := _find_light_work(one, hosts, inside, active):
            found[name] = light
    return found


def _find_light_work(
    gpu: DeviceSeries, hosts: Collection[DeviceSeries], within: Interval, active: Interval | None
) -> Interval | None:
    """Return a GPU's activity, counted from its first light use while its host is at a limit."""
    part = gpu.rows_between(within.start, (active.start if active else within.end) + 1)
    is_light = (gpu.values(UTILISATION)[part] >= _LIGHT_USE) & ~(gpu.values(MEMORY)[part] < PROCESS_MEMORY.value)
    # before the work, one busy thread may only be loading data
    share, shortest, limits = _MOSTLY, _LIGHT, _MACHINE | _CORE
    if active:
        share, shortest, limits = _NEARLY_ALL, _LIGHT_BEFORE, _MACHINE
    last = len(is_light) if active else int(np.max(np.flatnonzero(is_light), initial=-1)) + 1
    if not (length := _measure_dense_reach(is_light[:last][::-1], share)):
        return None
    start = int(gpu.start[part.start + last - length]) - gpu.shift
    end = int(gpu.end[part.start + last - 1]) - gpu.shift
    for host in hosts if end - start >= shortest * 1e6 else ():
        rows = host.rows_between(start + host.shift, end + host.shift)
        at_limit = np.any([host.values(metric)[rows] >= limit for metric, limit in limits.items()], axis=0)
        if host.is_beside(gpu) and at_limit.sum() >= max(_MOSTLY * len(at_limit), 1):
            return Interval(start, active.end if active else end)
    return None


def is_light_work(series: DeviceSeries, within: Interval, active: Interval | None, part: Interval) -> bool:
    own, middle = find_activity(series, within), (part.start + part.end) // 2
    return active is not None and active.start < middle and (own is None or middle < own.start)


def find_work_window(whole: Interval, active: Collection[Interval]) -> Interval | None:
    start = max(min((one.start for one in active), default=whole.end), whole.start)
    end = min(max((one.end for one in active), default=whole.start), whole.end)
    return Interval(start, end) if end > start else None


def split_phases(run: Run, window: Interval | None) -> tuple[Phase, ...]:
    window = window or Interval(run.ended, run.ended)
    edges = pairwise((run.started, window.start, window.end, run.ended))
    parts = zip(("startup", "steady", "tail"), edges, strict=True)
    return tuple(Phase(kind=kind, interval=Interval(start, end)) for kind, (start, end) in parts if end > start)


def find_observed_job(hosts: Iterable[DeviceSeries]) -> ObservedJob:
    """Return when a job's processes were first and last seen, if every host recorded them."""
    seen = [(host, host.find_known_rows(JOB)) for host in hosts]
    if not seen or not all(len(rows) for _, rows in seen):
        return ObservedJob()
    is_begun = all(rows[0] > 0 for _, rows in seen)
    is_ended = all(rows[-1] < len(host) - 1 for host, rows in seen)
    return ObservedJob(
        started=min(int(host.times[rows[0]]) for host, rows in seen) if is_begun else None,
        ended=max(int(host.times[rows[-1]]) for host, rows in seen) if is_ended else None,
    )


def measure_coverage(context: Context) -> float | None:
    run = context.recording.run
    whole = (run.ended - run.started) / 1e6 * len(run.gpus or run.hosts)
    if whole <= 0 or run.quality.synthetic_time:
        return None
    seen = context.gpus() if run.gpus else context.hosts()
    owned = fsum(float(context.all_series[name].seconds_in_run.sum()) for name in seen)
    return min(owned / whole, 1.0) if owned else None


def summarise_pauses(several: Iterable[DeviceSeries]) -> Pauses | None:
    paused = [(one, one.pause_rows) for one in several if len(one.pause_rows)]
    if not paused:
        return None
    return Pauses(
        count=max(len(rows) for _, rows in paused),
        longest_seconds=max(float((one.times[rows] - one.times[rows - 1]).max()) for one, rows in paused) / 1e6,
        seconds=max(float((one.start[rows] - one.end[rows - 1]).sum()) for one, rows in paused) / 1e6,
    )


def find_jobs(recording: Recording) -> tuple[Job, ...]:
    if any(device.mixed for device in recording.run.gpus):
        return ()
    return find_occupancy(series_by_device(recording), Interval(recording.run.started, recording.run.ended))[0]


def find_occupancy(series: Mapping[str, DeviceSeries], whole: Interval, *, is_tracked: bool = False) -> Occupancy:
    """Return the jobs, each GPU's time without a job, the series within jobs, and each GPU's activity.

    A job lasts while any of its GPUs has memory in use. Earlier time counts as start-up, unless it
    lasts half an hour and the host is then less than half as busy as later. After its first use, a
    GPU has no job while it is idle and its memory is free. A tracker (`is_tracked`) logs all GPUs
    of its host, so GPUs without work or memory in use are not part of the run.
    """
    gpus = pick(series, Scope.GPU)
    at_work = {name: one for name, one in series.items() if not (name in gpus and draws_only_display(one))}
    active = _find_activities(at_work)
    empty = {name: find_empty_rows(gpus[name]) for name in active}
    first_use = min((int(gpus[name].start[np.argmin(rows)]) for name, rows in empty.items()), default=whole.end)
    if first_use - whole.start >= RESTART_SECONDS * 1e6:
        parts = np.array([[0, first_use]]), np.array([[first_use, np.iinfo(np.int64).max // 2]])
        loads = ([one.find_values(CPU, part) for part in parts] for one in series.values())
        is_at_work = any(len(early) and len(late) and early.mean() >= late.mean() / 2 for early, late in loads)
        first_use = first_use if is_at_work else whole.start
    pauses = reduce(intervals.intersection, map(_find_session_breaks, gpus.values())) if gpus else intervals.NO_SPANS
    away = {}
    for name, rows in empty.items():
        away[name] = [_find_free_stretches(gpus[name], rows, first_use, whole), pauses]
        ends, level, usual = find_other_use(gpus[name]) or (pauses, 1.0, 0.0)
        # heavier or longer use may be the job itself, which needs more memory to evaluate
        if 2 * level <= usual and 2e6 * intervals.total_seconds(ends) <= np.ptp(ends):
            away[name].append(ends)
    free = {name: intervals.union(np.concatenate(spans)) for name, spans in away.items()}
    all_free = reduce(intervals.intersection, free.values(), intervals.to_spans([whole] if active else []))
    free = {name: spans for name, spans in free.items() if len(spans)}
    held = {name: one.known_values(MEMORY) for name, one in gpus.items() if name not in active}
    if len(all_free):
        # a GPU never used has no job while no other GPU has one, unless a process holds it
        free |= {name: all_free for name, used in held.items() if not (used > PROCESS_MEMORY.value).any()}
    if active and is_tracked:
        foreign = (name for name, used in held.items() if len(used) and used.max() <= EMPTY_MEMORY)
        free |= dict.fromkeys(foreign, intervals.to_spans([whole]))
    left = {name: remove_stretches(one, free[name]) if name in free else one for name, one in series.items()}
    working, found = {name: left[name] for name in at_work}, list[Job]()
    for part in intervals.to_intervals(intervals.difference(intervals.to_spans([whole]), all_free)):
        active = _find_activities(working, part)
        if window := find_work_window(part, active.values()):
            window = part if all(_serves(working[name]) for name in active) else window
            found.append(Job(number=len(found) + 1, interval=part, window=window, active=active))
    return tuple(found), free, left, _find_activities(working)


def _find_session_breaks(series: DeviceSeries) -> intervals.Spans:
    """Return log gaps of at least half an hour, 60 intervals and the sampled time."""
    rows = series.gap_rows
    breaks = np.column_stack([series.end[rows - 1], series.start[rows]])
    return intervals.drop_shorter(breaks, max(RESTART_SECONDS, series.observed_seconds, 60 * series.interval))


def _serves(series: DeviceSeries) -> bool:
    held = series.known_values(MEMORY)
    if not len(held) or np.ptp(held) > _DISPLAY_MEMORY:
        return False
    bursts = intervals.union(series.find_owned(series.values(UTILISATION) > ACTIVE.value), int(SHORTEST_GAP * 1e6))
    return len(bursts) > 1 and 2e6 * intervals.total_seconds(bursts) < series.end[-1] - series.start[0]


def draws_only_display(series: DeviceSeries) -> bool:
    held, used = series.values(MEMORY), series.values(UTILISATION)
    least = float(np.min(series.known_values(MEMORY), initial=np.inf))
    if not EMPTY_MEMORY < least < PROCESS_MEMORY.value or (held > PROCESS_MEMORY.value).any():
        return False
    busy = used > ACTIVE.value
    is_light = not (used > _DISPLAY_USE).any() and busy.mean() < _NEARLY_ALL
    return bool(is_light and not (held[busy] > least + _DISPLAY_MEMORY).any())


@memoized
def find_empty_rows(series: DeviceSeries) -> BoolArray:
    """Return the rows where a GPU is idle with free memory, unless memory is also free at work."""
    used, power = series.values(UTILISATION), series.values(POWER)
    none: BoolArray = np.zeros(len(series), dtype=np.bool_)
    metric = MEMORY if series.is_recorded(MEMORY) else "gpu_processes"
    held, known = series.values(metric), series.known_rows(metric).copy()
    # a GPU that no longer responds may or may not be at rest
    known[np.max(np.flatnonzero(~np.isnan(used)), initial=-1) + 1 :] = False
    in_use = held > (_find_base_memory(series, held) if metric == MEMORY else 0.0)
    busy = known & (used > ACTIVE.value)
    working, windows = _estimate_working_watts(power, in_use & busy), none
    if np.isfinite(working) and (rise := working - float(np.nanmin(power))) >= _LEAST_RISE:
        # at idle clocks, windows cause high utilisation but draw little power
        windows = power < working - (1 - _DISPLAY_POWER) * rise
    elif (in_use & busy).any():
        windows = ~in_use & (used < _DISPLAY_USE * np.median(used[in_use & busy]))
    busy &= ~windows
    if not busy.any() or in_use[busy].mean() < _WORK_WITH_MEMORY:
        return none
    return known & ~in_use & (~(used > IDLE_RATIO + 1e-6) | windows) & ~(power > working)


def _find_base_memory(series: DeviceSeries, held: FloatArray) -> float:
    """Return the most memory in use while no job runs, for example for a display."""
    least = min(max(EMPTY_MEMORY, float(np.nanmin(held)) + _DISPLAY_MEMORY), PROCESS_MEMORY.value)
    window = find_activity(series)
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
    # windows may open during the job, but another process would double the memory
    is_same = high - low <= max(_DISPLAY_MEMORY, low if is_drawn else _BASE_DRIFT * high)
    base = (1 + _BASE_DRIFT) * high if is_drawn else high + _DISPLAY_MEMORY
    return float(max(least, base)) if is_same and high <= _BASE_SHARE * np.median(work) else least


@memoized
def find_other_use(series: DeviceSeries) -> tuple[intervals.Spans, float, float] | None:
    """Return when another program uses a GPU before and after the job, and the utilisation by program and job."""
    held, total = series.values(MEMORY), memory_total(series) or np.nan
    low = float(np.nanmin(held)) if series.is_recorded(MEMORY) else np.nan
    rows = np.flatnonzero(held > low + _TAKEN * (total - low))
    if not len(rows):
        return None
    edges = [series.start[0], series.start[rows[0]], series.end[rows[-1]], series.end[-1]]
    ends, job = np.array([edges[:2], edges[2:]], dtype=np.int64), np.array([edges[1:3]], dtype=np.int64)
    parts = [series.find_values(UTILISATION, spans) for spans in (ends[:1], ends[1:], job)]
    if min(map(len, parts)) < _OTHER_ROWS or len(intervals.drop_shorter(ends, _OTHER_SECONDS)) < len(ends):
        return None
    before, after, usual = (float(np.median(part)) for part in parts)
    least = _OTHER if low < PROCESS_MEMORY.value else _OF_PROCESS
    kept = float(np.median(series.find_values(MEMORY, ends[1:])))
    is_other = abs(before - after) <= _OTHER / 2 and kept - low <= max(_DISPLAY_MEMORY, _BASE_DRIFT * kept)
    if min(before, after) < least or not is_other or usual <= max(before, after):
        return None
    return ends, (before + after) / 2, usual


def _find_free_stretches(series: DeviceSeries, empty: BoolArray, first_use: int, whole: Interval) -> intervals.Spans:
    first, stop = intervals.find_runs(empty & (series.start >= first_use))
    first, stop = first[stop - first >= _FEWEST], stop[stop - first >= _FEWEST]
    start, end, last = series.start[first], series.end[stop - 1], stop == len(series)
    long = end - start >= np.where(last, _FREE_AT_END, FREE_BETWEEN_JOBS) * 1e6
    return np.column_stack([start, np.where(last, whole.end, end)])[long].clip(whole.start, whole.end)


def find_restart(jobs: Sequence[Job], job: Job, series: Mapping[str, DeviceSeries]) -> Interval | None:
    """Return the pause before a job that restarts the previous one, or None in a series of jobs."""
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

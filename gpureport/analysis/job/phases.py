"""From the first to the last sustained activity of GPUs, and other signs of a job's beginning and end."""

from collections.abc import Collection, Iterable, Mapping
from math import fsum

import numpy as np

from gpureport.analysis.names import CORE, CPU, IOWAIT, JOB, MEMORY, POWER, UTILISATION
from gpureport.analysis.results import ObservedJob, Pauses, Phase
from gpureport.analysis.rulebook import Context
from gpureport.analysis.series.device_series import DeviceSeries, memoized
from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.findings import Interval, Provenance, Threshold
from gpureport.metrics import Scope
from gpureport.recording import Run

POINT_SAMPLE_SECONDS = 2.0  # interval above which a utilisation value is a point sample
UTILISATION_WINDOW = 1.0
"""Longest time in seconds that one utilisation value is a mean over (NVML)."""
ACTIVE = Threshold(value=0.12, unit="1", provenance=Provenance.PRAGMATIC, source="stray kernels cause less")
"""Utilisation above which a sample counts as active."""
SHORTEST_GAP = Threshold(
    value=5.0, unit="s", provenance=Provenance.PRAGMATIC, source="with a sample every 1 s, shorter gaps cannot be seen"
)
"""Shortest rest within a job that is an idle gap."""
NO_WORK, LITTLE_WORK, NO_JOB, STEPS = "no work", "little work", "no job", "steps"
"""Causes of start-up and tail: no lasting work; very little; GPUs released; training."""
WITHOUT_LASTING_WORK = frozenset({NO_WORK, LITTLE_WORK})
"""Causes of a start-up finding about the whole run, not its start."""

_SUSTAINED = 3.0  # s; an autotuning kernel before the first step is shorter
_SHARE = 0.6  # of that time active: lets a stalling input pipeline count as work
_LEAST_SPAN = 1.0  # W; less between rest and work is the noise of the sensor
_FULL_POWER = 0.9  # quantile at work; single peaks are not full work
# utilisation; a kernel runs most of the time, so that power is that of work
_AT_WORK = 0.5
_COARSE_SHARE = 0.5  # where samples are too far apart for kernels to fool them
_PART_ROWS = 1_000
_FEW_BURSTS = 3  # active samples before sustained activity; fewer are autotuning
# By; a driver or a display holds less; a process with a context more
_LIGHT_USE, _PROCESS_MEMORY = 0.005, 2.0**29
# share of the samples with light use; a display or stray kernels show less
_NEARLY_ALL = 0.9
_MOSTLY = 0.5  # share of the samples of the machine at a limit
# s; the shortest wait of a short job; loading a model before the work takes less
_LIGHT, _LIGHT_BEFORE = 30.0, 120.0
_MACHINE = {CPU: 0.75, IOWAIT: 0.15}
_CORE = {CORE: 0.96, "process_cpu_cores": 0.96}
"""From where on GPUs may wait for a machine or one core of it, as in the rules on waits."""


@memoized
def find_activity(series: DeviceSeries, within: Interval | None = None) -> Interval | None:
    """Return the time from first to last sustained activity of one GPU, None if it never worked.

    Activity is sustained from an active sample on if 60% of the samples in the 3 s (3 intervals) after it are active,
    two at least with itself; the end is found likewise backwards. Later bursts belong to the job if they come at
    least half as often as within it. So do three or more earlier ones, in a job with fewer than 60% of the samples
    active. Where samples are far apart, power also shows activity, and half will do.
    """
    rows = np.flatnonzero(series.known_rows(UTILISATION))
    if within is not None:
        rows = rows[(series.times[rows] >= within.start) & (series.times[rows] <= within.end)]
    used, times = series.values(UTILISATION), series.times[rows]
    active, share = used > ACTIVE.value, _SHARE
    if series.interval > POINT_SAMPLE_SECONDS:
        # a low sample at the power of work was taken in a short pause
        power = series.values(POWER)
        active, share = active | (power > estimate_working_watts(power, used > _AT_WORK)), _COARSE_SHARE
    active = active[rows]
    reach = round(max(_SUSTAINED, 3 * series.interval) * 1e6 * 1.05)
    begun = _find_sustained(times, active, reach, share)
    ended = _find_sustained(-times[::-1], active[::-1], reach, share)
    if begun is None or ended is None:
        return None
    first, last = begun, len(times) - 1 - ended
    usual = float(active[first : last + 1].mean()) if last > first else 1.0
    if usual < _SHARE and active[:first].sum() >= _FEW_BURSTS:
        first -= _measure_dense_reach(active[:first][::-1], usual / 2)
    last += _measure_dense_reach(active[last + 1 :], usual / 2)
    # where power alone shows work, it began or ended within a second of low utilisation
    begin, end = rows[first], rows[last]
    start = (series.start if used[begin] > ACTIVE.value else series.times)[begin]
    stop = (series.end if used[end] > ACTIVE.value else series.times)[end]
    return Interval(int(start) - series.shift, max(int(stop) - series.shift, int(times[0]) + 1))


def estimate_working_watts(watts: FloatArray, work: BoolArray) -> float:
    """Return the watts above which a GPU works: half-way from the lowest to the 90% quantile at work.

    Infinite where power at work is not known. Readings of a moment fall into pauses as well.
    """
    known = watts[work & ~np.isnan(watts)]
    if not len(known):
        return float("inf")
    floor = float(np.nanmin(watts))
    return floor + max(float(np.quantile(known, _FULL_POWER)) - floor, _LEAST_SPAN) / 2


def _find_sustained(times: IntArray, active: BoolArray, reach: int, share: float) -> int | None:
    rows = np.flatnonzero(active)
    # most jobs show it early, and a log may hold days
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


def find_activities(series: Mapping[str, DeviceSeries], within: Interval | None = None) -> dict[str, Interval]:
    """Return the activity of each GPU that worked, by device id, with light work before or instead of it."""
    gpus = {name: one for name, one in series.items() if one.device.scope is Scope.GPU and len(one)}
    hosts = [one for one in series.values() if one.device.scope is Scope.HOST and len(one)]
    own = {name: find_activity(one, within) for name, one in gpus.items()}
    found = {name: activity for name, activity in own.items() if activity is not None}
    if hosts:
        for name in list(found or gpus):
            one, until = gpus[name], found[name].start if name in found else None
            light = _find_light_work(one, hosts, within or Interval(int(one.times[0]), int(one.times[-1])), until)
            if light is not None:
                found[name] = Interval(light.start, max(light.end, found[name].end if name in found else 0))
    return found


def _find_light_work(
    gpu: DeviceSeries, hosts: Collection[DeviceSeries], within: Interval, until: int | None = None
) -> Interval | None:
    """Return from first to last sample of light work: a little all the time beside a machine at a limit.

    It must reach the beginning of sustained activity (`until`), if any.
    """
    rows = np.arange(len(gpu))[gpu.rows_between(within.start, (within.end if until is None else until) + 1)]
    used, held = gpu.values(UTILISATION)[rows], gpu.values(MEMORY)[rows]
    is_light = (used >= _LIGHT_USE) & ~(held < _PROCESS_MEMORY)
    last = len(rows) if until is not None else int(np.max(np.flatnonzero(is_light), initial=-1)) + 1
    backwards = is_light[:last][::-1]
    dense = np.flatnonzero(backwards & (np.cumsum(backwards) >= _NEARLY_ALL * np.arange(1, last + 1)))
    if not len(dense):
        return None
    start, end = int(gpu.start[rows[last - 1 - dense[-1]]]) - gpu.shift, int(gpu.end[rows[last - 1]]) - gpu.shift
    # one thread that is busy before the work loads for it
    shortest, limits = (_LIGHT, _MACHINE | _CORE) if until is None else (_LIGHT_BEFORE, _MACHINE)
    if end - start < shortest * 1e6:
        return None
    for host in hosts:
        part = host.rows_between(start + host.shift, end + host.shift)
        at_limit = np.any([host.values(metric)[part] >= limit for metric, limit in limits.items()], axis=0)
        if host.is_beside(gpu) and at_limit.sum() >= max(_MOSTLY * len(at_limit), 1):
            return Interval(start, end if until is None else until)
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
    edges = (run.started, window.start, window.end, run.ended)
    parts = zip(("startup", "steady", "tail"), edges, edges[1:], strict=False)
    return tuple(Phase(kind=kind, interval=Interval(start, end)) for kind, start, end in parts if end > start)


def find_observed_job(hosts: Iterable[DeviceSeries]) -> ObservedJob:
    """Return when the processes of a job were first and last seen, where the log shows time without them around it.

    Of several hosts the earliest and the latest, nothing where one of them did not watch the job.
    """
    seen = [(host, np.flatnonzero(host.known_rows(JOB))) for host in hosts]
    if not seen or not all(len(rows) for _, rows in seen):
        return ObservedJob()
    starts = [int(host.times[rows[0]]) for host, rows in seen if rows[0] > 0]
    ends = [int(host.times[rows[-1]]) for host, rows in seen if rows[-1] < len(host) - 1]
    return ObservedJob(
        started=min(starts) if len(starts) == len(seen) else None, ended=max(ends) if len(ends) == len(seen) else None
    )


def measure_coverage(context: Context) -> float | None:
    """Return the share of the run's time that samples own, over all GPUs, else hosts; None without time."""
    run = context.recording.run
    whole = (run.ended - run.started) / 1e6 * len(run.gpus or run.hosts)
    if whole <= 0 or run.quality.synthetic_time:
        return None
    seen = context.gpus() if run.gpus else context.hosts()
    owned = fsum(float(context.full_series(name).seconds_in_run.sum()) for name in seen)
    return min(owned / whole, 1.0) if owned else None


def summarise_pauses(several: Iterable[DeviceSeries]) -> Pauses | None:
    paused = [(one, one.pause_rows) for one in several if len(one.pause_rows)]
    if not paused:
        return None
    unowned = [one.start[rows] - one.end[rows - 1] for one, rows in paused]
    return Pauses(
        count=max(len(rows) for _, rows in paused),
        longest_seconds=max(float((one.times[rows] - one.times[rows - 1]).max()) for one, rows in paused) / 1e6,
        seconds=float(max(each.sum() for each in unowned)) / 1e6,
    )

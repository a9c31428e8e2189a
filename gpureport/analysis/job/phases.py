"""The job window: from the first to the last sustained activity of any GPU."""

from collections.abc import Collection, Mapping

import numpy as np

from gpureport.analysis.job.light_work import find_light_work
from gpureport.analysis.results import Phase
from gpureport.analysis.series import rest_to_work_power
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.columns import BoolArray, IntArray
from gpureport.findings import Interval, Provenance, Threshold
from gpureport.metrics import Scope
from gpureport.recording import Run

UTILISATION = "gpu_utilization_ratio"
POINT_SAMPLE_SECONDS = 2.0
"""Interval above which a utilisation value is a point sample: it covers at most 1 s (NVML)."""

_BLOCK_ROWS = 4_096
"""Active samples that are searched at a time."""

ACTIVE = Threshold(value=0.12, unit="1", provenance=Provenance.PRAGMATIC, source="stray kernels cause less")
"""Utilisation above which a sample counts as active."""

SHORTEST_GAP = Threshold(
    value=5.0, unit="s", provenance=Provenance.PRAGMATIC, source="with a sample every 1 s, shorter gaps cannot be seen"
)
"""Shortest rest within a job that is an idle gap."""

NO_WORK = "no work"
"""Cause of the start-up finding on a job in which no GPU ever worked."""

LITTLE_WORK = "little work"
"""Cause of the start-up finding on a job in which GPUs worked all along, and never for long above `ACTIVE`."""

WITHOUT_LASTING_WORK = frozenset({NO_WORK, LITTLE_WORK})
"""Both causes: the finding is about the whole run then, and not about its start."""

NO_JOB = "no job"
"""Cause of the finding on a log that goes on after its last job released the GPUs."""

SUSTAINED = 3.0  # s; an autotuning kernel before the first step is shorter
"""Time over which activity must last, or three intervals where that is longer."""

SHARE = 0.6  # lets a stalling input pipeline count as work
"""Share of that time that must be active; half of it where samples are too far apart for kernels to fool them."""

STRAY_KERNEL = 0.35  # a stray kernel of 0.17 s in a window of 0.5 s
"""Utilisation below which a lone sample at the power of rest may be no work."""
UTILISATION_WINDOW = 1.0  # s; NVML: a utilisation value covers at most 1 s
"""Longest time that one utilisation value is a mean over."""

_FEW_BURSTS = 3
"""Active samples before sustained activity that are no autotuning; after it there is none, so that one will do."""


def find_activity(series: DeviceSeries, within: Interval | None = None) -> Interval | None:
    """Return the time from first to last sustained activity of one GPU, None when it never worked.

    Activity is sustained from an active sample on if at least SHARE of the samples in the SUSTAINED seconds after it
    are active, itself included; the end is found the same way backwards. Bursts after it still belong to the job if
    they come at least half as often as within it. So do bursts before it, in a job in which fewer than SHARE of the
    samples are active; fewer than three such samples are autotuning. Where samples are far apart, power also says
    which of them are active.

    Args:
        series: the GPU.
        within: the time that is looked at, all of it where None.
    """
    if within is not None and len(series) and within.start <= series.times[0] and series.times[-1] <= within.end:
        within = None
    return series.memoize(("activity", within), lambda: _find_activity(series, within))


def _find_activity(series: DeviceSeries, within: Interval | None) -> Interval | None:
    known = np.flatnonzero(series.known_rows(UTILISATION))
    if within is not None:
        known = known[(series.times[known] >= within.start) & (series.times[known] <= within.end)]
    times, (active, certain) = series.times, _classify_active(series)
    if len(known) < len(times):
        times, active, certain = times[known], active[known], certain[known]
    least_share = SHARE if series.interval <= POINT_SAMPLE_SECONDS else 0.5
    reach = round(max(SUSTAINED, 3 * series.interval) * 1e6 * 1.05)
    begin = _find_sustained(times, active, certain, reach, least_share)
    # the same from the end on, with time running backwards
    end = _find_sustained(-times[::-1], active[::-1], certain[::-1], reach, least_share)
    if begin is None or end is None:
        return None
    first, last = _include_bursts(active, begin, len(times) - 1 - end)
    first, last = known[[first, last]]
    # where power alone shows work, it began or ended within the second whose utilisation is low
    used = series.values(UTILISATION)
    start = series.start if used[first] > ACTIVE.value else series.times
    stop = series.end if used[last] > ACTIVE.value else series.times
    return Interval(int(start[first]) - series.shift, max(int(stop[last]) - series.shift, int(times[0]) + 1))


def _classify_active(series: DeviceSeries) -> tuple[BoolArray, BoolArray]:
    """Return which samples of a GPU are active, and which of them for certain.

    Where samples are far apart, power decides too. A low sample at the power of work was taken in a short pause. One
    or two samples a little above the limit at the power of rest may be stray kernels of an import.
    """
    used = series.values(UTILISATION)
    active = np.asarray(used > ACTIVE.value, dtype=np.bool_)
    if series.interval <= POINT_SAMPLE_SECONDS:
        return active, active
    power = rest_to_work_power.scale_power(used, series.values("gpu_power_watts"))
    alone = ~(np.append(False, active[:-1]) & np.append(active[1:], False))
    stray = alone & (used < STRAY_KERNEL) & (power <= rest_to_work_power.RESTING_LEVEL.value)
    works = power > rest_to_work_power.WORKING_LEVEL
    return active | works, (active & ~stray) | works


def _find_sustained(times: IntArray, active: BoolArray, is_certain: BoolArray, reach: int, share: float) -> int | None:
    """Return the first active sample that is followed by enough active ones, None without one.

    Args:
        times: stamps in microseconds, never falling.
        active: which samples are active.
        is_certain: which of them are for certain.
        reach: the time ahead.
        share: share of the samples ahead that must be active, the first included, of at least two; one of them must be
            active for certain.
    """
    rows, certain = np.flatnonzero(active), np.flatnonzero(is_certain)
    # most jobs show it in the first block, and a log may hold days
    for block in range(0, len(rows), _BLOCK_ROWS):
        part = rows[block : block + _BLOCK_ROWS]
        ahead = np.searchsorted(times, times[part] + reach, side="right")
        number = np.searchsorted(rows, ahead) - np.searchsorted(rows, part)
        proven = np.searchsorted(certain, ahead) > np.searchsorted(certain, part)
        sustained = part[proven & (number >= share * np.maximum(ahead - part, 2))]
        if len(sustained):
            return int(sustained[0])
    return None


def _include_bursts(active: BoolArray, first: int, last: int) -> tuple[int, int]:
    """Return the first and last active row of a job, bursts around the sustained activity included."""
    share = float(active[first : last + 1].mean()) if last > first else 1.0
    before, after = np.flatnonzero(active[:first][::-1]) + 1, np.flatnonzero(active[last + 1 :]) + 1
    earlier = _measure_dense_reach(before, share / 2, _FEW_BURSTS) if share < SHARE else 0
    return first - earlier, last + _measure_dense_reach(after, share / 2, 1)


def _measure_dense_reach(distances: IntArray, share: float, fewest: int) -> int:
    """Return the distance in rows up to which active rows make up at least `share`, 0 where there are too few of them.

    Args:
        distances: of the active rows from the sustained activity, rising.
        share: the least share of active rows.
        fewest: how many active rows there must be, dense or not.
    """
    dense = np.arange(1, len(distances) + 1) >= share * distances
    dense &= len(distances) >= fewest
    return int(distances[dense][-1]) if dense.any() else 0


def find_activities(series: Mapping[str, DeviceSeries], within: Interval | None = None) -> dict[str, Interval]:
    """Return the activity of each GPU that worked, keyed by device id, with light work before it or in its place."""
    gpus = {name: one for name, one in series.items() if one.device.scope is Scope.GPU and len(one)}
    hosts = [one for one in series.values() if one.device.scope is Scope.HOST and len(one)]
    own = {name: find_activity(one, within) for name, one in gpus.items()}
    found = {name: activity for name, activity in own.items() if activity is not None}
    if hosts:
        for name in list(found or gpus):
            one, until = gpus[name], found[name].start if name in found else None
            light = find_light_work(one, hosts, within or Interval(int(one.times[0]), int(one.times[-1])), until)
            if light is not None:
                found[name] = Interval(light.start, max(light.end, found[name].end if name in found else 0))
    return found


def is_light_work(series: DeviceSeries, within: Interval, active: Interval | None, part: Interval) -> bool:
    """Return whether a GPU did a little all along around the middle of a stretch, by its activity within a job."""
    own, middle = find_activity(series, within), (part.start + part.end) // 2
    return active is not None and active.start < middle and (own is None or middle < own.start)


def find_job_window(run: Run, active: Collection[Interval]) -> Interval | None:
    """Return the time from the first to the last activity of any GPU within the run, None when none worked."""
    return find_work_window(Interval(run.started, run.ended), active)


def find_work_window(whole: Interval, active: Collection[Interval]) -> Interval | None:
    """Return the time from the first to the last activity of any GPU within a time, None when none worked."""
    if not active:
        return None
    start = max(min(interval.start for interval in active), whole.start)
    end = min(max(interval.end for interval in active), whole.end)
    return Interval(start, end) if end > start else None


def split_phases(run: Run, window: Interval | None) -> tuple[Phase, ...]:
    """Return the phases start-up, steady and tail; empty phases are left out."""
    window = window or Interval(run.ended, run.ended)
    parts = (
        ("startup", Interval(run.started, window.start)),
        ("steady", window),
        ("tail", Interval(window.end, run.ended)),
    )
    return tuple(Phase(kind=kind, interval=interval) for kind, interval in parts if interval.end > interval.start)

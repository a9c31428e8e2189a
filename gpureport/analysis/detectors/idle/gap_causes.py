"""Causes of idle gaps, by other series of the same time: other GPUs, events of the run, the host."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gpureport.analysis.detectors.idle import busy_peers
from gpureport.analysis.detectors.idle.busy_peers import POWER, PeerActivity
from gpureport.analysis.job import jobs
from gpureport.analysis.job.job_events import JobEvents
from gpureport.analysis.job.phases import UTILISATION
from gpureport.analysis.rules.evidence import compare_with_limit
from gpureport.analysis.rules.rule import Context
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.signals.power_of_limit import draws_working_power
from gpureport.analysis.thresholds import literature, pragmatic
from gpureport.findings import Evidence, Interval

IOWAIT = "cpu_iowait_ratio"
READS = "host_disk_read_bytes_per_second"
WRITES = "host_disk_write_bytes_per_second"
NO_PROCESS = "no process"
"""Cause of gaps in which the memory of the GPU is empty."""
_NEAR_SECONDS = 2.0
"""How far from a gap its moment may be stamped: a metric is written when its work is done."""

SPINNING = pragmatic(0.99, "1", "a rank that waits in a collective keeps a kernel running all the time")
COLLECTIVE = pragmatic(0.9, "1", "waiting ranks draw less than working ones")
LONG_IOWAIT = literature(0.15, "1", "SageMaker Debugger asks for 50% of one core's time; over all cores it is diluted")
DISK = pragmatic(10e6, "By/s", "less than a slow disk gives")
RISE = 3.0  # times the median rate of the job
COINCIDE = 0.5  # share of a metric's moments in gaps; fewer are chance
FREED = pragmatic(0.5, "1", "share of the gap; a process takes memory long before its first work")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A cause in one or two words, and what was measured of it."""

    name: str
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _HostRates:
    """A host beside the GPU, and the median rates of its disks over the job; 0 where not recorded."""

    series: DeviceSeries
    reads: float
    writes: float


def find_gap_causes(
    context: Context, gaps_by_device: Mapping[str, Sequence[Interval]], events: Sequence[JobEvents], still: float
) -> dict[str, list[Cause]]:
    """Return the cause of each gap of each GPU, `unknown` without evidence."""
    gpus = context.gpus()
    working = {name: one for name, one in gpus.items() if name in context.active}
    used = {
        device: gaps
        for device, gaps in gaps_by_device.items()
        if device in working or draws_working_power(gpus[device])
    }
    activities = busy_peers.find_peer_activity(working, used, still)
    hosts = [_measure_host(host, context.window or context.whole) for host in context.hosts().values()]
    return {
        device: _find_causes(gpus[device], gaps, activities[device], events, hosts, active=context.active.get(device))
        if device in used
        else [Cause(name="unused")] * len(gaps)
        for device, gaps in gaps_by_device.items()
    }


def _find_causes(  # noqa: PLR0913 - all that may lie behind a gap
    series: DeviceSeries,
    gaps: Sequence[Interval],
    activities: Sequence[PeerActivity | None],
    events: Sequence[JobEvents],
    hosts: Sequence[_HostRates],
    *,
    active: Interval | None,
) -> list[Cause]:
    """Return the cause of each gap of one GPU; the host explains none from which it never came back to work."""
    end = int(series.times[-1]) if active is None else active.end
    near = round(max(_NEAR_SECONDS, series.interval / 2) * 1e6)
    by_event = _find_event_causes(events, gaps, near)
    own_hosts = [host for host in hosts if host.series.device.node in {None, series.device.node}]
    return [
        (_judge_peers(activity) if activity else None)
        or by_event[place]
        or _find_freed_gpu(series, gap)
        or (_judge_hosts(gap, own_hosts) if gap.end <= end else None)
        or Cause(name="unknown")
        for place, (gap, activity) in enumerate(zip(gaps, activities, strict=True))
    ]


def _measure_host(host: DeviceSeries, job: Interval) -> _HostRates:
    return _HostRates(
        series=host, reads=_find_median_rate(host, READS, job), writes=_find_median_rate(host, WRITES, job)
    )


def _find_median_rate(host: DeviceSeries, metric: str, job: Interval) -> float:
    values = host.values(metric)[host.rows_between(job.start, job.end)]
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else 0.0


def _find_freed_gpu(series: DeviceSeries, gap: Interval) -> Cause | None:
    """Return that no process held the GPU for most of a gap; None if one did or memory was not recorded."""
    empty = series.memoize("empty", lambda: jobs.find_empty_rows(series))[_find_rows(series, gap)]
    if not len(empty) or (share := float(empty.mean())) < FREED.value:
        return None
    measured = compare_with_limit("time with no memory in use", "share of the gap", share, ">=", FREED)
    return Cause(name=NO_PROCESS, evidence=(measured,))


def _judge_peers(activity: PeerActivity) -> Cause:
    """Return how the other GPUs went on, and whether as ranks do that wait in a collective."""
    utilisation, power_ratio = activity.utilisation, activity.power_ratio
    measured = compare_with_limit(
        UTILISATION,
        "mean of the other GPUs, the lowest",
        utilisation,
        ">=" if utilisation >= SPINNING.value else "<",
        SPINNING,
    )
    # without the power of every peer the cause stays open
    if np.isnan(power_ratio):
        return Cause(name="hang" if utilisation >= SPINNING.value else "peers busy", evidence=(measured,))
    is_waiting = power_ratio < COLLECTIVE.value
    power = compare_with_limit(
        POWER,
        "of the other GPUs in the gap, of what they draw at work",
        power_ratio,
        "<" if is_waiting else ">=",
        COLLECTIVE,
    )
    is_hang = is_waiting and utilisation >= SPINNING.value
    return Cause(name="hang" if is_hang else "peers busy", evidence=(measured, power))


def _find_event_causes(events: Sequence[JobEvents], gaps: Sequence[Interval], near: int) -> list[Cause | None]:
    """Return the cause of each gap by the first events that lie in it.

    Events of which most lie in no gap occur all the time and explain nothing.
    """
    causes: list[Cause | None] = [None] * len(gaps)
    starts = np.array([gap.start for gap in gaps], dtype=np.int64) - near
    ends = np.array([gap.end for gap in gaps], dtype=np.int64) + near
    for each in events:
        first, stop = np.searchsorted(each.times, starts), np.searchsorted(each.times, ends)
        begun, ended = (np.bincount(edges, minlength=len(each.times) + 1) for edges in (first, stop))
        inside = np.cumsum(begun - ended)[:-1] > 0
        if inside.mean() < COINCIDE:
            continue
        what = Evidence(metric=each.source, statistic="moments of the run", observed=float(len(each.times)), unit="")
        for place in np.flatnonzero(stop > first).tolist():
            causes[place] = causes[place] or Cause(name=each.cause, evidence=(what,))
    return causes


def _judge_hosts(gap: Interval, hosts: Sequence[_HostRates]) -> Cause | None:
    """Return the cause by the host: much writing is a checkpoint, reading or waiting for storage is `io`."""
    for host in hosts:
        read, written = _average_rate(host.series, READS, gap), _average_rate(host.series, WRITES, gap)
        if written > read and written >= max(DISK.value, RISE * host.writes):
            return Cause(name="checkpoint", evidence=(compare_with_limit(WRITES, "mean", written, ">=", DISK),))
        waited = _average_in_gap(host.series, IOWAIT, gap)
        if waited >= LONG_IOWAIT.value:
            return Cause(name="io", evidence=(compare_with_limit(IOWAIT, "mean", waited, ">=", LONG_IOWAIT),))
        if read >= max(DISK.value, RISE * host.reads):
            return Cause(name="io", evidence=(compare_with_limit(READS, "mean", read, ">=", DISK),))
    return None


def _average_rate(host: DeviceSeries, metric: str, gap: Interval) -> float:
    """Return the mean rate of the disks, 0 if it is unknown, so that it explains nothing."""
    rate = _average_in_gap(host, metric, gap)
    return 0.0 if np.isnan(rate) else rate


def _find_rows(series: DeviceSeries, gap: Interval) -> slice:
    """Return the rows whose values speak of times within a gap."""
    return series.rows_between(gap.start + series.shift, gap.end + series.shift)


def _average_in_gap(series: DeviceSeries, metric: str, gap: Interval) -> float:
    values = series.values(metric)[_find_rows(series, gap)]
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")

"""Causes of idle gaps, by other series of the same time: other GPUs, events of the run, the host."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpureport.analysis.job import jobs
from gpureport.analysis.job.job_events import JobEvents
from gpureport.analysis.job.phases import UTILISATION
from gpureport.analysis.rules.evidence import compare_with_limit
from gpureport.analysis.rules.rule import Context
from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.signals.power_of_limit import draws_working_power
from gpureport.analysis.thresholds import literature, pragmatic
from gpureport.findings import Evidence, Interval

POWER = "gpu_power_watts"
IOWAIT = "cpu_iowait_ratio"
READS = "host_disk_read_bytes_per_second"
WRITES = "host_disk_write_bytes_per_second"
NO_PROCESS = "no process"
"""Cause of gaps in which the memory of the GPU is empty."""
_NEAR_SECONDS = 2.0
"""How far from a gap its moment may be stamped: a metric is written when its work is done."""


HANG = pragmatic(60.0, "s", "ranks of one job do not wait this long for each other")
PEERS = pragmatic(0.9, "1", "share of the gap in which another GPU worked, with room for its own pauses")
SPINNING = pragmatic(0.99, "1", "a rank that waits in a collective keeps a kernel running all the time")
COLLECTIVE = pragmatic(0.9, "1", "waiting ranks draw less than working ones")
LONG_IOWAIT = literature(0.15, "1", "SageMaker Debugger asks for 50% of one core's time; over all cores it is diluted")
DISK = pragmatic(10e6, "By/s", "less than a slow disk gives")
RISE = pragmatic(3.0, "1", "times the median rate of the job")
COINCIDE = pragmatic(0.5, "1", "share of a metric's moments in gaps; fewer are chance")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Surroundings:
    """What else was recorded: other GPUs that work in the job, hosts, and how near a moment must be."""

    others: tuple[DeviceSeries, ...]
    hosts: tuple[_HostRates, ...]
    tolerance: int


def find_gap_causes(
    context: Context, device: str, gaps: Sequence[Interval], events: Sequence[JobEvents], still: float
) -> list[Cause]:
    """Return the cause of each gap of a GPU, `unknown` without evidence."""
    if device not in context.active and not draws_working_power(context.series[device]):
        return [Cause(name="unused")] * len(gaps)
    around = _gather_surroundings(context, device)
    coinciding = [each for each in events if _mostly_lie_in_gaps(each, gaps, around.tolerance)]
    has_busy_peers = _find_gaps_with_busy_peers(around.others, gaps, still)
    freed_gpus = [_find_freed_gpu(context.series[device], gap) for gap in gaps]
    return [
        _choose_cause(gap, coinciding, around, freed_gpu=free, has_busy_peers=others)
        for gap, free, others in zip(gaps, freed_gpus, has_busy_peers, strict=True)
    ]


def _gather_surroundings(context: Context, device: str) -> _Surroundings:
    own, job = context.series[device], context.window or context.whole
    return _Surroundings(
        others=tuple(one for name, one in context.gpus().items() if name != device and name in context.active),
        hosts=tuple(
            _HostRates(series=one, reads=_find_median_rate(one, READS, job), writes=_find_median_rate(one, WRITES, job))
            for one in context.hosts().values()
            if one.device.node in {None, own.device.node}
        ),
        tolerance=round(max(_NEAR_SECONDS, own.interval / 2) * 1e6),
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


def _choose_cause(
    gap: Interval,
    events: Sequence[JobEvents],
    surroundings: _Surroundings,
    *,
    freed_gpu: Cause | None,
    has_busy_peers: bool,
) -> Cause:
    peer_cause = _judge_peers(surroundings.others, gap) if has_busy_peers else None
    event = next(
        (each for each in events if len(each.times[_find_events_in_gap(each, gap, surroundings.tolerance)])), None
    )
    if peer_cause is None and event is not None:
        what = Evidence(metric=event.source, statistic="moments of the run", observed=float(len(event.times)), unit="")
        return Cause(name=event.cause, evidence=(what,))
    return peer_cause or freed_gpu or _judge_hosts(gap, surroundings.hosts) or Cause(name="unknown")


def _find_gaps_with_busy_peers(others: Sequence[DeviceSeries], gaps: Sequence[Interval], still: float) -> list[bool]:
    """Return which gaps are long and had another GPU at work."""
    start = np.array([gap.start for gap in gaps], dtype=np.int64)
    end = np.array([gap.end for gap in gaps], dtype=np.int64)
    busy = [intervals.overlap_seconds(start, end, _find_busy_spans(one, still)) for one in others]
    seconds = np.array([gap.seconds for gap in gaps])
    worked = np.max(busy, axis=0, initial=-1.0) if busy else np.full(len(gaps), -1.0)
    is_busy: list[bool] = ((seconds >= HANG.value) & (worked >= PEERS.value * seconds)).tolist()
    return is_busy


def _find_busy_spans(series: DeviceSeries, still: float) -> intervals.Spans:

    def find() -> intervals.Spans:
        rows = series.values(UTILISATION) > still
        return intervals.rows_to_spans(series.start, series.end, rows) - series.shift

    return series.memoize(("busy", still), find)


def _judge_peers(others: Sequence[DeviceSeries], gap: Interval) -> Cause:
    """Return how the other GPUs went on, and whether as ranks do that wait in a collective."""
    means = [_average_in_gap(one, UTILISATION, gap) for one in others]
    utilisation = min((mean for mean in means if not np.isnan(mean)), default=0.0)
    # without the power of every peer the cause stays open
    power_ratio = float(np.max([_compute_power_ratio(one, gap) for one in others]))
    measured = compare_with_limit(
        UTILISATION,
        "mean of the other GPUs, the lowest",
        utilisation,
        ">=" if utilisation >= SPINNING.value else "<",
        SPINNING,
    )
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


def _compute_power_ratio(series: DeviceSeries, gap: Interval) -> float:
    """Return the power of a GPU in a gap of another, as a share of its median at work outside; NaN if unknown."""
    power, used = series.values(POWER), series.values(UTILISATION)
    # more at work than not
    rows = series.memoize("at work", lambda: np.flatnonzero((used > 0.5) & (power > 0)))  # noqa: PLR2004 - as said
    inside = _find_rows(series, gap)
    first, stop = np.searchsorted(rows, [inside.start, inside.stop]).tolist()
    working = power[np.concatenate([rows[:first], rows[stop:]])]
    return _average_in_gap(series, POWER, gap) / float(np.median(working)) if len(working) else float("nan")


def _mostly_lie_in_gaps(each: JobEvents, gaps: Sequence[Interval], near: int) -> bool:
    """Return whether most events lie in gaps; events that occur all the time explain nothing."""
    inside = np.zeros(len(each.times), dtype=np.bool_)
    for gap in gaps:
        inside[_find_events_in_gap(each, gap, near)] = True
    return bool(inside.mean() >= COINCIDE.value)


def _find_events_in_gap(each: JobEvents, gap: Interval, near: int) -> slice:
    first, stop = np.searchsorted(each.times, [gap.start - near, gap.end + near])
    return slice(int(first), int(stop))


def _judge_hosts(gap: Interval, hosts: Sequence[_HostRates]) -> Cause | None:
    """Return the cause by the host: much writing is a checkpoint, reading or waiting for storage is `io`."""
    for host in hosts:
        read, written = _average_rate(host.series, READS, gap), _average_rate(host.series, WRITES, gap)
        if written > read and written >= max(DISK.value, RISE.value * host.writes):
            return Cause(name="checkpoint", evidence=(compare_with_limit(WRITES, "mean", written, ">=", DISK),))
        waited = _average_in_gap(host.series, IOWAIT, gap)
        if waited >= LONG_IOWAIT.value:
            return Cause(name="io", evidence=(compare_with_limit(IOWAIT, "mean", waited, ">=", LONG_IOWAIT),))
        if read >= max(DISK.value, RISE.value * host.reads):
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

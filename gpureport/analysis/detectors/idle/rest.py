"""Stretches in which a GPU rests within its job, as far as samples and power show it, and what lies behind each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpureport.analysis.evidence import compare_with_limit
from gpureport.analysis.job import jobs
from gpureport.analysis.job.job_events import JobEvents
from gpureport.analysis.job.phases import ACTIVE, POINT_SAMPLE_SECONDS, UTILISATION, UTILISATION_WINDOW, is_light_work
from gpureport.analysis.results import Job
from gpureport.analysis.rulebook import Context
from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import find_hysteresis_runs
from gpureport.analysis.series.refresh_interval import look_up_documented_period
from gpureport.analysis.signals import load
from gpureport.analysis.signals.power_of_limit import draws_working_power
from gpureport.analysis.thresholds import literature, pragmatic
from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.findings import Evidence, Interval

POWER, _CLOCK = "gpu_power_watts", "gpu_sm_clock_hertz"
READS, WRITES, IOWAIT = "host_disk_read_bytes_per_second", "host_disk_write_bytes_per_second", "cpu_iowait_ratio"
NO_PROCESS = "no process"
"""Cause of gaps in which the memory of the GPU is empty."""
NON_PERIODIC_CAUSES = ("data", "hang", "peers busy", "unused")
"""Causes of gaps that are no part of a period."""
_HALF = 0.5
"""Utilisation at the edge of a gap, and that above which power is that of work."""
_SEVERAL_A_WINDOW = 0.5  # s; only with several samples in what one covers, a reading between shows when work ended
_BRIDGE = 1.6  # s; one sample at 1 s, with jitter
_STRAY_SECONDS = 0.2  # s; a stray kernel, not a training step
_STRAY = 0.35  # a stray kernel of 0.17 s in a window of 0.5 s
_NULL = 10.0  # s; a driver that answers N/A for a moment
_HOLE = 6.0  # rows; so few lost readings of a rest do not hide work
_SETTLED = 3  # rows on both sides of a stray reading; fewer are a burst themselves
_NOISE = 0.2  # of the way from rest to the watts of work; a power sensor at rest stays below it
_LEAST_RISE = 5.0  # W; a sensor that moves by less shows no difference between rest and work
_CHANCE = 0.05  # the usual level of significance, over all places a run could be
_AROUND = 30  # rows; enough to know how the GPU works around a run
_DENSE = 0.2  # share of low samples from which a run could have come up anywhere in the job
_REST_QUANTILE, _REST_TIMES = 0.1, 2.0  # of the job's own rest power at the same clock; twice of it is work
_CLOCK_STEPS = 10  # of the highest clock: rest draws what its clock asks for
_NEAR = 2.0  # s; a metric is written when its work is done
_COINCIDE = 0.5  # share of a metric's moments in gaps; fewer are chance
_WORKED = 0.9  # share of the gap in which another GPU worked, with room for its own pauses
_LONG = 60.0  # s; ranks of one job do not wait this long for each other
SPINNING = pragmatic(0.99, "1", "a rank that waits in a collective keeps a kernel running all the time")
COLLECTIVE = pragmatic(0.9, "1", "waiting ranks draw less than working ones")
LONG_IOWAIT = literature(0.15, "1", "SageMaker Debugger asks for 50% of one core's time; over all cores it is diluted")
DISK = pragmatic(10e6, "By/s", "less than a slow disk gives")
_RISE = 3.0  # times the median rate of the host
FREED = pragmatic(0.5, "1", "share of the gap; a process takes memory long before its first work")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A stretch in which a GPU rested: when, its readings, how many chance explains, and why.

    Attributes:
        seconds: how much of it samples show.
        used: mean utilisation of its readings.
        evidence: what was measured of the cause.
    """

    interval: Interval
    seconds: float
    samples: int
    needed: int
    used: float
    cause: str = "unknown"
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Samples:
    """The samples of a GPU with a utilisation, which lie in the job, and which begin a new stretch."""

    series: DeviceSeries
    rows: IntArray
    times: IntArray
    used: FloatArray
    inside: BoolArray
    breaks: BoolArray


def find_gaps(  # noqa: PLR0913 - a GPU, when it belonged to jobs, and what a gap is
    series: DeviceSeries,
    own_jobs: Sequence[Job],
    whole: Interval,
    *,
    low: float,
    still: float,
    shortest: float,
) -> list[Gap]:
    """Return the stretches of some jobs in which a GPU rested, without a cause.

    A run counts that reaches `low` and never exceeds `still`. Where a reading covers part of the time between samples,
    a low one that draws the power of work fell into a pause of a step and is no rest, and a run must be too long to be
    chance given the samples around it. Samples 2 s apart and less, all at the power of rest, leave no doubt.

    Args:
        series: the samples.
        own_jobs: the jobs; before its first work in one, a GPU is at rest at any utilisation that is no work.
        whole: the run.
        low: utilisation that one sample of a gap must not exceed.
        still: utilisation that ends a gap when exceeded.
        shortest: seconds of a gap at least.
    """
    if not own_jobs:
        return []
    low, still = low + 1e-6, still + 1e-6
    samples = _collect_samples(series, Interval(own_jobs[0].window.start, own_jobs[-1].window.end), low)
    power, working = _find_working_power(samples, low)
    used, interval = samples.used, series.interval
    covered = look_up_documented_period(UTILISATION, series.device.model) or UTILISATION_WINDOW
    if interval > covered:
        is_work = power > working
        if interval <= POINT_SAMPLE_SECONDS:
            # beside work, power is still that of the second before
            low_beside = np.append(False, used <= still)[:-1] & np.append(used <= still, False)[1:]
            is_work &= low_beside
        used = np.where(is_work, np.maximum(used, _HALF), used)
    samples = replace(samples, used=used)
    leads = intervals.to_spans(
        Interval(job.window.start, active.start) for job in own_jobs if (active := job.active.get(series.device.id))
    )
    is_before = intervals.contains(leads, samples.times - series.shift) & (used <= still)
    first, stop = find_hysteresis_runs(np.where(is_before, 0.0, used), enter=low, leave=still, breaks=samples.breaks)
    first, stop = _bridge_short_work(samples, first, stop, still)
    # power this little above rest shows that nothing ran between two samples
    rest = float(np.min(power[~np.isnan(power)], initial=np.inf))
    resting = rest + _NOISE * (working - rest) if np.isfinite(working).all() else np.full(len(used), -np.inf)
    seen = intervals.rows_to_spans(*series.averaging_windows(whole), series.known_rows(UTILISATION))
    level = float(np.median(used[used > still])) / 2 if (used > still).any() else _HALF
    found: list[Gap] = []
    end = np.iinfo(np.int64).min
    for begin, past in zip(first.tolist(), stop.tolist(), strict=True):
        # an edge within a sample must not make a gap long enough, unless samples show the slope
        sampled = (series.end[samples.rows[past - 1]] - series.start[samples.rows[begin]]) / 1e6
        is_long = interval <= _SEVERAL_A_WINDOW or sampled >= shortest
        start, end = max(_find_edge(samples, begin, -1, level), end), _find_edge(samples, past - 1, 1, level)
        if not is_long or end - start < shortest * 1e6 or (power[begin:past] > working[begin:past]).mean() > _HALF:
            continue
        is_seen = interval <= POINT_SAMPLE_SECONDS and (power[begin:past] <= resting[begin:past]).all()
        needed = 1
        if interval > covered and not is_seen:
            needed = max(_find_fewest(used <= still, samples.inside, (first, stop), begin, past), 2)
        if past - begin < needed:
            continue
        for job in own_jobs:
            part = Interval(max(start, job.window.start), min(end, job.window.end))
            active = job.active.get(series.device.id)
            if part.seconds >= shortest and not is_light_work(series, job.interval, active, part):
                inside = intervals.intersection(seen, intervals.to_spans([part]))
                found.append(
                    Gap(
                        interval=part,
                        seconds=intervals.total_seconds(inside),
                        samples=series.count_readings(UTILISATION, samples.rows[begin:past]),
                        needed=needed,
                        used=float(used[begin:past].mean()),
                    )
                )
    return found


def _collect_samples(series: DeviceSeries, window: Interval, low: float) -> _Samples:
    rows = np.flatnonzero(series.known_rows(UTILISATION))
    times, used = series.times[rows], series.values(UTILISATION)[rows]
    breaks = np.append(False, np.diff(times) > max(_NULL + series.interval, 3.5 * series.interval) * 1e6)[: len(rows)]
    behind = np.searchsorted(rows, series.gap_rows)
    breaks[behind[behind < len(rows)]] = True
    # a hole of a few readings does not split a rest
    breaks[1:] &= (np.maximum(used[1:], used[:-1]) > low) | (np.diff(times) > _HOLE * series.interval * 1e6)
    inside = (times >= window.start) & (times <= window.end + series.shift)
    if series.interval > POINT_SAMPLE_SECONDS:
        # a run that began before the job must prove itself within it
        breaks[1:] |= np.diff(inside.astype(np.int8)) > 0
    return _Samples(series=series, rows=rows, times=times, used=used, inside=inside, breaks=breaks)


def _find_working_power(samples: _Samples, low: float) -> tuple[FloatArray, FloatArray]:
    """Return the power beside readings, and the watts above which each is of work; infinite where that is not known.

    Half-way from the lowest to the median at work. Where readings are far apart, twice what the GPU draws at rest in
    the job at the same clock is enough: phases differ in what work draws, and clocks in what rest does.
    """
    series, used = samples.series, samples.used
    power, clock = (series.values(metric)[samples.rows] for metric in (POWER, _CLOCK))
    known, working = power[(used > _HALF) & ~np.isnan(power)], np.full(len(used), np.inf)
    if not len(known) or np.median(known) - np.nanmin(power) < _LEAST_RISE:
        return power, working
    working[:] = (np.nanmin(power) + np.median(known)) / 2
    if series.interval > POINT_SAMPLE_SECONDS:
        step = np.round(_CLOCK_STEPS * clock / max(np.nanmax(clock, initial=0.0), 1.0))
        rest = samples.inside & (used <= low) & ~np.isnan(power)
        for each in np.unique(step[rest & ~np.isnan(step)]):
            least = _REST_TIMES * np.quantile(power[rest & (step == each)], _REST_QUANTILE)
            working[step == each] = min(working[0], least)
    return power, working


def _find_edge(samples: _Samples, inside: int, step: int, level: float) -> int:
    """Return when work ended or began beside a sample: where it passes half of its usual use, else the cell's end."""
    series, outside, used, times = samples.series, inside + step, samples.used, samples.times
    is_parted = not 0 <= outside < len(used) or samples.breaks[max(inside, outside)]
    if is_parted or series.interval > POINT_SAMPLE_SECONDS:
        return int((series.start if step < 0 else series.end)[samples.rows[inside]]) - series.shift
    last, reach = int(times[inside]), UTILISATION_WINDOW * 1e6 + series.interval * 5e5
    while 0 <= outside + step < len(used) and used[outside] < level and abs(int(times[outside]) - last) < reach:
        inside, outside = outside, outside + step
    share = np.clip((level - used[inside]) / max(used[outside] - used[inside], 1e-9), 0, 1)
    return int(times[inside] + share * (times[outside] - times[inside])) - series.shift


def _bridge_short_work(samples: _Samples, first: IntArray, stop: IntArray, still: float) -> tuple[IntArray, IntArray]:
    """Join runs parted by little work: for a moment, or one stray reading between longer runs."""
    if len(first) < 2:  # noqa: PLR2004 - it takes two to be joined
        return first, stop
    work, length, parted = np.append(0.0, np.cumsum(samples.used)), stop - first, np.cumsum(samples.breaks)
    between, busy = first[1:] - stop[:-1], work[first[1:]] - work[stop[:-1]]
    brief = (
        (busy * samples.series.interval <= _STRAY_SECONDS)
        & (between * samples.series.interval <= _BRIDGE)
        & (busy <= still * (between + (length[1:] + length[:-1]) / 2))
    )
    stray = (between == 1) & (busy <= _STRAY) & (np.minimum(length[1:], length[:-1]) >= _SETTLED)
    apart = (parted[first[1:]] > parted[stop[:-1] - 1]) | ~(brief | stray)
    return first[np.append(True, apart)], stop[np.append(apart, True)]


def _find_fewest(low: BoolArray, inside: BoolArray, runs: tuple[IntArray, IntArray], begin: int, past: int) -> int:
    """Return how many low samples in a row chance does not explain in the place of rows [begin, past).

    With a share p of low samples around, of m, k in a row come m * p^k times by chance. Long low runs are left out of
    p but for one sample each, since they are gaps themselves; where low samples are common the run could have come up
    anywhere in the job.
    """
    left, right = max(begin - _AROUND, 0), min(past + _AROUND, len(low))
    around, long = inside[left:right].copy(), 1
    around[begin - left : past - left] = False
    near = slice(int(np.searchsorted(runs[1], left, side="right")), int(np.searchsorted(runs[0], right)))
    for start, end in zip(runs[0][near].tolist(), runs[1][near].tolist(), strict=True):
        if end - start >= max(4, 0.6 * (past - begin)):
            part = slice(max(start - left, 0), end - left)
            long += int(around[part].any())
            around[part] = False
    count = int(around.sum())
    if not count:
        return 1
    share = (float(low[left:right][around].sum()) + long + 0.5) / (count + long + 1)
    places = count if share < _DENSE else max(int(inside.sum()), count)
    return int(np.ceil(np.log(_CHANCE / places) / np.log(share)))


def name_causes(
    context: Context, found: Mapping[str, Sequence[Gap]], events: Sequence[JobEvents]
) -> dict[str, list[Gap]]:
    """Return the gaps of each GPU with the first cause that fits; `unknown` without evidence."""
    named = {}
    for name, gaps in found.items():
        series = context.series[name]
        if name not in context.active and not draws_working_power(series):
            named[name] = [replace(gap, cause="unused") for gap in gaps]
            continue
        waits = intervals.collect_finding_spans(context.findings_on(name), name, load.WAIT_KINDS)
        edges = np.array([(gap.interval.start, gap.interval.end) for gap in gaps], dtype=np.int64).reshape(-1, 2)
        waited = intervals.overlap_seconds(edges[:, 0], edges[:, 1], waits)
        by_event = _list_event_causes(events, gaps, series)
        # the host explains none from which the GPU never came back to work
        end = context.active[name].end if name in context.active else int(series.times[-1])
        named[name] = [
            replace(gap, cause="data")
            if 2 * seconds >= gap.interval.seconds
            else _judge_peers(context, name, gap)
            or event
            or _judge_memory(series, gap)
            or (_judge_hosts(context, series, gap) if gap.interval.end <= end else None)
            or gap
            for gap, seconds, event in zip(gaps, waited.tolist(), by_event, strict=True)
        ]
    return named


def _judge_peers(context: Context, name: str, gap: Gap) -> Gap | None:
    """Return a gap of a minute with how the other GPUs went on: as ranks do that wait in a collective, or otherwise."""
    peers = [one for other, one in context.gpus().items() if other in context.active and other != name]
    if gap.interval.seconds < _LONG or not peers:
        return None
    used, ratios, worked = [], [], []
    for one in peers:
        span = intervals.to_spans([gap.interval])
        values, power = one.find_values(UTILISATION, span), one.find_values(POWER, span)
        at_work = one.values(POWER)[(one.values(UTILISATION) > _HALF) & (one.values(POWER) > 0)]
        used.append(float(values.mean()) if len(values) else 0.0)
        worked.append(float((values > ACTIVE.value).mean()) if len(values) else 0.0)
        ratios.append(float(power.mean() / np.median(at_work)) if len(power) and len(at_work) else np.inf)
    lowest, highest = min(used), max(ratios)
    if max(worked) < _WORKED:
        return None
    is_hang = lowest >= SPINNING.value and (highest < COLLECTIVE.value or np.isinf(highest))
    measured = [
        compare_with_limit(
            UTILISATION,
            "mean of the other GPUs, the lowest",
            lowest,
            ">=" if lowest >= SPINNING.value else "<",
            SPINNING,
        )
    ]
    if np.isfinite(highest):
        relation = "<" if highest < COLLECTIVE.value else ">="
        what = "of the other GPUs in the gap, of what they draw at work"
        measured.append(compare_with_limit(POWER, what, float(highest), relation, COLLECTIVE))
    return replace(gap, cause="hang" if is_hang else "peers busy", evidence=tuple(measured))


def _list_event_causes(events: Sequence[JobEvents], gaps: Sequence[Gap], series: DeviceSeries) -> list[Gap | None]:
    """Return each gap with the first events that lie in it; events of which most lie in no gap explain nothing."""
    causes: list[Gap | None] = [None] * len(gaps)
    near = round(max(_NEAR, series.interval / 2) * 1e6)
    wide = np.array([(gap.interval.start - near, gap.interval.end + near) for gap in gaps], dtype=np.int64).reshape(
        -1, 2
    )
    for event in events:
        if intervals.contains(intervals.union(wide), event.times).mean() < _COINCIDE:
            continue
        first, stop = (np.searchsorted(event.times, edges) for edges in wide.T)
        what = Evidence(metric=event.source, statistic="moments of the run", observed=float(len(event.times)), unit="")
        for place in np.flatnonzero(stop > first).tolist():
            causes[place] = causes[place] or replace(gaps[place], cause=event.cause, evidence=(what,))
    return causes


def _judge_memory(series: DeviceSeries, gap: Gap) -> Gap | None:
    """Return a gap of which no process held the GPU for half or more; None if one did or memory was not recorded."""
    rows = series.rows_between(gap.interval.start + series.shift, gap.interval.end + series.shift)
    empty = series.memoize("empty", lambda: jobs.find_empty_rows(series))[rows]
    if not len(empty) or (share := float(empty.mean())) < FREED.value:
        return None
    measured = compare_with_limit("time with no memory in use", "share of the gap", share, ">=", FREED)
    return replace(gap, cause=NO_PROCESS, evidence=(measured,))


def _judge_hosts(context: Context, series: DeviceSeries, gap: Gap) -> Gap | None:
    """Return a gap with its cause by the host: much writing is a checkpoint, reading or waiting for storage is `io`."""
    span = intervals.to_spans([gap.interval])
    for host in context.hosts().values():
        if host.device.node not in {None, series.device.node}:
            continue
        rates = {metric: _average(host.find_values(metric, span)) for metric in (WRITES, IOWAIT, READS)}
        for metric, cause in ((WRITES, "checkpoint"), (IOWAIT, "io"), (READS, "io")):
            limit = LONG_IOWAIT if metric == IOWAIT else DISK
            if not host.is_recorded(metric):
                continue
            usual = 0.0 if metric == IOWAIT else _RISE * float(np.median(host.known_values(metric)))
            if rates[metric] >= max(limit.value, usual) and (metric != WRITES or rates[WRITES] > rates[READS]):
                return replace(
                    gap, cause=cause, evidence=(compare_with_limit(metric, "mean", rates[metric], ">=", limit),)
                )
    return None


def _average(values: FloatArray) -> float:
    """Return the mean, 0 without a value, so that it explains nothing."""
    return float(values.mean()) if len(values) else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A period in seconds, the share of distances that agree with it, and which events lie beside one that does."""

    seconds: float
    agreeing: float
    members: BoolArray


_STARTS = 4  # rows; fewer gaps are no period
_STRICT = 0.04  # of the period; a few distances agree so closely only by a cause
_LOOSE = 0.10  # of the period, from seven gaps on: steps and checkpoints vary
_MANY = 7  # rows; so many gaps do not fall into step by chance
_TRIED = 200  # distances tried as period at most; more events only repeat them
FEW = 10  # rows; with fewer, chance agrees in three of four distances too often
AGREE = pragmatic(0.75, "1", "share of the distances; other gaps may lie between")
AGREE_FEW = pragmatic(0.90, "1", "distances that vary by 30% pass in 3 of 100 simulated jobs at most, with 75% in 11")


def find_period(starts: IntArray) -> Period | None:
    """Return the longest of the best periods of events, None without one: most distances are multiples of it.

    Args:
        starts: when each began, in microseconds, rising.
    """
    if len(starts) < _STARTS:
        return None
    distances = np.diff(starts) / 1e6
    tolerance, best = _LOOSE if len(starts) >= _MANY else _STRICT, (0.0, 0.0)
    ranks = np.linspace(0, len(distances) - 1, min(len(distances), _TRIED)).round().astype(np.int64)
    for tried in np.unique(np.sort(distances)[ranks]).tolist():
        if tried <= 0:
            continue
        fits = _find_multiples(distances, tried, tolerance)
        seconds = float(distances[fits].sum() / np.rint(distances[fits] / tried).sum())
        fits = _find_multiples(distances, seconds, tolerance)
        # half of what agrees is one period long: else any short distance divides the others
        if fits.any() and (np.rint(distances[fits] / seconds) == 1).mean() >= _HALF:
            best = max(best, (float(fits.mean()), seconds))
    if best[0] < (AGREE_FEW if len(starts) < FEW else AGREE).value:
        return None
    fits = _find_multiples(distances, best[1], tolerance)
    return Period(seconds=best[1], agreeing=best[0], members=np.append(fits, False) | np.append(False, fits))


def _find_multiples(distances: FloatArray, seconds: float, tolerance: float) -> BoolArray:
    times = np.rint(distances / seconds)
    return np.asarray((times >= 1) & (np.abs(distances - times * seconds) <= tolerance * seconds), dtype=np.bool_)

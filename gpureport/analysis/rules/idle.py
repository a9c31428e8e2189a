"""GPUs that rest within their job: when, why, and whether it recurs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from gpureport.analysis import certainty, missing_metrics, phrases
from gpureport.analysis.job import jobs
from gpureport.analysis.job.events import REQUESTS, JobEvents, find_job_events, is_training
from gpureport.analysis.job.phases import ACTIVE, POINT_SAMPLE_SECONDS, UTILISATION, UTILISATION_WINDOW, is_light_work
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.results import Job
from gpureport.analysis.rulebook import Context, Limits, rule
from gpureport.analysis.rules.recurrence import FEW, STRICT, Period, find_period
from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.signals.power_of_limit import draws_working_power
from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.findings import Confidence, Evidence, Finding, Interval, NotJudged, Severity

_GAP, _STALL = "idle_gap", "periodic_stall"
_POWER, _CLOCK = "gpu_power_watts", "gpu_sm_clock_hertz"
_READS, _WRITES = "host_disk_read_bytes_per_second", "host_disk_write_bytes_per_second"
_OUT_OF_STEP = {"data", "hang", "peers busy", "unused", REQUESTS}  # causes of gaps that are no part of a period
_NO_LOSS = {"unknown", "periodic", REQUESTS}  # causes that leave open whether the job had anything to do
_HALF = 0.5  # of full use: what a low reading at the power of work stands for; also of samples, of distances
_SEVERAL_A_WINDOW = 0.5  # s; only with several samples in what one covers, a reading between shows when work ended
_BRIDGE = 1.6  # s; one sample at 1 s, with jitter
_STRAY_SECONDS = 0.2  # s; a stray kernel, not a training step
_STRAY = 0.35  # a stray kernel of 0.17 s in a window of 0.5 s
_SETTLED = 3  # rows on both sides of a stray reading; fewer are a burst themselves
_NULL = 10.0  # s; a driver that answers N/A for a moment
_HOLE = 6.0  # rows; so few lost readings of a rest do not hide work
_NOISE = 0.2  # of the way from rest to the watts of work; a power sensor at rest stays below it
_LEAST_RISE = 5.0  # W; a sensor that moves by less shows no difference between rest and work
_REST_QUANTILE, _REST_TIMES = 0.1, 2.0  # of the job's own rest power at the same clock; twice of it is work
_CLOCK_STEPS = 10  # of the highest clock: rest draws what its clock asks for
_CHANCE = 0.05  # the usual level of significance, over all places a run could be
_AROUND = 30  # rows; enough to know how the GPU works around a run
_DENSE = 0.2  # share of low samples from which a run could have come up anywhere in the job
_NEAR = 2.0  # s; a metric is written when its work is done
_LONG = 60.0  # s; ranks of one job do not wait this long for each other
_RISE = 3.0  # times the median rate of the host
_WORKED = 0.9  # share of the gap in which another GPU worked, with room for its own pauses
_MANY_BURSTS, _NEARLY_ALL = 8, 0.9  # gaps; fewer do not show how work comes; one spell of work in ten may be long


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A stretch in which a GPU rested, and why.

    `seconds` of it are seen by samples, `samples` are readings, of which chance explains fewer than `needed` in a row,
    `used` is their mean, `evidence` what was measured of the cause.
    """

    interval: Interval
    seconds: float
    samples: int
    needed: int
    used: float
    cause: str = "unknown"
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Readings:
    """The utilisation of a GPU, one reading a row of `rows`.

    `power` above `working` is that of work, `inside` the readings between the first and the last work, `breaks` those
    that begin a new stretch.
    """

    series: DeviceSeries
    rows: IntArray
    times: IntArray
    used: FloatArray
    power: FloatArray
    working: FloatArray
    inside: BoolArray
    breaks: BoolArray


@rule(_GAP)
def find_idle_gaps(context: Context, limits: Limits) -> Iterator[Finding | NotJudged]:
    """Yield a finding for each GPU and cause, one for each period, and the GPUs without utilisation."""
    if context.whole.seconds < limits.shortest:
        for kind in (_GAP, _STALL):
            yield missing_metrics.too_short(kind, context.whole.seconds, limits.shortest)
        return
    if context.window is None:
        return
    events, stalls = find_job_events(context.recording), list[tuple[Period, list[str], list[Gap]]]()
    trains = is_training(context.recording, events)
    for name, series in context.gpus().items():
        if not series.is_recorded(UTILISATION):
            yield from (missing_metrics.not_recorded(kind, name, UTILISATION) for kind in (_GAP, _STALL))
            continue
        gaps = _name_causes(context, limits, series, find_gaps(series, context.jobs, context.whole, limits), events)
        share = sum(gap.seconds for gap in gaps) / intervals.total_seconds(context.work)
        between = _average_between(context, series, gaps)
        if not trains:
            gaps = _mark_requests(gaps, limits, share, between)
        yield from _build_gap_findings(context, limits, series, gaps, share, between)
        own = [gap for gap in gaps if gap.cause not in _OUT_OF_STEP]
        if period := find_period([gap.interval.start for gap in own], limits.agree, limits.agree_few):
            same = [stall for stall in stalls if abs(stall[0].seconds / period.seconds - 1) <= STRICT]
            stalls += [] if same else (same := [(period, [], [])])
            same[0][1].append(name)
            same[0][2].extend(gap for gap, is_member in zip(own, period.members, strict=True) if is_member)
    yield from (_build_stall_finding(context, limits, *stall) for stall in stalls)


def find_gaps(series: DeviceSeries, own_jobs: Sequence[Job], whole: Interval, limits: Limits) -> list[Gap]:
    """Return the stretches of some jobs in which a GPU rested, without a cause."""
    if not own_jobs:
        return []
    one = _read(series, Interval(own_jobs[0].window.start, own_jobs[-1].window.end), limits)
    first, stop = _find_low_runs(one, own_jobs, limits)
    busy = one.used[one.used > limits.still + 1e-6]
    level = float(np.median(busy)) / 2 if len(busy) else _HALF
    seen = intervals.rows_to_spans(*series.averaging_windows(whole), series.known_rows(UTILISATION))
    shortest = max(limits.shortest, series.refresh_period(UTILISATION) or 0.0)
    found: list[Gap] = []
    end = np.iinfo(np.int64).min
    for begin, past in zip(first.tolist(), stop.tolist(), strict=True):
        # an edge within a sample must not make a gap long enough, unless samples show the slope
        sampled = (series.end[one.rows[past - 1]] - series.start[one.rows[begin]]) / 1e6
        if sampled < shortest - (0 if series.interval > _SEVERAL_A_WINDOW else 3 * UTILISATION_WINDOW):
            continue
        start, end = max(_find_edge(one, begin, -1, level), end), _find_edge(one, past - 1, 1, level)
        if end - start < shortest * 1e6:
            continue
        needed = _find_fewest(one, (first, stop), begin, past, limits)
        if past - begin < needed:
            continue
        for job in own_jobs:
            part = Interval(max(start, job.window.start), min(end, job.window.end))
            active = job.active.get(series.device.id)
            if part.seconds >= shortest and not is_light_work(series, job.interval, active, part):
                gap = Gap(
                    interval=part,
                    seconds=intervals.total_seconds(intervals.intersection(seen, intervals.to_spans([part]))),
                    samples=series.count_readings(UTILISATION, one.rows[begin:past]),
                    needed=needed,
                    used=float(one.used[begin:past].mean()),
                )
                found.append(gap)
    return found


def _read(series: DeviceSeries, window: Interval, limits: Limits) -> _Readings:
    """Return the readings of a GPU; where they are far apart, a low one at the power of work counts as half used.

    Power is that of work half-way from the lowest to the median at work. Beyond 2 s, twice what the GPU draws at rest
    in the job at the same clock is enough: phases differ in what work draws, and clocks in what rest does.
    """
    rows, interval = np.flatnonzero(series.known_rows(UTILISATION)), series.interval
    times, used, idle = series.times[rows], series.values(UTILISATION)[rows], limits.idle + 1e-6
    inside = (times >= window.start) & (times <= window.end + series.shift)
    distances = np.diff(times, prepend=times[:1])
    breaks = distances > max(_NULL + interval, 3.5 * interval) * 1e6
    behind = np.searchsorted(rows, series.gap_rows)
    breaks[behind[behind < len(rows)]] = True
    # a hole of a few readings does not split a rest
    breaks &= (np.maximum(used, np.roll(used, 1)) > idle) | (distances > _HOLE * interval * 1e6)
    if interval > POINT_SAMPLE_SECONDS:
        breaks |= np.diff(inside, prepend=inside[:1])  # a run that began before the job must prove itself within it
    power, clock = (series.values(metric)[rows] for metric in (_POWER, _CLOCK))
    known, working = power[(used > _HALF) & ~np.isnan(power)], np.full(len(used), np.inf)
    if len(known) and np.median(known) - np.nanmin(power) >= _LEAST_RISE:
        working[:] = (np.nanmin(power) + np.median(known)) / 2
        step = np.round(_CLOCK_STEPS * clock / max(np.nanmax(clock, initial=0.0), 1.0))
        rest = inside & (used <= idle) & ~np.isnan(power)
        for each in np.unique(step[rest & ~np.isnan(step)]) if interval > POINT_SAMPLE_SECONDS else ():
            least = _REST_TIMES * np.quantile(power[rest & (step == each)], _REST_QUANTILE)
            working[step == each] = min(working[0], least)
    is_work = power > working
    if interval <= POINT_SAMPLE_SECONDS:
        # beside work, power is still that of the second before
        low = np.pad(used <= limits.still + 1e-6, 1)
        is_work &= low[:-2] & low[2:]
    if interval > (series.refresh_period(UTILISATION) or UTILISATION_WINDOW):
        used = np.where(is_work, np.maximum(used, _HALF), used)
    return _Readings(
        series=series, rows=rows, times=times, used=used, power=power, working=working, inside=inside, breaks=breaks
    )


def _find_low_runs(one: _Readings, own_jobs: Sequence[Job], limits: Limits) -> tuple[IntArray, IntArray]:
    """Return the runs of low readings that reach the utilisation of rest, or lie before the first work of the GPU.

    Those parted by little work are one: for a moment, or by one stray reading between longer runs.
    """
    still, name, interval = limits.still + 1e-6, one.series.device.id, one.series.interval
    leads = [Interval(job.window.start, job.active[name].start) for job in own_jobs if name in job.active]
    is_before = intervals.contains(intervals.to_spans(leads), one.times - one.series.shift) & (one.used <= still)
    used = np.where(is_before, 0.0, one.used)
    first, stop = intervals.find_hysteresis_runs(used, enter=limits.idle + 1e-6, leave=still, breaks=one.breaks)
    work, length, parted = np.append(0.0, np.cumsum(one.used)), stop - first, np.cumsum(one.breaks)
    between, busy = first[1:] - stop[:-1], work[first[1:]] - work[stop[:-1]]
    brief = (busy * interval <= _STRAY_SECONDS) & (between * interval <= _BRIDGE)
    brief &= busy <= still * (between + (length[1:] + length[:-1]) / 2)
    stray = (between == 1) & (busy <= _STRAY) & (np.minimum(length[1:], length[:-1]) >= _SETTLED)
    apart = (parted[first[1:]] > parted[stop[:-1] - 1]) | ~(brief | stray)
    return first[np.append(True, apart)[: len(first)]], stop[np.append(apart, True)[: len(stop)]]


def _find_edge(one: _Readings, inside: int, step: int, level: float) -> int:
    """Return when work ended or began beside a reading: where it passes half of its usual use, else the cell's end."""
    series, outside, used, times = one.series, inside + step, one.used, one.times
    is_parted = not 0 <= outside < len(used) or one.breaks[max(inside, outside)]
    if is_parted or series.interval > POINT_SAMPLE_SECONDS:
        return int((series.start if step < 0 else series.end)[one.rows[inside]]) - series.shift
    last, reach = int(times[inside]), UTILISATION_WINDOW * 1e6 + series.interval * 5e5
    while 0 <= outside + step < len(used) and used[outside] < level and abs(int(times[outside]) - last) < reach:
        inside, outside = outside, outside + step
    share = min(max((level - used[inside]) / max(used[outside] - used[inside], 1e-9), 0.0), 1.0)
    return int(times[inside] + share * (times[outside] - times[inside])) - series.shift


def _find_fewest(one: _Readings, runs: tuple[IntArray, IntArray], begin: int, past: int, limits: Limits) -> int:
    """Return how many low readings in a row are a rest in the place of readings [begin, past); more than any at work.

    Most that draw the power of work are none. One will do where it covers the time since the one before, and where
    readings are near and all draw the power of rest. Else chance must not explain them: with a share p of low readings
    around, of m, k in a row come m * p^k times. Long low runs are left out of p but for one reading each, since they
    are gaps themselves; where low readings are common the run could have come up anywhere in the job.
    """
    own, interval = slice(begin, past), one.series.interval
    if (one.power[own] > one.working[own]).mean() > _HALF:
        return len(one.rows) + 1
    if interval <= POINT_SAMPLE_SECONDS and np.isfinite(one.working).all():
        rest = float(np.nanmin(one.power))
        # power this little above rest shows that nothing ran between two readings
        if (one.power[own] <= rest + _NOISE * (one.working[own] - rest)).all():
            return 1
    if interval <= (one.series.refresh_period(UTILISATION) or UTILISATION_WINDOW):
        return 1
    left, right = max(begin - _AROUND, 0), min(past + _AROUND, len(one.used))
    around, long = one.inside[left:right].copy(), 1
    around[begin - left : past - left] = False
    near = slice(int(np.searchsorted(runs[1], left, side="right")), int(np.searchsorted(runs[0], right)))
    for start, end in zip(runs[0][near].tolist(), runs[1][near].tolist(), strict=True):
        if end - start >= max(4, 0.6 * (past - begin)):
            part = slice(max(start - left, 0), end - left)
            long += int(around[part].any())
            around[part] = False
    if not (count := int(around.sum())):
        return 2
    low = int((one.used[left:right][around] <= limits.still + 1e-6).sum())
    share = (low + long + 0.5) / (count + long + 1)
    places = count if share < _DENSE else max(int(one.inside.sum()), count)
    return max(int(np.ceil(np.log(_CHANCE / places) / np.log(share))), 2)


def _name_causes(
    context: Context, limits: Limits, series: DeviceSeries, gaps: Sequence[Gap], events: Sequence[JobEvents]
) -> list[Gap]:
    """Return the gaps of a GPU with the first cause that fits; of those without one, `periodic` where they recur."""
    name = series.device.id
    if name not in context.active and not draws_working_power(series):
        return [replace(gap, cause="unused") for gap in gaps]
    waits = intervals.to_spans(span for found in context.findings_on(name) for span in found.intervals)
    edges = np.array([(gap.interval.start, gap.interval.end) for gap in gaps], dtype=np.int64).reshape(-1, 2)
    waited = intervals.overlap_seconds(edges[:, 0], edges[:, 1], waits).tolist()
    by_event = _find_event_causes(events, gaps, max(_NEAR, series.interval / 2))
    # the host explains none from which the GPU never came back to work
    last = context.active[name].end if name in context.active else int(series.times[-1])
    named = [
        replace(gap, cause="data")
        if 2 * seconds >= gap.interval.seconds
        else _judge_peers(context, limits, name, gap)
        or event
        or _judge_memory(limits, series, gap)
        or (_judge_hosts(context, limits, series, gap) if gap.interval.end <= last else None)
        or gap
        for gap, seconds, event in zip(gaps, waited, by_event, strict=True)
    ]
    in_step = [place for place, gap in enumerate(named) if gap.cause not in _OUT_OF_STEP]
    period = find_period([named[place].interval.start for place in in_step], limits.agree, limits.agree_few)
    for place, recurs in zip(in_step, period.members.tolist() if period else (), strict=False):
        if recurs and named[place].cause == "unknown":
            named[place] = replace(named[place], cause="periodic")
    return named


def _judge_peers(context: Context, limits: Limits, name: str, gap: Gap) -> Gap | None:
    """Return a gap of a minute with how the other GPUs went on: as ranks do that wait in a collective, or otherwise."""
    peers = [one for other, one in context.gpus().items() if other in context.active and other != name]
    if gap.interval.seconds < _LONG or not peers:
        return None
    used, ratios, worked = [], [], []
    for one in peers:
        span = intervals.to_spans([gap.interval])
        values, power = one.find_values(UTILISATION, span), one.find_values(_POWER, span)
        at_work = one.values(_POWER)[(one.values(UTILISATION) > _HALF) & (one.values(_POWER) > 0)]
        used.append(float(values.mean()) if len(values) else 0.0)
        worked.append(float((values > ACTIVE.value).mean()) if len(values) else 0.0)
        ratios.append(float(power.mean() / np.median(at_work)) if len(power) and len(at_work) else np.inf)
    if max(worked) < _WORKED:
        return None
    spin, waiting = min(used) >= limits.spinning, max(ratios) < limits.collective
    what = "mean of the other GPUs, the lowest"
    measured = [limits.compare(UTILISATION, what, min(used), ">=" if spin else "<", "spinning")]
    if np.isfinite(max(ratios)):
        what = "of the other GPUs in the gap, of what they draw at work"
        measured.append(limits.compare(_POWER, what, max(ratios), "<" if waiting else ">=", "collective"))
    is_hang = spin and (waiting or np.isinf(max(ratios)))
    return replace(gap, cause="hang" if is_hang else "peers busy", evidence=tuple(measured))


def _find_event_causes(events: Sequence[JobEvents], gaps: Sequence[Gap], near: float) -> list[Gap | None]:
    """Return each gap with the first events that lie in it; events of which most lie in no gap explain nothing."""
    causes: list[Gap | None] = [None] * len(gaps)
    edges = [(gap.interval.start - near * 1e6, gap.interval.end + near * 1e6) for gap in gaps]
    wide = np.array(edges, dtype=np.int64).reshape(-1, 2)
    for event in events:
        if intervals.contains(intervals.union(wide), event.times).mean() < _HALF:
            continue
        first, stop = np.searchsorted(event.times, wide.T)
        what = Evidence(metric=event.source, statistic="moments of the run", observed=float(len(event.times)), unit="")
        for place in np.flatnonzero(stop > first).tolist():
            causes[place] = causes[place] or replace(gaps[place], cause=event.cause, evidence=(what,))
    return causes


def _judge_memory(limits: Limits, series: DeviceSeries, gap: Gap) -> Gap | None:
    """Return a gap in half of which or more no process held the GPU; None if one did or memory was not recorded."""
    rows = series.rows_between(gap.interval.start + series.shift, gap.interval.end + series.shift)
    empty = jobs.find_empty_rows(series)[rows]
    share = float(empty.mean()) if len(empty) else 0.0
    if share < limits.freed:
        return None
    measured = limits.compare("time with no memory in use", "share of the gap", share, ">=", "freed")
    return replace(gap, cause="no process", evidence=(measured,))


def _judge_hosts(context: Context, limits: Limits, series: DeviceSeries, gap: Gap) -> Gap | None:
    """Return a gap in which a host wrote far more than elsewhere, and more than it read, as at a checkpoint."""
    span = intervals.to_spans([gap.interval])
    for host in context.hosts().values():
        wrote, read = host.find_values(_WRITES, span), host.find_values(_READS, span)
        if host.device.node in {None, series.device.node} and len(wrote):
            mean, usual = float(wrote.mean()), float(np.median(host.known_values(_WRITES)))
            if mean >= max(limits.disk, _RISE * usual) and not (len(read) and read.mean() >= mean):
                measured = limits.compare(_WRITES, "mean", mean, ">=", "disk")
                return replace(gap, cause="checkpoint", evidence=(measured,))
    return None


def _average_between(context: Context, series: DeviceSeries, gaps: Sequence[Gap]) -> float:
    """Return the mean utilisation of a GPU in its jobs outside its gaps, 1 if no time is left."""
    held = intervals.difference(context.work, intervals.to_spans(gap.interval for gap in gaps))
    used = series.values(UTILISATION)
    seconds = intervals.overlap_seconds(*series.averaging_windows(context.whole), held) * ~np.isnan(used)
    return float(np.nansum(used * seconds) / seconds.sum()) if seconds.sum() > 0 else 1.0


def _mark_requests(gaps: list[Gap], limits: Limits, lost: float, between: float) -> list[Gap]:
    """Return the gaps, all of requests if no cause is known and there is little work between them.

    Gaps of one period count only if they take most of the job, since requests have no period.
    """
    open_causes = {"unknown", "periodic"} if lost >= _HALF else {"unknown"}
    if len(gaps) < _MANY_BURSTS or any(gap.cause not in open_causes for gap in gaps):
        return gaps
    work = [(after.interval.start - before.interval.end) / 1e6 for before, after in pairwise(gaps)]
    long_work = float(np.quantile(work, _NEARLY_ALL))
    if long_work > limits.burst and between >= limits.sparse:
        return gaps
    measured = limits.compare("work between two gaps", "90% quantile", long_work, "<=", "burst")
    return [replace(gap, cause=REQUESTS, evidence=(measured,)) for gap in gaps]


def _rate_severity(limits: Limits, share: float) -> Severity:
    if share >= limits.problem:
        return Severity.PROBLEM
    return Severity.WARNING if share >= limits.warning else Severity.INFO


def _build_gap_findings(  # noqa: PLR0913, PLR0917 - the gaps, and how much of the job they are
    context: Context, limits: Limits, series: DeviceSeries, gaps: Sequence[Gap], share: float, between: float
) -> Iterator[Finding]:
    """Yield a finding for each cause of the gaps of one GPU, as grave as all its gaps together."""
    for cause in dict.fromkeys(gap.cause for gap in gaps):
        own = [gap for gap in gaps if gap.cause == cause]
        # a job with little work to do is no problem, and a GPU that never worked has a finding of its own
        is_little = between < limits.sparse and cause in _NO_LOSS
        severity = _rate_severity(limits, share)
        if severity is Severity.PROBLEM and (is_little or cause in {"unused", REQUESTS}):
            severity = Severity.WARNING
        shortest, least = min(gap.interval.seconds for gap in own), min(own, key=lambda gap: gap.samples - gap.needed)
        confidence = certainty.confidence_by_readings(min(gap.samples for gap in own), series.interval)
        if shortest < limits.shortest + 1.5 * series.resolution(UTILISATION):
            confidence = certainty.lowest_confidence(confidence, Confidence.MEDIUM)
        used = float(np.average([gap.used for gap in own], weights=[gap.samples for gap in own]))
        evidence = [
            limits.compare(UTILISATION, "mean", used, "<=", "still"),
            limits.compare("duration", "length" if len(own) == 1 else "shortest", shortest, ">=", "shortest"),
            Evidence(metric="idle time of this GPU in gaps", statistic="share of the job", observed=share, unit="1"),
        ]
        if is_little:
            what = "mean between the gaps of this GPU"
            evidence.append(limits.compare(UTILISATION, what, between, "<", "sparse"))
        ruled_out = ["missing samples: a stretch without samples is a log gap"]
        if least.needed > 1:
            what = f"{least.samples} low samples in a row; {least.needed} would already be unlikely by chance"
            ruled_out.append(f"chance: {what}")
        if len(context.gpus()) > 1:
            ruled_out.append("start-up and tail of the job, which are counted over all GPUs")
        found = KINDS[_GAP].finding(
            severity,
            confidence,
            [series.device.id],
            [*evidence, *own[0].evidence],
            spans=[gap.interval for gap in own],
            lost=sum(gap.seconds for gap in own),
            cause=cause,
            samples=sum(gap.samples for gap in own),
            ruled_out=ruled_out,
            case=_place(series, own, cause),
            gpu=phrases.gpu_name(series.device.id),
            length=phrases.duration(sum(gap.interval.seconds for gap in own)),
            count=str(len(own)),
        )
        yield replace(found, recommendation=KINDS[_GAP].advise(cause))


def _place(series: DeviceSeries, gaps: Sequence[Gap], cause: str) -> str:
    """Return where gaps of one cause lie; it is open whether a job was running, unless the log shows it."""
    is_open = max(gap.interval.seconds for gap in gaps) >= jobs.FREE_BETWEEN_JOBS
    is_open &= not jobs.records_occupancy(series)
    if cause == "no process":
        return cause
    if len(gaps) > 1:
        return "several, open" if is_open else "several"
    # of several GPUs one may begin to work later than others, or never work again
    if gaps[0].interval.start <= series.times[0]:
        return "first"
    if gaps[0].interval.end + series.shift >= series.times[-1]:
        return "last"
    return "open" if is_open else ""


def _build_stall_finding(
    context: Context, limits: Limits, period: Period, names: Sequence[str], gaps: Sequence[Gap]
) -> Finding:
    kind = KINDS[_STALL]
    lost = sum(gap.seconds for gap in gaps)
    mean, share = lost / len(gaps), lost / intervals.total_seconds(context.work) / len(names)
    cause = Counter(gap.cause for gap in gaps).most_common(1)[0][0]
    known = cause if cause in kind.says else None
    agree = "agree_few" if len(gaps) < FEW * len(names) else "agree"
    longest = max(context.series[name].interval for name in names)
    confidence = certainty.confidence_by_readings(len(gaps) // len(names) - 1, longest)
    what = "share that are multiples of the period"
    found = kind.finding(
        _rate_severity(limits, share),
        confidence if known else certainty.lowest_confidence(confidence, Confidence.MEDIUM),
        names,
        [
            Evidence(metric="period", statistic="mean distance of starts", observed=period.seconds, unit="s"),
            limits.compare("distances of starts", what, period.agreeing, ">=", agree),
            Evidence(metric="idle time", statistic="mean of one period", observed=mean, unit="s"),
            Evidence(metric="idle time", statistic="share of the job", observed=share, unit="1"),
        ],
        spans=intervals.to_intervals(intervals.to_spans(gap.interval for gap in gaps)),
        lost=lost,
        cause=known,
        samples=sum(gap.samples for gap in gaps),
        ruled_out=["chance: the distances between starts are multiples of one period"],
        gpus=phrases.gpu_names(names, tuple(context.gpus())),
        period=phrases.duration(period.seconds),
        mean=phrases.duration(mean),
        share=phrases.percent(share),
    )
    return replace(found, period_seconds=period.seconds)

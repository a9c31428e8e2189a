"""Idle GPUs: gaps in a job (with cause and period), start-up, tail, and logs without work."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import compress, pairwise

import numpy as np

from gpureport.analysis import doubts
from gpureport.analysis.job import events, jobs
from gpureport.analysis.job.events import REQUESTS, JobEvents
from gpureport.analysis.job.jobs import ACTIVE, LITTLE_WORK, NO_JOB, NO_WORK, STEPS
from gpureport.analysis.results import Job
from gpureport.analysis.rulebook import KINDS, Context, Found, Limits, measured, rule
from gpureport.analysis.rules.low_use import find_phases
from gpureport.analysis.rules.rests import FEW, STRICT, Gap, Period, find_gaps, find_period
from gpureport.analysis.series import CPU, MEMORY, POWER, UTILISATION
from gpureport.analysis.series.clock_and_power import mean, median
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import difference, intersection, overlap_seconds, to_spans, total_seconds
from gpureport.analysis.series.statistics import IDLE_RATIO
from gpureport.columns import FloatArray
from gpureport.findings import Confidence, Evidence, Finding, Interval, Severity

_GAP, _STALL, _START, _TAIL = "idle_gap", "periodic_stall", "startup_idle", "tail_idle"
_READS, _WRITES = "host_disk_read_bytes_per_second", "host_disk_write_bytes_per_second"
_OUT_OF_STEP = {"data", "hang", "peers busy", "unused", REQUESTS}
_NO_LOSS = {"unknown", "periodic", REQUESTS}
_HALF = 0.5  # share of the job, and of full use
_NEAR = 2.0  # seconds; a metric is logged just after its work
_LONG = 60.0  # seconds; ranks of a healthy job do not wait this long for each other
_RISE = 3.0  # multiple of the host's median write rate
_WORKED = 0.9  # share of the gap in which another GPU was busy; the rest may be its pauses
# fewer gaps or bursts do not show a pattern; a tenth of the bursts may be long
_MANY_BURSTS, _NEARLY_ALL = 8, 0.9

_BURSTS = 0.05  # share of the time above 12%; a larger one is more than autotuning
_LONE_SECONDS = 2.0  # seconds; a value covers at most 1 s (NVML), so one alone does not show a rest
_ALONG = 0.25  # maximum share of time at 5% or less in a job that works a little throughout

Cause = tuple[str, Sequence[Evidence]]
Stall = tuple[Period, list[str], list[Gap]]


@rule(_GAP)
def find_idle_gaps(context: Context, limits: Limits) -> Found:
    if context.whole.seconds < limits.shortest:
        yield from (doubts.too_short(kind, context.whole.seconds, limits.shortest) for kind in (_GAP, _STALL))
    if context.whole.seconds < limits.shortest or not context.jobs:
        return
    known, stalls = events.find_job_events(context.recording), list[Stall]()
    trains = events.is_training(context.recording, known)
    for name, series in context.gpus().items():
        if not series.is_recorded(UTILISATION):
            yield from (doubts.not_recorded(kind, name, UTILISATION) for kind in (_GAP, _STALL))
            continue
        gaps = find_gaps(series, context.jobs, context.whole, limits)
        _name_causes(context, limits, series, gaps, known)
        share = sum(gap.seconds for gap in gaps) / total_seconds(context.work)
        held = difference(context.work, to_spans(gap.interval for gap in gaps))
        used = series.values(UTILISATION)
        seconds = series.seconds_inside(held, context.whole) * ~np.isnan(used)
        between = float(np.nansum(used * seconds) / seconds.sum()) if seconds.sum() > 0 else 1.0
        if not trains:
            _mark_requests(gaps, limits, share, between)
        own = [gap for gap in gaps if gap.cause not in _OUT_OF_STEP]
        if period := find_period([gap.interval.start for gap in own], limits.agree, limits.agree_few):
            regular = list(compress(own, period.members))
            for gap in regular:
                gap.cause = "periodic" if gap.cause == "unknown" else gap.cause
            same = [stall for stall in stalls if abs(stall[0].seconds / period.seconds - 1) <= STRICT]
            stalls += [] if same else (same := [(period, [], [])])
            same[0][1].append(name)
            same[0][2].extend(regular)
        yield from _build_gap_findings(context, limits, series, gaps, share, between)
    yield from (_build_stall_finding(context, limits, *stall) for stall in stalls)


def _name_causes(
    context: Context, limits: Limits, series: DeviceSeries, gaps: Sequence[Gap], known: Sequence[JobEvents]
) -> None:
    name = series.device.id
    edges = np.array([(gap.interval.start, gap.interval.end) for gap in gaps], dtype=np.int64).reshape(-1, 2)
    waited = overlap_seconds(edges[:, 0], edges[:, 1], context.spans_on(name)).tolist()
    placed = list(events.place_events(known, edges, max(_NEAR, series.interval / 2)))
    first = {place: event for event, has in reversed(placed) for place in np.flatnonzero(has).tolist()}
    for place, gap in enumerate(gaps):
        if context.findings("unused_gpu", name):
            gap.cause = "unused"
        elif 2 * waited[place] >= gap.interval.seconds:
            gap.cause = "data"
        else:
            gap.cause, gap.evidence = _find_cause(context, limits, series, gap, first.get(place))


def _find_cause(context: Context, limits: Limits, series: DeviceSeries, gap: Gap, event: JobEvents | None) -> Cause:
    """Return a gap's cause and evidence: other GPUs, logged events, memory or disk writes."""
    if peers := _judge_peers(context, limits, series.device.id, gap):
        return peers
    if event:
        return event.cause, [measured(event.source, "times in the run", float(len(event.times)), "")]
    rows = series.rows_between(gap.interval.start + series.shift, gap.interval.end + series.shift)
    share, span = mean(jobs.find_empty_rows(series)[rows]), to_spans([gap.interval])
    freed = limits.compare("time with no memory in use", "share of the gap", share, ">=", "freed")
    if freed.meets_limit:
        return "no process", [freed]
    active = context.active.get(series.device.id)
    # disk writes do not explain a gap that never ended
    is_last = gap.interval.end > (active.end if active else int(series.times[-1]))
    for host in [] if is_last else context.hosts_of(series):
        wrote, read = (mean(host.find_values(metric, span)) for metric in (_WRITES, _READS))
        if wrote >= np.nanmax([limits.disk, _RISE * median(host.values(_WRITES)), read]):
            return "checkpoint", [limits.compare(_WRITES, "mean", wrote, ">=", "disk")]
    return "unknown", []


def _judge_peers(context: Context, limits: Limits, name: str, gap: Gap) -> Cause | None:
    """Return `hang` if other GPUs waited in a long gap, or `peers busy` if they worked."""
    peers = [one for other, one in context.working().items() if other != name]
    span = to_spans([gap.interval])
    used = [one.find_values(UTILISATION, span) for one in peers]
    worked = np.fmax.reduce([mean(values > ACTIVE.value) for values in used], initial=0.0)
    if gap.interval.seconds < _LONG or worked < _WORKED:
        return None
    least = float(np.nan_to_num([mean(values) for values in used]).min())
    usual = [median(one.values(POWER)[(one.values(UTILISATION) > _HALF) & (one.values(POWER) > 0)]) for one in peers]
    drawn = [mean(one.find_values(POWER, span)) for one in peers]
    draw, spin = float(np.max(np.divide(drawn, usual))), least >= limits.spinning
    what = "of the other GPUs in the gap, as a share of power at work"
    return "hang" if spin and not draw >= limits.collective else "peers busy", [
        limits.compare(UTILISATION, "lowest mean of the other GPUs", least, ">=" if spin else "<", "spinning"),
        limits.compare(POWER, what, draw, "<" if draw < limits.collective else ">=", "collective"),
    ]


def _mark_requests(gaps: Sequence[Gap], limits: Limits, lost: float, between: float) -> None:
    """Set requests as the cause if only short bursts or little work separate the gaps."""
    starts = [gap.interval.start for gap in gaps]
    if len(gaps) < _MANY_BURSTS or any(gap.cause != "unknown" for gap in gaps):
        return
    if lost < _HALF and find_period(starts, limits.agree, limits.agree_few):
        return
    work = [(after.interval.start - before.interval.end) / 1e6 for before, after in pairwise(gaps)]
    long_work = float(np.quantile(work, _NEARLY_ALL))
    if long_work <= limits.burst or between < limits.sparse:
        shown = limits.compare("work between two gaps", "90% quantile", long_work, "<=", "burst")
        for gap in gaps:
            gap.cause, gap.evidence = REQUESTS, (shown,)


def _rate_severity(limits: Limits, share: float, *, is_mild: bool = False) -> Severity:
    if share >= limits.problem and not is_mild:
        return Severity.PROBLEM
    return Severity.WARNING if share >= min(limits.warning, limits.problem) else Severity.INFO


def _build_gap_findings(  # noqa: PLR0913, PLR0917 - the gaps, and their share of the job
    context: Context, limits: Limits, series: DeviceSeries, gaps: Sequence[Gap], share: float, between: float
) -> Iterator[Finding]:
    name, finest = series.device.id, limits.shortest + 1.5 * series.resolution(UTILISATION)
    for cause in dict.fromkeys(gap.cause for gap in gaps):
        own = [gap for gap in gaps if gap.cause == cause]
        # very little work is no problem; another check covers unused GPUs
        is_little = between < limits.sparse and cause in _NO_LOSS
        is_mild = is_little or cause in {"unused", REQUESTS} or name not in context.active
        shortest = min(gap.interval.seconds for gap in own)
        least = min(own, key=lambda gap: gap.samples - gap.needed)
        confidence = doubts.confidence_of(min(gap.samples for gap in own), series.interval)
        used = float(np.average([gap.used for gap in own], weights=[gap.samples for gap in own]))
        little = between if is_little else np.nan
        yield context.finding(
            _GAP,
            _rate_severity(limits, share, is_mild=is_mild),
            doubts.lowest(confidence, Confidence.MEDIUM if shortest < finest else Confidence.HIGH),
            [name],
            limits.compare(UTILISATION, "mean", used, "<=", "still"),
            limits.compare("duration", "length" if len(own) == 1 else "shortest", shortest, ">=", "shortest"),
            measured("idle time of this GPU in gaps", "share of the job", share),
            limits.compare(UTILISATION, "mean between the gaps of this GPU", little, "<", "sparse"),
            *own[0].evidence,
            spans=tuple(gap.interval for gap in own),
            lost=sum(gap.seconds for gap in own),
            cause=cause,
            case=_place(series, own, cause),
            samples=sum(gap.samples for gap in own),
            words={
                "count": len(own),
                "low": least.samples,
                "unlikely": least.needed if least.needed > 1 else None,
                "several": len(context.gpus()) > 1,
            },
        )


def _place(series: DeviceSeries, gaps: Sequence[Gap], cause: str) -> str:
    """Return the sentence's case; `open` if it is unknown whether a job ran."""
    shows_jobs = series.is_recorded(MEMORY) or series.is_recorded("gpu_processes")
    is_open = max(gap.interval.seconds for gap in gaps) >= jobs.FREE_BETWEEN_JOBS and not shows_jobs
    if cause == "no process":
        return cause
    if len(gaps) > 1:
        return "several, open" if is_open else "several"
    # one of several GPUs may start later or stop earlier
    if gaps[0].interval.start <= series.times[0]:
        return "first"
    if gaps[0].interval.end + series.shift >= series.times[-1]:
        return "last"
    return "open" if is_open else ""


def _build_stall_finding(
    context: Context, limits: Limits, period: Period, names: Sequence[str], gaps: Sequence[Gap]
) -> Finding:
    lost = sum(gap.seconds for gap in gaps)
    mean, share = lost / len(gaps), lost / total_seconds(context.work) / len(names)
    cause = Counter(gap.cause for gap in gaps).most_common(1)[0][0]
    known = cause if cause in KINDS[_STALL].says else None
    agree = "agree_few" if len(gaps) < FEW * len(names) else "agree"
    confidence = doubts.confidence_of(len(gaps) // len(names) - 1, max(context.series[name].interval for name in names))
    return context.finding(
        _STALL,
        _rate_severity(limits, share),
        confidence if known else doubts.lowest(confidence, Confidence.MEDIUM),
        names,
        measured("period", "mean time between starts", period.seconds, "s"),
        limits.compare("times between starts", "share that fits the period", period.agreeing, ">=", agree),
        measured("idle time", "mean of one period", mean, "s"),
        measured("idle time", "share of the job", share),
        spans=to_spans(gap.interval for gap in gaps),
        lost=lost,
        cause=known,
        samples=sum(gap.samples for gap in gaps),
        period=period.seconds,
        words={"period": period.seconds, "stall": mean, "share": share},
    )


@rule(_START)
def find_edges(context: Context, limits: Limits) -> Found:
    if context.whole.seconds < limits.shortest:
        yield from (doubts.too_short(kind, context.whole.seconds, limits.shortest) for kind in (_START, _TAIL))
    elif context.window is None:
        yield from _judge_log_without_work(context, limits)
    else:
        for kind in (_START, _TAIL):
            judged = [each for job in context.jobs for each in _judge_edge(context, limits, kind, job)]
            lost = sum(each.lost_gpu_seconds or 0.0 for each in judged if isinstance(each, Finding))
            is_much = lost > limits.share * sum(job.interval.seconds for job in context.jobs) * len(context.gpus())
            for each in judged:
                yield replace(each, severity=Severity.WARNING) if isinstance(each, Finding) and is_much else each


def _read_use(context: Context, stretch: Interval) -> tuple[FloatArray, FloatArray, list[int]]:
    """Return each sample's seconds within a stretch, its utilisation, and the readings per GPU."""
    span, gpus = to_spans([stretch]), context.gpus().values()
    seconds = np.concatenate([one.seconds_inside(span, context.whole) for one in gpus])
    used = np.concatenate([one.values(UTILISATION) for one in gpus])
    # the last reading of a log lies at its end
    edges = stretch.start, stretch.end + 1
    counts = [one.count_readings(UTILISATION, one.rows_between(*edges)) for one in gpus]
    return seconds[~np.isnan(used)], used[~np.isnan(used)], counts


def _judge_edge(context: Context, limits: Limits, kind: str, job: Job) -> Found:
    is_start, whole = kind == _START, context.whole
    edges = (job.interval.start, job.window.start), (job.window.end, job.interval.end)
    held = Interval(*edges[not is_start])
    pause = jobs.find_restart(context.jobs, job, context.series) if is_start else None
    stretch = Interval(pause.start if pause else held.start, held.end)
    if not is_start and job is context.jobs[-1]:
        rest = to_spans([Interval(held.end, whole.end)])
        after = [context.all_series[name].find_values(MEMORY, rest) for name in context.time_without_job]
        # a display may use the GPU after the job
        is_taken = any((values > jobs.EMPTY_MEMORY).all() for values in after if len(values))
        stretch = stretch if is_taken else Interval(held.start, whole.end)
    gpus, step, spans = list(context.gpus()), context.recording.run.interval or 0.0, to_spans([stretch])
    free = sum(total_seconds(intersection(spans, one)) for one in context.time_without_job.values())
    seconds, used, _ = _read_use(context, stretch)
    seen, _, counts = _read_use(context.whole_log, stretch)
    sampled, resting = float(seconds.sum()), float(seconds[used <= ACTIVE.value + 1e-6].sum())
    # the log may have ended an interval later
    late = 0.0 if is_start or stretch.seconds >= limits.shortest else min(step, stretch.seconds)
    if stretch.seconds + late < limits.shortest or resting + free < limits.shortest / 2 or not seen.sum():
        # too short, nearly all in a log gap, or without a job, as memory alone shows
        return
    if pause is None and max(counts) < doubts.FEW_READINGS and step > _LONE_SECONDS:
        yield doubts.unjudged(kind, "single_reading", where="before the first" if is_start else "after the last")
        return
    phases = [found.spans for name in context.active if (found := find_phases(context, name))]
    if phases and 2 * total_seconds(intersection(phases[0], spans)) > stretch.seconds:
        return  # an evaluation like earlier ones
    length, paused = held.seconds, pause.seconds if pause else np.nan
    share = length / sum(each.interval.seconds for each in context.jobs)
    is_long = pause or length > limits.long or share > limits.share
    worked = float(seconds[used > IDLE_RATIO + 1e-6].sum())
    is_rest = sampled - resting <= _BURSTS * sampled and worked <= limits.light * sampled
    case = "restart" if pause else NO_JOB if free and length < limits.shortest else None
    trained = 0 if case else events.count_steps(context.recording, held)
    of_what = "the jobs' time" if context.time_without_job and not case else "the run"
    if case:  # the time is outside jobs, so its share is that of the run
        length, share = stretch.seconds, stretch.seconds / whole.seconds
    what = "length, at most (the log may have ended an interval later)" if late else "length"
    cpu = _measure_cpu(context, limits, held) if is_start and not pause else np.nan
    memory = np.concatenate([one.find_values(MEMORY, spans) for one in context.gpus().values()])
    is_empty = is_start and length >= jobs.FREE_BETWEEN_JOBS and 0 <= memory.max(initial=-1) <= jobs.EMPTY_MEMORY
    sure = doubts.confidence_of(max(counts), step) if is_rest else Confidence.LOW
    yield context.finding(
        kind,
        Severity.WARNING if is_long else Severity.INFO,
        doubts.lowest(sure, Confidence.MEDIUM) if is_empty else sure,
        (),
        limits.compare("duration", what, length + late, ">=", "shortest"),
        limits.compare("duration", f"share of {of_what}", share, ">" if share > limits.share else "<=", "share"),
        _show_steps(trained),
        limits.compare(CPU, "mean", cpu, ">=", "cpu"),
        measured("pause", "between the jobs", paused, "s"),
        spans=(stretch,),
        lost=resting,
        cause=STEPS if trained else case,
        samples=sum(counts),
        words={
            "length": length,
            "late": held.seconds or None,
            "share": share,
            "whole": of_what,
            "cpu": cpu,
            "free": free or None,
            "pause": paused,
            "without": paused * len(gpus),
            "steps": trained,
            "later": held.start > whole.start,
            "empty": bool(is_empty),
        },
    )


def _measure_cpu(context: Context, limits: Limits, stretch: Interval) -> float:
    loads = [mean(host.find_values(CPU, to_spans([stretch]))) for host in context.hosts().values()]
    return max((load for load in loads if load >= limits.cpu), default=np.nan)


def _show_steps(count: int) -> Evidence:
    return measured("steps of the training", "counted in that time", float(count) or np.nan, "")


def _judge_log_without_work(context: Context, limits: Limits) -> Found:
    whole, gpus = context.whole, context.gpus().values()
    seconds, used, counts = _read_use(context, whole)
    readings, sampled = max(counts), max(float(seconds.sum()), 1e-9)
    is_display, is_short = all(map(jobs.draws_only_display, gpus)), sampled / len(gpus) < limits.shortest
    for kind in (_START, _TAIL):
        if readings < doubts.SURE_READINGS:
            yield doubts.unjudged(kind, doubts.TOO_FEW, None, doubts.count_of(readings, "sample"))
        elif is_short:
            yield doubts.too_short(kind, sampled / len(gpus), limits.shortest, "samples cover")
        elif is_display:
            yield doubts.unjudged(kind, "only_a_display")
    if is_display or is_short or readings < doubts.SURE_READINGS:
        return
    idle, rests = used <= IDLE_RATIO + 1e-6, list[float]()
    for one in gpus:
        own = one.seconds_in_run * one.known_rows(UTILISATION)
        rests.append(own[one.values(UTILISATION) <= IDLE_RATIO + 1e-6].sum() / max(own.sum(), 1e-9))
    share, use = float(seconds[idle].sum()) / sampled, float((seconds * used.clip(0, 1)).sum()) / sampled
    trained, cpu = events.count_steps(context.recording, whole), _measure_cpu(context, limits, whole)
    bursts = np.nan if trained else next(filter(None, map(_find_burst_distance, gpus)), np.nan)
    cause = LITTLE_WORK if max(rests) <= _ALONG or trained or not np.isnan(bursts) else NO_WORK
    yield context.finding(
        _START,
        Severity.WARNING,
        doubts.confidence_of(readings, context.recording.run.interval or 0.0),
        (),
        limits.compare("duration", "length", whole.seconds, ">=", "shortest"),
        measured(UTILISATION, "share of time at 5% or less", share),
        measured(UTILISATION, "mean", use),
        _show_steps(trained),
        measured("bursts of work", "usual distance", bursts, "s"),
        limits.compare(CPU, "mean", cpu, ">=", "cpu"),
        spans=(whole,),
        lost=float((seconds * np.where(idle, 1.0, 1 - used.clip(0, 1))).sum()),
        cause=cause,
        case=STEPS if trained else cause,
        samples=sum(counts),
        words={
            "mean": use,
            "share": share,
            "steps": trained,
            "bursts": bursts,
            "cpu": cpu,
            "used": share < limits.unused,
        },
    )


def _find_burst_distance(series: DeviceSeries) -> float | None:
    """Return the usual time in seconds between a process's bursts if they recur for half the log."""
    busy = series.find_owned(series.values(UTILISATION) > ACTIVE.value)
    if len(busy) < _MANY_BURSTS or not median(series.values(MEMORY)) > jobs.PROCESS_MEMORY.value:
        return None
    distances = np.diff(busy[:, 0])
    usual = float(np.median(distances))
    return usual / 1e6 if 2 * usual * len(distances) > series.end[-1] - series.start[0] else None

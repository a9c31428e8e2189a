"""GPUs that rest: within their job, before it begins to work, after it ends; and logs without work."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from gpureport.analysis import certainty, missing_metrics, phrases
from gpureport.analysis.job import jobs
from gpureport.analysis.job.events import REQUESTS, is_training
from gpureport.analysis.job.jobs import ACTIVE, LITTLE_WORK, NO_WORK
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.names import MEMORY, POWER, UTILISATION
from gpureport.analysis.results import Job
from gpureport.analysis.rulebook import Context, Found, Limits, measured, rule
from gpureport.analysis.rules.low_use import find_phases
from gpureport.analysis.rules.rests import FEW, STRICT, Gap, Period, find_gaps, find_period
from gpureport.analysis.series import intervals
from gpureport.analysis.series.clock_and_power import draws_working_power, median
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.statistics import IDLE_RATIO
from gpureport.columns import FloatArray
from gpureport.findings import Confidence, Evidence, Finding, Interval, Severity

_GAP, _STALL = "idle_gap", "periodic_stall"
_READS, _WRITES = "host_disk_read_bytes_per_second", "host_disk_write_bytes_per_second"
_OUT_OF_STEP = {"data", "hang", "unused", REQUESTS}  # causes of gaps that are no part of a period
_NO_LOSS = {"unknown", "periodic", REQUESTS}  # causes that leave open whether the job had anything to do
_HALF = 0.5  # of the job, of a gap, of moments
_LONG = 60.0  # s; ranks of one job do not wait this long for each other
_RISE = 3.0  # times the median rate of the host
_MANY_BURSTS, _NEARLY_ALL = 8, 0.9  # gaps; fewer do not show how work comes; one spell of work in ten may be long


@rule(_GAP)
def find_idle_gaps(context: Context, limits: Limits) -> Found:
    """Yield a finding per GPU and cause, one per period, and the GPUs without utilisation."""
    if context.whole.seconds < limits.shortest:
        yield from (missing_metrics.too_short(kind, context.whole.seconds, limits.shortest) for kind in (_GAP, _STALL))
    if context.whole.seconds < limits.shortest or context.window is None:
        return
    trains, stalls = is_training(context.recording), list[tuple[Period, list[str], list[Gap]]]()
    for name, series in context.gpus().items():
        if not series.is_recorded(UTILISATION):
            yield from (missing_metrics.not_recorded(kind, name, UTILISATION) for kind in (_GAP, _STALL))
            continue
        gaps = [*_name_causes(context, limits, series, find_gaps(series, context.jobs, context.whole, limits))]
        share = sum(gap.seconds for gap in gaps) / intervals.total_seconds(context.work)
        held = intervals.difference(context.work, intervals.to_spans(gap.interval for gap in gaps))
        used, cells = series.values(UTILISATION), series.averaging_windows(context.whole)
        seconds = intervals.overlap_seconds(*cells, held) * ~np.isnan(used)
        between = float(np.nansum(used * seconds) / seconds.sum()) if seconds.sum() > 0 else 1.0
        own = [place for place, gap in enumerate(gaps) if gap.cause not in _OUT_OF_STEP]
        period = find_period([gaps[place].interval.start for place in own], limits.agree, limits.agree_few)
        if not trains and (period is None or share >= _HALF):
            gaps = _mark_requests(gaps, limits, between)
        if period and gaps[0].cause != REQUESTS:
            members = [place for place, recurs in zip(own, period.members.tolist(), strict=True) if recurs]
            for place in members:
                gaps[place] = replace(gaps[place], cause=gaps[place].cause.replace("unknown", "periodic"))
            same = [stall for stall in stalls if abs(stall[0].seconds / period.seconds - 1) <= STRICT]
            stalls += [] if same else (same := [(period, [], [])])
            same[0][1].append(name)
            same[0][2].extend(gaps[place] for place in members)
        yield from _build_gap_findings(context, limits, series, gaps, share, between)
    yield from (_build_stall_finding(context, limits, *stall) for stall in stalls)


def _name_causes(context: Context, limits: Limits, series: DeviceSeries, gaps: Sequence[Gap]) -> Iterator[Gap]:
    name = series.device.id
    if name not in context.active and not draws_working_power(series):
        yield from (replace(gap, cause="unused") for gap in gaps)
        return
    waits = intervals.to_spans(span for found in context.findings_on(name) for span in found.intervals)
    # the host explains none that the GPU never came back from
    last = context.active[name].end if name in context.active else int(series.times[-1])

    for gap in gaps:
        waited = intervals.total_seconds(intervals.intersection(intervals.to_spans([gap.interval]), waits))
        if 2 * waited >= gap.interval.seconds:
            yield replace(gap, cause="data")
        else:
            returns = gap.interval.end <= last
            found = _judge_peers(context, limits, name, gap) or (returns and _judge_hosts(context, limits, series, gap))
            yield replace(gap, cause=found[0], evidence=tuple(found[1])) if found else gap


def _judge_peers(context: Context, limits: Limits, name: str, gap: Gap) -> tuple[str, Sequence[Evidence]] | None:
    """Return `hang` where the others spin for a minute at less than their power of work, as ranks in a collective."""
    span, peers = intervals.to_spans([gap.interval]), [one for other, one in context.working().items() if other != name]
    used, drawn = ([one.find_values(metric, span) for one in peers] for metric in (UTILISATION, POWER))
    if gap.interval.seconds < _LONG or not peers or not all(map(len, [*used, *drawn])):
        return None
    at_work = [median(one.values(POWER)[one.values(UTILISATION) > _HALF]) for one in peers]
    least = min(float(each.mean()) for each in used)
    most = max(float(each.mean()) / watts for each, watts in zip(drawn, at_work, strict=True))
    spin = limits.compare(UTILISATION, "mean of the other GPUs, the lowest", least, ">=", "spinning")
    draw = limits.compare(POWER, "of the other GPUs in the gap, of what they draw at work", most, "<", "collective")
    return ("hang", [spin, draw]) if spin.meets_limit and draw.meets_limit else None


def _judge_hosts(
    context: Context, limits: Limits, series: DeviceSeries, gap: Gap
) -> tuple[str, Sequence[Evidence]] | None:
    """Return `checkpoint` where a host wrote far more than elsewhere, and than it read."""
    span = intervals.to_spans([gap.interval])
    for host in context.hosts_of(series):
        wrote, read = host.find_values(_WRITES, span), host.find_values(_READS, span)
        usual = float(np.median(host.known_values(_WRITES))) if len(wrote) else np.inf
        if len(wrote) and wrote.mean() >= max(limits.disk, _RISE * usual, read.mean() if len(read) else 0.0):
            return "checkpoint", [limits.compare(_WRITES, "mean", float(wrote.mean()), ">=", "disk")]
    return None


def _mark_requests(gaps: list[Gap], limits: Limits, between: float) -> list[Gap]:
    """Return the gaps, all of requests if no cause is known and little work lies between; requests have no period."""
    if len(gaps) < _MANY_BURSTS or any(gap.cause != "unknown" for gap in gaps):
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
    for cause in dict.fromkeys(gap.cause for gap in gaps):
        own = [gap for gap in gaps if gap.cause == cause]
        # a job with little work is no problem, and a GPU that never worked has its own finding
        is_little = between < limits.sparse and cause in _NO_LOSS
        severity = _rate_severity(limits, share)
        if severity is Severity.PROBLEM and (is_little or cause in {"unused", REQUESTS}):
            severity = Severity.WARNING
        shortest, least = min(gap.interval.seconds for gap in own), min(own, key=lambda gap: gap.samples - gap.needed)
        is_sure = shortest >= limits.shortest + 1.5 * series.resolution(UTILISATION)
        most, fewest = Confidence.HIGH if is_sure else Confidence.MEDIUM, min(gap.samples for gap in own)
        used = float(np.average([gap.used for gap in own], weights=[gap.samples for gap in own]))
        little = between if is_little else np.nan
        evidence = [
            limits.compare(UTILISATION, "mean", used, "<=", "still"),
            limits.compare("duration", "length" if len(own) == 1 else "shortest", shortest, ">=", "shortest"),
            measured("idle time of this GPU in gaps", "share of the job", share),
            limits.compare(UTILISATION, "mean between the gaps of this GPU", little, "<", "sparse"),
        ]
        what = f"{least.samples} low samples in a row; {least.needed} would already be unlikely by chance"
        longest, shows_jobs = max(gap.interval.seconds for gap in own), (MEMORY, "gpu_processes")
        is_open = longest >= jobs.FREE_BETWEEN_JOBS and not any(map(series.is_recorded, shows_jobs))
        yield context.finding(
            _GAP,
            severity,
            certainty.by_readings(fewest, series.interval, most),
            [series.device.id],
            [*evidence, *own[0].evidence],
            spans=tuple(gap.interval for gap in own),
            lost=sum(gap.seconds for gap in own),
            cause=cause,
            samples=sum(gap.samples for gap in own),
            ruled_out=[f"chance: {what}"] if least.needed > 1 else [],
            gaps=f"{len(own)} gaps" if len(own) > 1 else "",
            open="not known" if is_open else "",
        )


def _build_stall_finding(
    context: Context, limits: Limits, period: Period, names: Sequence[str], gaps: Sequence[Gap]
) -> Finding:
    lost = sum(gap.seconds for gap in gaps)
    mean, share = lost / len(gaps), lost / intervals.total_seconds(context.work) / len(names)
    cause = Counter(gap.cause for gap in gaps).most_common(1)[0][0]
    known = cause if cause in KINDS[_STALL].says else None
    agree, shared = "agree_few" if len(gaps) < FEW * len(names) else "agree", "share that are multiples of the period"
    longest = max(context.series[name].interval for name in names)
    found = context.finding(
        _STALL,
        _rate_severity(limits, share),
        certainty.by_readings(len(gaps) // len(names) - 1, longest, Confidence.HIGH if known else Confidence.MEDIUM),
        names,
        [
            measured("period", "mean distance of starts", period.seconds, "s"),
            limits.compare("distances of starts", shared, period.agreeing, ">=", agree),
            measured("idle time", "mean of one period", mean, "s"),
            measured("idle time", "share of the job", share),
        ],
        spans=intervals.to_spans(gap.interval for gap in gaps),
        lost=lost,
        cause=known,
        samples=sum(gap.samples for gap in gaps),
        period=phrases.duration(period.seconds),
        mean=phrases.duration(mean),
        share=phrases.percent(share),
    )
    return replace(found, period_seconds=period.seconds)


_START, _TAIL = "startup_idle", "tail_idle"
_CLOSER = "a log with samples 5 s apart or less"
_BURSTS = 0.05  # share of the stretch above 12%: more work than a few autotuning kernels
_LONE_SECONDS = 2.0  # s; a utilisation value covers at most 1 s (NVML); one alone proves no longer rest
_ALONG = 0.25  # share of time at 5% and less: start-up and pauses of a job that works a little all along


@rule(_START)
def find_edges(context: Context, limits: Limits) -> Found:
    """Yield start-up and tail of each job, as warnings if all jobs together lost enough."""
    kinds, whole = (_START, _TAIL), context.whole
    if whole.seconds < limits.shortest:
        yield from (missing_metrics.too_short(kind, whole.seconds, limits.shortest) for kind in kinds)
    elif context.window is None:
        yield from _judge_log_without_work(context, limits)
    else:
        for kind in kinds:
            judged = [each for job in context.jobs for each in _judge_edge(context, limits, kind, job)]
            lost = sum(each.lost_gpu_seconds or 0.0 for each in judged if isinstance(each, Finding))
            is_much = lost > limits.share * sum(job.interval.seconds for job in context.jobs) * len(context.gpus())
            for each in judged:
                yield replace(each, severity=Severity.WARNING) if isinstance(each, Finding) and is_much else each


def _read_use(context: Context, stretch: Interval) -> tuple[FloatArray, FloatArray]:
    """Return the seconds of each reading of the GPUs that lie in a stretch, and its utilisation."""
    span, gpus = intervals.to_spans([stretch]), list(context.gpus().values())
    cells = [intervals.overlap_seconds(*one.averaging_windows(context.whole), span) for one in gpus]
    seconds, used = np.concatenate(cells), np.concatenate([one.values(UTILISATION) for one in gpus])
    known = ~np.isnan(used)
    return seconds[known], used[known]


def _count_readings(context: Context, stretch: Interval) -> list[int]:
    # the last reading of a log lies at its end
    edges, gpus = (stretch.start, stretch.end + 1), context.gpus().values()
    return [one.count_readings(UTILISATION, one.rows_between(*edges)) for one in gpus]


def _judge_edge(context: Context, limits: Limits, kind: str, job: Job) -> Found:
    """Yield a finding on the time before or after a job's work; after the last it is not lost."""
    is_start, window = kind == _START, job.window
    held = Interval(job.interval.start, window.start) if is_start else Interval(window.end, job.interval.end)
    rest = intervals.to_spans([Interval(held.end, context.whole.end)])
    after = [context.full_series(name).find_values(MEMORY, rest) for name in context.time_without_job]
    is_taken = any((values > jobs.EMPTY_MEMORY).all() for values in after if len(values))
    # what a display does after the job is no concern of the log
    is_last = not is_start and job is context.jobs[-1] and not is_taken
    stretch = Interval(held.start, context.whole.end) if is_last else held
    gpus, step, spans = list(context.gpus()), context.recording.run.interval or 0.0, intervals.to_spans([stretch])
    free = sum(intervals.total_seconds(intervals.intersection(spans, one)) for one in context.time_without_job.values())
    seconds, used = _read_use(context, stretch)
    sampled, resting = float(seconds.sum()), float(seconds[used <= ACTIVE.value + 1e-6].sum())
    counts = _count_readings(context.whole_log, stretch)
    # the log may have ended an interval later
    late = 0.0 if is_start or stretch.seconds >= limits.shortest else min(step, stretch.seconds)
    if stretch.seconds + late < limits.shortest or resting + free < limits.shortest / 2:
        return
    if not _read_use(context.whole_log, stretch)[0].sum():
        return  # nearly all in a log gap, or memory alone shows no job
    if max(counts) < certainty.FEW_READINGS and step > _LONE_SECONDS:
        reason = f"there is only one reading {'before the first' if is_start else 'after the last'} work"
        yield missing_metrics.denied(kind, "single_reading", reason, _CLOSER)
        return
    phases = [found.spans for name in context.active if (found := find_phases(context, name))]
    if phases and 2 * intervals.total_seconds(intervals.intersection(phases[0], spans)) > stretch.seconds:
        return  # an evaluation like those before
    length, share, whole = held.seconds, held.seconds / sum(each.interval.seconds for each in context.jobs), "the run"
    is_free = free > 0 and length < limits.shortest
    if is_free:
        length, share = stretch.seconds, stretch.seconds / context.whole.seconds
    elif context.time_without_job:
        whole = "the jobs' time"
    worked = float(seconds[used > IDLE_RATIO + 1e-6].sum())
    is_rest = sampled - resting <= _BURSTS * sampled and worked <= limits.light * sampled
    yield context.finding(
        kind,
        Severity.WARNING if not is_free and (length > limits.long or share > limits.share) else Severity.INFO,
        certainty.by_readings(max(counts), step) if is_rest else Confidence.LOW,
        (),
        [
            limits.compare("duration", "length, at most" if late else "length", length + late, ">=", "shortest"),
            limits.compare("duration", f"share of {whole}", share, ">" if share > limits.share else "<=", "share"),
        ],
        spans=spans,
        lost=resting,
        cause=jobs.NO_JOB if is_free else None,
        samples=sum(counts),
        length=phrases.duration(length),
        share=f"{phrases.percent(share)} of {whole}",
        which="first work" if held.start <= context.whole.start else "first work of a later job",
        whose=phrases.gpu_names(gpus, gpus),
        free=phrases.duration(free) if free else "",
    )


def _judge_log_without_work(context: Context, limits: Limits) -> Found:
    whole, gpus = context.whole, context.gpus()
    counts, (seconds, used) = _count_readings(context, whole), _read_use(context, whole)
    sampled, idle = max(float(seconds.sum()), 1e-9), used <= IDLE_RATIO + 1e-6
    readings, covered = max(counts), sampled / len(gpus)
    only_display = all(map(jobs.draws_only_display, gpus.values()))
    reason, recording = "only a display used the GPU", "a log of the job, from its first moment on"
    for kind in (_START, _TAIL):
        if readings < certainty.SURE_READINGS:
            yield missing_metrics.too_few(kind, readings)
        elif covered < limits.shortest:
            yield missing_metrics.too_short(kind, covered, limits.shortest, "samples cover")
        elif only_display:
            yield missing_metrics.denied(kind, "only_a_display", reason, recording)
    if readings < certainty.SURE_READINGS or covered < limits.shortest or only_display:
        return
    owned = [(one.seconds_in_run, one.values(UTILISATION)) for one in gpus.values()]
    is_used = all(own[use <= IDLE_RATIO + 1e-6].sum() <= _ALONG * own[~np.isnan(use)].sum() for own, use in owned)
    share, mean = float(seconds[idle].sum()) / sampled, float((seconds * used.clip(0, 1)).sum()) / sampled
    bursts = _measure_bursts(context)
    cause = LITTLE_WORK if is_used or bursts else NO_WORK
    yield context.finding(
        _START,
        Severity.WARNING,
        certainty.by_readings(readings, context.recording.run.interval or 0.0),
        (),
        [
            limits.compare("duration", "length", whole.seconds, ">=", "shortest"),
            measured(UTILISATION, "share of time at 5% and less", share),
            measured(UTILISATION, "mean", mean),
            *bursts,
        ],
        spans=(whole,),
        lost=float((seconds * np.where(idle, 1.0, 1 - used.clip(0, 1))).sum()),
        cause=cause,
        samples=sum(counts),
        mean=phrases.percent(mean),
        share=phrases.percent(share),
        bursts=phrases.duration(bursts[0].observed) if bursts else "",
        whose=phrases.gpu_names(list(gpus), list(gpus)),
        uses="does use" if share < limits.unused else "",
    )


def _measure_bursts(context: Context) -> list[Evidence]:
    for series in context.gpus().values():
        held, length = series.known_values(MEMORY), series.end[-1] - series.start[0]
        busy = intervals.rows_to_spans(series.start, series.end, series.values(UTILISATION) > ACTIVE.value)
        distances = np.diff(busy[:, 0])
        if len(held) and np.median(held) > jobs.PROCESS_MEMORY.value and len(busy) >= _MANY_BURSTS:
            usual = float(np.median(distances))
            if usual * len(distances) > length / 2:
                return [measured("bursts of work", "usual distance", usual / 1e6, "s")]
    return []

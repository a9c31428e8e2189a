"""GPUs that rest within their job: when, why, and whether it recurs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from gpureport.analysis import certainty, missing_metrics, phrases
from gpureport.analysis.job import jobs
from gpureport.analysis.job.events import REQUESTS, JobEvents, find_job_events, is_training
from gpureport.analysis.job.phases import ACTIVE
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.names import MEMORY, POWER, UTILISATION
from gpureport.analysis.rulebook import Context, Found, Limits, measured, rule
from gpureport.analysis.rules.rests import FEW, STRICT, Gap, Period, find_gaps, find_period
from gpureport.analysis.series import intervals
from gpureport.analysis.series.clock_and_power import draws_working_power
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.findings import Confidence, Evidence, Finding, Severity

_GAP, _STALL = "idle_gap", "periodic_stall"
_READS, _WRITES = "host_disk_read_bytes_per_second", "host_disk_write_bytes_per_second"
_OUT_OF_STEP = {"data", "hang", "peers busy", "unused", REQUESTS}
"""Causes of gaps that are no part of a period."""
_NO_LOSS = {"unknown", "periodic", REQUESTS}
"""Causes that leave open whether the job had anything to do."""
_HALF = 0.5  # of the job, of a gap, of moments
_NEAR = 2.0  # s; a metric is written when its work is done
_LONG = 60.0  # s; ranks of one job do not wait this long for each other
_RISE = 3.0  # times the median rate of the host
_WORKED = 0.9  # share of the gap in which another GPU worked, with room for its own pauses
# gaps; fewer do not show how work comes; one spell of work in ten may be long
_MANY_BURSTS, _NEARLY_ALL = 8, 0.9


@rule(_GAP)
def find_idle_gaps(context: Context, limits: Limits) -> Found:
    """Yield a finding per GPU and cause, one per period, and the GPUs without utilisation."""
    if context.whole.seconds < limits.shortest:
        yield from (missing_metrics.too_short(kind, context.whole.seconds, limits.shortest) for kind in (_GAP, _STALL))
    if context.whole.seconds < limits.shortest or context.window is None:
        return
    events, stalls = find_job_events(context.recording), list[tuple[Period, list[str], list[Gap]]]()
    trains = is_training(context.recording, events)
    for name, series in context.gpus().items():
        if not series.is_recorded(UTILISATION):
            yield from (missing_metrics.not_recorded(kind, name, UTILISATION) for kind in (_GAP, _STALL))
            continue
        gaps = _name_causes(context, limits, series, find_gaps(series, context.jobs, context.whole, limits), events)
        share = sum(gap.seconds for gap in gaps) / intervals.total_seconds(context.work)
        held = intervals.difference(context.work, intervals.to_spans(gap.interval for gap in gaps))
        used, cells = series.values(UTILISATION), series.averaging_windows(context.whole)
        seconds = intervals.overlap_seconds(*cells, held) * ~np.isnan(used)
        between = float(np.nansum(used * seconds) / seconds.sum()) if seconds.sum() > 0 else 1.0
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


def _name_causes(
    context: Context, limits: Limits, series: DeviceSeries, gaps: Sequence[Gap], events: Sequence[JobEvents]
) -> list[Gap]:
    name = series.device.id
    if name not in context.active and not draws_working_power(series):
        return [replace(gap, cause="unused") for gap in gaps]
    waits = intervals.to_spans(span for found in context.findings_on(name) for span in found.intervals)
    edges = np.array([(gap.interval.start, gap.interval.end) for gap in gaps], dtype=np.int64).reshape(-1, 2)
    waited = intervals.overlap_seconds(edges[:, 0], edges[:, 1], waits).tolist()
    by_event = _find_event_causes(events, edges, max(_NEAR, series.interval / 2))

    # the host explains none that the GPU never came back from
    last = context.active[name].end if name in context.active else int(series.times[-1])

    def judge(gap: Gap, seconds: float, event: JobEvents | None) -> tuple[str, Sequence[Evidence]] | None:
        if 2 * seconds >= gap.interval.seconds:
            return "data", ()
        if peers := _judge_peers(context, limits, name, gap):
            return peers
        if event:
            what, moments = "moments of the run", float(len(event.times))
            return event.cause, [measured(event.source, what, moments, "")]
        if (freed := _judge_memory(limits, series, gap)) or gap.interval.end > last:
            return freed
        return _judge_hosts(context, limits, series, gap)

    named = []
    for gap, seconds, event in zip(gaps, waited, by_event, strict=True):
        cause, evidence = judge(gap, seconds, event) or (gap.cause, ())
        named.append(replace(gap, cause=cause, evidence=tuple(evidence)))
    in_step = [place for place, gap in enumerate(named) if gap.cause not in _OUT_OF_STEP]
    period = find_period([named[place].interval.start for place in in_step], limits.agree, limits.agree_few)
    for place, recurs in zip(in_step, period.members.tolist() if period else (), strict=False):
        if recurs and named[place].cause == "unknown":
            named[place] = replace(named[place], cause="periodic")
    return named


def _judge_peers(context: Context, limits: Limits, name: str, gap: Gap) -> tuple[str, Sequence[Evidence]] | None:
    """Return how the other GPUs went on in a gap of a minute: as ranks do that wait in a collective, or otherwise."""
    peers = [one for other, one in context.working().items() if other != name]
    span = intervals.to_spans([gap.interval])
    used = [one.find_values(UTILISATION, span) for one in peers]
    worked = max((float((values > ACTIVE.value).mean()) for values in used if len(values)), default=0.0)
    if gap.interval.seconds < _LONG or worked < _WORKED:
        return None
    least = min(float(values.mean()) if len(values) else 0.0 for values in used)
    spin, draw = least >= limits.spinning, max(_compare_draw(one, span) for one in peers)
    what = "mean of the other GPUs, the lowest"
    measured = [limits.compare(UTILISATION, what, least, ">=" if spin else "<", "spinning")]
    if np.isfinite(draw):
        what = "of the other GPUs in the gap, of what they draw at work"
        measured.append(limits.compare(POWER, what, draw, "<" if draw < limits.collective else ">=", "collective"))
    return "hang" if spin and (draw < limits.collective or np.isinf(draw)) else "peers busy", measured


def _compare_draw(series: DeviceSeries, span: Spans) -> float:
    watts, used = series.values(POWER), series.values(UTILISATION)
    drawn, at_work = series.find_values(POWER, span), watts[(used > _HALF) & (watts > 0)]
    return float(drawn.mean() / np.median(at_work)) if len(drawn) and len(at_work) else np.inf


def _find_event_causes(events: Sequence[JobEvents], edges: Spans, near: float) -> list[JobEvents | None]:
    """Return the first event in each gap; events of which most lie in no gap explain nothing."""
    causes: list[JobEvents | None] = [None] * len(edges)
    wide = edges + np.array([-near * 1e6, near * 1e6]).astype(np.int64)
    for event in events:
        if intervals.contains(intervals.union(wide), event.times).mean() >= _HALF:
            first, stop = np.searchsorted(event.times, wide.T)
            causes = [one or (event if has else None) for one, has in zip(causes, (stop > first).tolist(), strict=True)]
    return causes


def _judge_memory(limits: Limits, series: DeviceSeries, gap: Gap) -> tuple[str, Sequence[Evidence]] | None:
    rows = series.rows_between(gap.interval.start + series.shift, gap.interval.end + series.shift)
    empty = jobs.find_empty_rows(series)[rows]
    share = float(empty.mean()) if len(empty) else 0.0
    measured = limits.compare("time with no memory in use", "share of the gap", share, ">=", "freed")
    return ("no process", [measured]) if measured.meets_limit else None


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


def _mark_requests(gaps: list[Gap], limits: Limits, lost: float, between: float) -> list[Gap]:
    """Return the gaps, all of requests if no cause is known and little work lies between; requests have no period."""
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
    for cause in dict.fromkeys(gap.cause for gap in gaps):
        own = [gap for gap in gaps if gap.cause == cause]
        # a job with little work is no problem, and a GPU that never worked has its own finding
        is_little = between < limits.sparse and cause in _NO_LOSS
        severity = _rate_severity(limits, share)
        if severity is Severity.PROBLEM and (is_little or cause in {"unused", REQUESTS}):
            severity = Severity.WARNING
        shortest, least = min(gap.interval.seconds for gap in own), min(own, key=lambda gap: gap.samples - gap.needed)
        confidence = certainty.confidence_by_readings(min(gap.samples for gap in own), series.interval)
        if shortest < limits.shortest + 1.5 * series.resolution(UTILISATION):
            confidence = certainty.lowest_confidence(confidence, Confidence.MEDIUM)
        used = float(np.average([gap.used for gap in own], weights=[gap.samples for gap in own]))
        little = between if is_little else np.nan
        evidence = [
            limits.compare(UTILISATION, "mean", used, "<=", "still"),
            limits.compare("duration", "length" if len(own) == 1 else "shortest", shortest, ">=", "shortest"),
            measured("idle time of this GPU in gaps", "share of the job", share),
            limits.compare(UTILISATION, "mean between the gaps of this GPU", little, "<", "sparse"),
        ]
        ruled_out = ["missing samples: a stretch without samples is a log gap"]
        what = f"{least.samples} low samples in a row; {least.needed} would already be unlikely by chance"
        ruled_out += [f"chance: {what}"] if least.needed > 1 else []
        alone, others = len(context.gpus()) == 1, "start-up and tail of the job, which are counted over all GPUs"
        ruled_out += [] if alone else [others]
        yield context.finding(
            _GAP,
            severity,
            confidence,
            [series.device.id],
            [*evidence, *own[0].evidence],
            spans=tuple(gap.interval for gap in own),
            lost=sum(gap.seconds for gap in own),
            cause=cause,
            samples=sum(gap.samples for gap in own),
            ruled_out=ruled_out,
            case=_place(series, own, cause),
            count=str(len(own)),
        )


def _place(series: DeviceSeries, gaps: Sequence[Gap], cause: str) -> str:
    """Return where gaps of one cause lie; whether a job was running is open, unless the log shows it."""
    longest = max(gap.interval.seconds for gap in gaps)
    shows_jobs = series.is_recorded(MEMORY) or series.is_recorded("gpu_processes")
    is_open = longest >= jobs.FREE_BETWEEN_JOBS and not shows_jobs
    if cause == "no process":
        return cause
    if len(gaps) > 1:
        return "several, open" if is_open else "several"
    # of several GPUs one may begin to work later, or never again
    if gaps[0].interval.start <= series.times[0]:
        return "first"
    if gaps[0].interval.end + series.shift >= series.times[-1]:
        return "last"
    return "open" if is_open else ""


def _build_stall_finding(
    context: Context, limits: Limits, period: Period, names: Sequence[str], gaps: Sequence[Gap]
) -> Finding:
    lost = sum(gap.seconds for gap in gaps)
    mean, share = lost / len(gaps), lost / intervals.total_seconds(context.work) / len(names)
    cause = Counter(gap.cause for gap in gaps).most_common(1)[0][0]
    known = cause if cause in KINDS[_STALL].says else None
    agree, shared = "agree_few" if len(gaps) < FEW * len(names) else "agree", "share that are multiples of the period"
    longest = max(context.series[name].interval for name in names)
    confidence = certainty.confidence_by_readings(len(gaps) // len(names) - 1, longest)
    found = context.finding(
        _STALL,
        _rate_severity(limits, share),
        confidence if known else certainty.lowest_confidence(confidence, Confidence.MEDIUM),
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
        ruled_out=["chance: the distances between starts are multiples of one period"],
        period=phrases.duration(period.seconds),
        mean=phrases.duration(mean),
        share=phrases.percent(share),
    )
    return replace(found, period_seconds=period.seconds)

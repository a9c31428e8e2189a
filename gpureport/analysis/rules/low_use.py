"""GPUs that are busy only part of the time for no known reason, or never used."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gpureport.analysis import doubts, phrases
from gpureport.analysis.job import events
from gpureport.analysis.job.jobs import ACTIVE, POINT_SAMPLE_SECONDS, UTILISATION_WINDOW, find_work_window
from gpureport.analysis.rulebook import Context, Found, Limits, compare_with_limit, measured, rule
from gpureport.analysis.rules import waits
from gpureport.analysis.rules.rests import find_period
from gpureport.analysis.rules.waits import ROWS, Parts
from gpureport.analysis.series import CORE, CPU, IOWAIT, JOB, MEMORY, POWER, UTILISATION, intervals
from gpureport.analysis.series.clock_and_power import draws_working_power
from gpureport.analysis.series.device_series import DeviceSeries, memoized
from gpureport.analysis.series.statistics import IDLE_RATIO, build_grid, mark_low, median_over_devices, rolling_mean
from gpureport.columns import BoolArray
from gpureport.findings import Confidence, Finding, Interval, NotJudged, Severity
from gpureport.recording import Recording

_FEWEST = 10  # samples of a short job; with fewer, the error of their mean is unknown
_HALF = 0.5  # share of low use that CPU samples must cover; share of evaluations among phases
_SEEN = 0.95  # covered share of the job below which the sentence gives it
_OPEN = {CORE: "one core", IOWAIT: "storage"}
_AGREE = 0.9  # share of the distances between phases that must agree
_SMOOTH = 10.0  # seconds that smooth over the batches of an evaluation
_SHORTEST = 30.0  # seconds; a restart of the data loader is shorter
_MUCH = 0.7  # median use between phases; less is also low use
_LOW = 0.5  # share of the median use; an evaluation uses the GPU less
_ALIKE = 0.25  # share of the median length; each evaluation uses the same data
_NEAR = 5.0  # seconds; a metric is logged just after its work


class Phases(NamedTuple):
    """Recurring phases of low use, their period in seconds, and whether they match evaluations."""

    spans: intervals.Spans
    period: float
    is_named: bool


@memoized
def find_phases(context: Context, device: str) -> Phases | None:
    series = context.series[device]
    rows = series.find_known_rows(UTILISATION)
    if series.interval > _SMOOTH or len(rows) < _FEWEST:
        return None
    used = series.values(UTILISATION)[rows]
    smooth = rolling_mean(used, max(round(_SMOOTH / max(series.interval, UTILISATION_WINDOW / 10)), 1))
    first, stop = intervals.find_runs(smooth <= _LOW * float(np.median(used)), np.isin(rows, series.gap_rows))
    spans = np.column_stack([series.start[rows[first]], series.end[rows[stop - 1]]]) - series.shift
    # a rest is an idle gap, start-up or tail
    works = [np.median(used[one:past]) > IDLE_RATIO for one, past in zip(first, stop, strict=True)]
    spans = intervals.drop_shorter(spans[np.array(works, dtype=np.bool_)], _SHORTEST)
    period = find_period(spans[:, 0].tolist(), _AGREE, _AGREE)
    lengths = spans[:, 1] - spans[:, 0]
    between = used[~intervals.contains(spans, series.times[rows] - series.shift)]
    if period is None or not period.members.all() or np.ptp(lengths) > _ALIKE * np.median(lengths):
        return None
    is_named = bool(find_evaluations(context.recording, spans).mean() >= _HALF)
    return Phases(spans, period.seconds, is_named) if len(between) and np.median(between) >= _MUCH else None


def find_evaluations(recording: Recording, spans: intervals.Spans) -> BoolArray:
    named = np.zeros(len(spans), dtype=np.bool_)
    for event, has in events.place_events(events.find_job_events(recording) if len(spans) else (), spans, _NEAR):
        if event.cause == "epoch":
            named |= has
    return named


class LowUse(NamedTuple):
    spans: Mapping[str, intervals.Spans]
    lowest: float = 1.0
    over: float = 0.0
    is_short_job: bool = False
    phases: Phases | None = None


def find_low_use(context: Context, limits: Limits) -> LowUse:
    explained = tuple(found for found in context.earlier_findings if found.kind in low_util_cause_unknown.after)
    return context.memoize((LowUse, limits, explained), lambda: _compute_low_use(context, limits))


def _compute_low_use(context: Context, limits: Limits) -> LowUse:
    working = context.working()
    if context.window is None:
        return LowUse({})
    grid = build_grid(context.window, list(working.values()))
    left, used, edges = {}, [], grid.cells
    for name, one in working.items():
        claimed = context.spans_on(name, low_util_cause_unknown.after)
        left[name] = intervals.intersection(intervals.difference(one.find_seen(context.whole), claimed), context.work)
        is_claimed = intervals.overlap_seconds(*edges, claimed) > 0
        used.append(np.where(is_claimed, np.nan, grid.average_metric(one, UTILISATION)))
    median = median_over_devices(used)
    seconds = max(map(intervals.total_seconds, left.values()))
    over = max(round(limits.over / grid.width), ROWS) * grid.width
    # a job too short for that is judged by its mean, unless other kinds explain most of it
    is_short, sampled = seconds < over, int((~np.isnan(median)).sum())
    mean = rolling_mean(median, 2 * grid.count if is_short else round(over / grid.width))
    mean[mean < limits.idle] = 1.0
    inside = mark_low(mean, limits.enter, limits.leave)
    spans = grid.mask_to_spans(inside, limits.over, limits.shortest if is_short else over)
    spans = intervals.intersection(spans, context.work)
    covered = [intervals.overlap_seconds(spans[:, 0], spans[:, 1], one) for one in left.values()]
    is_low = np.max(covered, axis=0) >= (max(limits.shortest, context.window.seconds / 2) if is_short else limits.over)
    if grid.width > POINT_SAMPLE_SECONDS or sampled < ROWS:
        is_sure = [sampled >= _FEWEST and waits.is_surely_below(part, limits.gpu) for part in grid.cut(median, spans)]
        is_low &= np.array(is_sure, dtype=np.bool_)
    found = {name: intervals.intersection(spans[is_low], one) for name, one in left.items()}
    found, phases = {name: one for name, one in found.items() if len(one)}, None
    for name, stretches in found.items():
        recurring = find_phases(context, name)
        if recurring and (intervals.overlap_seconds(stretches[:, 0], stretches[:, 1], recurring.spans) > 0).all():
            phases, found[name] = recurring, recurring.spans
    return LowUse(
        found,
        float(np.nanmin(mean[inside], initial=1.0)),
        seconds if is_short else over,
        is_short,
        phases,
    )


def _explain_too_short(kind: str, context: Context, limits: Limits) -> Iterator[NotJudged]:
    of_gpus = context.gpus().values()
    needed = max(limits.shortest, ROWS * max(1.0, *(one.interval for one in of_gpus)))
    sampled = max((one.observed_seconds for one in of_gpus), default=0.0)
    if context.whole.seconds < needed:
        yield doubts.too_short(kind, context.whole.seconds, needed)
    elif sampled < needed:
        yield doubts.too_short(kind, sampled, needed, "samples cover")


@rule("underutilised")
def underutilised(context: Context, limits: Limits) -> Found:
    low = find_low_use(context, limits)
    if not low.spans:
        yield from _explain_too_short("underutilised", context, limits)
    uneven = intervals.to_spans(part for found in context.findings("imbalance") for part in found.intervals)
    spans = {
        name: one
        for name, one in low.spans.items()
        if _find_watching(context, name, one, CPU)
        and not intervals.covers(uneven, one)
        and _find_other_load(context, name, one) is None
    }
    if not spans:
        return
    together = intervals.union(np.concatenate(list(spans.values())))
    hosts = {host.device.id: host for name in spans for host in context.hosts_of(context.series[name])}.values()
    values = {name: np.concatenate([host.find_values(name, together) for host in hosts]) for name in (CPU, *_OPEN)}
    levels = {name: float(each.mean()) for name, each in values.items() if len(each)}
    # a brief job gets no finding on a full core, so this cause is not ruled out
    shortest = waits.find_shortest(context, waits.cpu_bound_single.limits)
    is_brief = low.is_short_job and max(map(intervals.total_seconds, spans.values())) < shortest
    unknown = [what for name, what in _OPEN.items() if name not in levels or (is_brief and name == CORE)]
    cores = next(filter(None, (waits.count_host_cores(context, host) for host in hosts)), None)
    parts = _list_parts(
        low,
        limits,
        _find_requests(context, spans),
        Confidence.LOW if unknown else Confidence.MEDIUM,
    )
    parts["shown"] += [measured(name, "mean", level) for name, level in levels.items()] + [waits.show_cores(cores)]
    watched = {what: what not in unknown for what in _OPEN.values()}
    parts |= {"words": {"cores": waits.say_cores(cores), **watched}, "case": " or ".join(unknown)}
    yield waits.build_finding(context, limits, "underutilised", spans, **parts)


@rule("low_util_cause_unknown")
def low_util_cause_unknown(context: Context, limits: Limits) -> Found:
    """Yield low use while the CPU was not recorded or other programs kept it busy."""
    low = find_low_use(context, limits)
    if not low.spans:
        yield from _explain_too_short("low_util_cause_unknown", context, limits)
    groups: dict[tuple[float, float] | None, list[str]] = {}
    for name, one in low.spans.items():
        other = _find_other_load(context, name, one)
        if other is not None or not _find_watching(context, name, one, CPU):
            groups.setdefault(other, []).append(name)
    share = events.data_wait_share(context.recording)
    for other, names in groups.items():
        shown = [measured(events.WAITING, "median", share)] if share else []
        cpu, job = other or (np.nan, np.nan)
        words = {"part": share, "cpu": cpu, "job": f"{job:.2f} cores"}
        cause = _find_requests(context, names)
        if other is not None:
            shown.append(compare_with_limit(CPU, "median", cpu, ">=", waits.FULL))
            shown.append(compare_with_limit(JOB, "median", job, "<", waits.HARDLY))
            cause = waits.BESIDE_OTHERS
        parts = _list_parts(low, limits, events.DATA if share else cause) | {"words": words}
        parts["shown"] += shown
        spans = {name: low.spans[name] for name in names}
        yield waits.build_finding(context, limits, "low_util_cause_unknown", spans, **parts)


def _find_watching(context: Context, device: str, spans: intervals.Spans, *metrics: str) -> DeviceSeries | None:
    for host in context.hosts_of(context.series[device]):
        known = np.all([host.known_rows(metric) for metric in metrics], axis=0)
        seconds = intervals.overlap_seconds(host.start - host.shift, host.end - host.shift, spans)[known].sum()
        if seconds >= _HALF * intervals.total_seconds(spans):
            return host
    return None


def _find_other_load(context: Context, device: str, spans: intervals.Spans) -> tuple[float, float] | None:
    host = _find_watching(context, device, spans, CPU, JOB)
    values = [host.find_values(metric, spans) for metric in (CPU, JOB)] if host else []
    if host is None or not all(map(len, values)):
        return None
    cpu, job = (float(np.median(each)) for each in values)
    few = waits.is_hardly_used(host, np.array([job]), np.array([cpu]))
    return (cpu, job) if cpu >= waits.FULL.value and few[0] else None


def _find_requests(context: Context, devices: Collection[str]) -> str | None:
    gaps = (gap for gap in context.findings("idle_gap") if gap.cause == events.REQUESTS)
    return events.REQUESTS if any(set(gap.devices) & set(devices) for gap in gaps) else None


def _list_parts(low: LowUse, limits: Limits, cause: str | None, most: Confidence = Confidence.MEDIUM) -> Parts:
    lowest = "mean of the median GPU" if low.is_short_job else f"lowest mean over {phrases.duration(low.over)}"
    period, named = (low.phases.period, low.phases.is_named) if low.phases else (np.nan, False)
    return {
        "cause": cause or (("evaluation" if named else "regular phases") if low.phases else None),
        "shown": [
            limits.compare(UTILISATION, lowest, low.lowest, "<=", "enter"),
            measured("period", "mean time between starts", period, "s"),
        ],
        "most": Confidence.LOW if low.is_short_job else most,
        "shortest": "shortest" if low.is_short_job else "over",
    }


@rule("unused_gpu")
def unused_gpu(context: Context, limits: Limits) -> Found:
    working = {}
    for name, series in context.gpus().items():
        held = np.flatnonzero(series.values(MEMORY) >= limits.context)
        if name in context.active and not (_is_empty(series, limits) and _mean_use(series) <= ACTIVE.value):
            working[name] = context.active[name]
        elif not series.is_recorded(UTILISATION) and len(held):
            working[name] = Interval(int(series.start[held[0]]), int(series.end[held[-1]]))
    job = find_work_window(context.whole, working.values())
    groups: dict[tuple[bool, bool], list[DeviceSeries]] = {}
    for name, series in context.gpus().items():
        is_recorded = series.is_recorded(UTILISATION)
        # nothing is known about a GPU that never responded
        is_lost = bool(context.findings("gpu_lost", name))
        if not is_recorded and (job is None or name in working or is_lost or not _is_empty(series, limits)):
            yield doubts.not_recorded("unused_gpu", name, UTILISATION)
        elif job is not None and name not in working:
            if (doubt := _explain_doubt(series, job, limits)) is not None:
                yield doubt
                continue
            is_taken = bool((series.find_values(MEMORY, _span(series, job)) >= limits.context).any())
            groups.setdefault((is_taken, not is_recorded), []).append(series)
    for _, group in sorted(groups.items(), key=lambda entry: entry[0]):
        yield _build_unused(context, limits, group, job or context.whole, tuple(working))


def _span(series: DeviceSeries, job: Interval) -> intervals.Spans:
    return intervals.to_spans([Interval(job.start, job.end + 1)]) - series.shift


def _is_empty(series: DeviceSeries, limits: Limits) -> bool:
    known = series.known_values(MEMORY)
    return len(known) >= doubts.SURE_READINGS and float(known.max()) <= limits.empty


def _mean_use(series: DeviceSeries) -> float:
    return float(series.known_values(UTILISATION).mean()) if series.is_recorded(UTILISATION) else 0.0


def _explain_doubt(series: DeviceSeries, job: Interval, limits: Limits) -> NotJudged | None:
    shortest = limits.shortest_empty if _is_empty(series, limits) else limits.shortest
    if job.seconds < shortest:
        return doubts.too_short("unused_gpu", job.seconds, shortest, "other GPUs were busy for")
    metric = UTILISATION if series.is_recorded(UTILISATION) else MEMORY
    rows = series.find_known_rows(metric)
    rows = rows[(series.times[rows] >= job.start) & (series.times[rows] <= job.end)]
    readings, seconds = series.count_readings(metric, rows), float(series.seconds[rows].sum())
    device = series.device.id
    if _mean_use(series) > ACTIVE.value:
        return doubts.unjudged("unused_gpu", "used_at_times", device, use=phrases.percent(_mean_use(series)))
    if draws_working_power(series, limits.power_at_work):
        watts = f"{series.known_values(POWER).mean():.0f}"
        return doubts.unjudged("unused_gpu", "drew_power_of_work", device, watts=watts)
    if readings < doubts.SURE_READINGS or seconds < shortest / 2:
        few = doubts.count_of(readings, "sample"), (seconds, phrases.duration(seconds))
        return doubts.unjudged("unused_gpu", doubts.TOO_FEW, device, *few, case="while others work")
    return None


def _build_unused(
    context: Context, limits: Limits, group: Sequence[DeviceSeries], job: Interval, working: Sequence[str]
) -> Finding:
    names, everybody = tuple(one.device.id for one in group), tuple(context.gpus())
    is_recorded, window = group[0].is_recorded(UTILISATION), intervals.to_spans([job])
    metric = UTILISATION if is_recorded else MEMORY
    memory = [float(known.max()) for one in group if len(known := one.find_values(MEMORY, _span(one, job)))]
    most = max(memory, default=0.0)
    is_taken = most >= limits.context
    # log gaps do not show what a GPU did
    gaps = (Interval(one.end[row - 1], one.start[row]) for one in group for row in one.gap_rows)
    parts = intervals.difference(window, intervals.to_spans(gaps))
    parts = parts if len(parts) else window
    seconds = intervals.total_seconds(parts)
    worked = intervals.total_seconds(intervals.intersection(context.work, window)) or job.seconds
    shortest = "shortest" if worked >= limits.shortest else "shortest_empty"
    readings = [one.count_readings(metric, one.rows_between(job.start, job.end + 1)) for one in group]
    sure = doubts.confidence_of(min(readings), max(one.interval for one in group))
    return context.finding(
        "unused_gpu",
        Severity.WARNING,
        # a log does not show which GPUs the job held
        doubts.lowest(sure, Confidence.LOW if is_taken else Confidence.MEDIUM),
        names,
        compare_with_limit(UTILISATION, "mean", max(map(_mean_use, group)) if is_recorded else np.nan, "<=", ACTIVE),
        limits.compare("work of other GPUs", "from the first to the last", worked, ">=", shortest),
        limits.compare(MEMORY, "max", most if memory else np.nan, "<=", "empty"),
        spans=parts,
        lost=seconds * len(group),
        case="memory" if not is_recorded else "taken" if is_taken else "" if memory else "unknown",
        samples=sum(one.count_readings(metric, slice(None)) for one in group),
        words={
            "others": phrases.gpu_names(working, everybody),
            "did": "had work" if set(working) & context.active.keys() else "had memory in use",
            "worked": worked,
            "sampled": None if seconds >= _SEEN * worked else seconds,
            "memory": most,
        },
    )


KINDS_OF_LOW_USE = (underutilised.name, low_util_cause_unknown.name)
BELOW = underutilised.limits["gpu"]  # mean utilisation that needs no change

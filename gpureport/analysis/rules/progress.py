"""Whether a job goes on as it began: a logged rate that falls, and levels that change unexplained."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from gpureport.analysis import missing_metrics, phrases
from gpureport.analysis.job.events import WAITING, find_evaluations, find_steps, read_points, split_words
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.names import CLOCK, IOWAIT, MEMORY, POWER, TEMPERATURE, UTILISATION
from gpureport.analysis.rulebook import Context, Found, Limits, measured, rule
from gpureport.analysis.rules import levels
from gpureport.analysis.rules.clocks import is_hardly_reached
from gpureport.analysis.rules.levels import Change, find_fall, show
from gpureport.analysis.series import intervals
from gpureport.analysis.series.clock_and_power import CLOCKS, gather_signals
from gpureport.analysis.series.device_series import DeviceSeries, memoized
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.series.statistics import memory_total
from gpureport.columns import FloatArray, IntArray
from gpureport.findings import Confidence, Evidence, Interval, Severity
from gpureport.names import Role, choose_throughput, recognise_metric
from gpureport.rates import count_gains

_STEP = "step"
_SPACING = 10.0
"""Seconds between two points of a step counter: a rate over less is mostly the rounding of both."""
_CHECKING = {"val", "valid", "validation", "eval", "evaluation", "test", "dev"}
_SIGNS = (
    ("clock", CLOCK, "Hz", -1, "the clock"),
    ("data", WAITING, "1", 1, "the wait for data"),
    ("reads", IOWAIT, "1", 1, "the CPU's wait for storage"),
    ("reads", "host_disk_read_bytes_per_second", "By/s", 1, "reading"),
    ("host memory", "host_memory_used_ratio", "1", 1, "host memory"),
    ("spill", POWER, "W", -1, "the power"),
    ("waits", UTILISATION, "1", -1, "the utilisation"),
    ("power", POWER, "W", -1, "the power"),
)
"""What may change with the rate: its cause, metric, unit, direction, and noun, what tells most first."""
_SLOWING = {"rate_falls", "slow_gpu", "imbalance", "thermal_throttle", "hw_throttle", "hollow_util", "transfer_bound"}
"""Kinds that explain a change on any GPU of the job, since others wait for the slow one."""
_AFTER = 60.0  # s after an evaluation in which its figures are logged
_PAUSE = 5.0  # usual distances of steps above which none was made
_STANDING = {"power_limited", "clocks_locked", "pcie_degraded"}
"""Kinds that explain a change though they claim no GPU time."""


@memoized
def _read_rate(context: Context) -> tuple[str, str, IntArray, FloatArray] | None:
    """Return the logged working speed of the job: metric, unit, times and values, if any.

    A logged rate comes first, then the time per step, then the steps between two moments.
    """
    recording = context.recording
    every: Any = recording.training.column("name").unique().to_pylist()
    names = [name for name in every if not split_words(name) & _CHECKING]
    known = [metric for name in names if (metric := recognise_metric(name))]
    rated = choose_throughput(names, None) or next((one for one in known if one.role is Role.THROUGHPUT), None)
    timed = next((one for one in known if one.role is Role.STEP_TIME), None)
    for metric in filter(None, (rated, timed)):
        times, values = read_points(recording, metric.name)
        is_rate = (values > 0) & np.isfinite(values)
        times, values = times[is_rate], values[is_rate]
        if len(times) > 1:
            if metric is timed:
                return metric.name, "steps/s", times, 1 / (metric.seconds * values)
            return metric.name, f"{metric.unit or 'units'}/s", times, values
    points = find_steps(recording)
    if points is None:
        return None
    last = np.append(np.diff(points[0] // round(_SPACING * 1e6)) > 0, True)
    times, gained = points[0][last], count_gains(points[1][last])[0]
    rates = gained / np.maximum(np.diff(times) / 1e6, 1e-3)
    return _STEP, "steps/s", times[1:][rates > 0], rates[rates > 0]


@rule("rate_falls")
def find_rate_falls(context: Context, limits: Limits) -> Found:
    """Yield at most one finding, for the whole job."""
    rate = _read_rate(context)
    if rate is None or len(rate[3]) < 4 * limits.readings:
        reason = "too few rates of the training were logged" if rate else "no rate of the training was logged"
        recording = "samples, tokens or steps a second, by a tracker or with --training FILE"
        yield missing_metrics.denied("rate_falls", "no_training_rate", reason, recording)
        return
    name, unit, times, values = rate
    change = find_fall(times, values, limits, later=True)
    if change is None:
        return
    cause, gpus, signal, evidence = _find_sign(context, change, limits)
    seconds = intervals.total_seconds(change.spans)
    yield context.finding(
        "rate_falls",
        Severity.WARNING,
        Confidence.MEDIUM if name == _STEP else Confidence.HIGH,
        (),
        [
            measured(name, "usual level", change.usual, ""),
            measured(name, "lowest level", change.level, ""),
            limits.compare("rate of the training", "fall", change.fall, ">=", "fall"),
            limits.compare("duration", "total", seconds, ">=", "shortest"),
            *evidence,
        ],
        spans=change.spans,
        cause=cause,
        samples=change.readings,
        fall=phrases.percent(change.fall),
        levels=f"{phrases.number(change.usual)} to {show(change.level, unit)}",
        after=phrases.duration((int(change.spans[0, 0]) - context.whole.start) / 1e6),
        gpus=gpus,
        signal=signal,
    )


def _find_sign(context: Context, change: Change, limits: Limits) -> tuple[str, str, str, tuple[Evidence, ...]]:
    full = [name for name in context.active if _is_filled(context, name, change, limits)]
    for cause, metric, unit, direction, noun in _SIGNS:
        devices = {"spill": full, "data": [""]}.get(cause, [*context.hosts(), *context.active])
        both = {name: _compare(context, name, metric, change) for name in devices}
        moved = {name: (then - before) / (1.0 if unit == "1" else before) for name, (before, then) in both.items()}
        least = {"1": limits.share, "By/s": limits.doubled}.get(unit, limits.part_of_fall * change.fall)
        far = [name for name in both if direction * moved[name] >= least]
        if far and (cause != "host memory" or both[far[0]][1] >= limits.host_full):
            before, then = both[max(far, key=lambda name: direction * moved[name])]
            gpus = phrases.gpu_names(far, list(context.active)) if far[0] in context.active else ""
            told = (("before the fall", before), ("after the fall", then))
            evidence = (measured(metric, word, value, unit) for word, value in told)
            return cause, gpus, f"{noun} from {show(before, unit)} to {show(then, unit)}", tuple(evidence)
    return "not shown", "", "", ()


def _is_filled(context: Context, device: str, change: Change, limits: Limits) -> bool:
    before, then = _compare(context, device, MEMORY, change)
    return before < limits.full * (memory_total(context.series[device]) or np.inf) <= then


def _compare(context: Context, device: str, metric: str, change: Change) -> tuple[float, float]:
    """Return the mean of a metric at the usual level and the other, NaN if unknown; "" is the training."""
    levels_of = change.usual_spans, change.spans
    if device:
        both = [context.series[device].find_values(metric, spans) for spans in levels_of]
    else:
        times, values = read_points(context.recording, metric)
        both = [values[intervals.contains(spans, times) & np.isfinite(values)] for spans in levels_of]
    before, then = (float(one.mean()) if len(one) else np.nan for one in both)
    return max(before, 1e-9), then


@rule("unexplained_change")
def find_unexplained_changes(context: Context, limits: Limits) -> Found:
    """Yield what changes level, or stays apart from equal GPUs, unexplained: one finding per signal."""
    coarsest = max((series.interval for series in context.gpus().values()), default=0.0)
    needed = max(2 * limits.shortest, 4 * limits.readings * coarsest)
    if context.whole.seconds < needed:
        yield missing_metrics.too_short("unexplained_change", context.whole.seconds, needed)
        return
    for device, series in context.gpus().items():
        if not (series.is_recorded(POWER) or any(map(series.is_recorded, CLOCKS))):
            yield missing_metrics.not_recorded("unexplained_change", device, CLOCK, POWER)
    found: dict[tuple[str, str, str], dict[str, Change]] = {}
    for case, metric, unit, device, change in _list_unexplained(context, limits):
        found.setdefault((case, metric, unit), {})[device] = change
    for (case, metric, unit), changes in found.items():
        change, devices = max(changes.values(), key=lambda one: one.fall), tuple(filter(None, changes))
        spans = intervals.union(np.concatenate([one.spans for one in changes.values()]))
        rises, seconds = change.spans[0, 0] < change.usual_spans[0, 0], intervals.total_seconds(spans)
        begins = int(change.usual_spans[0, 0] if rises else change.spans[0, 0])
        cool, warm = _compare(context, devices[0], TEMPERATURE, change) if devices else (0.0, 0.0)
        low, high = show(change.level, unit), show(change.usual, unit)
        yield context.finding(
            "unexplained_change",
            Severity.WARNING,
            Confidence.MEDIUM,
            devices,
            [
                measured(metric, "usual level", change.usual, unit),
                measured(metric, "other level", change.level, unit),
                limits.compare("duration", "total", seconds, ">=", "shortest"),
            ],
            spans=spans,
            cause=case,
            samples=sum(one.readings for one in changes.values()),
            gpus=phrases.gpu_names(devices, list(context.gpus())) if devices else "",
            what={CLOCK: "clock", POWER: "power", UTILISATION: "utilisation"}.get(metric, "training rate"),
            goes="rose" if rises else "fell",
            share=phrases.percent(change.usual / change.level - 1 if rises else change.fall),
            levels=f"{low} to {high}" if rises else f"{high} to {low}",
            low=low,
            high=high,
            after=phrases.duration((begins - context.whole.start) / 1e6),
            use="at the same use" if devices else "",
            heat=f"{warm:.0f} °C" if warm - cool >= limits.hotter or case == "hot" else "",
        )


def _list_unexplained(context: Context, limits: Limits) -> Iterator[tuple[str, str, str, str, Change]]:
    """Yield case, metric, unit, GPU and change of each signal; the first of one GPU, and the job's rate alone."""
    is_any = False
    for device, series in context.gpus().items():
        for case, metric, unit, change in _list_changes(context, device, series, limits):
            if not _is_explained(context, device, change):
                is_any = True
                yield case, metric, unit, device, change
                break
    rate = _read_rate(context)
    fall = find_fall(*rate[2:], limits, later=True) if rate and not is_any else None
    if rate and fall and not _is_explained(context, "", fall):
        yield "change", rate[0], rate[1], "", fall
    for peers in levels.compare_peers(context, limits.block, limits.readings):
        for metric, unit, least in ((UTILISATION, "1", limits.uneven), (POWER, "W", limits.weaker)):
            for device, change in levels.find_lower(peers, metric, least, limits).items():
                if not _is_explained(context, device, change):
                    yield "uneven", metric, unit, device, change
    for device, series in context.whole_log.gpus().items():
        if other := _find_other_use(series, limits):
            yield "other use", UTILISATION, "1", device, other


def _list_changes(
    context: Context, device: str, series: DeviceSeries, limits: Limits
) -> Iterator[tuple[str, str, str, Change]]:
    """Yield the signals of a GPU that stay at another level in one job at equal use; a pause may part phases."""
    signals = gather_signals(series)
    work = [job.active[device] for job in context.jobs if device in job.active]
    gaps = intervals.collect_finding_spans(context.findings_on(device), device, {"idle_gap"})
    pauses = intervals.union(np.concatenate([gaps, intervals.to_spans(series.gaps)]))
    around = np.array([-limits.shortest, limits.shortest]) * 1e6
    both = ((CLOCK, "Hz", signals.clock, limits.fall), (POWER, "W", signals.power, limits.weaker))
    for metric, unit, values, least in both:
        for window in work:
            inside = series.rows_between(window.start + series.shift, window.end + series.shift)
            rows = np.flatnonzero(signals.busy[inside] & (values[inside] > 0)) + inside.start
            change = find_fall(series.times[rows], values[rows], limits, least=least)
            if change is None:
                continue
            before, then = _compare(context, device, UTILISATION, change)
            edges = intervals.union(change.spans.reshape(-1, 1) + around.astype(np.int64))
            is_phase = metric == POWER and len(intervals.intersection(edges, pauses)) > 0
            if min(before, then) >= limits.busy and abs(before - then) <= limits.alike and not is_phase:
                is_spill = metric == POWER and _is_filled(context, device, change, limits)
                yield "spill" if is_spill else "change", metric, unit, change
    if hot := _find_hot(series, limits):
        yield "hot", CLOCK, "Hz", hot


def _find_hot(series: DeviceSeries, limits: Limits) -> Change | None:
    """Return how far below its highest clock a GPU works, if hot all along."""
    signals = gather_signals(series)
    rows = signals.busy & (signals.clock > 0) & (signals.temperature > 0)
    if np.count_nonzero(rows) < 4 * limits.readings or np.quantile(signals.temperature[rows], limits.part) < limits.hot:
        return None
    level, spans = float(np.median(signals.clock[rows])), intervals.rows_to_spans(series.start, series.end, rows)
    if not level <= (1 - limits.slowed) * signals.clock_max or intervals.total_seconds(spans) < limits.shortest:
        return None
    return Change(signals.clock_max, level, spans, spans, int(np.count_nonzero(rows)), is_standing=True)


def _find_other_use(series: DeviceSeries, limits: Limits) -> Change | None:
    """Return how busy a GPU is before the job takes its memory and, as much, after its release."""
    held, total = series.values(MEMORY), memory_total(series)
    low = np.nanmin(held) if series.is_recorded(MEMORY) else np.nan
    rows = np.flatnonzero(held > low + limits.released * ((total or np.nan) - low))
    if not len(rows):
        return None
    edges = [series.start[0], series.start[rows[0]], series.end[rows[-1]], series.end[-1]]
    ends, job = np.array([edges[:2], edges[2:]], dtype=np.int64), np.array([edges[1:3]], dtype=np.int64)
    parts = [series.find_values(UTILISATION, spans) for spans in (ends[:1], ends[1:], job)]
    if min(map(len, parts)) < limits.readings or len(intervals.drop_shorter(ends, limits.block)) < len(ends):
        return None
    before, after, usual = (float(np.median(part)) for part in parts)
    if min(before, after) < limits.other or abs(before - after) > limits.other / 2 or usual <= max(before, after):
        return None
    return Change(usual, (before + after) / 2, job, ends, len(parts[0]), is_standing=True)


def _is_explained(context: Context, device: str, change: Change) -> bool:
    """Return whether findings lie in most of a level's time, or the job names another phase.

    A finding on the whole run explains how a GPU differs from others, not what changes in the run.
    """
    found = context.findings_on(device) if device else context.earlier_findings
    known = [one for one in found if KINDS[one.kind].gpu_time_class or one.kind in _STANDING]
    known = [one for one in known if not is_hardly_reached(one)]
    known += [one for one in context.earlier_findings if one.kind in _SLOWING]
    whole = (context.whole,) if change.is_standing else ()
    spans = intervals.to_spans(part for one in known for part in one.intervals or whole)
    later = change.usual_spans if change.usual_spans[-1, 1] > change.spans[-1, 1] else change.spans
    stages = [intervals.to_spans([Interval(one.start, one.end)]) for one in context.recording.run.stages]
    is_staged = any(_covers(one, change.spans) and not _covers(one, change.usual_spans) for one in stages)
    return is_staged or _covers(spans, change.spans) or _covers(spans, later) or _is_evaluation(context, change.spans)


def _covers(known: Spans, spans: Spans) -> bool:
    return 2 * intervals.total_seconds(intervals.intersection(known, spans)) >= intervals.total_seconds(spans)


def _is_evaluation(context: Context, spans: Spans) -> bool:
    """Return whether the training log has an evaluation after each stretch, and no steps in most of it."""
    told = [each.times for each in find_evaluations(context.recording)]
    rate = _read_rate(context)
    if not told or rate is None:
        return False
    slack = np.array([0, _AFTER * 1e6], dtype=np.int64)
    steps = intervals.rows_to_spans(rate[2][:-1], rate[2][1:], np.diff(rate[2]) <= _PAUSE * np.median(np.diff(rate[2])))
    ends = [intervals.contains(spans[row : row + 1] + slack, np.concatenate(told)).any() for row in range(len(spans))]
    return all(ends) and not _covers(steps, spans)

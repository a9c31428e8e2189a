"""Whether a job goes on as it began: a logged rate that falls, and levels that change unexplained."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from gpureport.analysis import missing_metrics, phrases
from gpureport.analysis.job.events import find_steps, read_points, split_words
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.names import CLOCK, MEMORY, POWER, UTILISATION
from gpureport.analysis.rulebook import Context, Found, Limits, measured, rule
from gpureport.analysis.rules import peers as equals
from gpureport.analysis.rules.clocks import is_hardly_reached
from gpureport.analysis.rules.peers import Change, show
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
_SPACING = 10.0  # seconds between two points of a step counter: a rate over less is mostly the rounding of both
_CHECKING = {"val", "valid", "validation", "eval", "evaluation", "test", "dev"}
_SLOWING = {"rate_falls", "slow_gpu", "imbalance", "thermal_throttle", "hw_throttle", "hollow_util", "transfer_bound"}
"""Kinds that explain a change on any GPU of the job, since others wait for the slow one."""
_STANDING = {"power_limited", "clocks_locked", "pcie_degraded"}  # explain a change, though they claim no GPU time
_DISTANCES = 5.0  # usual distances between readings above which a pause lies between two, in which nothing is known
_ENOUGH = 8_192  # readings, evenly over the time, that show every level
_BLOCKS = 4.0  # that a level must hold for where readings are dense, otherwise two longer ones


def _find_quartiles(places: IntArray, values: FloatArray, count: int) -> FloatArray:
    """Return the quartiles of the values in each block, NaN in empty ones; `places` never fall."""
    edges = np.searchsorted(places, np.arange(count + 1))
    numbers = np.diff(edges)
    ordered = np.append(values[np.lexsort((values, places))], np.nan)
    ranks = edges[:-1] + (np.array([[0.25], [0.5], [0.75]]) * (numbers - 1).clip(0)).astype(np.int64)
    return np.where(numbers > 0, ordered[ranks], np.nan)


def _find_fall(times: IntArray, values: FloatArray, limits: Limits, *, later: bool = False) -> Change | None:
    """Return where values above 0 stay below the highest level that held; None where they do not.

    Both levels hold for a part of the time, and as long as a level must. The middle halves of the readings lie apart by
    `fall`: bursts, single moments and recurring phases are no level. With `later`, the usual level has to come first.
    """
    if len(values) < 4 * limits.readings:
        return None
    every = max(len(values) // _ENOUGH, 1)
    times, values = times[::every], values[::every]
    distances = np.diff(times) / 1e6
    interval = max(float(np.median(distances)), 1e-3)
    passed = np.append(0.0, np.cumsum(np.minimum(distances, _DISTANCES * interval)))
    hold = float(np.clip(limits.part * passed[-1], limits.shortest, limits.longest))
    length = max(hold / _BLOCKS, limits.readings * interval)
    count, held = int(passed[-1] / length), max(int(np.ceil(hold / length - 0.01)), 2)
    if count < 2 * held:
        return None
    places = np.minimum((passed / passed[-1] * count).astype(np.int64), count - 1)
    low, middle, high = _find_quartiles(places, values, count)
    if np.isnan(middle).any():
        return None
    windows = np.median(np.lib.stride_tricks.sliding_window_view(middle, held), axis=1)
    usual = np.full(count, windows.max())
    if later:
        usual = np.append(np.full(held, -np.inf), np.maximum.accumulate(windows)[: count - held])
    first, stop = intervals.find_runs(middle <= (1 - limits.fall) * usual)
    first, stop = first[stop - first >= held], stop[stop - first >= held]
    if not 0 < len(first) < limits.recurs:
        return None
    blocks, top = np.arange(count + 1), float(usual[first[0]])
    is_low = np.searchsorted(first, blocks[:-1], "right") > np.searchsorted(stop, blocks[:-1], "right")
    is_usual = (middle >= (1 - limits.fall / 2) * top) & ~is_low & ((blocks[:-1] < first[0]) | (not later))
    if not is_usual.any() or np.median(low[is_usual]) <= np.median(high[is_low]):
        return None
    lowest = float(windows[is_low[: len(windows)] & is_low[held - 1 :]].min())
    edges = np.searchsorted(places, blocks)
    begins = times[edges[:-1]]
    ends = np.minimum(np.append(begins[1:], times[-1]), times[edges[1:] - 1] + round(_DISTANCES * interval * 1e6))
    usual_spans, spans = (intervals.rows_to_spans(begins, ends, rows) for rows in (is_usual, is_low))
    readings = every * int(np.diff(edges)[is_low].sum())
    return Change(top, lowest, usual_spans, spans, readings)


@memoized
def _read_rate(context: Context) -> tuple[str, str, IntArray, FloatArray] | None:
    """Return the logged working speed of the job: metric, unit, times and values, if any."""
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
    change = _find_fall(times, values, limits, later=True)
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
    """Return what falls with a rate: its cause, the GPUs, in words, and as evidence."""
    held = {name: _compare(context, name, MEMORY, change) for name in context.active}
    size = {name: limits.full * (memory_total(context.series[name]) or np.inf) for name in held}
    full = [name for name, (before, then) in held.items() if before < size[name] <= then]
    signs = (("clock", CLOCK, "Hz", "the clock", list(context.active)), ("spill", POWER, "W", "the power", full))
    for cause, metric, unit, noun, devices in signs:
        both = {name: _compare(context, name, metric, change) for name in devices}
        falls = {name: 1 - then / before for name, (before, then) in both.items()}
        if far := [name for name in both if falls[name] >= limits.part_of_fall * change.fall]:
            before, then = both[max(far, key=lambda name: falls[name])]
            told = (("before the fall", before), ("after the fall", then))
            signal = f"{noun} from {show(before, unit)} to {show(then, unit)}"
            evidence = (measured(metric, word, value, unit) for word, value in told)
            return cause, phrases.gpu_names(far, list(context.active)), signal, tuple(evidence)
    return "not shown", "", "", ()


def _compare(context: Context, device: str, metric: str, change: Change) -> tuple[float, float]:
    """Return the mean of a metric of a GPU at the usual level and the other, NaN if unknown."""
    both = [context.series[device].find_values(metric, spans) for spans in (change.usual_spans, change.spans)]
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
        change = max(changes.values(), key=lambda one: one.fall)
        spans = intervals.union(np.concatenate([one.spans for one in changes.values()]))
        rises, seconds = change.spans[0, 0] < change.usual_spans[0, 0], intervals.total_seconds(spans)
        begins = int(change.usual_spans[0, 0] if rises else change.spans[0, 0])
        low, high = show(change.level, unit), show(change.usual, unit)
        yield context.finding(
            "unexplained_change",
            Severity.WARNING,
            Confidence.MEDIUM,
            changes,
            [
                measured(metric, "usual level", change.usual, unit),
                measured(metric, "other level", change.level, unit),
                limits.compare("duration", "total", seconds, ">=", "shortest"),
            ],
            spans=spans,
            cause=case,
            samples=sum(one.readings for one in changes.values()),
            what="power" if metric == POWER else "utilisation",
            goes="rose" if rises else "fell",
            share=phrases.percent(change.usual / change.level - 1 if rises else change.fall),
            levels=f"{low} to {high}" if rises else f"{high} to {low}",
            low=low,
            high=high,
            after=phrases.duration((begins - context.whole.start) / 1e6),
        )


def _list_unexplained(context: Context, limits: Limits) -> Iterator[tuple[str, str, str, str, Change]]:
    for device, series in context.gpus().items():
        for change in _list_clock_changes(context, device, series, limits):
            if not _is_explained(context, device, change):
                yield "change", CLOCK, "Hz", device, change
                break
    for peers in equals.compare_peers(context, limits.block, limits.readings):
        for metric, unit, least in ((UTILISATION, "1", limits.uneven), (POWER, "W", limits.weaker)):
            for device, change in equals.find_lower(peers, metric, least, limits).items():
                if not _is_explained(context, device, change):
                    yield "uneven", metric, unit, device, change
    for device, series in context.whole_log.gpus().items():
        if other := _find_other_use(series, limits):
            yield "other use", UTILISATION, "1", device, other


def _list_clock_changes(context: Context, device: str, series: DeviceSeries, limits: Limits) -> Iterator[Change]:
    signals = gather_signals(series)
    for window in (job.active[device] for job in context.jobs if device in job.active):
        inside = series.rows_between(window.start + series.shift, window.end + series.shift)
        rows = np.flatnonzero(signals.busy[inside] & (signals.clock[inside] > 0)) + inside.start
        if (change := _find_fall(series.times[rows], signals.clock[rows], limits)) is not None:
            before, then = _compare(context, device, UTILISATION, change)
            if min(before, then) >= limits.busy and abs(before - then) <= limits.alike:
                yield change


def _find_other_use(series: DeviceSeries, limits: Limits) -> Change | None:
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
    found = context.findings_on(device)
    known = [one for one in found if KINDS[one.kind].gpu_time_class or one.kind in _STANDING]
    known = [one for one in known if not is_hardly_reached(one)]
    known += [one for one in context.earlier_findings if one.kind in _SLOWING]
    whole = (context.whole,) if change.is_standing else ()
    spans = intervals.to_spans(part for one in known for part in one.intervals or whole)
    later = change.usual_spans if change.usual_spans[-1, 1] > change.spans[-1, 1] else change.spans
    stages = [intervals.to_spans([Interval(one.start, one.end)]) for one in context.recording.run.stages]
    is_staged = any(_covers(one, change.spans) and not _covers(one, change.usual_spans) for one in stages)
    return is_staged or _covers(spans, change.spans) or _covers(spans, later)


def _covers(known: Spans, spans: Spans) -> bool:
    return 2 * intervals.total_seconds(intervals.intersection(known, spans)) >= intervals.total_seconds(spans)

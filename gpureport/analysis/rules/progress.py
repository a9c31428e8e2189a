"""Changes in a job: its rate falls, levels change without a known cause, or a metric stalls."""

from collections.abc import Iterator
from itertools import islice, product

import numpy as np

from gpureport.analysis import doubts, phrases
from gpureport.analysis.job import events, jobs
from gpureport.analysis.job.events import WAITING, find_evaluations, read_points
from gpureport.analysis.rulebook import KINDS, Context, Found, Limits, measured, rule
from gpureport.analysis.rules.clocks import is_hardly_reached
from gpureport.analysis.rules.peers import Change, compare_peers, find_lower, show
from gpureport.analysis.series import CLOCK, IOWAIT, MEMORY, POWER, TEMPERATURE, UTILISATION, intervals
from gpureport.analysis.series.clock_and_power import CLOCKS, gather_signals, mean
from gpureport.analysis.series.device_series import DeviceSeries, memoized
from gpureport.analysis.series.intervals import covers
from gpureport.analysis.series.statistics import memory_total
from gpureport.columns import FloatArray, IntArray
from gpureport.findings import Confidence, Evidence, Interval, Severity
from gpureport.names import Role, choose_throughput, recognise_metric
from gpureport.rates import count_gains

_STEP = "step"
_SPACING = 10.0  # seconds between step counter points; over less, rounding dominates the rate
_CHECKING = {"val", "valid", "validation", "eval", "evaluation", "test", "dev"}
_SIGNS = (
    ("clock", CLOCK, "Hz", -1, "the clock"),
    ("data", WAITING, "1", 1, "the wait for data"),
    ("reads", IOWAIT, "1", 1, "the CPU's wait for storage"),
    ("reads", "host_disk_read_bytes_per_second", "By/s", 1, "the read rate"),
    ("host memory", "host_memory_used_ratio", "1", 1, "host memory use"),
    ("spill", POWER, "W", -1, "the power"),
    ("waits", UTILISATION, "1", -1, "the utilisation"),
    ("power", POWER, "W", -1, "the power"),
)
"""What may change with the rate, most informative first: cause, metric, unit, direction, noun."""
_SLOWING = {"rate_falls", "slow_gpu", "imbalance", "thermal_throttle", "hw_throttle", "hollow_util", "transfer_bound"}
_STANDING = {"power_limited", "clocks_locked", "pcie_degraded"}
"""Kinds that explain a change although they have no class of GPU time."""
_AFTER = 60.0  # seconds within which the results of an evaluation are logged
_PAUSE = 5.0  # multiple of the usual time between points; longer ones lack readings or steps
_ENOUGH = 8_192  # evenly spread readings that are enough to show each level
_BLOCKS = 4.0  # blocks that a level must last; with sparse readings, two longer ones
_Case = tuple[str, str, str, str, Change]  # case, metric, unit, GPU, details


def find_fall(
    times: IntArray, values: FloatArray, limits: Limits, *, least: float | None = None, later: bool = False
) -> Change | None:
    """Return a lasting fall of positive values below their usual level, or None.

    Both levels must last. The fall must be at least `least`. The middle halves of the readings must
    not overlap, so bursts and recurring phases do not count. With `later`, the usual level comes first.
    """
    least = limits.fall if least is None else least
    if len(values) < 4 * limits.readings:
        return None
    every = max(len(values) // _ENOUGH, 1)
    times, values = times[::every], values[::every]
    distances = np.diff(times) / 1e6
    interval = max(float(np.median(distances)), 1e-3)
    passed = np.append(0.0, np.cumsum(np.minimum(distances, _PAUSE * interval)))
    hold = float(np.clip(limits.part * passed[-1], limits.shortest, limits.longest))
    length = max(hold / _BLOCKS, limits.readings * interval)
    count, held = int(passed[-1] / length), max(int(np.ceil(hold / length - 0.01)), 2)
    if count < 2 * held:
        return None
    places = np.minimum((passed / passed[-1] * count).astype(np.int64), count - 1)
    blocks = np.arange(count + 1)
    edges = np.searchsorted(places, blocks)
    numbers = np.diff(edges)
    if not numbers.all():
        return None
    ordered = values[np.lexsort((values, places))]
    low, middle, high = ordered[edges[:-1] + (np.array([[0.25], [0.5], [0.75]]) * (numbers - 1)).astype(np.int64)]
    windows = np.median(np.lib.stride_tricks.sliding_window_view(middle, held), axis=1)
    usual = np.full(count, windows.max())
    if later:
        usual = np.append(np.full(held, -np.inf), np.maximum.accumulate(windows)[: count - held])
    first, stop = intervals.find_runs(middle <= (1 - least) * usual)
    first, stop = first[stop - first >= held], stop[stop - first >= held]
    if not 0 < len(first) < limits.recurs:
        return None
    top = float(usual[first[0]])
    is_low = np.searchsorted(first, blocks[:-1], "right") > np.searchsorted(stop, blocks[:-1], "right")
    is_usual = (middle >= (1 - least / 2) * top) & ~is_low & ((blocks[:-1] < first[0]) | (not later))
    if not is_usual.any() or np.median(low[is_usual]) <= np.median(high[is_low]):
        return None
    lowest = float(windows[is_low[: len(windows)] & is_low[held - 1 :]].min())
    begins = times[edges[:-1]]
    ends = np.minimum(np.append(begins[1:], times[-1]), times[edges[1:] - 1] + round(_PAUSE * interval * 1e6))
    usual_spans, spans = (intervals.row_spans(begins, ends, rows) for rows in (is_usual, is_low))
    return Change(top, lowest, usual_spans, spans, every * int(numbers[is_low].sum()))


@memoized
def _read_rate(context: Context) -> tuple[str, str, IntArray, FloatArray] | None:
    """Return the training rate's metric, unit, times and values."""
    recording = context.recording
    names = [name for name in events.list_names(recording) if not events.split_words(name) & _CHECKING]
    known = {metric.role: metric for name in reversed(names) if (metric := recognise_metric(name))}
    rated = choose_throughput(names, None) or known.get(Role.THROUGHPUT)
    for metric in filter(None, (rated, known.get(Role.STEP_TIME))):
        times, values = read_points(recording, metric.name)
        is_rate = (values > 0) & np.isfinite(values)
        times, values = times[is_rate], values[is_rate]
        if len(times) > 1 and metric.role is Role.STEP_TIME:
            return metric.name, "steps/s", times, 1 / (metric.seconds * values)
        if len(times) > 1:
            return metric.name, f"{metric.unit or 'units'}/s", times, values
    points = events.find_steps(recording)
    if points is None:
        return None
    last = np.append(np.diff(points[0] // round(_SPACING * 1e6)) > 0, True)
    times, gained = points[0][last], count_gains(points[1][last])[0]
    rates = gained / np.maximum(np.diff(times) / 1e6, 1e-3)
    return _STEP, "steps/s", times[1:][rates > 0], rates[rates > 0]


@rule("rate_falls")
def find_rate_falls(context: Context, limits: Limits) -> Found:
    rate = _read_rate(context)
    if rate is None or len(rate[3]) < 4 * limits.readings:
        yield doubts.unjudged("rate_falls", "no_training_rate", case="few" if rate else "")
        return
    name, unit, times, values = rate
    change = find_fall(times, values, limits, later=True)
    if change is None:
        return
    cause, gpus, signal, evidence = _find_sign(context, change, limits)
    yield context.finding(
        "rate_falls",
        Severity.WARNING,
        Confidence.MEDIUM if name == _STEP else Confidence.HIGH,
        (),
        measured(name, "usual level", change.usual, ""),
        measured(name, "lowest level", change.level, ""),
        limits.compare("rate of the training", "fall", change.fall, ">=", "fall"),
        limits.compare("duration", "total", intervals.total_seconds(change.spans), ">=", "shortest"),
        *evidence,
        spans=change.spans,
        cause=cause,
        samples=change.readings,
        words={
            "fall": change.fall,
            "levels": f"{phrases.number(change.usual)} to {show(change.level, unit)}",
            "after": (int(change.spans[0, 0]) - context.whole.start) / 1e6,
            "gpus": gpus,
            "signal": signal,
        },
    )


def _find_sign(context: Context, change: Change, limits: Limits) -> tuple[str, str, str, list[Evidence]]:
    full = [name for name in context.active if _is_filled(context, name, change, limits)]
    for cause, metric, unit, direction, noun in _SIGNS:
        devices = {"spill": full, "data": [""]}.get(cause, [*context.hosts(), *context.active])
        both = {name: _compare(context, name, metric, change) for name in devices}
        moved = {
            name: direction * (then - before) / (1.0 if unit == "1" else before)
            for name, (before, then) in both.items()
        }
        least = {"1": limits.share, "By/s": limits.doubled}.get(unit, limits.part_of_fall * change.fall)
        far = [name for name in both if moved[name] >= least]
        if far and (cause != "host memory" or both[far[0]][1] >= limits.host_full):
            before, then = both[max(far, key=moved.__getitem__)]
            gpus = phrases.gpu_names(far, list(context.active)) if far[0] in context.active else ""
            told = [measured(metric, f"{when} the fall", x, unit) for when, x in (("before", before), ("after", then))]
            return cause, gpus, f"{noun} from {show(before, unit)} to {show(then, unit)}", told
    return "not shown", "", "", []


def _is_filled(context: Context, device: str, change: Change, limits: Limits) -> bool:
    before, then = _compare(context, device, MEMORY, change)
    return before < limits.full * (memory_total(context.series[device]) or np.inf) <= then


def _compare(context: Context, device: str, metric: str, change: Change) -> tuple[float, float]:
    """Return a metric's means at both levels, or NaN. Training metrics have the device ""."""
    levels = change.usual_spans, change.spans
    if device:
        before, then = (mean(context.series[device].find_values(metric, spans)) for spans in levels)
    else:
        times, values = read_points(context.recording, metric)
        times, values = times[np.isfinite(values)], values[np.isfinite(values)]
        before, then = (mean(values[intervals.contains(spans, times)]) for spans in levels)
    return max(before, 1e-9), then


@rule("unexplained_change")
def find_unexplained_changes(context: Context, limits: Limits) -> Found:
    coarsest = max((series.interval for series in context.gpus().values()), default=0.0)
    needed = max(2 * limits.shortest, 4 * limits.readings * coarsest)
    if context.whole.seconds < needed:
        yield doubts.too_short("unexplained_change", context.whole.seconds, needed)
        return
    for device, series in context.gpus().items():
        if not (series.is_recorded(POWER) or any(map(series.is_recorded, CLOCKS))):
            yield doubts.not_recorded("unexplained_change", device, CLOCK, POWER)
    found: dict[tuple[str, str, str], dict[str, Change]] = {}
    for case, metric, unit, device, change in _list_unexplained(context, limits):
        found.setdefault((case, metric, unit), {})[device] = change
    for (case, metric, unit), changes in found.items():
        change = max(changes.values(), key=lambda one: one.fall)
        devices = tuple(filter(None, changes))
        spans = intervals.union(np.concatenate([one.spans for one in changes.values()]))
        cool, warm = _compare(context, devices[0], TEMPERATURE, change) if devices else (0.0, 0.0)
        low, high = show(change.level, unit), show(change.usual, unit)
        goes, share, levels, since = "fell", change.fall, f"{high} to {low}", change.spans[0, 0]
        if change.spans[0, 0] < change.usual_spans[0, 0]:
            goes, share, levels = "rose", change.usual / change.level - 1, f"{low} to {high}"
            since = change.usual_spans[0, 0]
        yield context.finding(
            "unexplained_change",
            Severity.WARNING,
            Confidence.MEDIUM,
            devices,
            measured(metric, "usual level", change.usual, unit),
            measured(metric, "other level", change.level, unit),
            limits.compare("duration", "total", intervals.total_seconds(spans), ">=", "shortest"),
            spans=spans,
            cause=case,
            samples=sum(one.readings for one in changes.values()),
            words={
                "low": low,
                "high": high,
                "placed": bool(devices),
                "what": {CLOCK: "clock", POWER: "power", UTILISATION: "utilisation"}.get(metric, "training rate"),
                "goes": goes,
                "share": share,
                "levels": levels,
                "after": (int(since) - context.whole.start) / 1e6,
                "heat": warm if warm - cool >= limits.hotter or case == "hot" else None,
            },
        )


def _list_unexplained(context: Context, limits: Limits) -> Iterator[_Case]:
    """Yield the changes that nothing else explains."""
    rate, found = _read_rate(context), list[_Case]()
    for device, series in context.gpus().items():
        changes = _list_changes(context, device, series, limits)
        found += islice((one for one in changes if not _is_explained(context, device, one[-1])), 1)
    if rate and not found and (fall := find_fall(*rate[2:], limits, later=True)):
        found += [] if _is_explained(context, "", fall) else [("change", *rate[:2], "", fall)]
    yield from found
    for peers in compare_peers(context, limits.block, limits.readings):
        for metric, unit, least in ((UTILISATION, "1", limits.uneven), (POWER, "W", limits.weaker)):
            for device, change in find_lower(peers, metric, least, limits).items():
                if not _is_explained(context, device, change):
                    yield "uneven", metric, unit, device, change
    for device, series in context.whole_log.gpus().items():
        if other := jobs.find_other_use(series):
            spans, level, usual = other
            job = np.array([[spans[0, 1], spans[1, 0]]], dtype=np.int64)
            count = len(series.find_values(UTILISATION, spans))
            yield "other use", UTILISATION, "1", device, Change(usual, level, job, spans, count, is_standing=True)


def _list_changes(context: Context, device: str, series: DeviceSeries, limits: Limits) -> Iterator[_Case]:
    signals, gaps = gather_signals(series), context.spans_on(device, {"idle_gap"})
    pauses = intervals.union(np.concatenate([gaps, intervals.to_spans(series.gaps)]))
    around = np.array([-limits.shortest, limits.shortest]) * 1e6
    both = ((CLOCK, "Hz", signals.clock, limits.fall), (POWER, "W", signals.power, limits.weaker))
    windows = [job.active[device] for job in context.jobs if device in job.active]
    for (metric, unit, values, least), window in product(both, windows):
        inside = series.rows_between(window.start + series.shift, window.end + series.shift)
        rows = np.flatnonzero(signals.busy[inside] & (values[inside] > 0)) + inside.start
        if change := find_fall(series.times[rows], values[rows], limits, least=least):
            before, then = _compare(context, device, UTILISATION, change)
            edges = intervals.union(change.spans.reshape(-1, 1) + around.astype(np.int64))
            is_phase = metric == POWER and len(intervals.intersection(edges, pauses)) > 0
            if min(before, then) >= limits.busy and abs(before - then) <= limits.alike and not is_phase:
                is_spill = metric == POWER and _is_filled(context, device, change, limits)
                yield "spill" if is_spill else "change", metric, unit, device, change
    # a GPU that is hot and slow for the whole time
    rows = signals.busy & (signals.clock > 0) & (signals.temperature > 0)
    degrees, count = signals.temperature[rows], int(np.count_nonzero(rows))
    if count >= 4 * limits.readings and np.quantile(degrees, limits.part) >= limits.hot:
        level, spans = float(np.median(signals.clock[rows])), series.find_owned(rows)
        if level <= (1 - limits.slowed) * signals.clock_max and intervals.total_seconds(spans) >= limits.shortest:
            change = Change(signals.clock_max, level, spans, spans, count, is_standing=True)
            yield "hot", CLOCK, "Hz", device, change


def _is_explained(context: Context, device: str, change: Change) -> bool:
    """Return whether findings, stages or evaluations cover at least half the time at a level."""
    found = context.findings_on(device) if device else context.earlier_findings
    known = [
        one for one in found if (KINDS[one.kind].gpu_time_class or one.kind in _STANDING) and not is_hardly_reached(one)
    ]
    known += [one for one in context.earlier_findings if one.kind in _SLOWING]
    whole = (context.whole,) if change.is_standing else ()
    spans = intervals.to_spans(part for one in known for part in one.intervals or whole)
    later = change.usual_spans if change.usual_spans[-1, 1] > change.spans[-1, 1] else change.spans
    stages = [intervals.to_spans([Interval(one.start, one.end)]) for one in context.recording.run.stages]
    is_staged = any(covers(one, change.spans) and not covers(one, change.usual_spans) for one in stages)
    if is_staged or covers(spans, change.spans) or covers(spans, later):
        return True
    # an evaluation logs its results after each span, and almost no steps during it
    told = [each.times for each in find_evaluations(context.recording)]
    rate = _read_rate(context)
    if not told or rate is None:
        return False
    ends = change.spans + np.array([0, _AFTER * 1e6], dtype=np.int64)
    distances, times = np.diff(rate[2]), np.sort(np.concatenate(told))
    steps = intervals.row_spans(rate[2][:-1], rate[2][1:], distances <= _PAUSE * np.median(distances))
    is_told = all(intervals.contains(end[np.newaxis], times).any() for end in ends)
    return is_told and not covers(steps, change.spans)


@rule("no_progress")
def find_no_progress(context: Context, limits: Limits) -> Found:
    if not context.gpus():
        yield doubts.not_recorded("no_progress", None, UTILISATION)
        return
    known = [each for each in find_evaluations(context.recording) if each.number >= limits.fewest]
    if not known:
        yield doubts.unjudged("no_progress", "too_few_evaluations", fewest=f"{limits.fewest:g}")
        return
    metric = max(known, key=lambda each: int(each.times[each.best_row]))
    job, last = context.job, int(metric.times[-1])
    best = min(max(int(metric.times[metric.best_row]), job.start), job.end)
    # the value is known up to the last evaluation; none can be better before the next one
    stood = Interval(best, max(min(last, job.end), best))
    after = Interval(best, max(min(last + int(np.diff(metric.times).max(initial=0)), job.end), best))
    share = stood.seconds / job.seconds if job.seconds else 0.0
    lost, value = after.seconds * len(context.gpus()), float(metric.values[metric.best_row])
    if stood.seconds and share >= limits.stands:
        yield context.finding(
            "no_progress",
            Severity.INFO,
            Confidence.MEDIUM,
            (),
            limits.compare("time after the best value", "share of the job", share, ">=", "stands"),
            limits.compare("evaluations", "count", metric.number, ">=", "fewest"),
            measured(metric.metric.name, "best", value, ""),
            spans=(after,),
            lost=lost,
            samples=metric.number,
            words={
                "metric": metric.metric.name,
                "value": f"{value:.4g}",
                "lost_time": lost,
                "time": (best - context.whole.start) / 1e6,
            },
        )

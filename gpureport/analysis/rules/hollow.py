"""GPUs with high utilisation but little work: they hang, wait for copies, or run tiny kernels."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gpureport.analysis import doubts, phrases
from gpureport.analysis.rulebook import KINDS, Context, Found, Limits, measured, rule
from gpureport.analysis.rules.low_use import find_evaluations
from gpureport.analysis.rules.waits import RECEIVED, SENT
from gpureport.analysis.series import CORE, MEMORY, POWER, UTILISATION, intervals
from gpureport.analysis.series.clock_and_power import find_event_rows, read_clocks, scale_power
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.statistics import build_grid, memory_reserved, memory_total, rolling_mean
from gpureport.columns import BoolArray, FloatArray
from gpureport.findings import Confidence, Finding, Interval, Severity

_SM, _DRAM, _TENSOR = "gpu_sm_active_ratio", "gpu_dram_active_ratio", "gpu_tensor_active_ratio"
_CONTROLLER = "gpu_memory_controller_ratio"


class _Episode(NamedTuple):
    device: str
    span: Interval
    signs: Mapping[str, float]
    peers: Sequence[str]
    cause: str


@rule("hollow_util")
def find_hollow_work(context: Context, limits: Limits) -> Found:
    gpus = context.gpus()
    if context.window is None:
        return
    needed = max(limits.shortest, limits.shortest_rows * max(series.interval for series in gpus.values()))
    if is_short := context.whole.seconds < needed:
        yield doubts.too_short("hollow_util", context.whole.seconds, needed)
    spans = {} if is_short else {name: _find_spans(context, one, limits) for name, one in gpus.items()}
    for device, series in gpus.items():
        # without a known limit, high power does not show that a GPU is busy
        if len(spans.get(device, ())) or not np.isnan(scale_power(series)[0]).all() or series.is_recorded(_SM):
            continue
        if not series.is_recorded(POWER):
            yield doubts.not_recorded("hollow_util", device, POWER)
        else:
            model = series.device.model or "this GPU"
            yield doubts.unjudged("hollow_util", "unknown_power_limit", device, model=model)
    if any(map(len, spans.values())):
        episodes = _measure_episodes(context, spans, limits)
        yield from (_build_finding(context, group, limits) for group in _group_episodes(episodes, limits.together))


def _find_spans(context: Context, series: DeviceSeries, limits: Limits) -> intervals.Spans:
    grid = build_grid(context.job, [series])
    used, (clock, highest) = grid.average_metric(series, UTILISATION), read_clocks(series)
    of_limit, is_logged = scale_power(series, True)
    explained = find_event_rows(series, "sw_power_cap")
    explained = explained | ((clock < limits.low_clock * highest) & (of_limit >= limits.at_idle))
    used = np.where(grid.average_values(series, explained.astype(np.float64)) > 0, 0.0, used)
    length = max(round(limits.over / grid.width), round(limits.rows))
    is_busy = rolling_mean(np.where(np.isnan(used), np.nan, used >= limits.busy), length) >= limits.busy_share
    share = grid.average_values(series, of_limit)
    active, dram = grid.average_metric(series, _SM), grid.average_metric(series, _DRAM)
    bounds = (_bound_mean(share, length), _bound_mean(active, length), rolling_mean(dram, length))
    power = limits.power
    if is_logged and not (bounds[0][is_busy] >= limits.half).any():
        traffic = rolling_mean(grid.average_metric(series, _CONTROLLER), length)
        power = power if (traffic[is_busy] >= limits.streaming).any() else max(limits.half, power)
    is_near = rolling_mean(is_busy & _is_little(*bounds, power, limits), length) > 0
    is_hollow = is_near & ~(used < limits.busy) & (_is_little(share, active, dram, power, limits) | np.isnan(used))
    shortest = max(limits.shortest, limits.shortest_rows * series.interval)
    spans = grid.mask_to_spans(is_hollow, max(limits.over, 2 * grid.width), shortest)
    explaining = np.concatenate([context.spans_on(series.device.id), intervals.to_spans(series.gaps)])
    spans = intervals.intersection(intervals.difference(spans, intervals.union(explaining)), context.work)
    read = (series.times - series.shift)[series.known_rows(UTILISATION)]
    has_readings = np.searchsorted(read, spans[:, 1]) > np.searchsorted(read, spans[:, 0])
    return intervals.drop_shorter(spans[has_readings], shortest)


def _bound_mean(values: FloatArray, length: int) -> FloatArray:
    """Return rolling means plus two standard errors, since a sensor may sample single moments."""
    mean = rolling_mean(values, length)
    spread = np.maximum(rolling_mean(np.square(values), length) - np.square(mean), 0.0)
    number = rolling_mean(~np.isnan(values), length) * length
    return np.asarray(mean + 2 * np.sqrt(spread / np.maximum(number - 1, 1)), dtype=np.float64)


def _is_little(share: FloatArray, active: FloatArray, dram: FloatArray, power: float, limits: Limits) -> BoolArray:
    """Return when few multiprocessors of a GPU are active, or they spin at low power."""
    idling = share < np.where(np.isnan(active), power, limits.still)
    return (active < limits.active) | (idling & ~(dram >= limits.streaming))


def _measure_episodes(context: Context, spans_of: Mapping[str, intervals.Spans], limits: Limits) -> Iterator[_Episode]:
    for name, own in spans_of.items():
        peers = [other for other in spans_of if other != name and other in context.active]
        evaluations = find_evaluations(context.recording, own)
        for span, is_evaluation in zip(intervals.to_intervals(own), evaluations, strict=True):
            series, (used, share) = context.series[name], _measure_work(context.series[name], span)
            full = series.values(MEMORY) / ((memory_total(series) or np.nan) - memory_reserved(series))
            earlier = np.where(series.values(UTILISATION) >= limits.busy, full, np.nan)
            traffic = _DRAM if series.is_recorded(_DRAM) else _CONTROLLER
            hosts = [one for one in context.hosts_of(series) if one.is_recorded(CORE)]
            signs = {each: _mean(series, series.values(each), span) for each in (POWER, _SM, _TENSOR, RECEIVED, SENT)}
            signs |= {
                UTILISATION: used,
                "share": share,
                "traffic": _mean(series, series.values(traffic), span),
                "full": _mean(series, full, span),
                "before": _mean(series, earlier, Interval(context.whole.start, span.start)),
                "done": float(np.clip(share if np.isnan(signs[_SM]) else signs[_SM], 0.0, 1.0)),
                "core": _mean(hosts[-1], hosts[-1].values(CORE), span) if hosts else np.nan,
                "logged": float(scale_power(series)[1]),
            }
            beside = {other: _measure_work(context.series[other], span) for other in peers}
            dead = [other for other, (used, _) in beside.items() if used <= limits.dead]
            hard = [other for other, (_, share) in beside.items() if share >= limits.hard]
            shared = [intervals.intersection(spans_of[other], intervals.to_spans([span])) for other in peers]
            together = max(map(intervals.total_seconds, shared), default=0.0) >= limits.together * span.seconds
            cause = "hang" if dead else "straggler" if hard else _name_cause(signs, limits, is_together=together)
            if not (is_evaluation and cause == "launch-bound"):
                yield _Episode(name, span, signs, dead or hard, cause)


def _mean(series: DeviceSeries, values: FloatArray, span: Interval) -> float:
    part = values[series.rows_between(span.start + series.shift, span.end + series.shift)]
    return float(np.nanmean(part)) if not np.isnan(part).all() else np.nan


def _measure_work(series: DeviceSeries, span: Interval) -> tuple[float, float]:
    return _mean(series, series.values(UTILISATION), span), _mean(series, scale_power(series, True)[0], span)


def _name_cause(signs: Mapping[str, float], limits: Limits, *, is_together: bool) -> str:
    if signs[RECEIVED] >= limits.copied and signs[SENT] <= signs[RECEIVED] / 2:
        return "copying"
    if signs["full"] >= limits.full > signs["before"]:
        return "spill"
    is_still = signs["share"] < limits.still or signs["traffic"] <= limits.moved
    if signs["traffic"] > limits.moved or signs[_TENSOR] > limits.moved or not is_still:
        return "launch-bound"
    # one GPU that replays a CUDA graph of tiny kernels looks the same (seen on an H100)
    return "hang" if is_together and not signs["core"] < limits.pegged else ""


def _group_episodes(episodes: Iterable[_Episode], together: float) -> Iterator[list[_Episode]]:
    groups: list[list[_Episode]] = []
    for one in episodes:
        for group in groups:
            start = min(each.span.start for each in group)
            end = max(each.span.end for each in group)
            shared = min(end, one.span.end) - max(start, one.span.start)
            either = max(end, one.span.end) - min(start, one.span.start)
            is_alike = one.cause == group[0].cause and all(one.device != each.device for each in group)
            if is_alike and shared >= together * either:
                group.append(one)
                break
        else:
            groups.append([one])
    merged: dict[tuple[str, ...], list[_Episode]] = {}
    for group in groups:
        merged.setdefault((group[0].cause, *(each.device for each in group)), []).extend(group)
    yield from merged.values()


def _build_finding(context: Context, group: Sequence[_Episode], limits: Limits) -> Finding:
    middle = sorted(group, key=lambda each: each.signs["done"])[len(group) // 2]
    signs, cause, is_hung = middle.signs, middle.cause, middle.cause == "hang"
    devices = list(dict.fromkeys(each.device for each in group))
    spans = intervals.to_spans(each.span for each in group)
    seconds = intervals.total_seconds(spans)
    series = [context.series[device] for device in devices]
    inside = [intervals.contains(spans, one.times - one.shift) for one in series]
    readings = [one.count_readings(POWER, rows) for one, rows in zip(series, inside, strict=True)]
    used = min(float(np.nanmean(one.values(UTILISATION)[rows])) for one, rows in zip(series, inside, strict=True))
    share, active, unseen = signs["share"], signs[_SM], cause == "launch-bound" and np.isnan(signs[RECEIVED])
    is_counted = not np.isnan(active)
    confidence = Confidence.HIGH if is_counted or min(readings) >= limits.readings else Confidence.MEDIUM
    if not is_counted and not all(each.signs["logged"] for each in group):
        confidence = Confidence.LOW
    elif unseen or cause == "spill" or share >= limits.power:
        confidence = Confidence.MEDIUM
    level = "near-idle" if share < limits.still else "" if is_counted else "low"
    is_clocked = all(highest > 0 and not np.isnan(clock).all() for clock, highest in map(read_clocks, series))
    is_grave = is_hung and seconds >= limits.problem * max(context.job.seconds, 1e-6)
    peers = phrases.gpu_names(middle.peers, list(context.gpus())) if middle.peers else ""
    why = KINDS["hollow_util"].say(
        "dead" if is_hung and middle.peers else "open" if unseen else cause,
        {"peers": peers, "rate": f"{signs[RECEIVED] / 1e9:.0f}", "full": signs["full"]},
    )
    power = "power" if share < limits.power else "half"
    drawn = limits.compare(POWER, "mean, as a share of the range from idle to the limit", share, "<", power)
    full = signs["full"] if cause == "spill" else np.nan
    return context.finding(
        "hollow_util",
        Severity.PROBLEM if is_grave else Severity.WARNING,
        confidence,
        devices,
        limits.compare(UTILISATION, "mean", used, ">=", "busy"),
        drawn.as_context() if is_counted else drawn,
        measured(POWER, "drawn", signs[POWER], "W"),
        limits.compare(_SM, "mean", active, "<", "active"),
        measured(_TENSOR, "mean", signs[_TENSOR]),
        measured("memory traffic", "mean", signs["traffic"]),
        measured(CORE, "mean", signs["core"]),
        limits.compare(RECEIVED, "mean", signs[RECEIVED], ">=", "copied"),
        limits.compare(MEMORY, "mean, of what a job can use", full, ">=", "full"),
        limits.compare("duration", "total", seconds, ">=", "shortest"),
        spans=spans,
        lost=seconds * len(devices) * (1.0 if is_hung else 1.0 - signs["done"]),
        cause=cause or None,
        case="looked",
        samples=sum(readings),
        words={"level": level, "active": active, "why": why, "clocked": is_clocked}
        | {"counted": not np.isnan(signs["traffic"] + share)},
    )

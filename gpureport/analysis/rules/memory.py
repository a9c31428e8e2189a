"""GPU and host memory, and whether a GPU's size and precision suit its job."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import truediv
from typing import NamedTuple

import numpy as np

from gpureport.analysis import doubts, phrases
from gpureport.analysis.job import jobs, params
from gpureport.analysis.rulebook import Context, Found, Limits, measured, rule
from gpureport.analysis.rules import waits
from gpureport.analysis.series import CORE, CPU, MEMORY, UTILISATION
from gpureport.analysis.series.clock_and_power import median
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import NO_SPANS, contains, total_seconds, union
from gpureport.analysis.series.statistics import memory_peak, memory_reserved, memory_total
from gpureport.columns import FloatArray, IntArray
from gpureport.findings import Confidence, Finding, Interval, Severity
from gpureport.metrics import Gpu, find_gpu, load_gpus

_TOTAL, _HOST = "gpu_memory_total_bytes", "host_memory_used_ratio"
_TENSOR = "gpu_tensor_active_ratio"
_AMPERE = (8, 0)
_HOW = {"constant": "hardly changed", "coarse": "rose between two samples", "mixed": "may not reflect the need"}


class _Use(NamedTuple):
    """How one GPU's memory was used.

    `ratio` is the peak as a share of `capacity`. `step` is the largest rise and `spread` the range
    after it, as shares of the installed memory. `state` is `reserved`, `constant`, empty or, if
    the log cannot show the step, `short`, `coarse` or `sparse`.
    """

    device: str
    free: float
    capacity: int
    ratio: float
    samples: int
    step: float
    spread: float
    state: str


@rule("memory")
def find_memory_use(context: Context, limits: Limits) -> Found:
    uses, kinds = [], ("mem_headroom", "mem_pressure", "mem_prealloc")
    for device, series in context.gpus().items():
        if missing := _find_missing(series):
            yield from (doubts.not_recorded(kind, device, missing) for kind in kinds)
        elif len(series) < doubts.FEW_READINGS:
            yield from (doubts.too_short(kind, 0.0, limits.shortest) for kind in kinds)
        else:
            uses.append(use := _measure_use(series, limits))
            if use.state in {"constant", "short"} and context.whole.seconds < limits.shortest:
                yield doubts.too_short("mem_prealloc", context.whole.seconds, limits.shortest)
            if use.state in {"coarse", "sparse"}:
                apart = series.interval, phrases.duration(series.interval)
                for kind in kinds[1:] if use.ratio >= limits.full else kinds[2:]:
                    yield doubts.unjudged(kind, "coarse_samples", device, apart)
    reserved = [use for use in uses if use.state == "reserved"]
    others = [use for use in uses if use.ratio >= limits.used or use.device in context.active]
    others = [use for use in others if use not in reserved]
    full = [use for use in others if use.ratio >= limits.full and use.state != "coarse"]
    has_room = not reserved and all(use.ratio < limits.roomy for use in others)
    for kind, chosen in zip(kinds, (others if has_room else (), full, reserved), strict=True):
        if chosen:
            yield _build_finding(context, kind, chosen, limits)


def _find_missing(series: DeviceSeries) -> str | None:
    return MEMORY if not series.is_recorded(MEMORY) else None if memory_total(series) else _TOTAL


def is_preallocated(series: DeviceSeries) -> bool | None:
    known = {"reserved": True, "": False}
    return None if _find_missing(series) else known.get(_measure_use(series, find_memory_use.limits).state)


def _measure_use(series: DeviceSeries, limits: Limits) -> _Use:
    total, interval = memory_total(series) or 1, 1.01 * series.interval  # loggers may be a little early
    used, times = series.known_values(MEMORY), series.times[series.find_known_rows(MEMORY)]
    peak, capacity, step, spread, state = int(used.max()), total - memory_reserved(series), 0.0, 1.0, ""
    held = used[: _find_release(used)]
    if np.ptp(used) >= limits.step * total:
        before = np.minimum(np.searchsorted(times, times - 1_000_000), np.maximum(np.arange(len(times)) - 1, 0))
        at = int(np.argmax(used - used[before]))
        end, trim = at + _find_release(used[at:]), max(limits.trim, interval) * 1e6
        later = used[end:][times[end:] >= times[end - 1] + trim][:1]
        settled = used[at:end][(times[at:end] >= times[at] + trim) & (times[at:end] <= times[end - 1] - trim)]
        step = float(used[at] - used[before[at]]) / total
        is_kept = not (later > jobs.PROCESS_MEMORY.value).any()
        if len(settled) and times[end - 1] - times[at] >= limits.shortest * 1e6 and is_kept:
            spread = float(np.ptp(settled)) / total
    if peak >= limits.used * total and np.ptp(held) < limits.steady * total and peak == int(held.max()):
        state = "constant"
    elif peak >= limits.step * total and series.times[-1] - series.times[0] < limits.shortest * 1e6:
        state = "short"
    elif step >= limits.step and spread < limits.steady:
        state = "coarse" if interval >= limits.coarse else "reserved"
    elif peak < limits.step * total and interval >= limits.shortest:
        state = "sparse"
    samples = series.count_readings(MEMORY, series.find_known_rows(MEMORY))
    return _Use(series.device.id, capacity - peak, capacity, peak / capacity, samples, step, spread, state)


def _find_release(used: FloatArray) -> int:
    return int(np.argmax(np.append(used < used[0] / 2, True)))


def _build_finding(context: Context, kind: str, uses: Sequence[_Use], limits: Limits) -> Finding:
    states, is_reserved = {use.state for use in uses}, kind == "mem_prealloc"
    sure = Confidence.MEDIUM if any(states) else Confidence.HIGH
    sure = Confidence.LOW if states & {"constant", "coarse"} else sure
    worst = max(uses, key=lambda use: use.step if is_reserved else use.ratio)
    relation, limit = ("<", "roomy") if kind == "mem_headroom" else (">=", "full")
    left, whole = phrases.size(worst.free), phrases.size(worst.capacity)
    part, unit = left.split(maxsplit=1)  # a shared unit is written once
    less = " less reserved" if memory_reserved(context.series[worst.device]) else ""
    evidence = [
        limits.compare(MEMORY, "largest step, as a share of memory", worst.step, ">=", "step"),
        limits.compare(MEMORY, "range after it, as a share of memory", worst.spread, "<", "steady"),
        limits.compare(MEMORY, f"max, of installed{less} memory", worst.ratio, relation, limit),
        measured(MEMORY, "free at the peak", worst.free, "By"),
    ]
    return context.finding(
        kind,
        Severity.WARNING if kind == "mem_pressure" else Severity.INFO,
        doubts.lowest(sure, doubts.confidence_of(max(use.samples for use in uses))),
        [use.device for use in uses],
        *(evidence[:2] if is_reserved else evidence[2:]),
        samples=sum(use.samples for use in uses),
        ruled_out=() if any(states) else (phrases.NOT_PREALLOCATED,),
        words={
            "gpu": phrases.gpu_name(worst.device),
            "several": len(uses) > 1,
            "full": worst.ratio,
            "step": worst.step,
            "left": f"{part if whole.endswith(unit) else left} of {whole}",
            "share": 1 - worst.ratio,
            "how": _HOW["mixed"] if len(states) > 1 else _HOW.get(min(states), ""),
        },
    )


@rule("mem_leak")
def find_growing_memory(context: Context, limits: Limits) -> Found:
    for device, series in context.gpus().items():
        if missing := _find_missing(series):
            yield doubts.not_recorded("mem_leak", device, missing)
            continue
        # the longest period in which memory was held, without its beginning
        inside = series.rows_between(context.job.start, context.job.end + 1)
        rows = np.arange(len(series))[inside][series.known_rows(MEMORY)[inside]]
        times, used = series.times[rows], series.values(MEMORY)[rows]
        falls = np.flatnonzero(used[1:] < limits.released * used[:-1]) + 1
        parts = np.split(np.arange(len(used)), falls)
        held = max(parts, key=lambda part: int(np.ptp(times[part])) if len(part) else 0)
        settled = held[times[held] >= times[held[:1]] + limits.settled * (times[held[-1:]] - times[held[:1]])]
        if context.findings("mem_prealloc", device):
            yield doubts.unjudged("mem_leak", "memory_reserved_at_once", device)
        elif len(settled) < limits.fewest:
            few = doubts.count_of(len(settled), "sample")
            yield doubts.unjudged("mem_leak", doubts.TOO_FEW, device, few, case="after start-up")
        else:
            yield from _judge_growth(context, series, times[settled], used[settled], limits)


def _judge_growth(
    context: Context, series: DeviceSeries, times: IntArray, used: FloatArray, limits: Limits
) -> Iterator[Finding]:
    """Yield a leak if block medians have a steep median slope and memory grows in every quarter."""
    seconds, total = (times - times[0]) / 1e6, memory_total(series) or 1
    places = np.linspace(0, len(times), min(round(limits.blocks), len(times)) + 1).round().astype(np.int64)
    blocks = [slice(*edges) for edges in pairwise(places.tolist())]
    when, level = (np.array([np.median(each[block]) for block in blocks]) for each in (seconds, used))
    one, other = np.triu_indices(len(blocks), k=1)
    rate = float(np.median((level[other] - level[one]) / np.maximum(when[other] - when[one], 1e-6)))
    edges = np.linspace(0, len(blocks) - 1, 5).round().astype(np.int64).tolist()
    near = [slice(max(edge - 1, 0), edge + 2) for edge in edges]
    middles, levels = ([np.median(each[part]) for part in near] for each in (when, level))
    quarters = np.diff(levels) / np.maximum(np.diff(middles), 1e-6)
    slowest = float(quarters.min() / quarters.mean()) if quarters.mean() > 0 else 0.0
    growth = rate * float(seconds[-1]) / total
    if growth <= limits.growth or slowest < limits.quarter:
        return
    samples = series.count_readings(MEMORY, series.rows_between(int(times[0]), int(times[-1]) + 1))
    left = max(total - memory_reserved(series) - float(level[-1]), 0.0) / rate
    is_soon = left <= limits.soon
    yield context.finding(
        "mem_leak",
        Severity.PROBLEM if is_soon else Severity.WARNING,
        Confidence.HIGH if samples >= limits.blocks else Confidence.MEDIUM,
        (series.device.id,),
        limits.compare(MEMORY, "growth, as a share of memory", growth, ">", "growth"),
        limits.compare(MEMORY, "slowest quarter, as a share of the mean rate", slowest, ">=", "quarter"),
        measured(MEMORY, "growth per second", rate, "By/s"),
        limits.compare("time until memory is full", "at this rate", left, "<=" if is_soon else ">", "soon"),
        spans=(Interval(int(times[0]), int(times[-1])),),
        samples=samples,
        ruled_out=(phrases.NOT_PREALLOCATED,),
        words={"rate": 60 * rate, "left": left, "full": left <= 0},
    )


@rule("zombie_memory")
def find_kept_memory(context: Context, limits: Limits) -> Found:
    if context.window is None:
        return
    rest = Interval(context.window.end, context.whole.end)
    if context.whole.seconds < limits.idle:
        yield doubts.too_short("zombie_memory", context.whole.seconds, limits.idle)
    for device in context.active if rest.seconds >= limits.idle else ():
        series = context.series[device]
        if not series.is_recorded(MEMORY):
            yield doubts.not_recorded("zombie_memory", device, MEMORY)
            continue
        used, times = series.known_values(MEMORY), series.times[series.find_known_rows(MEMORY)]
        peak, last = float(used.max()), float(used[-1])
        is_late = times[-1] - rest.start >= limits.idle * 1e6
        # a model that stays loaded may serve requests
        is_early = context.window.start - times[0] >= limits.before * 1e6 or np.ptp(used) < limits.resident * peak
        was_there = is_early and used[0] > limits.held * peak
        if was_there or not is_late or last <= limits.held * peak or peak < limits.least:
            continue
        when = (CPU, context.window), (CPU, rest), (CORE, rest)
        loads = [
            [median(host.values(metric)[host.rows_between(part.start, part.end)]) for metric, part in when]
            for host in context.hosts_of(series)
        ]
        if any(after >= max(limits.load * before, 0.1) or core >= limits.core for before, after, core in loads):
            continue
        is_watched = any(after >= 0 for _, after, _ in loads)
        yield context.finding(
            "zombie_memory",
            Severity.WARNING,
            Confidence.HIGH if is_watched else Confidence.MEDIUM,
            (device,),
            limits.compare(MEMORY, "last, as a share of the peak", last / peak, ">", "held"),
            limits.compare("time without work", "to the last sample", rest.seconds, ">=", "idle"),
            measured(MEMORY, "last", last, "By"),
            spans=(rest,),
            samples=series.count_readings(MEMORY, series.times >= rest.start),
            words={"held": last, "watched": is_watched},
        )


@rule("host_memory")
def host_memory(context: Context, limits: Limits) -> Found:
    for host, series in context.hosts().items():
        beside = [name for name, one in context.gpus().items() if series.is_beside(one)]
        spans = union(np.concatenate([NO_SPANS, *(context.spans_on(name, host_memory.after) for name in beside)]))
        if total_seconds(spans) < limits.shortest:
            continue
        whole = np.max(series.known_values("host_memory_total_bytes"), initial=0.0)
        ratio = series.values(_HOST)
        ratio = np.where(np.isnan(ratio), series.values("host_memory_used_bytes") / (whole or np.nan), ratio)
        used = waits.known_of(ratio[contains(spans, series.times - series.shift)])
        if len(used) == 0:
            yield from (doubts.not_recorded(kind, host, _HOST) for kind in host_memory.kinds)
            continue
        peak, cpu = float(np.quantile(used, 0.95)), median(series.find_values(CPU, spans))
        workers, cores = waits.read_host_params(context, series).workers, waits.count_host_cores(context, series)
        has_workers = workers and cores and workers.value >= cores.most_workers
        is_full, is_roomy = peak >= limits.full, peak < limits.roomy
        if is_roomy and np.isnan(cpu):
            yield doubts.not_recorded("workers_headroom", host, CPU)
        if not is_full and not (is_roomy and cpu < limits.cores and not has_workers):
            continue
        relation, limit = (">=", "full") if is_full else ("<", "roomy")
        yield context.finding(
            "host_memory_pressure" if is_full else "workers_headroom",
            Severity.WARNING if is_full else Severity.INFO,
            Confidence.MEDIUM,
            (host,),
            limits.compare(_HOST, "p95 while GPUs wait", peak, relation, limit),
            limits.compare(CPU, "median", np.nan if is_full else cpu, "<", "cores"),
            *([] if is_full else [waits.show_cores(cores)]),
            spans=spans,
            samples=len(used),
            words={"full": peak, "cpu": cpu, "cores": waits.say_cores(cores)},
        )


@rule("oversized_gpu")
def find_oversized_gpus(context: Context, limits: Limits) -> Found:
    window = context.window or Interval(0, 0)
    for peers in (list(each.values()) for each in context.peers()):
        model = peers[0].device.model or ""
        own, peaks = find_gpu(model), [memory_peak(one) for one in peers]
        peak, total = max(each or 0 for each in peaks), min(memory_total(one) or 0 for one in peers)
        if window.seconds < limits.shortest:
            yield doubts.too_short("oversized_gpu", window.seconds, limits.shortest, "the work lasted")
        elif any(context.findings("mem_prealloc", one.device.id) for one in peers):
            yield doubts.unjudged("oversized_gpu", "memory_reserved_at_once")
        elif own is None or not _size(own):
            yield doubts.unjudged("oversized_gpu", "gpu_not_in_table", case="" if model else "no model", model=model)
        elif None in peaks or not total:
            yield doubts.not_recorded("oversized_gpu", None, MEMORY if None in peaks else _TOTAL)
        elif peak < limits.roomy * total:
            loads = [one.values(UTILISATION)[one.rows_between(window.start, window.end)] for one in peers]
            used = max(1.0 if np.isnan(load).all() else float(np.nanmean(load)) for load in loads)
            if fitting := sorted(_list_fitting(limits, own, total, peak, used)):
                _, smaller, busy, memory = fitting[0]
                yield context.finding(
                    "oversized_gpu",
                    Severity.INFO,
                    Confidence.LOW,
                    [one.device.id for one in peers],
                    measured(UTILISATION, "mean within the job, highest GPU", used),
                    limits.compare(UTILISATION, f"the same at the speed of {smaller}, at most", busy, "<=", "busy"),
                    limits.compare(MEMORY, f"max, of the memory of {smaller}", memory, "<=", "fits"),
                    samples=sum(one.count_readings(UTILISATION, slice(None)) for one in peers),
                    ruled_out=[phrases.NOT_PREALLOCATED],
                    words={"smaller": smaller, "peak": peak, "used": used},
                )


def _size(gpu: Gpu) -> tuple[float, ...]:
    """Return a GPU's usable memory, bandwidth, arithmetic speed and power, if all are known."""
    speeds = gpu.memory_bandwidth_bytes_per_second, gpu.tensor_operations_per_second
    cells = gpu.memory_total_bytes, *speeds, gpu.power_limit_default_watts
    memory, *others = (cell.value if cell else 0.0 for cell in cells)
    reserved = gpu.memory_reserved_bytes.value if gpu.memory_reserved_bytes else 0.0
    return (memory - reserved, *others) if all(cells) else ()


def _list_fitting(
    limits: Limits, own: Gpu, total: int, peak: int, used: float
) -> Iterator[tuple[float, str, float, float]]:
    """Yield the power, model, utilisation and memory use of smaller GPUs that fit."""
    _, *speeds, most = _size(own)
    for gpu in load_gpus():
        memory, *slower, power = _size(gpu) or (np.inf, np.inf)
        is_older = own.compute_capability >= _AMPERE > gpu.compute_capability
        busy = used * max([1.0, *map(truediv, speeds, slower)])
        is_smaller = memory < total and power < most and not is_older
        if is_smaller and busy <= limits.busy and peak / memory <= limits.fits:
            yield power, gpu.model, busy, peak / memory


@rule("full_precision")
def find_full_precision(context: Context, limits: Limits) -> Found:
    param, is_full = params.find_precision_param(context.recording.run.params_and_tags) or ("", True)
    tensor, uncounted = dict[str, float](), list[str]()
    for name in context.active:
        series = context.series[name]
        model = series.device.model or ""
        if (known := find_gpu(model)) is None:
            case = "" if model else "no model"
            yield doubts.unjudged("full_precision", "gpu_not_in_table", name, case=case, model=model)
        elif known.compute_capability >= (limits.capability, 0):
            values, used = series.values(_TENSOR), series.values(UTILISATION)
            working = ~(series.values("gpu_sm_active_ratio") < limits.worked) & ~(used <= limits.at_work)
            seconds = np.where(working & ~np.isnan(values), series.seconds, 0.0)
            if seconds.sum() >= limits.busy:
                tensor[name] = float(np.nansum(values * seconds) / seconds.sum())
            else:
                uncounted.append(name)
    low = {name: share for name, share in tensor.items() if share < limits.active}
    if devices := list(low) or (uncounted if is_full and not tensor and param else []):
        share = max(low.values(), default=np.nan)
        yield context.finding(
            "full_precision",
            Severity.INFO,
            Confidence.HIGH if low else Confidence.MEDIUM,
            devices,
            limits.compare(_TENSOR, "mean over busy time", share, "<", "active"),
            case="" if low else "param",
            samples=sum(context.series[name].count_values(_TENSOR) for name in low),
            words={"share": share, "param": param},
        )
    if is_full and (tensor or not param or not context.active):
        for device in uncounted if tensor else [None] if uncounted or not context.active else []:
            yield doubts.unjudged("full_precision", "precision_not_recorded", device)

"""Memory of GPUs and hosts, and whether a GPU suits its job in size and precision."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gpureport.analysis import doubts, phrases
from gpureport.analysis.job import jobs, params
from gpureport.analysis.names import CORE, CPU, MEMORY, UTILISATION
from gpureport.analysis.rulebook import Context, Found, Limits, measured, rule
from gpureport.analysis.rules import waits
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import NO_SPANS, contains, total_seconds, union
from gpureport.analysis.series.statistics import memory_peak, memory_reserved, memory_total
from gpureport.columns import FloatArray, IntArray
from gpureport.findings import Confidence, Finding, Interval, Severity
from gpureport.metrics import Gpu, find_gpu, load_gpus

_TOTAL, _HOST = "gpu_memory_total_bytes", "host_memory_used_ratio"
_TENSOR = "gpu_tensor_active_ratio"
_AMPERE = (8, 0)
_HOW = {"constant": "never changed", "coarse": "rose between two samples", "mixed": "may not follow the work"}


class _Use(NamedTuple):
    """How one GPU's memory was used.

    `ratio` is the peak as a share of the memory that a job can use. `step` is the largest rise and
    `spread` the range after it, as shares of the installed memory. `state` is `reserved` if
    it was taken in one step, `constant` if it never changed, `short` or `coarse` if the log
    cannot show the step, and otherwise empty.
    """

    device: str
    peak: int
    capacity: int
    ratio: float
    samples: int
    step: float
    spread: float
    state: str


@rule("memory")
def find_memory_use(context: Context, limits: Limits) -> Found:
    uses, gpus, kinds = [], context.gpus(), ("mem_headroom", "mem_pressure", "mem_prealloc")
    for device, series in gpus.items():
        if not series.is_recorded(MEMORY) or not memory_total(series):
            missing = _TOTAL if series.is_recorded(MEMORY) else MEMORY
            yield from (doubts.not_recorded(kind, device, missing) for kind in kinds)
        elif len(series) < doubts.FEW_READINGS:
            yield from (doubts.too_short(kind, 0.0, limits.shortest) for kind in kinds)
        else:
            uses.append(_measure_use(series, limits))
            if uses[-1].state in {"constant", "short"} and context.whole.seconds < limits.shortest:
                yield doubts.too_short("mem_prealloc", context.whole.seconds, limits.shortest)
            if uses[-1].state == "coarse":
                apart = series.interval, phrases.duration(series.interval)
                for kind in kinds[1:] if uses[-1].ratio >= limits.full else kinds[2:]:
                    yield doubts.unjudged(kind, "coarse_samples", device, apart)
    reserved = [use for use in uses if use.state == "reserved"]
    others = [use for use in uses if use.ratio >= limits.used or use.device in context.active]
    others = [use for use in others if use not in reserved]
    full = [use for use in others if use.ratio >= limits.full and use.state != "coarse"]
    has_room = not reserved and all(use.ratio < limits.roomy for use in others)
    for kind, chosen in zip(kinds, (others if has_room else (), full, reserved), strict=True):
        if chosen:
            yield _build_finding(context, kind, chosen, limits)


def is_preallocated(series: DeviceSeries) -> bool | None:
    known = series.is_recorded(MEMORY) and memory_total(series)
    return {"reserved": True, "": False}.get(_measure_use(series, find_memory_use.limits).state) if known else None


def _measure_use(series: DeviceSeries, limits: Limits) -> _Use:
    peak, total = memory_peak(series) or 0, memory_total(series) or 1
    used, times = series.known_values(MEMORY), series.times[series.find_known_rows(MEMORY)]
    step, spread = _measure_step(used, times, total, limits, series.interval)
    released = np.flatnonzero(used < used[0] / 2)
    held = used[: released[0]] if len(released) else used
    state = ""
    if peak >= limits.used * total and np.ptp(held) < limits.steady * total and used.max() == held.max():
        state = "constant"
    elif peak >= limits.step * total and series.times[-1] - series.times[0] < limits.shortest * 1e6:
        state = "short"
    elif step >= limits.step and spread < limits.steady:
        # the interval of a logger may be a little short
        state = "coarse" if 1.01 * series.interval >= limits.coarse else "reserved"
    samples = series.count_readings(MEMORY, series.find_known_rows(MEMORY))
    capacity = total - memory_reserved(series)
    return _Use(series.device.id, peak, capacity, peak / capacity, samples, step, spread, state)


def _measure_step(
    used: FloatArray, times: IntArray, total: int, limits: Limits, interval: float
) -> tuple[float, float]:
    if np.ptp(used) < limits.step * total:
        return 0.0, 1.0
    before = np.minimum(np.searchsorted(times, times - 1_000_000), np.maximum(np.arange(len(times)) - 1, 0))
    at = int(np.argmax(used - used[before]))
    released = np.flatnonzero(used[at:] < used[at] / 2)
    end = at + (int(released[0]) if len(released) else len(used) - at)
    trim = max(limits.trim, interval * 1.01) * 1e6
    given_back = used[end:][times[end:] >= times[end - 1] + trim][:1] > jobs.PROCESS_MEMORY.value
    settled = used[at:end][(times[at:end] >= times[at] + trim) & (times[at:end] <= times[end - 1] - trim)]
    is_held = len(settled) and times[end - 1] - times[at] >= limits.shortest * 1e6 and not given_back.any()
    return float(used[at] - used[before[at]]) / total, float(np.ptp(settled)) / total if is_held else 1.0


def _build_finding(context: Context, kind: str, uses: Sequence[_Use], limits: Limits) -> Finding:
    states, is_reserved = {use.state for use in uses}, kind == "mem_prealloc"
    sure = Confidence.HIGH if states == {""} else Confidence.MEDIUM
    sure = Confidence.LOW if states & {"constant", "coarse"} else sure
    worst = max(uses, key=lambda use: use.step if is_reserved else use.ratio)
    relation, limit = ("<", "roomy") if kind == "mem_headroom" else (">=", "full")
    left, whole = worst.capacity - worst.peak, phrases.size(worst.capacity)
    part, unit = phrases.size(left).split(maxsplit=1)  # a shared unit is written once
    step, spread, ratio, free = (
        (worst.step, worst.spread, np.nan, np.nan) if is_reserved else (np.nan, np.nan, worst.ratio, left)
    )
    return context.finding(
        kind,
        Severity.WARNING if kind == "mem_pressure" else Severity.INFO,
        doubts.lowest(sure, doubts.confidence_of(max(use.samples for use in uses))),
        [use.device for use in uses],
        limits.compare(MEMORY, "largest step, as a share of memory", step, ">=", "step"),
        limits.compare(MEMORY, "range after it, as a share of memory", spread, "<", "steady"),
        limits.compare(MEMORY, "max, of installed less reserved memory", ratio, relation, limit),
        measured(MEMORY, "free at the peak", free, "By"),
        samples=sum(use.samples for use in uses),
        ruled_out=(phrases.NOT_PREALLOCATED,) if states == {""} else (),
        words={"gpu": phrases.gpu_name(worst.device), "several": len(uses) > 1, "full": worst.ratio, "step": worst.step}
        | {"left": f"{part if whole.endswith(unit) else phrases.size(left)} of {whole}", "share": 1 - worst.ratio}
        | {"how": _HOW.get(" ".join(states), _HOW["mixed"] if len(states) > 1 else "")},
    )


@rule("mem_leak")
def find_growing_memory(context: Context, limits: Limits) -> Found:
    job = context.job
    for device, series in context.gpus().items():
        if not series.is_recorded(MEMORY) or not memory_total(series):
            missing = _TOTAL if series.is_recorded(MEMORY) else MEMORY
            yield doubts.not_recorded("mem_leak", device, missing)
            continue
        # the longest period in which memory was held, without its beginning
        rows = series.rows_between(job.start, job.end + 1)
        known = series.known_rows(MEMORY)[rows]
        times, used = series.times[rows][known], series.values(MEMORY)[rows][known]
        falls = np.flatnonzero(used[1:] < limits.released * used[:-1]) + 1
        parts = [part for part in pairwise([0, *falls.tolist(), len(used)]) if part[0] < part[1]]
        held = slice(*max(parts, key=lambda part: int(times[part[1] - 1] - times[part[0]]), default=(0, 0)))
        times, used = times[held], used[held]
        settled = times >= times[:1] + limits.settled * (times[-1:] - times[:1])
        times, used = times[settled], used[settled]
        if context.findings("mem_prealloc", device):
            yield doubts.unjudged("mem_leak", "memory_reserved_at_once", device)
        elif len(times) < limits.fewest:
            few = doubts.count_of(len(times), "sample")
            yield doubts.unjudged("mem_leak", doubts.TOO_FEW, device, few, case="after start-up")
        else:
            yield from _judge_growth(context, series, times, used, limits)


def _judge_growth(
    context: Context, series: DeviceSeries, times: IntArray, used: FloatArray, limits: Limits
) -> Iterator[Finding]:
    """Yield a leak if the median slope between block medians is high and memory grows in every quarter."""
    count, seconds = min(round(limits.blocks), len(times)), (times - times[0]) / 1e6
    places = np.linspace(0, len(times), count + 1).round().astype(np.int64)
    middle = places[:-1] + places[1:]
    when = (seconds[(middle - 1) // 2] + seconds[middle // 2]) / 2
    level = np.array([np.median(used[a:b]) for a, b in pairwise(places.tolist())])
    one, other = np.triu_indices(count, k=1)
    rate = float(np.median((level[other] - level[one]) / np.maximum(when[other] - when[one], 1e-6)))
    edges = np.linspace(0, count - 1, 5).round().astype(np.int64).tolist()
    near = [slice(max(edge - 1, 0), edge + 2) for edge in edges]
    middles, levels = ([np.median(each[part]) for part in near] for each in (when, level))
    quarters = np.diff(levels) / np.maximum(np.diff(middles), 1e-6)
    mean, total = float(quarters.mean()), memory_total(series) or 1
    slowest = float(quarters.min()) / mean if mean > 0 else 0.0
    growth = rate * float(seconds[-1]) / total
    if growth <= limits.growth or slowest < limits.quarter:
        return
    span = Interval(int(times[0]), int(times[-1]))
    samples = series.count_readings(MEMORY, series.rows_between(span.start, span.end + 1))
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
        spans=(span,),
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
        hosts = context.hosts_of(series)
        least = [max(limits.load * _median(host, CPU, context.window), 0.1) for host in hosts]
        after = [_median(host, CPU, rest) for host in hosts]
        is_core_full = any(_median(host, CORE, rest) >= limits.core for host in hosts)
        if is_core_full or any(load >= low for load, low in zip(after, least, strict=True)):
            continue
        is_watched = not np.isnan(after).all()
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
            words={"held": last, "watched": bool(is_watched)},
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
        peak, busy = float(np.quantile(used, 0.95)), series.find_values(CPU, spans)
        cpu = float(np.median(busy)) if len(busy) else np.nan
        known = waits.read_host_params(context, series)
        cores = waits.count_host_cores(context, series)
        has_workers = known.workers and cores and known.workers.value >= cores.most_workers
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
            *([] if is_full else waits.show_cores(cores)),
            spans=spans,
            samples=len(used),
            words={"full": peak, "cpu": cpu, "cores": waits.say_cores(cores)},
        )


def _median(series: DeviceSeries, metric: str, when: Interval) -> float:
    values = series.values(metric)[series.rows_between(when.start, when.end)]
    return float(np.nanmedian(values)) if not np.isnan(values).all() else np.nan


@rule("oversized_gpu")
def find_oversized_gpus(context: Context, limits: Limits) -> Found:
    window = context.window or Interval(0, 0)
    for peers in (list(each.values()) for each in context.peers()):
        model = peers[0].device.model
        own = find_gpu(model)
        peaks = [memory_peak(one) for one in peers]
        totals = [memory_total(one) for one in peers]
        if window.seconds < limits.shortest:
            yield doubts.too_short("oversized_gpu", window.seconds, limits.shortest, "the work lasted")
        elif any(context.findings("mem_prealloc", one.device.id) for one in peers):
            yield doubts.unjudged("oversized_gpu", "memory_reserved_at_once")
        elif own is None or not _size(own):
            # a model outside the table stays unknown
            case = "" if model else "no model"
            yield doubts.unjudged("oversized_gpu", "gpu_not_in_table", case=case, model=model or "")
        elif None in peaks or not all(totals):
            yield doubts.not_recorded("oversized_gpu", None, MEMORY, "gpu_memory_total_bytes")
        elif max(peak or 0 for peak in peaks) < limits.roomy * min(total or 0 for total in totals):
            loads = [one.values(UTILISATION)[one.rows_between(window.start, window.end)] for one in peers]
            used = max(1.0 if np.isnan(load).all() else float(np.nanmean(load)) for load in loads)
            yield from _compare_sizes(context, limits, own, peers, used)


def _size(gpu: Gpu) -> tuple[float, float, float, float] | None:
    memory, reserved = gpu.memory_total_bytes, gpu.memory_reserved_bytes
    speed = gpu.memory_bandwidth_bytes_per_second
    arithmetic = gpu.tensor_operations_per_second
    power = gpu.power_limit_default_watts
    if not (memory and speed and arithmetic and power):
        return None
    return memory.value - (reserved.value if reserved else 0), speed.value, arithmetic.value, power.value


def _compare_sizes(
    context: Context, limits: Limits, own: Gpu, peers: Sequence[DeviceSeries], used: float
) -> Iterator[Finding]:
    peak = max(memory_peak(one) or 0 for one in peers)
    total = min(memory_total(one) or 0 for one in peers)
    _, speed, arithmetic, power = _size(own) or (0.0,) * 4
    fitting, names = [], [one.device.id for one in peers]
    for gpu in load_gpus():
        is_older = own.compute_capability >= _AMPERE > gpu.compute_capability
        if (size := _size(gpu)) and size[0] < total and size[3] < power and not is_older:
            busy = used * max(speed / size[1], arithmetic / size[2], 1.0)
            memory = peak / size[0]
            if busy <= limits.busy and memory <= limits.fits:
                fitting.append((size[3], gpu.model, busy, memory))
    if fitting:
        _, smaller, busy, memory = min(fitting, key=lambda each: each[0])
        article = "An" if smaller[:1] in ("AEIO" if smaller[1:2].islower() else "AEFHILMNORSX") else "A"
        yield context.finding(
            "oversized_gpu",
            Severity.INFO,
            Confidence.LOW,
            names,
            measured(UTILISATION, "mean within the job, highest GPU", used),
            limits.compare(UTILISATION, f"the same at the speed of {smaller}, at most", busy, "<=", "busy"),
            limits.compare(MEMORY, f"max, of the memory of {smaller}", memory, "<=", "fits"),
            samples=sum(one.count_readings(UTILISATION, slice(None)) for one in peers),
            ruled_out=[phrases.NOT_PREALLOCATED],
            words={"smaller": f"{article} {smaller}", "peak": peak, "used": used},
        )


@rule("full_precision")
def find_full_precision(context: Context, limits: Limits) -> Found:
    param, is_full = params.find_precision_param(context.recording.run.params_and_tags) or ("", True)
    tensor, uncounted = dict[str, float](), list[str]()
    for name in context.active:
        series = context.series[name]
        known = find_gpu(series.device.model)
        if known is None:
            yield doubts.unjudged("full_precision", "gpu_not_in_table", name, model=series.device.model or "the GPU")
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

"""GPUs that wait for input because of the CPU, storage, one core or the PCIe link.

A resource is a cause if its load is high while the GPUs do little, and higher than while they are
busy. Causes are tried in order. Time that one cause explains is left out for the next.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial, reduce
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from gpureport.analysis import doubts, phrases
from gpureport.analysis.job.jobs import POINT_SAMPLE_SECONDS
from gpureport.analysis.job.params import CoreCount, JobParams, read_params
from gpureport.analysis.rulebook import KINDS, Context, Found, Limits, Rule, Words, measured, rule
from gpureport.analysis.series import CORE, CPU, IOWAIT, JOB, UTILISATION, intervals, statistics
from gpureport.analysis.series.clock_and_power import mean, median
from gpureport.analysis.series.device_series import DeviceSeries, memoized
from gpureport.analysis.series.statistics import BELOW, IDLE_RATIO, mark_low, rolling_mean
from gpureport.columns import BoolArray, FloatArray
from gpureport.findings import Confidence, Evidence, Finding, Provenance, Severity

CORES, PROCESS = "cpu_logical_cores", "process_cpu_cores"
RECEIVED, SENT = "pcie_receive_bytes_per_second", "pcie_transmit_bytes_per_second"

WAIT_KINDS = tuple(name for name, kind in KINDS.items() if kind.gpu_time_class == "waiting_for_input")
BESIDE_OTHERS = "not shown beside other programs"
"""The cause if other programs keep the CPU busy and the job itself hardly uses it."""
_COPYING = "copying"
ROWS = 30  # point samples needed for a mean
# length in seconds and minimum number of bins for a mean of the host's load
_OVER, _BINS = 30.0, 9
# mean utilisation of GPUs with timely data; share of bins in which waiting GPUs may reach it
_FED, _RARELY = 0.90, 0.1
# minimum difference of levels, absolute and in standard errors; at three, 16 of 1,800 permuted series pass
_APART, _ERRORS = 0.05, 4.0
# share of samples; lost share that is a problem; seconds between close samples
_HALF, _PROBLEM, _CLOSE = 0.5, 0.05, 5.0
_LANE = {1: 2e9, 2: 4e9, 3: 8e9 * 128 / 130, 4: 16e9 * 128 / 130, 5: 32e9 * 128 / 130, 6: 64e9 * 242 / 256}
"""Bits per second that one lane carries in each direction, by PCI Express generation."""

Parts = dict[str, Any]  # keyword arguments for `build_finding`


class Sign(NamedTuple):
    """A load that may keep GPUs waiting: its mean per bin, and the length of its rolling mean."""

    metric: str
    series: FloatArray
    is_high: BoolArray
    over: int
    describe: Callable[[intervals.Spans], Parts]


class Lane(NamedTuple):
    source: DeviceSeries
    gpus: Mapping[str, DeviceSeries]
    grid: statistics.Grid
    used: FloatArray
    interval: float
    samples: int

    def mean(self, metric: str) -> FloatArray:
        return self.grid.average_metric(self.source, metric)

    def median(self, metric: str, spans: intervals.Spans) -> float:
        return median(self.source.find_values(metric, spans))

    def count_bins(self, least: int) -> int:
        return max(round(_OVER / self.grid.width), least)


Signs = Callable[[Context, Limits, Lane], Iterable[Sign]]


def _of_hosts(name: str) -> Callable[[Signs], Rule]:
    def make(signs: Signs) -> Rule:
        def judge(context: Context, limits: Limits) -> Found:
            for host in context.hosts().values():
                beside = [name for name, one in context.working().items() if host.is_beside(one)]
                missing = [group[0] for group in made.requires[1:] if not any(map(host.is_recorded, group))]
                if beside and missing:
                    yield doubts.not_recorded(name, host.device.id, *missing)
                elif beside:
                    lane = _build_lane(context, host.device.id, *beside)
                    yield from _judge(name, context, limits, lane, signs(context, limits, lane))

        made = rule(name)(judge)
        return made

    return make


@_of_hosts("cpu_bound")
def cpu_bound(context: Context, limits: Limits, lane: Lane) -> Iterator[Sign]:
    cpu, over = lane.mean(CPU), lane.count_bins(_BINS)
    few = is_hardly_used(lane.source, lane.mean(JOB), cpu)
    is_high = _is_mostly(cpu, cpu >= limits.cpu, over) & ~_is_mostly(cpu, few, over)

    def describe(spans: intervals.Spans) -> Parts:
        busy, job, cores = (lane.median(metric, spans) for metric in (CPU, JOB, CORES))
        own = limits.compare(
            "the job's share of the CPU load",
            "median",
            job / (busy * cores or np.nan),
            "<",
            "own",
        )
        shown = [limits.compare(CPU, "median", busy, ">=", "cpu"), *([own] if own.meets_limit else [])]
        count = count_host_cores(context, lane.source)
        return {
            "cause": "other programs" if own.meets_limit else "data",
            "shown": [*shown, show_cores(count)],
            "words": {"cpu": busy, "job": f"{job:.1f}", "cores": say_cores(count)},
        }

    yield Sign(CPU, cpu, is_high, over, describe)


@_of_hosts("io_bound")
def io_bound(_: Context, limits: Limits, lane: Lane) -> Iterator[Sign]:
    wait, over = lane.mean(IOWAIT), lane.count_bins(_BINS // 3)

    def describe(spans: intervals.Spans) -> Parts:
        waited = mean(lane.source.find_values(IOWAIT, spans))
        return {"cause": "storage", "shown": [limits.compare(IOWAIT, "mean", waited, ">=", "iowait")]}

    yield Sign(IOWAIT, wait, rolling_mean(wait, over) >= limits.iowait, over, describe)


@_of_hosts("cpu_bound_single")
def cpu_bound_single(context: Context, limits: Limits, lane: Lane) -> Iterator[Sign]:
    cpu, job, over = lane.mean(CPU), lane.mean(JOB), lane.count_bins(_BINS)
    is_calm = _is_mostly(cpu, cpu < limits.cpu, over) & ~_is_mostly(cpu, job < limits.job, over)

    def describe(metric: str, spans: intervals.Spans) -> Parts:
        busy, all_cores = lane.median(metric, spans), lane.median(CPU, spans)
        unit = "1" if metric == CORE else "cores"
        pairs = [[mean(one.find_values(name, spans)) for name in (RECEIVED, SENT)] for one in lane.gpus.values()]
        # GPUs that exchange data send as much as they receive
        rate = max((got for got, sent in pairs if sent <= got / 2), default=np.nan)
        core = limits.compare(metric, "median", busy, ">=", "core")
        # in a short job, compiling or saving can keep one core busy for as long
        brief = Confidence.LOW if find_shortest(context, limits) < limits.shortest else Confidence.HIGH
        copies = limits.compare(RECEIVED, "mean", rate, ">=", "copied")
        return {
            "cause": _COPYING if copies.meets_limit else "one thread",
            "shown": [
                replace(core, unit=unit, threshold=replace(limits["core"], unit=unit)),
                limits.compare(CPU, "median", all_cores, "<", "cpu"),
                copies,
            ],
            "most": brief if metric == CORE else doubts.lowest(brief, Confidence.MEDIUM),
            "words": {"cpu": all_cores, "copied": f"{rate / 1e9:.1f}", "core": metric == CORE, "busy": f"{busy:.2f}"},
        }

    for metric in filter(lane.source.is_recorded, (CORE, PROCESS)):
        busy = lane.mean(metric)
        most = np.inf if metric == CORE else limits.process
        is_high = is_calm & _is_mostly(busy, (busy >= limits.core) & (busy <= most), over)
        if metric == PROCESS:
            is_high &= ~_is_mostly(job, job > limits.process, over)
            is_high &= ~_is_mostly(lane.used, lane.used >= _FED, over, _RARELY)
        yield Sign(metric, busy, is_high, over, partial(describe, metric))


@rule("transfer_bound")
def transfer_bound(context: Context, limits: Limits) -> Found:
    for name, gpu in context.working().items():
        if not gpu.is_recorded(RECEIVED) and not gpu.is_recorded(SENT):
            yield doubts.not_recorded("transfer_bound", name, RECEIVED, SENT)
            continue
        lane = _build_lane(context, name, name)
        signs = list(_full_link(limits, lane))
        yield from _judge("transfer_bound", context, limits, lane, signs)
        if not signs:
            yield doubts.unjudged("transfer_bound", "link_not_recorded", name)


def _full_link(limits: Limits, lane: Lane) -> Iterator[Sign]:
    gpu = lane.source
    names = ((f"pcie_link_{what}", f"pcie_link_{what}_max") for what in ("generation", "width"))
    logged = [next((gpu.known_values(name).max() for name in each if gpu.is_recorded(name)), None) for each in names]
    generation, width = (None if value is None else int(value) for value in logged)
    if generation not in _LANE or not width:
        return
    share = np.fmax(lane.mean(RECEIVED), lane.mean(SENT)) / (_LANE[generation] / 8 * width)
    is_high = mark_low(-rolling_mean(share, lane.samples), -limits.link, -limits.pause)

    def describe(spans: intervals.Spans) -> Parts:
        carried = float(np.nanmean(np.concatenate(lane.grid.cut(share, spans))))
        statistic = "mean of the busier direction, as a share of the link"
        return {
            "cause": _COPYING,
            "shown": [limits.compare("PCIe traffic", statistic, carried, ">=", "link")],
            "words": {"carried": carried, "link": f"gen {generation} x{width}"},
        }

    yield Sign(RECEIVED, share, is_high, lane.samples, describe)


@memoized
def _build_lane(context: Context, source: str, *beside: str) -> Lane:
    own, gpus = context.series[source], {name: context.series[name] for name in beside}
    grid = statistics.build_grid(context.job, [own, *gpus.values()])
    used = statistics.median_over_devices([grid.average_metric(one, UTILISATION) for one in gpus.values()])
    interval = max(one.interval for one in gpus.values())
    samples = max(int(np.ceil(max(_OVER, ROWS * interval) / grid.width)), 1)
    return Lane(own, gpus, grid, used, interval, samples)


def _judge(kind: str, context: Context, limits: Limits, lane: Lane, signs: Iterable[Sign]) -> Found:
    shortest = max(find_shortest(context, limits), 3 * lane.grid.width)
    earlier, known = WAIT_KINDS[: WAIT_KINDS.index(kind)], ~np.isnan(lane.used)
    for number, sign in enumerate(signs):
        seen = float((known & ~np.isnan(sign.series)).sum()) / max(float(known.sum()), 1)
        if not number and context.whole.seconds < shortest:
            yield doubts.too_short(kind, context.whole.seconds, shortest)
            return
        if not number and seen < _HALF:
            share, device = (seen, phrases.percent(seen)), lane.source.device.id
            what = "CPU series" if sign.metric == CPU else f"series of {sign.metric}"
            yield doubts.unjudged(kind, "covers_too_little", device, share, metrics=[sign.metric], what=what)
            return
        used = np.nan_to_num(rolling_mean(lane.used, lane.samples if earlier else sign.over), nan=1.0)
        inside = mark_low(np.where(sign.is_high, used, 1.0), limits.enter if earlier else limits.gpu, limits.leave)
        spans = lane.grid.mask_to_spans(inside, max(_OVER, sign.over * lane.grid.width), shortest)
        claimed = [context.spans_on(name, earlier) for name in lane.gpus]
        spans = reduce(intervals.difference, claimed, intervals.intersection(spans, context.work))
        if lane.interval > POINT_SAMPLE_SECONDS and earlier:
            is_low = [is_surely_below(part, limits.gpu) for part in lane.grid.cut(lane.used, spans)]
            spans = spans[np.array(is_low, dtype=np.bool_)]
        spans, fed = _compare_with_fed(lane, sign, intervals.drop_shorter(spans, shortest))
        if not len(spans):
            continue
        parts, is_compared = sign.describe(spans), not np.isnan(fed)
        is_close = is_compared and max(lane.interval, lane.source.interval) <= _CLOSE
        most = parts.get("most", Confidence.HIGH)
        parts["most"] = doubts.lowest(most, Confidence.HIGH if is_close else Confidence.MEDIUM)
        # a thread that spins waiting for the GPU looks the same as one that delays it
        is_unsure = kind == "cpu_bound_single" and not is_compared
        parts["problem"] = np.inf if is_unsure else limits.problem if "problem" in limits else _PROBLEM
        parts["words"] = {"fed": fed, **parts.get("words", {})}
        yield build_finding(context, limits, kind, dict.fromkeys(lane.gpus, spans), **parts)
        return


def build_finding(  # noqa: PLR0913 - each argument is a field of the finding
    context: Context,
    limits: Limits,
    kind: str,
    spans: Mapping[str, intervals.Spans],
    *,
    shown: Iterable[Evidence],
    most: Confidence,
    problem: float = np.inf,
    shortest: str = "shortest",
    words: Words = MappingProxyType({}),
    **parts: Any,
) -> Finding:
    """Return a finding of low use: a problem if the share `problem` of the job was lost."""
    series = [context.series[name] for name in spans]
    used = np.concatenate([one.values(UTILISATION) for one in series])
    cells = [one.seconds_inside(spans[one.device.id], context.whole) for one in series]
    held = np.where(np.isnan(used), 0.0, np.concatenate(cells))
    whole = max(float(held.sum()), 1e-9)
    lost = float(np.nansum((1 - np.clip(used, 0, 1)) * held))
    rows = {f"at {IDLE_RATIO:.0%} or less": used <= IDLE_RATIO + 1e-6}
    rows |= {f"below {level:.0%}": used < level - 1e-6 for level in BELOW}
    shares = {f"share of that time {where}": float(held[found].sum()) / whole for where, found in rows.items()}
    seconds, use = max(map(intervals.total_seconds, spans.values())), 1 - lost / whole
    inside = (intervals.contains(spans[one.device.id], one.times) for one in series)
    samples = sum(one.count_readings(UTILISATION, rows) for one, rows in zip(series, inside, strict=True))
    least = problem * context.job.seconds * len(series)
    whose = phrases.gpu_names(tuple(spans), tuple(context.gpus()))
    said = f"{whose} averaged {phrases.percent(use)} utilisation over {phrases.duration(seconds)}"
    return context.finding(
        kind,
        Severity.PROBLEM if lost >= least else Severity.WARNING,
        doubts.lowest(most, doubts.confidence_of(samples // len(series), max(one.interval for one in series))),
        spans,
        limits.compare(UTILISATION, "mean", use, "<", "gpu"),
        *(measured(UTILISATION, each, share) for each, share in shares.items()),
        limits.compare("duration", "total of one GPU", seconds, ">=", shortest),
        *shown,
        spans=intervals.union(np.concatenate(list(spans.values()))),
        lost=lost,
        samples=samples,
        words={**words, "use": said},
        **parts,
    )


def find_shortest(context: Context, limits: Limits) -> float:
    """Return how long a wait must last: less in a short job, unless the user set it."""
    is_short = "shortest_job" in limits and context.window is not None and context.window.seconds < limits.shortest
    is_set = limits["shortest"].provenance is Provenance.SETTINGS
    return limits.shortest_job if is_short and not is_set else limits.shortest


def _compare_with_fed(lane: Lane, sign: Sign, spans: intervals.Spans) -> tuple[intervals.Spans, float]:
    """Return the spans with more load than while GPUs are busy, and the mean load while busy (or NaN)."""
    fed, parts = rolling_mean(lane.used, sign.over) >= _FED, lane.grid.cut(sign.series, spans)
    for span in spans.tolist():
        fed[lane.grid.find_bin_slice(*span)] = False
    beside = known_of(sign.series[fed])
    if len(beside) < max(_BINS, _OVER / lane.grid.width, _RARELY * sum(map(len, parts))):
        return spans, np.nan
    is_higher = np.zeros(len(spans), dtype=np.bool_)
    for place, known in enumerate(map(known_of, parts)):
        if len(known):
            error = np.sqrt(known.var() / len(known) + beside.var() / len(beside))
            is_higher[place] = known.mean() - beside.mean() >= max(_APART, _ERRORS * error)
    return spans[is_higher], float(beside.mean())


def _is_mostly(series: FloatArray, is_so: BoolArray, length: int, share: float = _HALF) -> BoolArray:
    return rolling_mean(np.where(np.isnan(series), np.nan, is_so), length) >= share


def is_surely_below(samples: FloatArray, limit: float) -> bool:
    """Return whether a mean is significantly below a limit."""
    known = known_of(samples)
    return bool(len(known) > 1 and known.mean() + 3.0 * known.std(ddof=1) / np.sqrt(len(known)) <= limit)


def known_of(values: FloatArray) -> FloatArray:
    return values[~np.isnan(values)]


def is_hardly_used(host: DeviceSeries, job: FloatArray, cpu: FloatArray) -> BoolArray:
    cores = np.fmax(_count_logical_cores(host), 1.0)
    return np.asarray(job < HARDLY.value * np.minimum(cpu * cores, 1.0), dtype=np.bool_)


def _count_logical_cores(host: DeviceSeries) -> float:
    return float(np.max(host.known_values(CORES), initial=0.0))


def read_host_params(context: Context, host: DeviceSeries) -> JobParams:
    return read_params(context.recording.run.params_and_tags, _count_logical_cores(host))


def count_host_cores(context: Context, host: DeviceSeries) -> CoreCount | None:
    return read_host_params(context, host).count_cores(sum(map(host.is_beside, context.gpus().values())))


def say_cores(cores: CoreCount | None) -> str:
    return phrases.capitalize(cores.words) if cores else ""


def show_cores(cores: CoreCount | None) -> Evidence:
    return measured(CORES, "for each GPU", cores.cores / cores.gpus if cores else np.nan, "")


FULL, HARDLY = cpu_bound.limits["cpu"], cpu_bound_single.limits["job"]

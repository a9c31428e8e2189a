"""What is drawn of a run over time: which GPUs and their limits, means and classes in buckets, events of the log.

Of few GPUs all are drawn, of many the troubled and a typical one of each node. Stretches of classes add up to GPU time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite

import numpy as np

from gpureport.analysis import RULES, trace_gpu_time
from gpureport.analysis.results import GPU_TIME_CLASSES
from gpureport.analysis.rulebook import Rule
from gpureport.analysis.series.clock_and_power import gather_signals
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.statistics import memory_reserved
from gpureport.columns import FloatArray
from gpureport.data_quality import LogEvent
from gpureport.findings import Severity
from gpureport.recording import Device
from gpureport.report.model.pictures import ClassStretch, LogEventLine, MetricLimit
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.wording import display

FEW_GPUS = 16
"""Most GPUs of which each is drawn, has a row of its own and all buckets: of more, nobody reads a page."""
_MOST_TROUBLED = 16
_SEVERITIES = tuple(reversed(Severity))
_BUCKETS, _FEW_BUCKETS = 120, 60
_ROUNDING = 1e-6
"""Length in seconds below which a stretch is the rounding of a computation."""
SHORTEST = 1e-3
"""Share of a bucket below which values do not cover it; the same in seconds is the shortest axis."""
_NAMES = {
    "gpu_lost": "GPU lost",
    "driver_restart": "driver restarted",
    "no_devices": "no GPU found",
    "driver_message": "message of the driver",
}
_MAX_LISTED = 20
"""Events that are listed; the JSON has them all."""
_TEXT = 160


def group_by_node(gpus: Sequence[Device]) -> dict[str | None, list[Device]]:
    """Return the GPUs of each node, in order; the key is None where no node is named."""
    nodes: dict[str | None, list[Device]] = {}
    for gpu in gpus:
        nodes.setdefault(gpu.node, []).append(gpu)
    return nodes


def choose_drawn_gpus(run: ReportRun) -> tuple[Device, ...]:
    gpus = run.run.gpus
    if len(gpus) <= FEW_GPUS:
        return gpus
    chosen = {*_list_troubled(run), *_list_typical(run)}
    return tuple(gpu for gpu in gpus if gpu.id in chosen)


def describe_choice(run: ReportRun, drawn: Sequence[Device]) -> str:
    if len(drawn) == len(run.run.gpus):
        return ""
    place = "each node" if len(group_by_node(run.run.gpus)) > 1 else "them"
    return (
        f"{len(drawn)} of {len(run.run.gpus)} GPUs are drawn: the {_MOST_TROUBLED} at most that findings speak of "
        f"most gravely, and one of {place} with median utilisation."
    )


def _list_troubled(run: ReportRun) -> list[str]:
    graver: dict[str, tuple[int, float]] = {}
    for finding in run.analysis.findings:
        weight = _SEVERITIES.index(finding.severity), -(finding.lost_gpu_seconds or 0.0) / max(len(finding.devices), 1)
        is_noted = finding.severity is not Severity.INFO or finding.lost_gpu_seconds
        for device in finding.devices if is_noted and len(finding.devices) <= len(run.run.gpus) // 2 else ():
            graver[device] = min(graver.get(device, weight), weight)
    known = {gpu.id for gpu in run.run.gpus} & graver.keys()
    return sorted((device for device in graver if device in known), key=lambda device: graver[device])[:_MOST_TROUBLED]


def _list_typical(run: ReportRun) -> Iterator[str]:
    """Yield of each node the GPU with the median utilisation, of an even number the less busy one."""
    found = {each.device: each.metric("gpu_utilization_ratio") for each in run.analysis.statistics}
    use = {device: summary.mean for device, summary in found.items() if summary is not None}
    for gpus in group_by_node(run.run.gpus).values():
        yield sorted(gpus, key=lambda gpu: use.get(gpu.id, -1.0))[(len(gpus) - 1) // 2].id


def find_limits(series: DeviceSeries) -> tuple[MetricLimit, ...]:
    """Return the limits that are known of a GPU; of memory what a job can get of it."""
    signals, reserved = gather_signals(series), memory_reserved(series)
    known = signals.power_limit[~np.isnan(signals.power_limit)]
    hottest, most = signals.temperature_limit, float(np.median(known)) if len(known) else float("nan")
    usable = float(series.device.memory_total_bytes or "nan") - reserved
    memory = f"{display.memory(usable)} {'usable' if reserved else 'installed'}" if isfinite(usable) else ""
    limits = (
        ("gpu_temperature_celsius", hottest, f"limit {hottest:,.0f}{display.GAP}°C"),
        ("gpu_power_watts", most, f"limit {most:,.0f}{display.GAP}W"),
        ("gpu_memory_used_bytes", usable, memory),
    )
    return tuple(MetricLimit(metric=name, value=value, text=text) for name, value, text in limits if isfinite(value))


# --- buckets


@dataclass(frozen=True, slots=True, kw_only=True)
class CumulativeSums:
    """Seconds that values stand for, and their sum weighted with them, up to each bound of their stretches."""

    bounds: FloatArray
    seconds: FloatArray
    total: FloatArray

    def means(self, edges: FloatArray) -> FloatArray:
        """Return the mean of each bucket, weighted with the time each value stands for; NaN where none lies in it.

        The rising edges of the buckets cut through values where they must, so that shares stay true and the sampling
        does not beat against the buckets.
        """
        if not len(self.bounds):
            return np.full(len(edges) - 1, np.nan)
        covered = np.diff(np.interp(edges, self.bounds, self.seconds))
        total = np.diff(np.interp(edges, self.bounds, self.total))
        empty = covered <= SHORTEST * np.diff(edges)
        means: FloatArray = np.where(empty, np.nan, total / np.where(empty, 1.0, covered))
        return means


def accumulate(starts: FloatArray, ends: FloatArray, values: FloatArray) -> CumulativeSums:
    """Return values added up over time, each over its stretch; these are in order and apart. NaN is no value."""
    known = ~np.isnan(values)
    bounds = np.maximum.accumulate(np.column_stack([starts[known], ends[known]]).ravel())
    seconds = bounds[1::2] - bounds[::2]
    sums = np.zeros((2, 2 * len(seconds)))
    sums[:, 1::2] = np.cumsum([seconds, seconds * values[known]], axis=1)
    sums[:, 2::2] = sums[:, 1:-1:2]
    return CumulativeSums(bounds=bounds, seconds=sums[0], total=sums[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassHistory:
    """The seconds of each class in equal buckets of a run, by GPU; none where GPU time was not divided.

    `trace` finds those of a GPU when it is asked for, since most of many GPUs never are.
    """

    bucket_seconds: float
    trace: Callable[[Sequence[str]], Mapping[str, Mapping[str, FloatArray]]]
    _traced: dict[str, Mapping[str, FloatArray] | None] = field(default_factory=dict, repr=False, compare=False)

    def list_stretches(self, devices: Sequence[str]) -> tuple[ClassStretch, ...]:
        """Return the stretches of a GPU, or of the mean over several, in order.

        Within a bucket the order of classes is not known. It alternates, so that those of neighbours lie together.
        """
        self.prepare(devices)
        known = [seconds for device in devices if (seconds := self._traced[device]) is not None]
        if not known:
            return ()
        amounts = {name: np.mean([each[name] for each in known], axis=0) for name in GPU_TIME_CLASSES}
        return tuple(_join_buckets(amounts, self.bucket_seconds))

    def prepare(self, devices: Sequence[str]) -> None:
        """Find the seconds of several GPUs at once, which is quicker than one by one."""
        new = [device for device in devices if device not in self._traced]
        found = self.trace(new) if new else {}
        self._traced.update((device, found.get(device)) for device in new)


def trace_classes(run: ReportRun, rules: Sequence[Rule] = RULES) -> ClassHistory:
    """Return the classes of every GPU of a run over time by the rules of its analysis, in buckets."""
    most = _BUCKETS if len(run.run.gpus) <= FEW_GPUS else _FEW_BUCKETS
    count = min(most, max(int(run.seconds / (run.run.interval or 1.0)), 1))

    def trace(devices: Sequence[str]) -> Mapping[str, Mapping[str, FloatArray]]:
        return trace_gpu_time(run.recording, run.analysis, count, rules, devices) if run.seconds > 0 else {}

    return ClassHistory(bucket_seconds=run.seconds / count, trace=trace)


def _join_buckets(amounts: Mapping[str, FloatArray], bucket_seconds: float) -> Iterator[ClassStretch]:
    """Yield the stretches of all buckets, neighbours of one class as one."""
    key, start, at = "", 0.0, 0.0
    for bucket in range(len(amounts[GPU_TIME_CLASSES[0]])):
        at = bucket * bucket_seconds
        for name in GPU_TIME_CLASSES if bucket % 2 == 0 else GPU_TIME_CLASSES[::-1]:
            length = float(amounts[name][bucket])
            if length < _ROUNDING:
                continue
            if name != key:
                if key:
                    yield ClassStretch(key=key, start=start, end=at)
                key, start = name, at
            at += length
    if key:
        yield ClassStretch(key=key, start=start, end=at)


# --- events of the log


def list_events(run: ReportRun) -> tuple[LogEventLine, ...]:
    """Return the listed events of a run in the order of the log; of too many, driver messages are left out."""
    entries = run.run.quality.log_events
    places = sorted(range(len(entries)), key=lambda place: (entries[place].kind == "driver_message", place))
    return tuple(_describe(count, run, entries[place]) for count, place in enumerate(sorted(places[:_MAX_LISTED]), 1))


def describe_omitted(run: ReportRun) -> str:
    more = len(run.run.quality.log_events) - _MAX_LISTED
    return f"{display.plural(more, 'more event')}; the JSON of analyze lists all." if more > 0 else ""


def _describe(place: int, run: ReportRun, entry: LogEvent) -> LogEventLine:
    at = None if entry.at is None else min(max(run.since_start(entry.at), 0.0), run.seconds)
    name = _NAMES.get(entry.kind, display.clean(entry.kind.replace("_", " ")))
    device = "" if entry.device is None else run.device(entry.device)
    text = display.shorten(display.clean(entry.text), _TEXT)
    when = "time not known" if at is None else display.elapsed(at)
    said = f"{name}{f' ({device})' if device else ''}{f': {text}' if text else ''}"
    return LogEventLine(
        id=f"E{place}",
        at=at,
        when=when,
        name=name,
        device=device,
        text=text,
        line=f"line {entry.line}",
        sentence=f"E{place}, {when}, {said} (line {entry.line})",
    )

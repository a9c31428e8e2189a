"""A run over time: the GPUs to draw, their limits, means and classes per bucket, and log events."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite

import numpy as np

from gpureport.analysis import RULES, trace_gpu_time
from gpureport.analysis.results import GPU_TIME_CLASSES
from gpureport.analysis.rulebook import Rule
from gpureport.analysis.series.clock_and_power import gather_signals
from gpureport.analysis.series.device_series import DeviceSeries, build_device_series
from gpureport.analysis.series.intervals import find_runs, union
from gpureport.analysis.series.statistics import memory_reserved
from gpureport.columns import FloatArray
from gpureport.findings import Severity
from gpureport.names import group_pairs
from gpureport.recording import Device
from gpureport.report.model.pictures import (
    ClassStretch,
    FindingMark,
    LogEventLine,
    MetricLimit,
    Timeline,
    TimelineStrip,
)
from gpureport.report.model.report_content import FindingCard
from gpureport.report.runs.report_run import ReportRun, clock_note, device_name, format_time
from gpureport.report.wording import display

FEW_GPUS = 16  # number of GPUs up to which all are drawn
_MOST_TROUBLED = 16
_SEVERITIES = tuple(reversed(Severity))
_BUCKETS, _FEW_BUCKETS = 120, 60
_ROUNDING = 1e-6  # Seconds below which an interval is a rounding error.
SHORTEST = 1e-3  # Covered share of an empty bucket; axis in seconds.
_NAMES = {
    "gpu_lost": "GPU lost",
    "driver_restart": "driver restarted",
    "no_devices": "no GPU found",
    "driver_message": "driver message",
}
MOST_EVENTS = 20  # the JSON lists all of them
_TEXT = 160
_COLUMNS, _COARSE_COLUMNS = 600, 60
_WHOLE_RUN = 0.95
Samples = tuple[FloatArray, FloatArray, FloatArray]
"""Starts and ends of samples in seconds since the start of the run, and their values."""
Average = Callable[[FloatArray], FloatArray]  # maps bucket edges to means


def group_by_node(gpus: Sequence[Device]) -> dict[str | None, list[Device]]:
    return group_pairs((gpu.node, gpu) for gpu in gpus)


def choose_drawn_gpus(run: ReportRun) -> tuple[Device, ...]:
    gpus = run.run.gpus
    if len(gpus) <= FEW_GPUS:
        return gpus
    # take the GPU with the (lower) median utilisation in each node
    found = {each.device: each.metric("gpu_utilization_ratio") for each in run.analysis.statistics}
    use = {device: summary.mean for device, summary in found.items() if summary is not None}
    nodes = group_by_node(gpus).values()
    typical = (sorted(each, key=lambda gpu: use.get(gpu.id, -1.0))[(len(each) - 1) // 2].id for each in nodes)
    chosen = {*_list_troubled(run), *typical}
    return tuple(gpu for gpu in gpus if gpu.id in chosen)


def describe_choice(run: ReportRun, drawn: Sequence[Device]) -> str:
    if len(drawn) == len(run.run.gpus):
        return ""
    return (
        f"{len(drawn)} of {len(run.run.gpus)} GPUs are drawn: up to {_MOST_TROUBLED} with the most serious findings, "
        f"and the one with median utilisation{' in each node' if len(group_by_node(run.run.gpus)) > 1 else ''}."
    )


def _list_troubled(run: ReportRun) -> list[str]:
    graver: dict[str, tuple[int, float]] = {}
    for finding in run.analysis.findings:
        weight = _SEVERITIES.index(finding.severity), -(finding.lost_gpu_seconds or 0.0) / max(len(finding.devices), 1)
        is_noted = finding.severity is not Severity.INFO or finding.lost_gpu_seconds
        for device in finding.devices if is_noted and len(finding.devices) <= len(run.run.gpus) // 2 else ():
            graver[device] = min(graver.get(device, weight), weight)
    known = {gpu.id for gpu in run.run.gpus}
    return sorted((device for device in graver if device in known), key=lambda device: graver[device])[:_MOST_TROUBLED]


def find_limits(series: DeviceSeries) -> tuple[MetricLimit, ...]:
    signals, reserved = gather_signals(series), memory_reserved(series)
    known = signals.power_limit[~np.isnan(signals.power_limit)]
    hottest = signals.temperature_limit
    most = float(np.median(known)) if len(known) else float("nan")
    usable = float(series.device.memory_total_bytes or "nan") - reserved
    memory = f"{display.memory(usable)} {'usable' if reserved else 'installed'}" if isfinite(usable) else ""
    limits = (
        ("gpu_temperature_celsius", hottest, f"limit {hottest:,.0f}{display.GAP}°C"),
        ("gpu_power_watts", most, f"limit {most:,.0f}{display.GAP}W"),
        ("gpu_memory_used_bytes", usable, memory),
    )
    return tuple(MetricLimit(metric=name, value=value, text=text) for name, value, text in limits if isfinite(value))


def read_samples(run: ReportRun, series: DeviceSeries, metric: str, *, is_mean: bool = True) -> Samples:
    """Return samples. A mean covers the time before its timestamp."""
    zero = run.run.started + (series.shift if is_mean else 0)
    return (series.start - zero) / 1e6, (series.end - zero) / 1e6, series.values(metric)


def accumulate(starts: FloatArray, ends: FloatArray, values: FloatArray) -> Average:
    """Return a function that averages between bucket edges, splitting samples to avoid aliasing."""
    known = ~np.isnan(values)
    bounds = np.maximum.accumulate(np.column_stack([starts[known], ends[known]]).ravel())
    seconds = bounds[1::2] - bounds[::2]
    sums = np.zeros((2, 2 * len(seconds)))
    sums[:, 1::2] = np.cumsum([seconds, seconds * values[known]], axis=1)
    sums[:, 2::2] = sums[:, 1:-1:2]

    def average(edges: FloatArray) -> FloatArray:
        if not len(bounds):
            return np.full(len(edges) - 1, np.nan)
        covered, total = (np.diff(np.interp(edges, bounds, each)) for each in sums)
        empty = covered <= SHORTEST * np.diff(edges)
        means: FloatArray = np.where(empty, np.nan, total / np.where(empty, 1.0, covered))
        return means

    return average


class ClassHistory:
    """Seconds of each class of GPU time in equal buckets, computed per GPU on demand."""

    def __init__(self, run: ReportRun, rules: Sequence[Rule] = RULES) -> None:
        most = _BUCKETS if len(run.run.gpus) <= FEW_GPUS else _FEW_BUCKETS
        self._run, self._rules = run, rules
        self._count = min(most, max(int(run.seconds / (run.run.interval or 1.0)), 1))
        self._traced: dict[str, Mapping[str, FloatArray] | None] = {}
        self.bucket_seconds = run.seconds / self._count

    def list_stretches(self, devices: Sequence[str]) -> tuple[ClassStretch, ...]:
        """Return mean class intervals. The order within a bucket is unknown, so it alternates."""
        self.prepare(devices)
        known = [seconds for device in devices if (seconds := self._traced[device]) is not None]
        if not known:
            return ()
        amounts = {name: np.mean([each[name] for each in known], axis=0) for name in GPU_TIME_CLASSES}
        return tuple(_join_buckets(amounts, self.bucket_seconds))

    def prepare(self, devices: Sequence[str]) -> None:
        run, new = self._run, [device for device in devices if device not in self._traced]
        is_traced = new and run.seconds > 0
        found = trace_gpu_time(run.recording, run.analysis, self._count, self._rules, new) if is_traced else {}
        self._traced.update((device, found.get(device)) for device in new)


def _join_buckets(amounts: Mapping[str, FloatArray], bucket_seconds: float) -> Iterator[ClassStretch]:
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


def list_events(run: ReportRun) -> Iterator[LogEventLine]:
    entries = run.run.quality.log_events
    places = sorted(range(len(entries)), key=lambda place: (entries[place].kind == "driver_message", place))
    for number, entry in enumerate((entries[place] for place in sorted(places[:MOST_EVENTS])), 1):
        at = None if entry.at is None else min(max(run.since_start(entry.at), 0.0), run.seconds)
        name = _NAMES.get(entry.kind, display.clean(entry.kind.replace("_", " ")))
        device = "" if entry.device is None else run.device(entry.device)
        text = display.shorten(display.clean(entry.text), _TEXT)
        when = "time not known" if at is None else display.elapsed(at)
        said = f"{name}{f' ({device})' if device else ''}{f': {text}' if text else ''}"
        yield LogEventLine(
            id=f"E{number}",
            at=at,
            when=when,
            name=name,
            device=device,
            text=text,
            line=f"line {entry.line}",
            sentence=f"E{number}, {when}, {said} (line {entry.line})",
        )


def build_timelines(
    runs: Sequence[ReportRun], cards: Sequence[FindingCard], histories: Mapping[int, ClassHistory]
) -> Iterator[Timeline]:
    axis = max((run.seconds for run in runs), default=0.0)
    clocks = {(clock_note(run.run), display.duration(run.run.interval or 0.0)) for run in runs}
    for position, run in enumerate(runs):
        gpus, every, is_moment = run.run.gpus, run.run.interval or 0.0, run.seconds <= 0
        # a bucket shorter than a sample would repeat samples
        count = min(_COLUMNS // (1 if len(gpus) <= FEW_GPUS else 2), max(int(run.seconds / (every or 1.0)), 1))
        edges = np.linspace(0.0, max(run.seconds, SHORTEST), count + 1)
        drawn = choose_drawn_gpus(run)
        each = "of each GPU " if len(gpus) > 1 else ""
        absent = f"Only one sample {each}was read, so no timeline can be drawn." if is_moment else ""
        absent = absent if gpus else "No GPU was recorded in this run."
        started = "" if run.run.quality.synthetic_time else f"starts {format_time(run.run, run.run.started)}, "
        sampling = "a single sample" if is_moment or not every else f"one sample every {display.duration(every)}"
        # the data quality section shows start times and what the runs share
        said = "" if len(runs) > 1 and len(clocks) == 1 else f"{sampling}; {started}{clock_note(run.run)}"
        mine = [card for card in cards if card.run_index == position]
        yield Timeline(
            label=run.label,
            caption=display.join(said, describe_choice(run, drawn), by=" "),
            column="" if is_moment or not every else f"Each column is the mean over {display.duration(edges[1])}.",
            seconds=run.seconds,
            axis_seconds=axis,
            bucket_seconds=float(edges[1]),
            absent=absent,
            strips=() if absent else tuple(_strips(run, drawn, edges, mine, histories[position])),
            events=tuple(list_events(run)),
            recording=run.recording,
            undrawn_gpus=0 if absent else len(gpus) - len(drawn),
        )


def _strips(
    run: ReportRun, drawn: Sequence[Device], edges: FloatArray, cards: Sequence[FindingCard], history: ClassHistory
) -> Iterator[TimelineStrip]:
    marked = list(_finding_marks(run, cards))
    history.prepare([gpu.id for gpu in drawn])
    for gpu in drawn:
        cells = build_device_series(run.recording, gpu)
        starts, ends, use = read_samples(run, cells, "gpu_utilization_ratio")
        average = accumulate(starts, ends, use)
        mean = np.clip(average(edges), 0.0, 1.0)
        gaps = [*_gaps(cells, starts, ends, run.seconds), *edges[np.column_stack(find_runs(np.isnan(mean)))]]
        yield TimelineStrip(
            device=gpu.id,
            label=device_name(gpu),
            mean=mean,
            coarse=np.clip(average(np.linspace(0.0, edges[-1], _COARSE_COLUMNS + 1)), 0.0, 1.0),
            gaps=tuple((float(start), float(end)) for start, end in (union(np.array(gaps)) if gaps else ())),
            marks=tuple(mark for devices, mark in marked if not devices or gpu.id in devices),
            band=history.list_stretches([gpu.id]),
            band_seconds=history.bucket_seconds,
            limits=find_limits(cells),
        )


def _gaps(cells: DeviceSeries, starts: FloatArray, ends: FloatArray, seconds: float) -> Iterator[tuple[float, float]]:
    if not len(cells):
        yield 0.0, seconds
        return
    edge = 2 * cells.interval
    if starts[0] > edge:
        yield 0.0, float(starts[0])
    yield from ((float(ends[row - 1]), float(starts[row])) for row in cells.gap_rows)
    if ends[-1] < seconds - edge:
        yield float(ends[-1]), seconds


def _finding_marks(run: ReportRun, cards: Sequence[FindingCard]) -> Iterator[tuple[tuple[str, ...], FindingMark]]:
    by_kind = {(card.kind, fingerprint): card for card in cards for fingerprint in card.fingerprints}
    for finding in run.analysis.findings:
        card = by_kind[display.clean(finding.kind), finding.fingerprint]
        if finding.severity is Severity.INFO and not finding.lost_gpu_seconds:
            continue
        total = sum(interval.seconds for interval in finding.intervals)
        whole = not finding.intervals or total > _WHOLE_RUN * run.seconds
        spans = [(run.since_start(each.start), run.since_start(each.end)) for each in finding.intervals]
        for start, end in [(0.0, run.seconds)] if whole else spans:
            mark = FindingMark(card=card.id, severity=finding.severity.value, start=start, end=end, whole=whole)
            yield finding.devices, mark

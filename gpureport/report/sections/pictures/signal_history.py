"""Signals of one GPU over time, a panel a quantity: of the worst finding of a run, or of the findings of one kind."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor

import numpy as np

from gpureport.analysis.series.device_series import build_device_series
from gpureport.columns import BoolArray, FloatArray
from gpureport.findings import Finding, Severity
from gpureport.recording import Device
from gpureport.report.charts.elements import place_time_ticks
from gpureport.report.model.pictures import SignalHistory, SignalLine, SignalPanel
from gpureport.report.runs.over_time import accumulate
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.pictures import signals
from gpureport.report.wording import display, terms

_BUCKETS = 240
_OTHERS = 7  # most GPUs drawn in grey beside the one that a picture is about
_MARGIN, _SHORTEST_INTERVALS = 0.5, 20
"""How much of the length of its stretches a crop shows before and after; fewest sampling intervals that it holds."""

_CROPPED, _WHOLE = 0.5, 0.95
"""Shares of the run above which the whole run is shown around a finding, and from which it is not shaded."""

_BUSY, _HEALTHY_PANELS = 95.0, 2
"""Mean utilisation in per cent above which its panel says nothing; and how many panels a run without problems has."""

_NEAR, _COLDEST, _LEAST_SEEN = 0.95, 20.0, 0.5
"""Share of a limit from which it counts as reached; lower end of the axis of temperatures above it; and share of
stretches that samples cover at least, where a figure is told of them.
"""

_Spans = tuple[tuple[float, float], ...]
_Samples = tuple[FloatArray, FloatArray, FloatArray]
"""Where the time of each sample begins and ends in seconds of the run, and its value in its base unit."""


@dataclass(frozen=True, slots=True)
class _View:
    """What the panels of one picture show: GPUs, the first in front, their host, buckets, and stretches in seconds."""

    run: ReportRun
    gpus: list[Device]
    host: Device | None
    edges: FloatArray
    spans: _Spans

    @property
    def middles(self) -> FloatArray:
        return (self.edges[1:] + self.edges[:-1]) / 2


def build_history(
    run: ReportRun, findings: Sequence[Finding] = (), *, is_cropped: bool = False
) -> SignalHistory | None:
    """Return the signals of the GPU that findings of a run are about; None where nothing can be drawn.

    Without findings it is the hottest GPU. Cropped to the part of the run with the findings, every panel is shown.
    """
    gpu = _choose_gpu(run, findings)
    if gpu is None or run.seconds <= 0:
        return None
    spans = _list_spans(run, [found for found in findings if gpu.id in found.devices] or findings)
    start, end = _crop(run, spans) if is_cropped else (0.0, run.seconds)
    # no bucket is shorter than a sample
    count = min(_BUCKETS, max(int((end - start) / (run.run.interval or 1.0)), 1))
    hosts = [device for device in run.run.devices if device.index is None]
    view = _View(
        run=run,
        gpus=[gpu, *[other for other in run.run.gpus if other.id != gpu.id][:_OTHERS]],
        host=next((host for host in hosts if host.node == gpu.node), hosts[0] if hosts else None),
        edges=np.linspace(start, end, count + 1),
        spans=() if sum(last - first for first, last in spans) > _WHOLE * run.seconds else spans,
    )
    panels = _build_panels(view, findings, is_cropped=is_cropped)
    if not panels:
        return None
    shaded = _name_spans(findings, view.spans)
    about = [_describe_others(view, panels), f"Shaded: {shaded}." if shaded else ""]
    return SignalHistory(
        gpu=run.device(gpu.id),
        title=f"{run.device(gpu.id)} over time",
        caption=" ".join(filter(None, about)),
        panels=panels,
        start=start,
        end=end,
        bucket_seconds=float(view.edges[1] - view.edges[0]),
        ticks=place_time_ticks(start, end),
        spans=view.spans,
        span_text=shaded,
    )


def _choose_gpu(run: ReportRun, findings: Sequence[Finding]) -> Device | None:
    """Return the GPU that findings are about, of several the one that computed least; without findings the hottest."""
    if not findings:
        peaks = {
            each.device: summary.max
            for each in run.analysis.statistics
            if (summary := each.metric("gpu_temperature_celsius")) is not None
        }
        return max(run.run.gpus, key=lambda gpu: peaks.get(gpu.id, float("-inf")), default=None)
    named = {device for found in findings for device in found.devices}
    gpus = [gpu for gpu in run.run.gpus if gpu.id in named] or list(run.run.gpus)
    used = {time.device: dict(time.seconds).get("computing", 0.0) for time in run.analysis.gpu_time}
    return min(gpus, key=lambda gpu: used.get(gpu.id, float("inf")), default=None)


def _list_spans(run: ReportRun, findings: Sequence[Finding]) -> _Spans:
    found = sorted(
        (max(run.since_start(each.start), 0.0), min(run.since_start(each.end), run.seconds))
        for finding in findings
        for each in run.held_stretches(finding)
    )
    spans: list[tuple[float, float]] = []
    for start, end in found:
        if spans and start <= spans[-1][1]:
            spans[-1] = spans[-1][0], max(end, spans[-1][1])
        elif end > start:
            spans.append((start, end))
    return tuple(spans)


def _crop(run: ReportRun, spans: _Spans) -> tuple[float, float]:
    if not spans or spans[-1][1] - spans[0][0] > _CROPPED * run.seconds:
        return 0.0, run.seconds
    start, end = spans[0][0], spans[-1][1]
    margin = max(_MARGIN * (end - start), (run.run.interval or 1.0) * _SHORTEST_INTERVALS / 2)
    return max(start - margin, 0.0), min(end + margin, run.seconds)


def _build_panels(view: _View, findings: Sequence[Finding], *, is_cropped: bool) -> tuple[SignalPanel, ...]:
    """Return the panels; in the open one utilisation that is always high is left out, and a healthy run has two."""
    kind = findings[0].kind if findings else ""
    is_bad = bool(findings) and findings[0].severity is not Severity.INFO
    built = []
    for place, signal in enumerate(signals.choose_signals(kind)):
        panel = _build_panel(view, signal, kind, is_alert=is_bad and signal is signals.find_alarming_signal(kind))
        is_told = not is_cropped and signal is signals.UTILISATION and not (findings and place == 0)
        if panel and not (is_told and _is_always_busy(view, panel)):
            built.append(panel)
    return tuple(built if findings else built[:_HEALTHY_PANELS])


def _is_always_busy(view: _View, panel: SignalPanel) -> bool:
    """Return whether utilisation is high throughout the sustained work, so that its panel is a solid block."""
    run, mean = view.run, panel.lines[0].mean
    steady = [phase.interval for phase in run.analysis.phases if phase.kind == "steady"]
    spans = tuple((run.since_start(each.start), run.since_start(each.end)) for each in steady)
    inside = _find_inside(spans, view.middles)
    known = mean[inside & ~np.isnan(mean)]
    return bool(len(known)) and float(known.mean()) > _BUSY


def _build_panel(view: _View, signal: signals.Signal, kind: str, *, is_alert: bool) -> SignalPanel | None:
    run, devices = view.run, [view.host] if signal.is_of_host else view.gpus[: 1 if signal.is_filled else None]
    found = [(device, _read(run, device, signal)) for device in devices if device]
    read = [(device, samples) for device, samples in found if samples]
    if not read or read[0][0] is not devices[0]:
        return None
    lines = tuple(
        SignalLine(
            label=run.device(device.id),
            mean=accumulate(*samples).means(view.edges) * signal.factor,
            is_main=device is devices[0],
        )
        for device, samples in read
    )
    known = np.concatenate([line.mean[~np.isnan(line.mean)] for line in lines])
    if not len(known):
        return None
    device, samples = read[0]
    limit = None if signal.is_of_host else signals.find_limit(signal, build_device_series(run.recording, device))
    begin, end, values = samples
    inner = (end > view.edges[0]) & (begin < view.edges[-1])
    peak = float(np.nanmax(values[inner], initial=-np.inf)) * signal.factor
    # a column of a picture is a mean: memory must fit at its peak as well
    most = max(limit[0] if limit else 0.0, peak if signal is signals.MEMORY else 0.0)
    low, high = _choose_ends(signal, known, most)
    mean, meanwhile = lines[0].mean, _measure_meanwhile(view, samples, signal)
    outer = mean[~_find_inside(view.spans, view.middles) & ~np.isnan(mean)]
    usual = float(np.median(outer)) if len(outer) else None
    told = _describe(signal, kind, mean, peak, (usual, meanwhile))
    cores = _count_cores(view) if signal is signals.CPU else 0
    label = f"All {cores} CPU cores" if cores else signal.label
    return SignalPanel(
        quantity=signal.label,
        label=f"{label}, {signals.format_number(signal, low)} to {signals.format_value(signal, high)}",
        lines=lines,
        low=low,
        high=high,
        usual=usual,
        meanwhile=meanwhile,
        limit=limit[0] if limit else None,
        limit_text=limit[1] if limit else "",
        is_limit_reached=limit is not None and peak >= _NEAR * limit[0],
        is_filled=signal.is_filled,
        is_alert=is_alert,
        is_of_host=signal.is_of_host,
        note=", ".join(filter(None, (told, limit[1] if limit else ""))),
    )


def _read(run: ReportRun, device: Device, signal: signals.Signal) -> _Samples | None:
    series = build_device_series(run.recording, device)
    metric = next((name for name in signal.metrics if series.is_recorded(name)), None)
    if metric is None:
        return None
    # a share speaks of the window before its stamp, so its value lies that much earlier
    zero = run.run.started + (series.shift if signal.unit == "%" else 0)
    return (series.start - zero) / 1e6, (series.end - zero) / 1e6, series.values(metric)


def _choose_ends(signal: signals.Signal, known: FloatArray, most: float) -> tuple[float, float]:
    """Return round ends of the axis: from zero, but for temperatures; `most` is shown as well."""
    most = max(float(known.max()), most)
    if signal.full is not None:
        return 0.0, max(signal.full, most)
    if signal is signals.TEMPERATURE:
        return (_COLDEST if known.min() >= _COLDEST else floor(known.min() / 10) * 10.0), ceil((most + 1) / 10) * 10.0
    if signals.format_value(signal, most) == signals.format_value(signal, 0.0):
        return 0.0, 1.0
    step = 10 ** floor(np.log10(most)) / 10
    return 0.0, ceil(most / step * (1 - 1e-9)) * step


def _count_cores(view: _View) -> int:
    series = build_device_series(view.run.recording, view.host) if view.host else None
    known = series is not None and series.is_recorded("cpu_logical_cores")
    return int(np.nanmax(series.values("cpu_logical_cores"))) if series and known else 0


def _find_inside(spans: _Spans, moments: FloatArray) -> BoolArray:
    """Return which moments, in seconds, lie in some stretch; these are in order, and apart."""
    inside: BoolArray = np.searchsorted(np.ravel(spans), moments, side="right") % 2 == 1
    return inside


def _measure_meanwhile(view: _View, samples: _Samples, signal: signals.Signal) -> float | None:
    """Return the mean of the samples within the shaded stretches, each with its time; None where most is not recorded.

    Buckets of the line would not do: those at both ends mix in what came before and after.
    """
    start, end, values = samples
    inside = _find_inside(view.spans, (start + end) / 2) & ~np.isnan(values) & (end > start)
    seconds = (end - start)[inside]
    if not len(seconds) or seconds.sum() < _LEAST_SEEN * sum(last - first for first, last in view.spans):
        return None
    return float(np.average(values[inside], weights=seconds)) * signal.factor


def _describe(
    signal: signals.Signal, kind: str, mean: FloatArray, peak: float, change: tuple[float | None, float | None]
) -> str:
    """Return what to see: the highest, the fall of a clock, or the mean, of shaded stretches where it differs.

    Empty where nothing was recorded within the axis.
    """
    (usual, meanwhile), known = change, mean[~np.isnan(mean)]
    if not len(known):
        return ""
    if signal in {signals.TEMPERATURE, signals.MEMORY}:
        text = signals.format_value(signal, peak)
        return f"{text} throughout" if text == signals.format_value(signal, 0.0) else f"up to {text}"
    if signal is signals.CLOCK and usual is not None and meanwhile is not None and meanwhile < usual:
        before, now = signals.format_number(signal, usual), signals.format_value(signal, meanwhile)
        return f"{before} → {now} {signals.describe_time(kind)}"
    average = signals.format_value(signal, float(known.mean()))
    if meanwhile is None or (then := signals.format_value(signal, meanwhile)) == average:
        return f"{average} on average"
    return f"{then} {signals.describe_time(kind)}"


def _describe_others(view: _View, panels: Sequence[SignalPanel]) -> str:
    if not any(len(panel.lines) > 1 for panel in panels):
        return ""
    total, drawn = len(view.run.run.gpus) - 1, len(view.gpus) - 1
    others = f"the other {total}" if drawn == total else f"{drawn} of the other {total}"
    return f"Thick: {view.run.device(view.gpus[0].id)}. Thin grey: {others if total > 1 else 'the other GPU'}."


def _name_spans(findings: Sequence[Finding], spans: _Spans) -> str:
    """Return what is shaded, and for how long: `slowed by heat, 7 min 34 s`."""
    if not spans or not findings:
        return ""
    name = display.lower_first(terms.kind_title(display.clean(findings[0].kind), findings[0].cause))
    stretches = f" in {len(spans)} stretches" if len(spans) > 1 else ""
    return f"{name}, {display.duration(sum(end - start for start, end in spans))}{stretches}"

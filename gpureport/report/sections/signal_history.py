"""Signals of one GPU over time, one panel per quantity, for the worst finding or one kind."""

from collections.abc import Sequence
from math import ceil, floor
from typing import NamedTuple

import numpy as np

from gpureport.analysis.series.device_series import build_device_series
from gpureport.analysis.series.intervals import to_spans
from gpureport.columns import BoolArray, FloatArray
from gpureport.findings import Finding, Severity
from gpureport.recording import Device
from gpureport.report.charts.elements import place_time_ticks
from gpureport.report.model.pictures import SignalHistory, SignalLine, SignalPanel
from gpureport.report.runs.over_time import Samples, accumulate, find_limits, read_samples
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.wording import display, terms

_BUCKETS = 240
_OTHERS = 7  # maximum number of other GPUs, drawn in grey
_MARGIN, _SHORTEST_INTERVALS = 0.5, 20
"""Margin of a crop relative to the shaded time, and its minimum number of samples."""
_CROPPED, _WHOLE = 0.5, 0.95
"""Shares of the run above which a finding is not cropped, and not shaded."""
_BUSY, _HEALTHY_PANELS = 95.0, 2
"""Mean utilisation above which its panel is omitted, and panels of a healthy run."""
_NEAR, _COLDEST, _LEAST_SEEN = 0.95, 20.0, 0.5
"""Share that reaches a limit, usual low end of a temperature axis, and minimum sampled share for a mean."""
_Spans = tuple[tuple[float, float], ...]


class Signal(NamedTuple):
    """A quantity and its metrics, most preferred first. `factor` converts from the base unit."""

    label: str
    metrics: tuple[str, ...]
    unit: str
    factor: float = 1.0
    full: float | None = None
    is_filled: bool = False
    is_of_host: bool = False


def _share(label: str, metric: str) -> Signal:
    return Signal(label, (metric,), "%", 100, 100, is_filled=True, is_of_host=not metric.startswith("gpu_"))


UTILISATION = _share("GPU utilisation", "gpu_utilization_ratio")
CPU = _share("All CPU cores", "cpu_utilization_ratio")
TEMPERATURE = Signal("Temperature", ("gpu_temperature_celsius",), "°C")
CLOCK = Signal("Clock", ("gpu_sm_clock_hertz", "gpu_graphics_clock_hertz"), "MHz", 1e-6)
POWER = Signal("Power", ("gpu_power_watts",), "W")
MEMORY = Signal("GPU memory", ("gpu_memory_used_bytes",), "GiB", 2.0**-30, is_filled=True)
_CORE = _share("Busiest core", "cpu_busiest_core_ratio")
_STORAGE = _share("CPU waiting for storage", "cpu_iowait_ratio")
_HOST_MEMORY = _share("Host memory", "host_memory_used_ratio")
_SM_ACTIVE = _share("Multiprocessors active", "gpu_sm_active_ratio")
_RECEIVED = Signal("PCIe, received", ("pcie_receive_bytes_per_second",), "GB/s", 1e-9)
_SENT = Signal("PCIe, sent", ("pcie_transmit_bytes_per_second",), "GB/s", 1e-9)
_SHOWN = {
    "": (UTILISATION, TEMPERATURE, POWER, MEMORY),
    "thermal_throttle": (TEMPERATURE, CLOCK, UTILISATION),
    "hw_throttle": (CLOCK, POWER, UTILISATION),
    "power_cap power_limited": (POWER, CLOCK, UTILISATION),
    "clocks_locked": (CLOCK, UTILISATION, POWER),
    "cpu_bound": (UTILISATION, CPU, _CORE),
    "cpu_bound_single underutilised": (UTILISATION, _CORE, CPU),
    "io_bound": (UTILISATION, _STORAGE, CPU),
    "transfer_bound": (UTILISATION, _RECEIVED, _SENT),
    "workers_headroom": (UTILISATION, _CORE, CPU, _HOST_MEMORY),
    "host_memory_pressure": (UTILISATION, _HOST_MEMORY, CPU),
    "hollow_util": (UTILISATION, POWER, _SM_ACTIVE, TEMPERATURE),
    "mem_headroom mem_pressure mem_prealloc mem_leak zombie_memory": (MEMORY, UTILISATION),
    "oversized_gpu unused_gpu": (UTILISATION, MEMORY, POWER),
    "idle_gap periodic_stall startup_idle tail_idle": (UTILISATION, _CORE, CPU, MEMORY),
    "imbalance": (UTILISATION._replace(is_filled=False), CLOCK, POWER),
    "gpu_lost": (UTILISATION, TEMPERATURE, POWER),
    "rate_falls": (UTILISATION, CLOCK, POWER),
    "slow_gpu": (CLOCK, TEMPERATURE, POWER),
    "unexplained_change": (CLOCK, POWER, TEMPERATURE),
}
"""Signals in the picture of each kind of finding, in order of importance."""
_BY_KIND = {kind: signals for kinds, signals in _SHOWN.items() for kind in kinds.split(" ")}
_TIMES = {"thermal_throttle": "while hot", "hw_throttle": "while slowed", "periodic_stall": "while stalled"}
_TIMES |= dict.fromkeys(("cpu_bound", "cpu_bound_single", "io_bound", "transfer_bound"), "while waiting")
_TIMES |= dict.fromkeys(("idle_gap", "startup_idle", "tail_idle"), "while idle")
"""Words printed after a figure for the shaded time, by kind."""


def format_value(signal: Signal, value: float, *, bare: bool = False) -> str:
    number = f"{value:,.1f}".removesuffix(".0") if signal.unit in {"GiB", "GB/s"} else f"{value:,.0f}"
    return number if bare else f"{number}{'' if signal.unit == '%' else display.GAP}{signal.unit}"


class _View(NamedTuple):
    """The content of a picture. The highlighted GPU is first."""

    run: ReportRun
    gpus: list[Device]
    host: Device | None
    edges: FloatArray
    spans: _Spans
    kind: str

    def is_shaded(self) -> BoolArray:
        return _find_inside(self.spans, (self.edges[1:] + self.edges[:-1]) / 2)


def build_history(
    run: ReportRun, findings: Sequence[Finding] = (), *, is_cropped: bool = False
) -> SignalHistory | None:
    """Return the signals of a GPU with findings, or of the hottest GPU."""
    gpu, kind = _choose_gpu(run, findings), findings[0].kind if findings else ""
    if gpu is None or run.seconds <= 0:
        return None
    about = [found for found in findings if gpu.id in found.devices] or findings
    held = to_spans(stretch for finding in about for stretch in run.job_intervals(finding))
    clipped = np.clip((held - run.run.started) / 1e6, 0.0, run.seconds)
    spans = tuple((float(first), float(last)) for first, last in clipped if last > first)
    start, end = _crop(run, spans) if is_cropped else (0.0, run.seconds)
    # buckets are not shorter than samples
    count = min(_BUCKETS, max(int((end - start) / (run.run.interval or 1.0)), 1))
    hosts = [device for device in run.run.devices if device.index is None]
    view = _View(
        run=run,
        gpus=[gpu, *[other for other in run.run.gpus if other.id != gpu.id][:_OTHERS]],
        host=next((host for host in hosts if host.node == gpu.node), hosts[0] if hosts else None),
        edges=np.linspace(start, end, count + 1),
        spans=() if sum(last - first for first, last in spans) > _WHOLE * run.seconds else spans,
        kind=kind,
    )
    panels = _build_panels(
        view,
        is_cropped=is_cropped,
        is_bad=bool(kind) and findings[0].severity is not Severity.INFO,
    )
    if not panels:
        return None
    shaded, said = "", []
    if shared := [display.lower_first(panel.quantity) for panel in panels if len(panel.lines) > 1]:
        total, drawn = len(run.run.gpus) - 1, len(view.gpus) - 1
        others = f"{drawn} of the other {total}" if drawn < total else f"the other {total if total > 1 else 'GPU'}"
        said = [f"Thick: {run.device(gpu.id)}. Thin grey: {display.join_words(shared)} of {others}."]
    if kind and view.spans:
        name = display.lower_first(terms.kind_title(display.clean(kind), findings[0].cause))
        stretches = f" in {len(view.spans)} stretches" if len(view.spans) > 1 else ""
        shaded = f"{name}, {display.duration(sum(last - first for first, last in view.spans))}{stretches}"
        said.append(f"Shaded: {shaded}.")
    return SignalHistory(
        gpu=run.device(gpu.id),
        title=f"{run.device(gpu.id)} over time",
        caption=" ".join(said),
        panels=panels,
        start=start,
        end=end,
        bucket_seconds=float(view.edges[1] - view.edges[0]),
        ticks=place_time_ticks(start, end),
        spans=view.spans,
        span_text=shaded,
    )


def _choose_gpu(run: ReportRun, findings: Sequence[Finding]) -> Device | None:
    if not findings:
        read = ((each.device, each.metric("gpu_temperature_celsius")) for each in run.analysis.statistics)
        peaks = {device: summary.max for device, summary in read if summary is not None}
        return max(run.run.gpus, key=lambda gpu: peaks.get(gpu.id, float("-inf")), default=None)
    named = {device for found in findings for device in found.devices}
    gpus = [gpu for gpu in run.run.gpus if gpu.id in named] or list(run.run.gpus)
    used = {time.device: dict(time.seconds).get("computing", 0.0) for time in run.analysis.gpu_time}
    return min(gpus, key=lambda gpu: used.get(gpu.id, float("inf")), default=None)


def _crop(run: ReportRun, spans: _Spans) -> tuple[float, float]:
    if not spans or spans[-1][1] - spans[0][0] > _CROPPED * run.seconds:
        return 0.0, run.seconds
    start, end = spans[0][0], spans[-1][1]
    margin = max(_MARGIN * (end - start), (run.run.interval or 1.0) * _SHORTEST_INTERVALS / 2)
    return max(start - margin, 0.0), min(end + margin, run.seconds)


def _build_panels(view: _View, *, is_cropped: bool, is_bad: bool) -> tuple[SignalPanel, ...]:
    built = []
    signals = _BY_KIND.get(view.kind, _BY_KIND[""])
    alarming = POWER if view.kind == "hollow_util" else signals[0]
    for place, signal in enumerate(signals):
        panel = _build_panel(view, signal, is_alert=is_bad and signal is alarming)
        is_told = not is_cropped and signal is UTILISATION and not (view.kind and place == 0)
        if panel and not (is_told and _is_always_busy(view, panel)):
            built.append(panel)
    return tuple(built if view.kind else built[:_HEALTHY_PANELS])


def _is_always_busy(view: _View, panel: SignalPanel) -> bool:
    run, mean = view.run, panel.lines[0].mean
    steady = [phase.interval for phase in run.analysis.phases if phase.kind == "steady"]
    spans = tuple((run.since_start(each.start), run.since_start(each.end)) for each in steady)
    known = mean[view._replace(spans=spans).is_shaded() & ~np.isnan(mean)]
    return bool(len(known)) and float(known.mean()) > _BUSY


def _build_panel(view: _View, signal: Signal, *, is_alert: bool) -> SignalPanel | None:
    # return None if the quantity was not recorded
    run = view.run
    devices = [view.host] if signal.is_of_host else view.gpus[: 1 if signal.is_filled else None]
    found = [(device, _read(run, device, signal)) for device in devices if device]
    read = [(device, samples) for device, samples in found if samples]
    if not read or read[0][0] is not devices[0]:
        return None
    drawn = [(device, accumulate(*samples)(view.edges) * signal.factor) for device, samples in read]
    lines = tuple(SignalLine(label=run.device(each.id), mean=mean, is_main=each is devices[0]) for each, mean in drawn)
    known = np.concatenate([line.mean[~np.isnan(line.mean)] for line in lines])
    if not len(known):
        return None
    device, (begin, end, values) = read[0]
    series, limit, limit_text, label = build_device_series(run.recording, device), None, "", signal.label
    if not signal.is_of_host:
        limits = [
            (each.value * signal.factor, each.text) for each in find_limits(series) if each.metric in signal.metrics
        ]
        limit, limit_text = (*limits, (None, ""))[0]
    elif signal is CPU and series.is_recorded("cpu_logical_cores"):
        label = f"All {int(np.nanmax(series.values('cpu_logical_cores')))} CPU cores"
    inner = (end > view.edges[0]) & (begin < view.edges[-1])
    peak = float(np.nanmax(values[inner], initial=-np.inf)) * signal.factor
    # columns are means, but the axis must fit peak memory
    low, high = _choose_ends(signal, known, max(limit or 0.0, peak if signal is MEMORY else 0.0))
    mean, meanwhile = lines[0].mean, _measure_meanwhile(view, read[0][1], signal)
    outer = mean[~view.is_shaded() & ~np.isnan(mean)]
    usual = float(np.median(outer)) if len(outer) else None
    # for the whole run, use the means of job time in the table of GPUs
    stated = [
        each.metric(name) for each in run.analysis.statistics if each.device == device.id for name in signal.metrics
    ]
    shown = mean[~np.isnan(mean)]
    if len(shown) and view.edges[0] <= 0 and view.edges[-1] >= run.seconds:
        shown = np.array([each.mean * signal.factor for each in stated if each][:1] or shown)
    return SignalPanel(
        quantity=signal.label,
        label=f"{label}, {format_value(signal, low, bare=True)} to {format_value(signal, high)}",
        lines=lines,
        low=low,
        high=high,
        usual=usual,
        meanwhile=meanwhile,
        limit=limit,
        limit_text=limit_text,
        is_limit_reached=limit is not None and peak >= _NEAR * limit,
        is_filled=signal.is_filled,
        is_alert=is_alert,
        is_of_host=signal.is_of_host,
        note=display.join(_describe(signal, view, shown, peak, (usual, meanwhile)), limit_text, by=", "),
    )


def _read(run: ReportRun, device: Device, signal: Signal) -> Samples | None:
    series = build_device_series(run.recording, device)
    metric = next((name for name in signal.metrics if series.is_recorded(name)), None)
    return read_samples(run, series, metric, is_mean=signal.unit == "%") if metric else None


def _choose_ends(signal: Signal, known: FloatArray, most: float) -> tuple[float, float]:
    most = max(float(known.max()), most)
    if signal.full is not None:
        return 0.0, max(signal.full, most)
    if signal is TEMPERATURE:
        return (_COLDEST if known.min() >= _COLDEST else floor(known.min() / 10) * 10.0), ceil((most + 1) / 10) * 10.0
    if format_value(signal, most) == format_value(signal, 0.0):
        return 0.0, 1.0
    step = 10 ** floor(np.log10(most)) / 10
    return 0.0, ceil(most / step * (1 - 1e-9)) * step


def _find_inside(spans: _Spans, moments: FloatArray) -> BoolArray:
    inside: BoolArray = np.searchsorted(np.ravel(spans), moments, side="right") % 2 == 1
    return inside


def _measure_meanwhile(view: _View, samples: Samples, signal: Signal) -> float | None:
    """Return the mean of shaded samples. Bucket means would include their neighbours."""
    start, end, values = samples
    # a sample at the edge of a gap is partly work
    edges = (start, end) if view.kind == "idle_gap" else ((start + end) / 2,)
    inside = np.all([_find_inside(view.spans, each) for each in edges], axis=0) & ~np.isnan(values) & (end > start)
    seconds = (end - start)[inside]
    if not len(seconds) or seconds.sum() < _LEAST_SEEN * sum(last - first for first, last in view.spans):
        return None
    return float(np.average(values[inside], weights=seconds)) * signal.factor


def _describe(
    signal: Signal, view: _View, known: FloatArray, peak: float, change: tuple[float | None, float | None]
) -> str:
    (usual, meanwhile), when = change, _TIMES.get(view.kind, "meanwhile")
    if not len(known):
        return ""
    if signal in {TEMPERATURE, MEMORY}:
        text = format_value(signal, peak)
        if signal is MEMORY and view.kind == "startup_idle" and meanwhile is not None:
            return f"{format_value(signal, meanwhile)} {when}"
        return f"{text} throughout" if text == format_value(signal, 0.0) else f"up to {text}"
    if signal is CLOCK and usual is not None and meanwhile is not None and meanwhile < usual:
        return f"{format_value(signal, usual, bare=True)} → {format_value(signal, meanwhile)} {when}"
    average = format_value(signal, float(known.mean()))
    if meanwhile is None or (then := format_value(signal, meanwhile)) == average:
        return f"{average} on average{' over the run' if view.kind and not view.spans else ''}"
    return f"{then} {when}"

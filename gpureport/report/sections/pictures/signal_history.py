"""Signals of one GPU over time: of the worst finding of a run, or of the findings of one kind."""

from collections.abc import Sequence

import numpy as np

from gpureport.analysis.series.device_series import build_device_series
from gpureport.columns import FloatArray
from gpureport.findings import Finding, Severity
from gpureport.recording import Device
from gpureport.report.charts.elements import place_time_ticks
from gpureport.report.model.pictures import SignalHistory, SignalPanel
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.pictures.panel_series import PanelSeries, build_panel
from gpureport.report.sections.pictures.signals import UTILISATION, choose_signals, describe_time, find_alarming_signal
from gpureport.report.wording import display, terms

_BUCKETS = 240
_LOW_USE = frozenset(
    ("cpu_bound", "cpu_bound_single", "io_bound", "transfer_bound", "underutilised", "low_util_cause_unknown")
)
"""Findings of stretches in which a GPU is used in part, so that less time is lost than they last."""

_OTHERS = 7
"""Most GPUs drawn in grey beside the one that a picture is about."""

_MARGIN = 0.5
"""How much of the length of its stretches a crop shows before and after them."""

_CROPPED = 0.5
"""Share of the run above which a finding is shown with the whole run around it."""

_WHOLE = 0.95
"""Share of the run from which a finding is not shaded, for it is everywhere."""

_BUSY = 95.0
"""Mean utilisation in per cent above which its panel says nothing."""

_HEALTHY_PANELS = 2

_VISIBLE = 0.04
"""Share of the height of a panel by which a line has to leave the main one to be seen, and of time for which."""

_SHORTEST_INTERVALS = 20
"""Fewest sampling intervals that a crop holds."""


def build_worst_history(run: ReportRun, findings: Sequence[Finding] = ()) -> SignalHistory | None:
    """Return the signals of the GPU that the worst findings of a run are about; None of a single moment.

    Args:
        run: the run.
        findings: those that the headline tells of; where there are none it is the hottest GPU.
    """
    return _build(run, findings, is_cropped=False)


def build_finding_history(run: ReportRun, findings: Sequence[Finding]) -> SignalHistory | None:
    """Return the crop of a run in which findings of one kind are seen; None where nothing can be drawn.

    Args:
        run: the run in which they are worst.
        findings: those of one kind and cause in that run, at least one.
    """
    return _build(run, findings, is_cropped=True)


def _build(run: ReportRun, findings: Sequence[Finding], *, is_cropped: bool) -> SignalHistory | None:
    gpu = _choose_gpu(run, findings)
    if gpu is None or run.seconds <= 0:
        return None
    spans = _list_spans(run, [found for found in findings if gpu.id in found.devices] or findings)
    start, end = _crop(run, spans) if is_cropped else (0.0, run.seconds)
    edges = _place_edges(run, start, end)
    shaded = () if sum(last - first for first, last in spans) > _WHOLE * run.seconds else spans
    shown = PanelSeries(
        started=run.run.started,
        label=run.device(gpu.id),
        main=build_device_series(run.recording, gpu),
        others={run.device(other.id): build_device_series(run.recording, other) for other in _choose_others(run, gpu)},
        hosts={run.device(host.id): build_device_series(run.recording, host) for host in _choose_hosts(run, gpu)},
        edges=edges,
        spans=shaded,
        when=describe_time(findings[0].kind if findings else None),
    )
    panels = _build_panels(run, shown, findings, is_cropped=is_cropped)
    if not panels:
        return None
    return SignalHistory(
        gpu=shown.label,
        title=f"{shown.label} over time",
        caption=_write_caption(run, shown, panels, findings),
        panels=panels,
        start=start,
        end=end,
        bucket_seconds=float(edges[1] - edges[0]),
        ticks=place_time_ticks(start, end),
        spans=shaded,
        span_text=_name_spans(findings, shaded),
    )


def _build_panels(
    run: ReportRun, shown: PanelSeries, findings: Sequence[Finding], *, is_cropped: bool
) -> tuple[SignalPanel, ...]:
    """Return the panels; in the open one utilisation that is always high is left out, and a healthy run has two."""
    alarming = (
        find_alarming_signal(findings[0].kind) if findings and findings[0].severity is not Severity.INFO else None
    )
    built = []
    for place, signal in enumerate(choose_signals(findings[0].kind if findings else None)):
        panel = build_panel(shown, signal, is_alert=signal is alarming)
        is_told = not is_cropped and signal is UTILISATION and not (findings and place == 0)
        if panel and not (is_told and _is_always_busy(run, shown, panel)):
            built.append(panel)
    return tuple(built if findings else built[:_HEALTHY_PANELS])


def _is_always_busy(run: ReportRun, shown: PanelSeries, panel: SignalPanel) -> bool:
    """Return whether utilisation is high throughout the sustained work, so that its panel is a solid block."""
    middles = (shown.edges[1:] + shown.edges[:-1]) / 2
    steady = np.zeros(len(middles), dtype=np.bool_)
    for phase in run.analysis.phases:
        if phase.kind == "steady":
            start, end = run.since_start(phase.interval.start), run.since_start(phase.interval.end)
            steady |= (middles >= start) & (middles < end)
    mean = next(line.mean for line in panel.lines if line.is_main)
    known = mean[steady & ~np.isnan(mean)]
    return bool(len(known)) and float(known.mean()) > _BUSY


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


def _choose_others(run: ReportRun, gpu: Device) -> list[Device]:
    return [other for other in run.run.gpus if other.id != gpu.id][:_OTHERS]


def _choose_hosts(run: ReportRun, gpu: Device) -> list[Device]:
    """Return the machine of a GPU: that of its node, or the only one."""
    hosts = [device for device in run.run.devices if device.index is None]
    return [host for host in hosts if host.node == gpu.node][:1] or hosts[:1]


def _list_spans(run: ReportRun, findings: Sequence[Finding]) -> tuple[tuple[float, float], ...]:
    """Return the stretches of findings in seconds since the first sample, those that overlap as one."""
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


def _crop(run: ReportRun, spans: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the part of a run that holds its stretches with some time around; the whole run where they fill it."""
    if not spans:
        return 0.0, run.seconds
    start, end = spans[0][0], spans[-1][1]
    if end - start > _CROPPED * run.seconds:
        return 0.0, run.seconds
    margin = max(_MARGIN * (end - start), (run.run.interval or 1.0) * _SHORTEST_INTERVALS / 2)
    return max(start - margin, 0.0), min(end + margin, run.seconds)


def _place_edges(run: ReportRun, start: float, end: float) -> FloatArray:
    """Return the edges of the buckets, none shorter than a sample."""
    count = min(_BUCKETS, max(int((end - start) / (run.run.interval or 1.0)), 1))
    edges: FloatArray = np.linspace(start, end, count + 1)
    return edges


def _write_caption(
    run: ReportRun, shown: PanelSeries, panels: Sequence[SignalPanel], findings: Sequence[Finding]
) -> str:
    grey = any(not line.is_main for panel in panels for line in panel.lines)
    visible = grey and any(_has_visible_others(panel) for panel in panels)
    total = len(run.run.gpus) - 1
    others = f"the other {total}" if len(shown.others) == total > 1 else f"{len(shown.others)} of the other {total}"
    others = "the other GPU" if total == 1 else others
    verb = "lies" if total == 1 else "lie"
    under = f"{others[0].upper()}{others[1:]} {verb} under the line."
    sentences = [f"Thick: {shown.label}. Thin grey: {others}." if visible else under] if grey else []
    if text := _name_spans(findings, shown.spans):
        sentences.append(f"Shaded: {text}{_describe_unused(run, shown, findings)}.")
    return " ".join(sentences)


def _has_visible_others(panel: SignalPanel) -> bool:
    """Return whether some grey line leaves the main one far enough to be seen."""
    main = next(line.mean for line in panel.lines if line.is_main)
    least = _VISIBLE * (panel.high - panel.low)
    return any(float((np.abs(line.mean - main) > least).mean()) > _VISIBLE for line in panel.lines if not line.is_main)


def _describe_unused(run: ReportRun, shown: PanelSeries, findings: Sequence[Finding]) -> str:
    """Return how much of the time of a GPU went unused in stretches of low use, in which it did some work."""
    device = shown.main.device.id
    times = {time.device: time.job_seconds for time in run.analysis.gpu_time}
    lost = [found.lost_gpu_seconds for found in findings if found.devices == (device,)]
    if findings[0].kind not in _LOW_USE or not lost or None in lost or not times.get(device):
        return ""
    unused = sum(filter(None, lost)) / times[device]
    return f"; {display.percent(unused)} of this GPU's time was lost there"


def _name_finding(finding: Finding) -> str:
    return display.lower_first(terms.kind_title(display.clean(finding.kind), finding.cause))


def _name_spans(findings: Sequence[Finding], spans: Sequence[tuple[float, float]]) -> str:
    if not spans or not findings:
        return ""
    length = display.duration(sum(end - start for start, end in spans))
    stretches = f" in {len(spans)} stretches" if len(spans) > 1 else ""
    return f"{_name_finding(findings[0])}, {length}{stretches}"

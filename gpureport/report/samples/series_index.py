"""The index of the samples in a page: how to decode them, and which marks are drawn over them."""

import sys
from collections.abc import Sequence
from typing import Any

from gpureport.data_quality import gap_seconds
from gpureport.findings import Severity
from gpureport.recording import Run
from gpureport.report.charts import elements, plotted_metrics
from gpureport.report.charts.plotted_metrics import PlottedMetric
from gpureport.report.model.time_charts import Timeline, TimelineStrip
from gpureport.report.runs.report_run import device_name
from gpureport.report.samples.quantisation import CodeScale
from gpureport.report.samples.series_packing import DeviceSamples, PackedDevice
from gpureport.report.sections.gpus.timeline import UTILISATION
from gpureport.report.wording import display
from gpureport.sampling_rate import SlowStretch

_LABEL = 26
_UNITS = {metric.metric: metric.unit for metric in plotted_metrics.PLOTTED_METRICS}
_ROWS = ((4, 32), (8, 24), (16, 17), (sys.maxsize, 12))
"""Pixels of a strip for at most so many GPUs."""

_EVENTS, _MARGIN = 22, 54
"""Pixels above strips for the numbers of events, and least beside them for names."""

_COLOURS = {Severity.PROBLEM.value: "mark", Severity.WARNING.value: "note", Severity.INFO.value: "soft"}
"""Names of the style sheet's colours."""


def describe_axis(runs: Sequence[Timeline]) -> dict[str, Any]:
    """Return the axis in seconds, the shortest piece of it to zoom to, the pixels of names, and colours of classes."""
    axis = runs[0].axis_seconds
    longest = max(len(display.shorten_middle(strip.label, _LABEL)) for run in runs for strip in run.strips)
    interval = min(run.recording.run.interval or 1.0 for run in runs)
    classes = sorted({stretch.key for run in runs for strip in run.strips for stretch in strip.band})
    colours = {key: elements.find_fill(key).colour for key in classes}
    return {
        "classes": colours,
        "axis": axis,
        "finest": min(4 * interval, axis),
        "margin": max(7 * longest + 12, _MARGIN),
    }


def describe_run(  # noqa: PLR0913 - what the index holds of a run, each by name
    place: int,
    run: Timeline,
    bucket: int,
    *,
    names: Sequence[str],
    metrics: Sequence[dict[str, Any]],
    devices: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """Return what is said of a run.

    Args:
        place: its place among all runs.
        run: its timeline.
        bucket: seconds of a bucket; 0 is every sample.
        names: columns of the metrics.
        metrics: what is said of each metric.
        devices: what is said of each device.
    """
    info = run.recording.run
    return {
        "place": place,
        "label": run.label,
        "seconds": run.seconds,
        "bucket": bucket,
        "row": next(height for most, height in _ROWS if len(run.strips) <= most),
        "top": _EVENTS if any(event.at is not None for event in run.events) else 4,
        "metrics": list(metrics),
        "devices": list(devices),
        "strips": [_describe_strip(strip, info, names) for strip in run.strips],
        "events": [[event.id, _to_milliseconds(event.at)] for event in run.events if event.at is not None],
    }


def describe_device(info: Run, name: str, device: DeviceSamples, packed: PackedDevice, bucket: int) -> dict[str, Any]:
    """Return what is said of a device: who it is, when it was read, and how its bytes are laid out.

    Args:
        info: the run.
        name: id of the element that holds the bytes.
        device: its series.
        packed: the same as bytes.
        bucket: seconds of a bucket; 0 is every sample.
    """
    series = device.series
    unit = packed.unit / 1e6
    # a stretch inside another comes before it
    slow = (
        ()
        if bucket
        else reversed([_describe_slow_stretch(each, info.started, unit) for each in series.sampling_rate.slow])
    )
    return {
        "name": display.shorten_middle(device_name(series.device), _LABEL),
        "node": series.device.node,
        "host": series.device.index is None,
        "origin": (int(device.times[0]) - info.started) / 1e6 if len(device.times) else 0.0,
        "interval": bucket or series.interval,
        "paces": [(bucket or series.interval, bucket or gap_seconds(series.interval)), *slow],
        "shift": series.shift / 1e6,
        "metrics": list(device.metrics),
        "blob": name,
        "times": packed.times,
        "like": packed.same_times_as,
        "unit": unit,
        "count": len(device.times),
    }


def _describe_slow_stretch(stretch: SlowStretch, started: int, unit: float) -> tuple[float, float, float, float]:
    """Return how far apart samples are in a slow stretch, how far for a gap, and where it is in seconds of the run.

    It is wider by what stamps are rounded to.
    """
    begin, end = ((at - started) / 1e6 for at in (stretch.start, stretch.end))
    return stretch.interval, gap_seconds(stretch.interval), begin - unit, end + unit


def describe_metric(metric: PlottedMetric, found: CodeScale, highest: float) -> dict[str, Any]:
    """Return what is said of a metric: its name, its unit, how codes become values, and the ends of its axis."""
    unit = metric.unit
    offset, step = found.offset * unit.factor, found.step * unit.factor
    low, high = plotted_metrics.round_axis_ends(unit, offset, highest * unit.factor)
    return {
        "title": metric.title,
        "unit": unit.symbol,
        "label": f"{metric.title}, {unit.symbol}" if unit.symbol else metric.title,
        "offset": float(f"{offset:.9g}"),
        "step": float(f"{step:.9g}"),
        "exact": found.exact,
        "digits": _digits(offset, step, exact=found.exact),
        "averaged": metric.averaged,
        "strip": metric.metric == UTILISATION,
        "low": float(f"{low:.6g}"),
        "high": float(f"{high:.6g}"),
    }


def _digits(offset: float, step: float, *, exact: bool) -> int:
    """Return the decimals that show a value: all it has where it is exact, else those that steps can tell apart."""
    if not exact:
        return next((digits for digits in range(2) if step * 10**digits >= 0.5), 2)  # noqa: PLR2004 - half a digit
    whole = (digits for digits in range(2) if all(abs(each * 10**digits % 1 - 0.5) > 0.499 for each in (offset, step)))  # noqa: PLR2004 - nearly whole
    return next(whole, 2)


def _describe_strip(strip: TimelineStrip, info: Run, names: Sequence[str]) -> dict[str, Any]:
    return {
        "band": [[stretch.key, _to_milliseconds(stretch.end)] for stretch in strip.band],
        "limits": [
            [names.index(limit.metric), limit.value * _UNITS[limit.metric].factor, limit.text]
            for limit in strip.limits
            if limit.metric in names
        ],
        "device": [device.id for device in info.devices].index(strip.device),
        "gaps": [[_to_milliseconds(start), _to_milliseconds(end)] for start, end in strip.gaps],
        "marks": [
            [
                mark.card,
                _COLOURS[mark.severity],
                _to_milliseconds(mark.start),
                _to_milliseconds(mark.end),
                int(mark.whole),
            ]
            for mark in strip.marks
        ],
    }


def _to_milliseconds(seconds: float) -> float:
    """Return seconds with no more digits than stamps of logs have."""
    return round(seconds, 3)

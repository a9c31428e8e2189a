"""The samples behind the timelines, packed into a page: one byte a value, deflated, in base64, and an index of them.

A page that would get too large holds the smallest, mean and largest value of buckets instead, and says so. These bytes
are for charts only: the text of a report never comes from them.
"""

import json
import zlib
from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

import numpy as np

from gpureport.data_quality import gap_seconds
from gpureport.findings import Severity
from gpureport.report.charts.elements import find_fill, stack_classes
from gpureport.report.model.pictures import Timeline, TimelineStrip
from gpureport.report.runs.report_run import device_name
from gpureport.report.samples.packing import (
    DeviceSamples,
    PlottedMetric,
    collect_samples,
    describe_metric,
    encode_times,
    encode_values,
    fit_scale,
    select_metrics,
)
from gpureport.report.wording import display

_BUDGET = 10_000_000
"""Most bytes of samples in a page."""

_LEVELS = (0, 5, 10, 30, 60, 300, 900, 3600)
"""Seconds of buckets to fall back to, one after the other; 0 is every sample."""

_LEAST_BUCKET = 4
"""Fewest samples in a bucket: with fewer, its three values would be no smaller than its samples."""

_ROWS = ((4, 32), (8, 24), (16, 17), (inf, 12))
"""Pixels of a strip for at most so many GPUs."""

_LABEL, _EVENTS, _MARGIN = 26, 22, 54
"""Letters of a name at most, pixels above strips for the numbers of events, and least beside them for names."""

_COLOURS = {Severity.PROBLEM.value: "mark", Severity.WARNING.value: "note", Severity.INFO.value: "soft"}
"""Names of the style sheet's colours."""


class SeriesBlob(NamedTuple):
    """Packed series of one device, and the id of its element."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class EmbeddedSeries:
    """Every sample of a report as a page holds it: blobs, JSON of what they hold, and the same in words."""

    index: str
    blobs: list[SeriesBlob]
    note: str


@dataclass(frozen=True, slots=True)
class _PackedRun:
    """One run's part of the index, its bytes by the id of their element, and for the note what they hold."""

    index: dict[str, Any]
    raw: dict[str, bytes]
    values: int
    rounded: list[PlottedMetric]


def embed_series(runs: Sequence[Timeline], detail: int | None = None) -> EmbeddedSeries | None:
    """Return the samples of every run, None where there is nothing to look at.

    `detail` is the seconds of the buckets, 0 for every sample; the finest that fit into a page when None.
    """
    shown = [(place, run) for place, run in enumerate(runs) if run.strips and run.seconds > 0]
    if not shown:
        return None
    levels = _LEVELS if detail is None else (detail,)
    for level in levels:
        packed = [_pack_run(place, run, level) for place, run in shown]
        blobs = _compress(
            (entry for run in packed for entry in run.raw.items()), inf if level == levels[-1] else _BUDGET
        )
        if blobs:
            break
    index = _describe_axis([run for _, run in shown]) | {"runs": [run.index for run in packed]}
    text = json.dumps(index, separators=(",", ":")).replace("<", "\\u003c")
    return EmbeddedSeries(text, blobs, _describe_embedding(packed, is_asked=detail is not None))


def _compress(raw: Iterable[tuple[str, bytes]], budget: float) -> list[SeriesBlob]:
    """Return the blobs, none as soon as they are more than the budget allows."""
    blobs: list[SeriesBlob] = []
    for name, content in raw:
        blobs.append(SeriesBlob(name, b64encode(zlib.compress(content)).decode()))
        budget -= len(blobs[-1].text)
        if budget < 0:
            return []
    return blobs


def _pack_run(place: int, run: Timeline, level: int) -> _PackedRun:
    info, rows = run.recording.run, run.recording.rows
    bucket = level if level >= _LEAST_BUCKET * (info.interval or 1.0) else 0
    series = [rows.rows_of(device.id) for device in info.devices]
    recorded = {name for name in rows.schema.names for one in series if one.column(name).null_count < len(one)}
    metrics = select_metrics(recorded)
    names = [metric.metric for metric in metrics]
    devices = [collect_samples(run.recording, device, names, bucket) for device in info.devices]
    parts = [[part for device in devices for part in device.parts.get(at, ())] for at in range(len(metrics))]
    scales = [fit_scale(some, 0.0 if bucket else metric.unit.grid) for metric, some in zip(metrics, parts, strict=True)]
    limits = {limit.metric: limit.value for strip in run.strips for limit in strip.limits}
    raw, described = {}, []
    for at, device in enumerate(devices):
        unit = max(round(device.series.interval * 1e6 / 10), 1)
        # times are left out where a device before has the same
        like = next((place for place, other in enumerate(devices[:at]) if _are_equal(device, other, unit)), None)
        times = encode_times(device.times, unit) if like is None else b""
        codes = [encode_values(scales[metric], part) for metric, some in device.parts.items() for part in some]
        raw[blob := f"run{place}-series{at}"] = b"".join([times, *codes])
        layout = {"blob": blob, "times": len(times), "like": like, "unit": unit / 1e6, "count": len(device.times)}
        described.append(_describe_device(run, device, unit / 1e6, bucket) | layout)
    index = {
        "place": place,
        "label": display.clean(run.label),
        "seconds": run.seconds,
        "bucket": bucket,
        "row": next(height for most, height in _ROWS if len(run.strips) <= most),
        "top": _EVENTS if any(event.at is not None for event in run.events) else 4,
        "metrics": [
            describe_metric(
                metric,
                scale,
                max(scale.offset, limits.get(metric.metric, 0.0), *(float(np.nanmax(each)) for each in some)),
            )
            for metric, scale, some in zip(metrics, scales, parts, strict=True)
        ],
        "devices": described,
        "strips": [_describe_strip(strip, run, metrics) for strip in run.strips],
        "events": [[event.id, round(event.at, 3)] for event in run.events if event.at is not None],
    }
    return _PackedRun(
        index=index,
        raw=raw,
        values=sum(int((~np.isnan(part)).sum()) for some in parts for part in some),
        rounded=[metric for metric, scale in zip(metrics, scales, strict=True) if scale.error],
    )


def _are_equal(device: DeviceSamples, other: DeviceSamples, unit: int) -> bool:
    """Return whether two devices were sampled at the same times, up to the rounding of times."""
    return len(device.times) == len(other.times) and bool(np.abs(device.times - other.times).max(initial=0) <= unit)


def _describe_axis(runs: Sequence[Timeline]) -> dict[str, Any]:
    """Return colours of classes, the axis in seconds, the shortest piece of it to zoom to, and the pixels of names."""
    axis = runs[0].axis_seconds
    longest = max(len(display.shorten_middle(strip.label, _LABEL)) for run in runs for strip in run.strips)
    interval = min(run.recording.run.interval or 1.0 for run in runs)
    classes = sorted({stretch.key for run in runs for strip in run.strips for stretch in strip.band})
    return {
        "classes": {key: find_fill(key).colour for key in classes},
        "axis": axis,
        "finest": min(4 * interval, axis),
        "margin": max(7 * longest + 12, _MARGIN),
    }


def _describe_device(run: Timeline, device: DeviceSamples, unit: float, bucket: int) -> dict[str, Any]:
    """Return who a device is, and when it was read.

    A pace is how far apart samples are, how far for a gap, and of a slow stretch where it is in seconds of the run,
    wider by what stamps are rounded to. A stretch inside another comes before it.
    """
    series, started = device.series, run.recording.run.started
    slow = [] if bucket else series.sampling_rate.slow[::-1]
    paces = [
        (gap.interval, gap_seconds(gap.interval), (gap.start - started) / 1e6 - unit, (gap.end - started) / 1e6 + unit)
        for gap in slow
    ]
    interval = bucket or series.interval
    return {
        "name": display.shorten_middle(device_name(series.device), _LABEL),
        "node": series.device.node and display.clean(series.device.node),
        "host": series.device.index is None,
        "origin": (int(device.times[0]) - started) / 1e6 if len(device.times) else 0.0,
        "interval": interval,
        "paces": [(interval, bucket or gap_seconds(series.interval)), *paces],
        "shift": series.shift / 1e6,
        "metrics": list(device.parts),
    }


def _describe_strip(strip: TimelineStrip, run: Timeline, metrics: Sequence[PlottedMetric]) -> dict[str, Any]:
    shown = {metric.metric: (at, metric.unit.factor) for at, metric in enumerate(metrics)}
    limits = [(*shown[limit.metric], limit) for limit in strip.limits if limit.metric in shown]
    return {
        "band": [
            [key, [round(each * 100) for each in top]]
            for key, top in stack_classes(strip.band, strip.band_seconds).items()
        ],
        "limits": [[at, limit.value * factor, display.clean(limit.text)] for at, factor, limit in limits],
        "device": [device.id for device in run.recording.run.devices].index(strip.device),
        "gaps": [[round(start, 3), round(end, 3)] for start, end in strip.gaps],
        "marks": [
            [mark.card, _COLOURS[mark.severity], round(mark.start, 3), round(mark.end, 3), int(mark.whole)]
            for mark in strip.marks
        ],
    }


def _describe_embedding(packed: Sequence[_PackedRun], *, is_asked: bool) -> str:
    source = "Text and tables are from the samples themselves."
    if lengths := sorted({run.index["bucket"] for run in packed} - {0}):
        why = "as asked" if is_asked else f"since all samples would take more than {_BUDGET / 1e6:g}{display.GAP}MB"
        each = display.join_words([f"{bucket}{display.GAP}s" for bucket in lengths])
        return f"The charts hold smallest, mean and largest value of every {each}, {why}. {source}"
    rounded = dict.fromkeys(metric.title for run in packed for metric in run.rounded)
    exact = f"rounded for the charts: {display.join_words(list(rounded))}" if rounded else "none of them rounded"
    values = display.integer(sum(run.values for run in packed))
    return f"The charts hold every sample: {values} values, {exact}. {source}"

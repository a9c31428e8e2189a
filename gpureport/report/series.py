"""The samples behind the timelines, packed into a page: one byte a value, deflated, in base64.

A page that would get too heavy holds smallest, mean and largest value of buckets instead, and says so. What text of
a report says never comes from here: these bytes are for looking at only.
"""

import json
import sys
import zlib
from base64 import b64encode
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpureport.analysis.cells import Cells, cells_of
from gpureport.columns import FloatArray, IntArray
from gpureport.findings import Severity
from gpureport.quality import gap_seconds
from gpureport.recording import Run
from gpureport.report import display, plotted, stamps
from gpureport.report.buckets import buckets
from gpureport.report.codes import Scale, scale
from gpureport.report.inputs import device_name
from gpureport.report.parts import Timeline, TimelineStrip
from gpureport.report.plotted import Plotted
from gpureport.report.timeline import UTILISATION

BUDGET = 10_000_000
"""Most bytes of samples in a page."""

LEVELS = (0, 5, 10, 30, 60, 300, 900, 3600)
"""Seconds of buckets to fall back to, one after the other; 0 is every sample."""

_WORTH = 4
"""Samples in a bucket from which on three values of it are fewer than its samples."""

_THREADS = 2
_LABEL = 26
_ROWS = ((4, 32), (8, 24), (16, 17), (sys.maxsize, 12))
"""Pixels of a strip for at most so many GPUs."""

_EVENTS, _MARGIN = 22, 54
"""Pixels above strips for the numbers of events, and least beside them for names."""

_COLOURS = {Severity.PROBLEM.value: "mark", Severity.WARNING.value: "note", Severity.INFO.value: "soft"}
"""Names of the style sheet's colours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """Packed series of one device: the id of its element, and what it holds."""

    id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """Every sample of a report as a page holds it.

    Attributes:
        index: JSON that says what the blobs hold, fit for a script element.
        blobs: packed series, one a device.
        note: in words, what is there and how exact it is.
    """

    index: str
    blobs: tuple[Blob, ...]
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Device:
    """A device's series before they are packed; `parts` are three arrays a metric in buckets, else one."""

    cells: Cells
    times: IntArray
    metrics: tuple[int, ...]
    parts: tuple[tuple[FloatArray, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Packed:
    """One run's part of the index, with its blobs not yet deflated."""

    index: dict[str, Any]
    raw: tuple[tuple[str, bytes], ...]
    values: int
    bucket: int
    rounded: tuple[tuple[Plotted, float], ...]


def embed(runs: Sequence[Timeline], budget: int = BUDGET) -> Embedded | None:
    """Return the samples of every run, None where there is nothing to look at.

    Args:
        runs: the timelines of a report.
        budget: most bytes that the packed samples may take; coarser buckets are tried until they fit.
    """
    shown = [(place, run) for place, run in enumerate(runs) if run.strips and run.seconds > 0]
    if not shown:
        return None
    for level in LEVELS:
        packed = [_packed(place, run, level) for place, run in shown]
        blobs = _deflated([entry for run in packed for entry in run.raw], budget if level < LEVELS[-1] else None)
        if blobs is not None:
            break
    index = _layout([run for _, run in shown]) | {"runs": [run.index for run in packed]}
    text = json.dumps(_clean(index), separators=(",", ":")).replace("<", "\\u003c")
    return Embedded(index=text, blobs=tuple(blobs or ()), note=_note(packed, budget))


def _clean(value: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Return a value without characters that would steer what shows it."""
    if isinstance(value, dict):
        return {key: _clean(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(each) for each in value]
    return display.clean(value) if isinstance(value, str) else value


def _layout(runs: Sequence[Timeline]) -> dict[str, Any]:
    """Return the axis in seconds, the shortest piece of it to zoom to, and the pixels that names take."""
    axis = runs[0].axis_seconds
    longest = max(len(display.squeeze(strip.label, _LABEL)) for run in runs for strip in run.strips)
    interval = min(run.recording.run.interval or 1.0 for run in runs)
    return {"axis": axis, "finest": min(4 * interval, axis), "margin": max(7 * longest + 12, _MARGIN)}


def _deflated(raw: Sequence[tuple[str, bytes]], budget: int | None) -> list[Blob] | None:
    """Return the blobs, None as soon as they are more than the budget allows."""
    blobs, size = [], 0
    with ThreadPoolExecutor(_THREADS) as threads:
        # deflate lets other threads run
        for name, text in threads.map(_deflate, raw):
            size += len(text)
            if budget is not None and size > budget:
                threads.shutdown(cancel_futures=True)
                return None
            blobs.append(Blob(id=name, text=text))
    return blobs


def _deflate(entry: tuple[str, bytes]) -> tuple[str, str]:
    name, raw = entry
    return name, b64encode(zlib.compress(raw, 6)).decode()


def _packed(place: int, run: Timeline, level: int) -> _Packed:
    info = run.recording.run
    bucket = level if level >= _WORTH * (info.interval or 1.0) else 0
    metrics = list(plotted.chosen(_recorded(run)))
    devices = [_device(run, cells_of(run.recording, device), metrics, bucket) for device in info.devices]
    scales = [_scale(number, metric, devices, bucket) for number, metric in enumerate(metrics)]
    packed = [
        _series(f"run{place}-series{number}", device, devices[:number], scales) for number, device in enumerate(devices)
    ]
    return _Packed(
        index={
            "place": place,
            "label": run.label,
            "seconds": run.seconds,
            "bucket": bucket,
            "row": next(height for most, height in _ROWS if len(run.strips) <= most),
            "top": _EVENTS if any(event.at is not None for event in run.events) else 4,
            "metrics": [
                _metric(metric, found, _highest(number, devices, found))
                for number, (metric, found) in enumerate(zip(metrics, scales, strict=True))
            ],
            "devices": [
                _entry(info, device, bucket) | entry for device, (entry, _) in zip(devices, packed, strict=True)
            ],
            "strips": [_strip(strip, info) for strip in run.strips],
            "events": [[event.id, _tidy(event.at)] for event in run.events if event.at is not None],
        },
        raw=tuple((f"run{place}-series{number}", raw) for number, (_, raw) in enumerate(packed)),
        values=sum(int((~np.isnan(part)).sum()) for device in devices for parts in device.parts for part in parts),
        bucket=bucket,
        rounded=tuple((metric, found.error) for metric, found in zip(metrics, scales, strict=True) if found.error),
    )


def _recorded(run: Timeline) -> set[str]:
    """Return the metrics that hold any value."""
    series = run.recording.series
    return {name for name in series.column_names if series.column(name).null_count < len(series)}


def _device(run: Timeline, cells: Cells, metrics: Sequence[Plotted], bucket: int) -> _Device:
    mine = [number for number, metric in enumerate(metrics) if cells.recorded(metric.metric)]
    values = [cells.values(metrics[number].metric) for number in mine]
    if not bucket:
        return _Device(cells=cells, times=cells.times, metrics=tuple(mine), parts=tuple((one,) for one in values))
    places = buckets(cells.times, run.recording.run.started, bucket)
    parts = tuple(places.gathered(one) for one in values)
    return _Device(cells=cells, times=places.times, metrics=tuple(mine), parts=parts)


def _scale(number: int, metric: Plotted, devices: Sequence[_Device], bucket: int) -> Scale:
    parts = [part for device in devices for part in _parts(device, number)]
    found = scale(parts, metric.unit.grid if not bucket else 0.0)
    return found or Scale(offset=0.0, step=0.0, exact=True)


def _parts(device: _Device, number: int) -> tuple[FloatArray, ...]:
    return device.parts[device.metrics.index(number)] if number in device.metrics else ()


def _series(
    name: str, device: _Device, before: Sequence[_Device], scales: Sequence[Scale]
) -> tuple[dict[str, Any], bytes]:
    """Return what the index says of a device's blob, and its bytes: times unless another's serve, then its metrics."""
    unit = stamps.quantum(device.cells.interval)
    like = next((place for place, other in enumerate(before) if _together(device.times, other.times, unit)), None)
    times = b"" if like is not None else stamps.packed(stamps.distances(device.times, unit))
    codes = [
        scales[number].encoded(part).tobytes()
        for number, parts in zip(device.metrics, device.parts, strict=True)
        for part in parts
    ]
    entry = {"blob": name, "times": len(times), "like": like, "unit": unit / 1e6, "count": len(device.times)}
    return entry, b"".join([times, *codes])


def _together(times: IntArray, others: IntArray, unit: int) -> bool:
    """Return whether two devices were read at the same times, as far as these are kept."""
    return len(times) == len(others) and bool(np.abs(times - others).max(initial=0) <= unit)


def _entry(info: Run, device: _Device, bucket: int) -> dict[str, Any]:
    cells = device.cells
    return {
        "name": display.squeeze(device_name(cells.device), _LABEL),
        "node": cells.device.node,
        "host": cells.device.index is None,
        "origin": (int(device.times[0]) - info.started) / 1e6 if len(device.times) else 0.0,
        "interval": bucket or cells.interval,
        "gap": bucket or gap_seconds(cells.interval),
        "shift": cells.shift / 1e6,
        "metrics": list(device.metrics),
    }


def _highest(number: int, devices: Sequence[_Device], found: Scale) -> float:
    return max((float(np.nanmax(part)) for device in devices for part in _parts(device, number)), default=found.offset)


def _metric(metric: Plotted, found: Scale, highest: float) -> dict[str, Any]:
    unit = metric.unit
    offset, step = found.offset * unit.factor, found.step * unit.factor
    low, high = plotted.limits(unit, offset, highest * unit.factor)
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


def _strip(strip: TimelineStrip, info: Run) -> dict[str, Any]:
    return {
        "device": [device.id for device in info.devices].index(strip.device),
        "gaps": [[_tidy(start), _tidy(end)] for start, end in strip.gaps],
        "marks": [
            [mark.card, _COLOURS[mark.severity], _tidy(mark.start), _tidy(mark.end), int(mark.whole)]
            for mark in strip.marks
        ],
    }


def _tidy(seconds: float) -> float:
    """Return seconds with no more digits than stamps of logs have."""
    return round(seconds, 3)


def _roundings(packed: Sequence[_Packed]) -> list[str]:
    """Return by how much each metric is rounded at most, in words."""
    errors: dict[Plotted, float] = {}
    for metric, error in (entry for run in packed for entry in run.rounded):
        errors[metric] = max(error, errors.get(metric, 0.0))
    return [
        f"{metric.title} (by up to {display.fine(error * metric.unit.factor)}{display.GAP}{metric.unit.symbol})"
        for metric, error in errors.items()
    ]


def _note(packed: Sequence[_Packed], budget: int) -> str:
    values = display.integer(sum(run.values for run in packed))
    if any(run.bucket for run in packed):
        lengths = display.listing(
            [f"{bucket}{display.GAP}s" for bucket in sorted({run.bucket for run in packed} - {0})]
        )
        return (
            f"All samples together would take more than {budget / 1e6:g}{display.GAP}MB, so the charts hold smallest, "
            f"mean and largest value of every {lengths}. Text and tables are from the samples themselves."
        )
    rounded = _roundings(packed)
    exact = f"rounded for the charts: {display.listing(rounded)}" if rounded else "none of them rounded"
    return f"The charts hold every sample: {values} values, {exact}. Text and tables are from the samples themselves."

"""Embeds timeline samples in a page as deflated base64 text with an index, for the page's script.

If samples need too much space, the minimum, mean and maximum per bucket are embedded. Times are stored as
differences, and values as codes on a scale for each metric and run. Report texts never use these bytes.
"""

import json
import math
import zlib
from base64 import b64encode
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpureport.analysis.series.device_series import DeviceSeries, build_device_series
from gpureport.columns import FloatArray, IntArray
from gpureport.data_quality import gap_seconds
from gpureport.findings import Severity
from gpureport.metrics import BY_NAME
from gpureport.recording import Device, Recording
from gpureport.report.charts.elements import find_fill, stack_classes
from gpureport.report.model.pictures import Timeline, TimelineStrip
from gpureport.report.runs.report_run import device_name
from gpureport.report.wording import display

_BUDGET = 10_000_000  # Maximum size in a page, in bytes.
# Bucket lengths in seconds, tried in order; 0 means every sample.
_LEVELS = (0, 5, 10, 30, 60, 300, 900, 3600)
_LEAST_BUCKET = 4  # Below this, three values save no space.
# Maximum number of GPUs, and height of each in pixels.
_ROWS = ((4, 32), (8, 24), (16, 17), (math.inf, 12))
_LABEL, _EVENTS, _MARGIN = 26, 22, 54
_COLOURS = {Severity.PROBLEM.value: "mark", Severity.WARNING.value: "note", Severity.INFO.value: "soft"}
_NO_VALUE, _HIGHEST_CODE = 255, 254
_OFF_GRID = 0.02  # Tolerance relative to the grid, for single precision.
_EXACT_INTEGERS = 2.0**53  # Doubles represent all integers up to this one.


class DeviceSamples(NamedTuple):
    """A device's series: times in microseconds, and one or three arrays per metric index."""

    series: DeviceSeries
    times: IntArray
    parts: dict[int, list[FloatArray]]


def collect_samples(recording: Recording, device: Device, metrics: Sequence[str], bucket: int) -> DeviceSamples:
    series = build_device_series(recording, device)
    parts = {place: [series.values(name)] for place, name in enumerate(metrics) if series.is_recorded(name)}
    if not bucket:
        return DeviceSamples(series, series.times, parts)
    length = bucket * 1_000_000
    places = (series.times - recording.run.started) // length
    first = np.flatnonzero(np.diff(places, prepend=places[:1] - 1))
    times = recording.run.started + places[first] * length + length // 2
    for place, (values,) in parts.items():
        known = ~np.isnan(values)
        count = np.add.reduceat(known, first, dtype=np.int64)
        low = np.minimum.reduceat(np.where(known, values, np.inf), first)
        high = np.maximum.reduceat(np.where(known, values, -np.inf), first)
        mean = np.add.reduceat(np.where(known, values, 0.0), first) / np.maximum(count, 1)
        parts[place] = [np.where(count, each, np.nan) for each in (low, mean, high)]
    return DeviceSamples(series, times, parts)


class CodeScale(NamedTuple):
    """A scale that maps codes to values (`offset + step * code`), and its largest rounding error."""

    offset: float = 0.0
    step: float = 0.0
    error: float = 0.0

    def encode(self, values: FloatArray) -> bytes:
        places = np.clip(np.rint((values - self.offset) / (self.step or 1.0)), 0, _HIGHEST_CODE)
        return np.where(np.isnan(places), _NO_VALUE, places).astype(np.uint8).tobytes()


def fit_scale(series: Sequence[FloatArray], grid: float) -> CodeScale:
    """Return a scale, exact if all values are multiples of `grid` in a narrow range."""
    values = np.concatenate([*series, np.empty(0)])
    values = values[~np.isnan(values)]
    if not len(values):
        return CodeScale()
    low, high = float(values.min()), float(values.max())
    if grid and max(-low, high) / grid <= _EXACT_INTEGERS:
        places = np.rint(values / grid)
        width = int(np.gcd.reduce(places.astype(np.int64) - round(low / grid)))
        is_near = np.abs(values / grid - places).max() <= _OFF_GRID
        if is_near and (high - low) / grid <= _HIGHEST_CODE * width + 0.5:
            return CodeScale(round(low / grid) * grid, width * grid)
    step = (high - low) / _HIGHEST_CODE
    return CodeScale(low, step, step / 2)


def encode_times(times: IntArray, unit: int) -> bytes:
    """Encode time differences as LEB128, in multiples of `unit`."""
    # round before taking differences, so that errors do not accumulate
    ticks = np.rint((times - times[:1]) / unit).astype(np.int64)
    distances: IntArray = np.diff(ticks, prepend=0)
    left = distances[:, None] >> np.arange(0, max(int(distances.max(initial=0)).bit_length(), 1), 7)
    codes = (left & 127) | (left > 127) << 7  # noqa: PLR2004 - what seven bits hold
    left[:, 0] = 1
    return bytes(codes[left > 0].astype(np.uint8))


UTILISATION = "gpu_utilization_ratio"


class DisplayUnit(NamedTuple):
    symbol: str
    factor: float
    grid: float
    full: float = 0.0
    from_zero: bool = True


_UNITS = {
    "1": DisplayUnit("%", 100.0, 1e-3, full=100.0),
    "W": DisplayUnit("W", 1.0, 1e-2),
    "Cel": DisplayUnit("°C", 1.0, 0.1, from_zero=False),
    "Hz": DisplayUnit("MHz", 1e-6, 1e6, from_zero=False),
    "By": DisplayUnit("GiB", 2.0**-30, 2.0**20),
    "By/s": DisplayUnit("MB/s", 1e-6, 1e6),
}


class PlottedMetric(NamedTuple):
    """A metric. An `averaged` value is a mean over the time before its timestamp."""

    metric: str
    title: str
    averaged: bool = False
    instead_of: str = ""

    @property
    def unit(self) -> DisplayUnit:
        return _UNITS[BY_NAME[self.metric].unit]


# host signals are listed after GPU utilisation
_METRICS = (
    PlottedMetric(UTILISATION, "GPU utilisation", averaged=True),
    PlottedMetric("cpu_utilization_ratio", "CPU utilisation", averaged=True),
    PlottedMetric("cpu_busiest_core_ratio", "Busiest core", averaged=True),
    PlottedMetric("cpu_iowait_ratio", "CPU waiting for I/O", averaged=True),
    PlottedMetric("gpu_power_watts", "Power"),
    PlottedMetric("gpu_power_ratio", "Power, share of limit", instead_of="gpu_power_watts"),
    PlottedMetric("gpu_sm_clock_hertz", "SM clock"),
    PlottedMetric("gpu_graphics_clock_hertz", "Graphics clock", instead_of="gpu_sm_clock_hertz"),
    PlottedMetric("gpu_temperature_celsius", "Temperature"),
    PlottedMetric("gpu_memory_used_bytes", "Memory used"),
    PlottedMetric("gpu_memory_used_ratio", "Memory used", instead_of="gpu_memory_used_bytes"),
    PlottedMetric("gpu_memory_controller_ratio", "Memory controller", averaged=True),
    PlottedMetric("gpu_sm_active_ratio", "SMs active", averaged=True),
    PlottedMetric("gpu_tensor_active_ratio", "Tensor cores active", averaged=True),
    PlottedMetric("gpu_dram_active_ratio", "Memory active", averaged=True),
    PlottedMetric("pcie_receive_bytes_per_second", "PCIe, received"),
    PlottedMetric("pcie_transmit_bytes_per_second", "PCIe, sent"),
    PlottedMetric("host_memory_used_bytes", "Host memory used"),
    PlottedMetric("host_memory_used_ratio", "Host memory used", instead_of="host_memory_used_bytes"),
)


def describe_metric(metric: PlottedMetric, scale: CodeScale, highest: float) -> dict[str, Any]:
    unit = metric.unit
    offset, step = scale.offset * unit.factor, scale.step * unit.factor
    low = min(offset, 0.0) if unit.from_zero else offset
    high = max(highest * unit.factor, unit.full)
    span = high - low or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span))
    round_step = power / 5 if span < 2 * power else power / 2 if span < 5 * power else power
    low = math.floor(low / round_step + 1e-9) * round_step
    high = math.ceil(high / round_step - 1e-9) * round_step
    return {
        "title": metric.title,
        "unit": unit.symbol,
        "label": f"{metric.title}, {unit.symbol}",
        "offset": float(f"{offset:.9g}"),
        "step": float(f"{step:.9g}"),
        "exact": not scale.error,
        "digits": _count_digits(offset, step, is_exact=not scale.error),
        "averaged": metric.averaged,
        "strip": metric.metric == UTILISATION,
        "low": float(f"{low:.6g}"),
        "high": float(f"{high if high > low else low + round_step:.6g}"),
    }


def _count_digits(offset: float, step: float, *, is_exact: bool) -> int:
    for digits, size in enumerate((1, 10)):
        # both are nearly whole numbers, or the step is at least half a digit
        is_whole = all(abs(each * size % 1 - 0.5) > 0.499 for each in (offset, step))  # noqa: PLR2004 - half
        if is_whole if is_exact else step * size >= 0.5:  # noqa: PLR2004 - half
            return digits
    return 2


class EmbeddedSeries(NamedTuple):
    about: str
    blobs: dict[str, str]
    note: str


class _PackedRun(NamedTuple):
    about: dict[str, Any]
    raw: dict[str, bytes]
    values: int
    rounded: list[PlottedMetric]


def embed_series(runs: Sequence[Timeline], detail: int | None = None) -> EmbeddedSeries | None:
    """Return all samples. `detail` is the bucket length in seconds (None: the shortest that fits)."""
    shown = [(place, run) for place, run in enumerate(runs) if run.strips and run.seconds > 0]
    if not shown:
        return None
    levels = _LEVELS if detail is None else (detail,)
    for level in levels:
        packed = [_pack_run(place, run, level) for place, run in shown]
        blobs, room = dict[str, str](), math.inf if level == levels[-1] else _BUDGET
        for name, content in (entry for run in packed for entry in run.raw.items()):
            blobs[name] = b64encode(zlib.compress(content)).decode()
            room -= len(blobs[name])
            if room < 0:
                break
        else:
            break
    longest = max(len(display.shorten_middle(strip.label, _LABEL)) for _, run in shown for strip in run.strips)
    axis = shown[0][1].axis_seconds
    classes = {each.key for _, run in shown for strip in run.strips for each in strip.band}
    index = {
        "classes": {key: find_fill(key).colour for key in sorted(classes)},
        "axis": axis,
        "finest": min(4 * min(run.recording.run.interval or 1.0 for _, run in shown), axis),
        "margin": max(7 * longest + 12, _MARGIN),
        "runs": [run.about for run in packed],
    }
    text = json.dumps(index, separators=(",", ":")).replace("<", "\\u003c")
    return EmbeddedSeries(text, blobs, _describe_embedding(packed, is_asked=detail is not None))


def _pack_run(place: int, run: Timeline, level: int) -> _PackedRun:
    info, rows = run.recording.run, run.recording.rows
    bucket = level if level >= _LEAST_BUCKET * (info.interval or 1.0) else 0
    series = [rows.rows_of(device.id) for device in info.devices]
    recorded = {name for name in rows.schema.names for one in series if one.column(name).null_count < len(one)}
    metrics = [each for each in _METRICS if each.metric in recorded and each.instead_of not in recorded]
    names = [metric.metric for metric in metrics]
    devices = [collect_samples(run.recording, device, names, bucket) for device in info.devices]
    parts = [[part for device in devices for part in device.parts.get(at, ())] for at in range(len(metrics))]
    scales = [fit_scale(some, 0.0 if bucket else metric.unit.grid) for metric, some in zip(metrics, parts, strict=True)]
    limits = {limit.metric: limit.value for strip in run.strips for limit in strip.limits}
    raw, described = {}, []
    for at, device in enumerate(devices):
        unit = max(round(device.series.interval * 1e6 / 10), 1)
        # refer to an earlier device whose times are equal up to rounding
        long = [place for place, other in enumerate(devices[:at]) if len(device.times) == len(other.times)]
        apart = (np.abs(device.times - devices[place].times).max(initial=0) for place in long)
        like = next((place for place, most in zip(long, apart, strict=True) if most <= unit), None)
        times = encode_times(device.times, unit) if like is None else b""
        codes = [scales[metric].encode(part) for metric, some in device.parts.items() for part in some]
        raw[blob := f"run{place}-series{at}"] = b"".join([times, *codes])
        layout = {"blob": blob, "times": len(times), "like": like, "unit": unit / 1e6, "count": len(device.times)}
        described.append(_describe_device(run, device, unit / 1e6, bucket) | layout)
    about = {
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
        about=about,
        raw=raw,
        values=sum(int((~np.isnan(part)).sum()) for some in parts for part in some),
        rounded=[metric for metric, scale in zip(metrics, scales, strict=True) if scale.error],
    )


def _describe_device(run: Timeline, device: DeviceSamples, unit: float, bucket: int) -> dict[str, Any]:
    series, started = device.series, run.recording.run.started
    paces = [
        (gap.interval, gap_seconds(gap.interval), (gap.start - started) / 1e6 - unit, (gap.end - started) / 1e6 + unit)
        for gap in ([] if bucket else series.sampling_rate.slow[::-1])
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
    source = "Text and tables use the samples themselves."
    if lengths := sorted({run.about["bucket"] for run in packed} - {0}):
        why = "as requested" if is_asked else f"since all samples would take more than {_BUDGET / 1e6:g}{display.GAP}MB"
        each = display.join_words([f"{bucket}{display.GAP}s" for bucket in lengths])
        return f"The charts show the minimum, mean and maximum of every {each}, {why}. {source}"
    rounded = dict.fromkeys(metric.title for run in packed for metric in run.rounded)
    exact = f"with {display.join_words(list(rounded))} rounded" if rounded else "none of them rounded"
    values = display.integer(sum(run.values for run in packed))
    return f"The charts show every sample: {values} values, {exact}. {source}"

"""One device's series as bytes: times as distances, then one code a value, smallest, mean and largest in buckets."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpureport.analysis.series.device_series import DeviceSeries, build_device_series
from gpureport.columns import FloatArray, IntArray
from gpureport.recording import Device
from gpureport.report.charts.plotted_metrics import PlottedMetric
from gpureport.report.model.time_charts import Timeline
from gpureport.report.samples import time_encoding
from gpureport.report.samples.quantisation import CodeScale, fit_scale
from gpureport.report.samples.time_buckets import group_into_buckets


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSamples:
    """A device's series before they are packed.

    Attributes:
        series: its samples.
        times: of its values, in microseconds.
        metrics: places of its metrics among those of the run.
        parts: arrays of a metric, as long as `times`: smallest, mean and largest in buckets, else one.
    """

    series: DeviceSeries
    times: IntArray
    metrics: tuple[int, ...]
    parts: tuple[tuple[FloatArray, ...], ...]

    def arrays(self, number: int) -> tuple[FloatArray, ...]:
        """Return the arrays of a metric, none where the device has no such series."""
        return self.parts[self.metrics.index(number)] if number in self.metrics else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedDevice:
    """A device's series as bytes.

    Attributes:
        raw: its times unless they equal those of an earlier device, then the codes of its metrics.
        times: number of bytes of times in it.
        same_times_as: place of the earlier device with the same times; None where `raw` holds its own.
        unit: microseconds that times count in.
    """

    raw: bytes
    times: int
    same_times_as: int | None
    unit: int


def collect_samples(run: Timeline, device: Device, metrics: Sequence[PlottedMetric], bucket: int) -> DeviceSamples:
    """Return the series of a device.

    Args:
        run: the run.
        device: one of its devices.
        metrics: what the run shows; the device need not have all of it.
        bucket: seconds of a bucket; 0 is every sample.
    """
    series = build_device_series(run.recording, device)
    mine = [number for number, metric in enumerate(metrics) if series.is_recorded(metric.metric)]
    values = [series.values(metrics[number].metric) for number in mine]
    if not bucket:
        return DeviceSamples(
            series=series, times=series.times, metrics=tuple(mine), parts=tuple((one,) for one in values)
        )
    places = group_into_buckets(series.times, run.recording.run.started, bucket)
    parts = tuple(places.aggregate(one) for one in values)
    return DeviceSamples(series=series, times=places.times, metrics=tuple(mine), parts=parts)


def fit_metric_scale(number: int, metric: PlottedMetric, devices: Sequence[DeviceSamples], bucket: int) -> CodeScale:
    """Return the scale that all devices of a run share for a metric."""
    parts = [part for device in devices for part in device.arrays(number)]
    found = fit_scale(parts, metric.unit.grid if not bucket else 0.0)
    return found or CodeScale(offset=0.0, step=0.0, exact=True)


def largest_value(number: int, devices: Sequence[DeviceSamples], found: CodeScale) -> float:
    """Return the largest value of a metric over all devices; the offset of its scale where there is none."""
    values = (float(np.nanmax(part)) for device in devices for part in device.arrays(number))
    return max(values, default=found.offset)


def pack_device(device: DeviceSamples, before: Sequence[DeviceSamples], scales: Sequence[CodeScale]) -> PackedDevice:
    """Return a device's series as bytes; times are left out where a device before it has the same."""
    unit = time_encoding.time_unit(device.series.interval)
    same_times_as = next(
        (place for place, other in enumerate(before) if _have_same_times(device.times, other.times, unit)), None
    )
    times = (
        b""
        if same_times_as is not None
        else time_encoding.encode_varints(time_encoding.time_deltas(device.times, unit))
    )
    codes = [
        scales[number].encode(part).tobytes()
        for number, parts in zip(device.metrics, device.parts, strict=True)
        for part in parts
    ]
    return PackedDevice(raw=b"".join([times, *codes]), times=len(times), same_times_as=same_times_as, unit=unit)


def _have_same_times(times: IntArray, others: IntArray, unit: int) -> bool:
    """Return whether two devices were sampled at the same times, up to the rounding of times."""
    return len(times) == len(others) and bool(np.abs(times - others).max(initial=0) <= unit)

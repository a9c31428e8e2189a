"""Series as bytes, and the metrics of the timelines in the order of their charts.

Times are distances, then one code a value; in buckets their smallest, mean and largest values. Codes 0 to 254 stand on
a linear scale that all devices of a run share for a metric; 255 is no value.
"""

import math
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpureport.analysis.series.device_series import DeviceSeries, build_device_series
from gpureport.columns import FloatArray, IntArray
from gpureport.metrics import BY_NAME
from gpureport.recording import Device, Recording

_NO_VALUE, _HIGHEST_CODE = 255, 254
_OFF_GRID = 0.02
"""Largest distance of a single-precision value from the grid, as a share of the grid's step."""

_EXACT_INTEGERS = 2.0**53
"""Largest integer up to which double precision represents every integer."""


class DeviceSamples(NamedTuple):
    """A device's series: times in microseconds, and by the place of a metric one array of values, or three."""

    series: DeviceSeries
    times: IntArray
    parts: dict[int, list[FloatArray]]


def collect_samples(recording: Recording, device: Device, metrics: Sequence[str], bucket: int) -> DeviceSamples:
    """Return the series of a device; it need not have all metrics. `bucket` is in seconds, 0 is every sample."""
    series = build_device_series(recording, device)
    parts = {place: [series.values(name)] for place, name in enumerate(metrics) if series.is_recorded(name)}
    if not bucket:
        return DeviceSamples(series, series.times, parts)
    length = bucket * 1_000_000
    places = (series.times - recording.run.started) // length
    first = np.flatnonzero(np.diff(places, prepend=places[:1] - 1))
    times = recording.run.started + places[first] * length + length // 2
    return DeviceSamples(series, times, {place: _aggregate(values, first) for place, (values,) in parts.items()})


def _aggregate(values: FloatArray, first: IntArray) -> list[FloatArray]:
    """Return smallest, mean and largest value of buckets that begin at some rows; NaN where one holds no value."""
    known = ~np.isnan(values)
    count = np.add.reduceat(known, first, dtype=np.int64)
    low = np.minimum.reduceat(np.where(known, values, np.inf), first)
    high = np.maximum.reduceat(np.where(known, values, -np.inf), first)
    mean = np.add.reduceat(np.where(known, values, 0.0), first) / np.maximum(count, 1)
    return [np.where(count, each, np.nan) for each in (low, mean, high)]


class CodeScale(NamedTuple):
    """What codes stand for, `offset + step * code`, and the largest difference between a code and its value."""

    offset: float = 0.0
    step: float = 0.0
    error: float = 0.0


def fit_scale(series: Sequence[FloatArray], grid: float) -> CodeScale:
    """Return the scale that several series share.

    It is exact where all values are multiples of `grid` and no more than 255 even steps apart, as whole per cents
    are, and clocks, which move by 15 MHz; otherwise it divides the range. A grid of 0 is none, as means have.
    """
    known = [values for each in series if len(values := each[~np.isnan(each)])]
    low = min((float(values.min()) for values in known), default=0.0)
    high = max((float(values.max()) for values in known), default=0.0)
    exact = _fit_exact_scale(known, low, high, grid) if grid and max(-low, high) / grid <= _EXACT_INTEGERS else None
    step = (high - low) / _HIGHEST_CODE
    return exact or CodeScale(low, step, step / 2)


def _fit_exact_scale(known: Sequence[FloatArray], low: float, high: float, grid: float) -> CodeScale | None:
    """Return the coarsest scale that represents all values exactly, None if there is none of at most 255 codes."""
    step, first = 0, round(low / grid)
    for values in known:
        places = np.rint(values / grid)
        if np.abs(values / grid - places).max() > _OFF_GRID:
            return None
        step = int(np.gcd.reduce(places.astype(np.int64) - first, initial=step))
        if step and (high - low) / grid > _HIGHEST_CODE * step + 0.5:
            return None
    return CodeScale(first * grid, step * grid)


def encode_values(scale: CodeScale, values: FloatArray) -> bytes:
    """Return the code nearest to each value."""
    places = np.clip(np.rint((values - scale.offset) / (scale.step or 1.0)), 0, _HIGHEST_CODE)
    return np.where(np.isnan(places), _NO_VALUE, places).astype(np.uint8).tobytes()


def encode_times(times: IntArray, unit: int) -> bytes:
    """Return the distances of times in a unit as LEB128: seven bits a byte, lowest first, and whether more follow."""
    # rounded before distances are taken, so that errors do not add up
    ticks = np.rint((times - times[:1]) / unit).astype(np.int64)
    distances: IntArray = np.diff(ticks, prepend=0)
    longest = max(int(distances.max(initial=0)).bit_length(), 1)
    left = distances[:, None] >> np.arange(0, longest, 7)
    codes = (left & 127) | (left > 127) << 7  # noqa: PLR2004 - what seven bits hold
    left[:, 0] = 1
    return bytes(codes[left > 0].astype(np.uint8))


UTILISATION = "gpu_utilization_ratio"


class DisplayUnit(NamedTuple):
    """The unit people use: how many of it one base unit is, the resolution of logs in base units, least upper end."""

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
    """A metric of the timelines; it is left out where the one that it stands `instead_of` was recorded.

    A value that is `averaged` is a mean up to its reading, and so drawn that much earlier.
    """

    metric: str
    title: str
    averaged: bool = False
    instead_of: str = ""

    @property
    def unit(self) -> DisplayUnit:
        """The unit it is read in."""
        return _UNITS[BY_NAME[self.metric].unit]


# what feeds a GPU stands below its utilisation
_METRICS = (
    PlottedMetric(UTILISATION, "GPU utilisation", averaged=True),
    PlottedMetric("cpu_utilization_ratio", "CPU utilisation", averaged=True),
    PlottedMetric("cpu_busiest_core_ratio", "Busiest core", averaged=True),
    PlottedMetric("cpu_iowait_ratio", "CPU waiting for I/O", averaged=True),
    PlottedMetric("gpu_power_watts", "Power"),
    PlottedMetric("gpu_power_ratio", "Power, of its limit", instead_of="gpu_power_watts"),
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


def select_metrics(recorded: Collection[str]) -> list[PlottedMetric]:
    """Return the metrics to show of those that a run recorded."""
    return [each for each in _METRICS if each.metric in recorded and each.instead_of not in recorded]


def describe_metric(metric: PlottedMetric, scale: CodeScale, highest: float) -> dict[str, Any]:
    """Return what the index says of a metric: name, unit, how codes become values, and the ends of its axis."""
    unit = metric.unit
    offset, step = scale.offset * unit.factor, scale.step * unit.factor
    low, high = _round_axis_ends(unit, offset, highest * unit.factor)
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
        "high": float(f"{high:.6g}"),
    }


def _round_axis_ends(unit: DisplayUnit, low: float, high: float) -> tuple[float, float]:
    low, high = (min(low, 0.0) if unit.from_zero else low), max(high, unit.full)
    span = high - low or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span))
    step = power / 5 if span < 2 * power else power / 2 if span < 5 * power else power
    floor, ceiling = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return floor, ceiling if ceiling > floor else floor + step


def _count_digits(offset: float, step: float, *, is_exact: bool) -> int:
    """Return the decimals that show a value: all it has where it is exact, else those that steps can tell apart."""
    for digits, size in enumerate((1, 10)):
        # nearly whole, and half a digit
        is_whole = all(abs(each * size % 1 - 0.5) > 0.499 for each in (offset, step))  # noqa: PLR2004 - as above
        if is_whole if is_exact else step * size >= 0.5:  # noqa: PLR2004 - as above
            return digits
    return 2

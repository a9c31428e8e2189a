"""One device's series as bytes: times as distances, then one code a value, smallest, mean and largest in buckets.

Codes 0 to 254 stand on a linear scale that all devices of a run share for a metric; 255 is no value.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpureport.analysis.series.device_series import DeviceSeries, build_device_series
from gpureport.columns import FloatArray, IntArray
from gpureport.recording import Device, Recording

_NO_VALUE, _HIGHEST_CODE = 255, 254
_OFF_GRID = 0.02
"""Largest distance of a single-precision value from the grid, as a share of the grid's step."""

_COUNTABLE = 100_000
"""Highest place up to which repeated places are removed by counting, which is faster."""

_EXACT_INTEGERS = 2.0**53
"""Largest integer up to which double precision represents every integer."""


@dataclass(frozen=True, slots=True)
class CodeScale:
    """What codes stand for, `offset + step * code`, and whether every value lies on a code."""

    offset: float = 0.0
    step: float = 0.0
    exact: bool = True

    @property
    def error(self) -> float:
        """Return the largest difference between a code and its value."""
        return 0.0 if self.exact else self.step / 2

    def encode(self, values: FloatArray) -> bytes:
        """Return the code nearest to each value."""
        places = np.clip(np.rint((values - self.offset) / (self.step or 1.0)), 0, _HIGHEST_CODE)
        places[np.isnan(places)] = _NO_VALUE
        return places.astype(np.uint8).tobytes()


@dataclass(frozen=True, slots=True)
class DeviceSamples:
    """A device's series before they are packed: times in microseconds, and by the place of a metric its values.

    These are one array a metric, or in buckets smallest, mean and largest values.
    """

    series: DeviceSeries
    times: IntArray
    parts: dict[int, tuple[FloatArray, ...]]


def collect_samples(recording: Recording, device: Device, metrics: Sequence[str], bucket: int) -> DeviceSamples:
    """Return the series of a device; it need not have all metrics. `bucket` is in seconds, 0 is every sample."""
    series = build_device_series(recording, device)
    values = {place: series.values(name) for place, name in enumerate(metrics) if series.is_recorded(name)}
    if not bucket:
        return DeviceSamples(series, series.times, {place: (one,) for place, one in values.items()})
    length = bucket * 1_000_000
    places = (series.times - recording.run.started) // length
    first = np.flatnonzero(np.diff(places, prepend=places[:1] - 1))
    times = recording.run.started + places[first] * length + length // 2
    return DeviceSamples(series, times, {place: _aggregate(one, first) for place, one in values.items()})


def _aggregate(values: FloatArray, first: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return smallest, mean and largest value of buckets that begin at some rows; NaN where one holds no value."""
    known = ~np.isnan(values)
    count = np.add.reduceat(known, first, dtype=np.int64)
    low = np.minimum.reduceat(np.where(known, values, np.inf), first)
    high = np.maximum.reduceat(np.where(known, values, -np.inf), first)
    total = np.add.reduceat(np.where(known, values, 0.0), first)
    low[count == 0] = high[count == 0] = total[count == 0] = np.nan
    return low, total / np.maximum(count, 1), high


def fit_scale(series: Sequence[FloatArray], grid: float) -> CodeScale:
    """Return the scale that several series share.

    It is exact where all values are multiples of `grid` and no more than 255 even steps apart, as whole per cents
    are, and clocks, which move by 15 MHz; otherwise it divides the range. A grid of 0 is none, as means have.
    """
    known = [values for each in series if len(values := each[~np.isnan(each)])]
    if not known:
        return CodeScale()
    low, high = min(float(values.min()) for values in known), max(float(values.max()) for values in known)
    exact = _fit_exact_scale(known, low, high, grid) if grid else None
    return exact or CodeScale(low, (high - low) / _HIGHEST_CODE, low == high)


def _fit_exact_scale(known: Sequence[FloatArray], low: float, high: float, grid: float) -> CodeScale | None:
    """Return the coarsest scale that represents all values exactly, None if there is none of at most 255 codes."""
    if max(-low, high) / grid > _EXACT_INTEGERS:
        return None
    step, first = 0, round(low / grid)
    for values in known:
        scaled = values / grid
        rounded = np.rint(scaled)
        if np.abs(scaled - rounded).max() > _OFF_GRID:
            return None
        places = rounded.astype(np.int64) - first
        if (highest := int(places.max())) <= _COUNTABLE:
            # divisions take long: each place once, where there are few
            places = np.flatnonzero(np.bincount(places, minlength=highest + 1))
        step = int(np.gcd.reduce(places, initial=step))
        if step and (high - low) / grid > _HIGHEST_CODE * step + 0.5:
            return None
    return CodeScale(first * grid, step * grid)


@dataclass(frozen=True, slots=True)
class PackedDevice:
    """A device's series as bytes.

    Attributes:
        raw: its times unless they equal those of an earlier device, then the codes of its metrics.
        times: number of bytes of times in it.
        like: place of the earlier device with the same times; None where `raw` holds its own.
        unit: microseconds that times count in, a tenth of the sampling interval.
    """

    raw: bytes
    times: int
    like: int | None
    unit: int


def pack_device(device: DeviceSamples, before: Sequence[DeviceSamples], scales: Sequence[CodeScale]) -> PackedDevice:
    """Return a device's series as bytes; times are left out where a device before it has the same."""
    unit = max(round(device.series.interval * 1e6 / 10), 1)
    like = next((place for place, other in enumerate(before) if _are_equal(device.times, other.times, unit)), None)
    # rounded before distances are taken, so that errors do not add up
    ticks = np.rint((device.times - device.times[:1]) / unit).astype(np.int64)
    times = b"" if like is not None else _encode_varints(np.diff(ticks, prepend=0))
    codes = [scales[place].encode(part) for place, parts in device.parts.items() for part in parts]
    return PackedDevice(b"".join([times, *codes]), len(times), like, unit)


def _are_equal(times: IntArray, others: IntArray, unit: int) -> bool:
    return len(times) == len(others) and bool(np.abs(times - others).max(initial=0) <= unit)


def _encode_varints(numbers: IntArray) -> bytes:
    """Return non-negative integers as LEB128: seven bits a byte, lowest first, the eighth set on all but the last."""
    lengths = np.ones(len(numbers), dtype=np.int64)
    for shift in range(7, 63, 7):
        lengths += numbers >> shift > 0
    ends = np.cumsum(lengths)
    out: npt.NDArray[np.uint8] = np.zeros(int(ends[-1]) if len(ends) else 0, dtype=np.uint8)
    for place in range(int(lengths.max(initial=0))):
        rows = lengths > place
        more = lengths[rows] > place + 1
        out[ends[rows] - lengths[rows] + place] = (numbers[rows] >> (7 * place) & 127) | (more << 7)
    return out.tobytes()

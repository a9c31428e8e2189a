"""Series as bytes: times as distances, then one code a value; in buckets their smallest, mean and largest values.

Codes 0 to 254 stand on a linear scale that all devices of a run share for a metric; 255 is no value.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpureport.analysis.series.device_series import DeviceSeries, build_device_series
from gpureport.columns import FloatArray, IntArray
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

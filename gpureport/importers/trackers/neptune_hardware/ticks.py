"""The points of a process on common ticks, and values in base units."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from gpureport.columns import FloatArray, IntArray
from gpureport.data_quality import gap_seconds
from gpureport.importers.trackers.neptune_hardware.dropped_zeros import GaugePoints, RestoredSeries
from gpureport.importers.trackers.neptune_hardware.point_series import Series
from gpureport.importers.trackers.neptune_hardware.series_meanings import SeriesMeaning

_NEVER_DROPPED = {"host_memory_used_bytes", "gpu_memory_used_bytes"}
"""Reported at every tick, since memory is never 0."""
_SAME = 1_000
"""Points closer together than this, in microseconds, always belong to one tick."""
_APART = 0.01
"""Share of ticks at which series that are never dropped may miss each other and still share their times (pragmatic)."""
_FORKED = 1_000_000
"""Ticks closer together than this, in microseconds, are not of one monitor: it waits 10 s (pragmatic)."""
_SHARE, _WIDEST = 0.25, 1_000_000
"""How far apart points of one tick may lie where times are not shared: a quarter of the interval, at most 1 s."""


def join_ticks(
    found: Mapping[str, Series], meanings: Mapping[str, SeriesMeaning]
) -> tuple[dict[str, GaugePoints], int]:
    """Return points at the times of their ticks, and the largest distance of points of one tick in microseconds.

    The series of a process usually share their times. If they do not, points close together are one tick.
    """
    points = {path: GaugePoints(each.times, each.values) for path, each in found.items()}
    steady = [points[path].times for path in points if meanings[path].metric in _NEVER_DROPPED] or [
        each.times for each in points.values()
    ]
    if all(np.array_equal(steady[0], each) for each in steady[1:]):
        return points, 0
    whole, most = np.unique(np.concatenate(steady)), max(map(len, steady))
    if len(whole) <= most * (1 + _APART) or int((np.diff(whole) > _SAME).sum()) + 1 <= most * (1 + _APART):
        return points, 0
    times = np.unique(np.concatenate([each.times for each in points.values()]))
    longest = np.sort(max(steady, key=len))
    pace = float(np.median(np.diff(longest))) if len(longest) > 1 else 0.0
    starts = times[np.concatenate([[True], np.diff(times) > max(min(pace * _SHARE, _WIDEST), _SAME)])]
    tick = starts[np.searchsorted(starts, times, side="right") - 1]
    moved = {
        path: GaugePoints(starts[np.searchsorted(starts, each.times, side="right") - 1], each.values)
        for path, each in points.items()
    }
    return moved, int((times - tick).max())


def drop_forked_ticks(ticked: RestoredSeries) -> RestoredSeries:
    """Return series without the extra ticks after a fork.

    In a forked process, the client starts its monitor again, which records a tick at once: a loader with 14 workers
    makes 14 of them within a second. Other ticks are 10 s apart (client 1.14.0, measured).
    """
    kept, last = np.ones(len(ticked.times), dtype=np.bool_), -_FORKED
    for place, time in enumerate(ticked.times.tolist()):
        kept[place] = time - last >= _FORKED
        last = time if kept[place] else last
    if kept.all():
        return ticked
    return replace(
        ticked,
        times=ticked.times[kept],
        values={path: each[kept] for path, each in ticked.values.items()},
        imputed={path: each[kept] for path, each in ticked.imputed.items()},
    )


def to_base_unit(meaning: SeriesMeaning, times: IntArray, values: FloatArray) -> FloatArray:
    """Return values in the base unit; counts since the tick before become rates."""
    converted = values * meaning.factor
    first = np.concatenate([[True], np.diff(times) > _longest_interval(times)])[: len(times)]
    if meaning.rate and len(times):
        seconds = np.diff(times, prepend=times[:1]) / 1e6
        converted = np.divide(converted, seconds, out=np.full(len(times), np.nan), where=seconds > 0)
    return np.where(first, np.nan, converted) if meaning.rate or meaning.primes else converted


def _longest_interval(times: IntArray) -> float:
    """Return how long a time without ticks must be so that another process recorded after it, in microseconds."""
    return gap_seconds(float(np.median(np.diff(times))) / 1e6) * 1e6 if len(times) > 1 else 0.0

"""Points of a process's series on common ticks, and values in base units."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from gpureport.columns import FloatArray, IntArray
from gpureport.importers.trackers.neptune.content import Series
from gpureport.importers.trackers.neptune.hardware.names import Meaning
from gpureport.importers.trackers.restoration import Points, Restored
from gpureport.quality import gap_seconds

_SAME = 1_000
"""Points within a millisecond of each other belong to one tick whatever else is there, in microseconds."""
_APART = 0.01
"""Share of ticks at which series that are never dropped may miss each other and still share their times (pragmatic)."""
_FORKED = 1_000_000
"""Ticks nearer to each other than this, in microseconds, are no ticks of one monitor: it waits 10 s (pragmatic)."""
_SHARE, _WIDEST = 0.25, 1_000_000
"""How far apart points of one tick may lie where times are not shared: a quarter of the interval, at most 1 s."""


def joined(found: Mapping[str, Series], meanings: Mapping[str, Meaning]) -> tuple[dict[str, Points], int]:
    """Return points with the times of their ticks, and how far apart those of one tick are in the worst case.

    All series of a process share their times. Where they do not, points near each other are one tick.
    """
    points = {path: Points(each.times, each.values) for path, each in found.items()}
    steady = [points[path].times for path in points if _steady(meanings[path])] or [
        each.times for each in points.values()
    ]
    if steady and all(np.array_equal(steady[0], each) for each in steady[1:]):
        return points, 0
    whole = np.unique(np.concatenate(steady)) if steady else np.zeros(0, dtype=np.int64)
    if len(steady) < 2 or len(whole) <= max(map(len, steady)) * (1 + _APART) or _close(whole, max(map(len, steady))):  # noqa: PLR2004
        return points, 0
    times = np.unique(np.concatenate([each.times for each in points.values()]))
    longest = np.sort(max(steady, key=len))
    pace = float(np.median(np.diff(longest))) if len(longest) > 1 else 0.0
    starts = times[np.concatenate([[True], np.diff(times) > max(min(pace * _SHARE, _WIDEST), _SAME)])]
    tick = starts[np.searchsorted(starts, times, side="right") - 1]
    moved = {
        path: Points(starts[np.searchsorted(starts, each.times, side="right") - 1], each.values)
        for path, each in points.items()
    }
    return moved, int((times - tick).max())


def apart(ticked: Restored) -> Restored:
    """Return series without the ticks that the forks of a process set off.

    The client starts its monitor again in a process that has forked, which takes a tick at once: a loader with 14
    workers makes 14 of them in a second. Else there are 10 s between two (client 1.14.0, measured).
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


def _close(times: IntArray, most: int) -> bool:
    """Return whether times fall together once those within a millisecond of each other are one."""
    return int((np.diff(times) > _SAME).sum()) + 1 <= most * (1 + _APART)


def _steady(meaning: Meaning) -> bool:
    """Return whether a series is reported at every tick: memory is never 0."""
    return meaning.metric in {"host_memory_used_bytes", "gpu_memory_used_bytes"}


def based(meaning: Meaning, times: IntArray, values: FloatArray) -> FloatArray:
    """Return values in the base unit, what was counted since the tick before as a rate."""
    based = values * meaning.factor
    first = np.concatenate([[True], np.diff(times) > _hole(times)])[: len(times)]
    if meaning.rate and len(times):
        seconds = np.diff(times, prepend=times[:1]) / 1e6
        based = np.divide(based, seconds, out=np.full(len(times), np.nan), where=seconds > 0)
    return np.where(first, np.nan, based) if meaning.rate or meaning.primes else based


def _hole(times: IntArray) -> float:
    """Return how long a time without ticks must be so that another process recorded after it, in microseconds."""
    return gap_seconds(float(np.median(np.diff(times))) / 1e6) * 1e6 if len(times) > 1 else 0.0

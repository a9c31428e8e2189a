"""How far apart the samples of a device are, also in a log whose interval changes."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gpureport.columns import BoolArray, IntArray
from gpureport.data_quality import gap_seconds

_FEWEST = 10
"""Distances in a row, each long enough for a log gap, from which on they are a pace (pragmatic: a collector that hangs
ten times does not each time write a single sample in between)."""
_CLOSE = 0.5
"""Share of the mean distance below which a row is just behind another (pragmatic: a quarter of a beat)."""
_NOT_ALTERNATING = 0.1
"""Share of the distances that need not alternate, where a recorder missed a row (pragmatic)."""


@dataclass(frozen=True, slots=True)
class SlowStretch:
    """A stretch, first to last sample, so slowly sampled that elsewhere it would be full of gaps.

    Times are microseconds, the interval is the median in seconds.
    """

    start: int
    end: int
    interval: float


@dataclass(frozen=True, slots=True)
class SamplingRate:
    """How far apart samples are, in seconds: the median of different stamps, of the part that takes most of the time.

    Slow stretches lie one inside another after it. Where most of the time is sampled slowly, the rest is denser.
    """

    interval: float
    slow: tuple[SlowStretch, ...] = ()
    denser: float | None = None


def measure_sampling_rate(times: IntArray) -> SamplingRate | None:
    """Return how far apart samples are, of which the stamps never decrease; None without two different stamps."""
    steps = np.diff(times)
    moved = steps if steps.min(initial=1) > 0 else steps[steps > 0]
    if not len(moved):
        return None
    # the lower middle one, as importers take: a mean of two may be no distance of the log
    interval = detect_paired_interval(moved) or _lower_median(moved) / 1e6
    slow = find_slow_stretches(times, interval)
    if slow:
        apart = [steps[distances_inside(times, each)] for each in slow]
        near = np.concatenate(
            [each[(each > 0) & ~_gap(each, own.interval)] for each, own in zip(apart, slow, strict=True)]
        )
        if near.sum() > moved[~_gap(moved, interval)].sum():
            most = _lower_median(near) / 1e6
            return SamplingRate(most, find_slow_stretches(times, most), denser=interval)
    return SamplingRate(interval, slow)


def _lower_median(values: IntArray) -> int:
    place = (len(values) - 1) // 2
    return int(np.partition(values, place)[place])


def detect_paired_interval(moved: IntArray) -> float | None:
    """Return the seconds between rows of each of two recorders that write one log, just behind each other.

    None where distances in microseconds do not alternate between one much shorter than the mean and a longer one.
    """
    short = moved < _CLOSE * moved.mean() if len(moved) else np.zeros(0, dtype=np.bool_)
    if len(moved) < _FEWEST or abs(short.mean() - 0.5) > _NOT_ALTERNATING:
        return None
    alternate = (short[1:] != short[:-1]).mean()
    return _lower_median(moved[1:] + moved[:-1]) / 1e6 if alternate >= 1 - _NOT_ALTERNATING else None


def find_slow_stretches(times: IntArray, interval: float) -> tuple[SlowStretch, ...]:
    """Return the stretches in which samples keep farther apart than a log gap at this interval."""
    if np.count_nonzero(_gap(np.diff(times), interval)) < _FEWEST:
        return ()
    times = times[np.append(np.True_, np.diff(times) > 0)]
    steps = np.diff(times)
    ends = np.flatnonzero(np.diff(_gap(steps, interval), prepend=False, append=False))
    found: list[SlowStretch] = []
    for begin, end in ends.reshape(-1, 2).tolist():
        own = _lower_median(steps[begin:end]) / 1e6
        if np.count_nonzero(~_gap(steps[begin:end], own)) >= _FEWEST:
            found.append(SlowStretch(int(times[begin]), int(times[end]), own))
            found.extend(find_slow_stretches(times[begin : end + 1], own))
    return tuple(found)


def mark_slow_distances(far: IntArray, interval: float) -> BoolArray:
    """Return which long distances, given by both samples, are those of a slow stretch, and no gaps."""
    found = np.zeros(len(far), dtype=np.bool_)
    if not len(far):
        return found
    begins = np.flatnonzero(np.append(np.True_, far[1:, 0] != far[:-1, 1])).tolist()
    for begin, end in pairwise([*begins, len(far)]):
        times = np.append(far[begin:end, 0], far[end - 1, 1])
        for stretch in find_slow_stretches(times, interval):
            rows = distances_inside(times, stretch)
            found[begin:end][rows] = ~_gap(np.diff(times)[rows], stretch.interval)
    return found


def distances_inside(times: IntArray, stretch: SlowStretch) -> slice:
    """Return the distances between samples that lie in a stretch, by the sample before each."""
    first = int(np.searchsorted(times, stretch.start, side="left"))
    return slice(first, int(np.searchsorted(times, stretch.end, side="right")) - 1)


def _gap(steps: IntArray, interval: float) -> BoolArray:
    return steps > gap_seconds(interval) * 1e6

"""Measures sampling intervals, even if they vary, and counts the work that a training loop logged."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.data_quality import gap_seconds

_FEWEST = 10
"""Number of consecutive intervals, each long enough to be a gap, that indicate a slow rate. A collector
that hung ten times would not write exactly one sample after each hang."""
_CLOSE = 0.5
"""Share of the mean interval below which one row closely follows another (a quarter of a cycle)."""
_NOT_ALTERNATING = 0.1
"""Share of intervals that need not alternate, because a recorder may miss rows."""
FEWEST_POINTS = 3
"""Minimum number of points for a rate, since the only interval between two may be a pause."""
_LONGEST = 1e10
"""Maximum number of seconds that one point may cover. At a tiny rate, the time would overflow."""
_PAUSE_FACTOR, _EXCESS = 5.0, 1.5
"""Multiples of the usual time between points and of the usual work per step that indicate a pause."""


@dataclass(frozen=True, slots=True)
class SlowStretch:
    """A period with a sampling rate so low that every interval would otherwise count as a gap."""

    start: int
    end: int
    interval: float


@dataclass(frozen=True, slots=True)
class SamplingRate:
    """The median interval, in seconds, between distinct timestamps in the part of a log that spans the most time.

    Slow stretches may be nested (outer ones first); if they span most of the time, `denser` is the interval elsewhere.
    """

    interval: float
    slow: tuple[SlowStretch, ...] = ()
    denser: float | None = None


def measure_sampling_rate(times: IntArray) -> SamplingRate | None:
    """Return the sampling rate of timestamps that never decrease, or None unless at least two differ."""
    steps = np.diff(times)
    moved = steps if steps.min(initial=1) > 0 else steps[steps > 0]
    if not len(moved):
        return None
    # the lower median, as in importers, since the mean of two values may never occur in the log
    interval = detect_paired_interval(moved) or _lower_median(moved) / 1e6
    slow = find_slow_stretches(times, interval)
    if slow:
        apart = [(steps[distances_inside(times, each)], each.interval) for each in slow]
        near = np.concatenate([each[(each > 0) & ~_gap(each, own)] for each, own in apart])
        if near.sum() > moved[~_gap(moved, interval)].sum():
            most = _lower_median(near) / 1e6
            return SamplingRate(most, find_slow_stretches(times, most), denser=interval)
    return SamplingRate(interval, slow)


def _lower_median(values: IntArray) -> int:
    place = (len(values) - 1) // 2
    return int(np.partition(values, place)[place])


def detect_paired_interval(moved: IntArray) -> float | None:
    """Return the interval in seconds of two recorders that write alternate rows, or None."""
    short = moved < _CLOSE * moved.mean() if len(moved) else np.zeros(0, dtype=np.bool_)
    if len(moved) < _FEWEST or abs(short.mean() - 0.5) > _NOT_ALTERNATING:
        return None
    alternate = (short[1:] != short[:-1]).mean()
    return _lower_median(moved[1:] + moved[:-1]) / 1e6 if alternate >= 1 - _NOT_ALTERNATING else None


def find_slow_stretches(times: IntArray, interval: float) -> tuple[SlowStretch, ...]:
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
    """Return which long intervals (pairs of times) belong to a slow stretch and so are not gaps."""
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
    first = int(np.searchsorted(times, stretch.start, side="left"))
    return slice(first, int(np.searchsorted(times, stretch.end, side="right")) - 1)


def _gap(steps: IntArray, interval: float) -> BoolArray:
    return steps > gap_seconds(interval) * 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedWork:
    """Work per span. `times` contains the start of the first span and the end of each span, in microseconds."""

    times: IntArray
    amounts: FloatArray

    @property
    def amount(self) -> float:
        return float(self.amounts.sum())

    @property
    def rate(self) -> float | None:
        seconds = float(self.times[-1] - self.times[0]) / 1e6
        return self.amount / seconds if seconds > 0 and self.amount > 0 else None

    def within(self, start: int, end: int) -> float:
        total = np.concatenate([[0.0], np.cumsum(self.amounts)])
        first, last = np.interp([start, end], self.times, total)
        return float(last - first)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def count_by_rates(
    times: IntArray, rates: FloatArray, steps: FloatArray | None = None, earliest: int | None = None
) -> CountedWork | None:
    """Return the work derived from logged rates, or None if there are fewer than two points or on overflow.

    A rate applies to the time since the previous point. More than 1.5 times the usual work per step indicates a pause,
    such as an evaluation, so only the usual work counts. Without a step counter, at most five usual intervals count.
    The first rate applies to the counted steps, or to one usual interval, but not before the `earliest` time.
    """
    if len(times) < 2:  # noqa: PLR2004 - an interval takes two
        return None
    seconds = np.diff(times) / 1e6
    usual = float(np.median(seconds))
    logged = rates[1:] * seconds
    amounts = np.minimum(logged, rates[1:] * _PAUSE_FACTOR * usual)
    work, span = float(rates[0]) * usual, usual
    gained = np.diff(np.full(len(times), np.nan) if steps is None else steps)
    known = (gained > 0) & (rates[1:] > 0)
    if steps is not None and known.any():
        each = float(np.median(logged[known] / gained[known]))
        amounts[known] = np.where(logged > _EXCESS * each * gained, each * gained, logged)[known]
        if rates[0] > 0:
            work = each * _first_gain(float(steps[0]), float(np.median(gained[known])))
            span = work / float(rates[0])
    if earliest is not None and earliest < times[0]:
        available = float(times[0] - earliest) / 1e6
        span, work = min(span, available), min(work, float(rates[0]) * available)
    if not np.isfinite([span, work, amounts.sum(), logged.sum()]).all() or span > _LONGEST:
        return None
    begins = times[0] - round(span * 1e6)
    return CountedWork(times=np.concatenate([[begins], times]), amounts=np.concatenate([[work], amounts]))


def select_step_points(times: IntArray, steps: FloatArray) -> tuple[IntArray, FloatArray] | None:
    order = np.lexsort((steps, times))
    stamps, counts = times[order], steps[order]
    last = np.append(np.diff(stamps) > 0, True)[: len(stamps)]
    stamps, counts = stamps[last], counts[last]
    highest, falls = np.maximum.accumulate(counts), np.count_nonzero(np.diff(counts) < 0)
    # several counters at once; one that restarts each epoch rarely reaches a new maximum
    if falls > max(len(counts) / 10, 2) and np.count_nonzero(np.diff(highest) > 0) > falls / 2:
        counts = highest
    return None if len(stamps) < FEWEST_POINTS or counts[-1] <= counts[0] else (stamps, counts)


def count_gains(steps: FloatArray) -> tuple[FloatArray, float]:
    """Return the steps from each point to the next, and the usual number of steps.

    If the counter falls, its new value counts as the steps, unless it exceeds the usual number (a resumed run).
    """
    gained = np.diff(steps)
    usual = float(np.median(gained[gained > 0])) if (gained > 0).any() else 0.0
    anew = (gained < 0) & (steps[1:] >= 0) & (steps[1:] <= usual)
    return np.where(anew, steps[1:], np.maximum(gained, 0.0)), usual


def count_by_steps(times: IntArray, steps: FloatArray, began: int | None = None) -> CountedWork | None:
    """Return the work shown by a step counter, ignoring decreases, or None with fewer than two points.

    If the start of training is not known, work before the first point is left out.
    """
    if len(times) < 2:  # noqa: PLR2004 - as above
        return None
    gained, usual = count_gains(steps)
    known = began is not None and began < times[0] and usual > 0
    start = began if began is not None and known else int(times[0])
    first = _first_gain(float(steps[0]), usual) if known else 0.0
    return CountedWork(times=np.concatenate([[start], times]), amounts=np.concatenate([[first], gained]))


def _first_gain(step: float, usual: float) -> float:
    """Return how many steps the first point covers. A counter that starts high continues an earlier run."""
    return max(step, min(usual, 1.0)) if 0 <= step <= usual else usual

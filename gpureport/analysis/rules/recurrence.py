"""What recurs: the period of events, and phases of low use that alternate with work, as evaluations do."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpureport.analysis.job.events import find_job_events
from gpureport.analysis.job.phases import UTILISATION, UTILISATION_WINDOW
from gpureport.analysis.rulebook import Context
from gpureport.analysis.series import intervals
from gpureport.analysis.series.bins import rolling_mean
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.series.statistics import IDLE_RATIO
from gpureport.columns import BoolArray, FloatArray
from gpureport.recording import Recording

FEW = 10
"""Gaps of a period below which chance agrees in three of four distances too often."""
STRICT = 0.04
"""Of the period; steps vary, but few distances agree so closely only by a cause."""
_STARTS = 4  # of a period
_LOOSE, _MANY = 0.10, 7  # of the period, with so many events
_AGREE = 0.9  # of the distances; other low use may lie between
_TRIED = 200  # distances tried as period at most; more gaps only repeat them
_HALF = 0.5  # of distances, of moments
_SMOOTH = 10.0  # s; batches of an evaluation vary
_SHORTEST = 30.0  # s; the loader starts anew in less
_MUCH = 0.7  # median use between phases; less of it is low use itself
_LOW = 0.5  # of the median use; an evaluation loads, copies and prints more than it computes
_ALIKE = 0.25  # of the median length; the same data are evaluated each time
_NEAR = 5.0  # s; a metric is written when its work is done


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A period in seconds, the share of distances that agree with it, and which events lie beside one that does."""

    seconds: float
    agreeing: float
    members: BoolArray


def find_period(starts: Sequence[int], agree: float, agree_few: float) -> Period | None:
    """Return the longest of the best periods of events, None without one: most distances are multiples of it.

    Args:
        starts: when each began, in microseconds, rising.
        agree: which share of the distances must.
        agree_few: the same with fewer than ten events.
    """
    if len(starts) < _STARTS:
        return None
    distances = np.diff(starts) / 1e6
    tolerance, best = _LOOSE if len(starts) >= _MANY else STRICT, (0.0, 0.0)
    ranks = np.linspace(0, len(distances) - 1, min(len(distances), _TRIED)).round().astype(np.int64)
    for tried in np.unique(np.sort(distances)[ranks]).tolist():
        if tried <= 0:
            continue
        fits = _find_multiples(distances, tried, tolerance)
        seconds = float(distances[fits].sum() / np.rint(distances[fits] / tried).sum())
        fits = _find_multiples(distances, seconds, tolerance)
        # half of what agrees is one period long: else any short distance divides the others
        if fits.any() and (np.rint(distances[fits] / seconds) == 1).mean() >= _HALF:
            best = max(best, (float(fits.mean()), seconds))
    if best[0] < (agree_few if len(starts) < FEW else agree):
        return None
    fits = _find_multiples(distances, best[1], tolerance)
    return Period(seconds=best[1], agreeing=best[0], members=np.append(fits, False) | np.append(False, fits))


def _find_multiples(distances: FloatArray, seconds: float, tolerance: float) -> BoolArray:
    times = np.rint(distances / seconds)
    return np.asarray((times >= 1) & (np.abs(distances - times * seconds) <= tolerance * seconds), dtype=np.bool_)


@dataclass(frozen=True, slots=True, kw_only=True)
class Phases:
    """Phases of low use of a GPU that are alike: when, seconds from one to the next, and whether the log names them."""

    spans: Spans
    period: float
    is_named: bool


def find_phases(context: Context, device: str) -> Phases | None:
    """Return the phases of low use of a GPU that recur between phases of much use, None where there are none."""
    return context.cached((find_phases, device), lambda: _find_phases(context, device))


def _find_phases(context: Context, device: str) -> Phases | None:
    series = context.series[device]
    rows = np.flatnonzero(series.known_rows(UTILISATION))
    if series.interval > _SMOOTH or len(rows) < _STARTS:
        return None
    used = series.values(UTILISATION)[rows]
    smooth = rolling_mean(used, max(round(_SMOOTH / max(series.interval, UTILISATION_WINDOW / 10)), 1))
    limit = _LOW * float(np.median(used))
    first, stop = intervals.find_runs(smooth <= limit, np.isin(rows, series.gap_rows))
    is_long = series.end[rows[stop - 1]] - series.start[rows[first]] >= _SHORTEST * 1e6
    # a rest is an idle gap, start-up or tail
    works = np.array(
        [np.median(used[one:past]) > IDLE_RATIO for one, past in zip(first, stop, strict=True)], dtype=bool
    )
    first, stop = first[is_long & works], stop[is_long & works]
    spans = np.column_stack([series.start[rows[first]], series.end[rows[stop - 1]]]) - series.shift
    period = find_period(spans[:, 0].tolist(), _AGREE, _AGREE)
    if period is None or not period.members.all():
        return None
    lengths = (spans[:, 1] - spans[:, 0]) / 1e6
    between = used[~intervals.contains(spans, series.times[rows] - series.shift)]
    if np.ptp(lengths) > _ALIKE * np.median(lengths) or not len(between) or np.median(between) < _MUCH:
        return None
    return Phases(
        spans=spans, period=period.seconds, is_named=bool(find_evaluations(context.recording, spans).mean() >= _HALF)
    )


def find_evaluations(recording: Recording, spans: Spans) -> BoolArray:
    """Return which stretches hold or just precede what a training log writes at evaluations, most of it in them."""
    wide = spans + np.array([-_NEAR * 1e6, _NEAR * 1e6]).astype(np.int64)
    named = np.zeros(len(spans), dtype=np.bool_)
    for event in find_job_events(recording) if len(spans) else ():
        if event.cause == "epoch" and intervals.contains(intervals.union(wide), event.times).mean() >= _HALF:
            named |= np.searchsorted(event.times, wide[:, 1]) > np.searchsorted(event.times, wide[:, 0])
    return named

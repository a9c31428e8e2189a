"""Finds a GPU's idle gaps in a job, unless chance explains them, and their period."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpureport.analysis.job.jobs import POINT_SAMPLE_SECONDS, UTILISATION_WINDOW, is_light_work
from gpureport.analysis.results import Job
from gpureport.analysis.rulebook import Limits
from gpureport.analysis.series import CLOCK, POWER, UTILISATION
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import contains, find_hysteresis_runs, intersection, to_spans, total_seconds
from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.findings import Evidence, Interval

_HALF = 0.5  # utilisation that replaces a low reading if power shows work; a share of samples
_SEVERAL_A_WINDOW = 0.5  # seconds; shorter intervals show the slope at the end of work
_STRAY_SECONDS = 0.2  # seconds of a stray kernel; a training step is longer
_STRAY = 0.35  # utilisation from a stray kernel of 0.17 s in a window of 0.5 s
_SETTLED = 3  # number of low rows required on both sides of a stray reading
_NULL = 10.0  # seconds for which a driver may report N/A
_NOISE = 0.2  # share of the range from power at rest to work; a resting sensor stays below
_LEAST_RISE = 5.0  # watts; a sensor that varies less cannot tell rest from work
_REST_QUANTILE, _REST_TIMES = 0.1, 2.0  # quantile of resting power at the same clock; twice that is work
_CLOCK_STEPS = 10  # steps up to the highest clock; resting power depends on it
_CHANCE = 0.05  # significance level over all positions of a run of low readings
_AROUND = 30  # rows on each side that show how busy the GPU is around a run
_DENSE = 0.2  # if this share of samples is low, all positions in the job count
_STARTS = 4  # minimum number of gaps for a period
_LOOSE, _MANY = 0.10, 7  # tolerance as a share of the period, with this many gaps
_TRIED = 200  # number of distances to try as the period
FEW = 10  # gaps; with fewer, three of four distances agree too often by chance
STRICT = 0.04  # share of the period; few distances agree so closely by chance


@dataclass
class Gap:
    """An idle gap and its cause. Samples cover `seconds` of the gap. Fewer than `needed` low readings may be chance."""

    interval: Interval
    seconds: float
    samples: int
    needed: int
    used: float
    cause: str = "unknown"
    evidence: Sequence[Evidence] = ()


class _Readings(NamedTuple):
    """Utilisation readings. `low` readings may be pauses, `calm` readings are at idle power, and `breaks` end a run."""

    series: DeviceSeries
    rows: IntArray
    times: IntArray
    used: FloatArray
    low: BoolArray
    inside: BoolArray
    breaks: BoolArray
    calm: BoolArray


def find_gaps(series: DeviceSeries, own_jobs: Sequence[Job], whole: Interval, limits: Limits) -> list[Gap]:
    one = _read(series, Interval(own_jobs[0].window.start, own_jobs[-1].window.end), limits)
    runs = _find_low_runs(one, own_jobs, limits)
    level = _HALF if one.low.all() else float(np.median(one.used[~one.low])) / 2
    shortest = max(limits.shortest, series.refresh_period(UTILISATION) or 0.0)
    # estimated edges alone must not make a gap long enough, unless dense samples show them
    least = shortest - (0 if series.interval > _SEVERAL_A_WINDOW else 3 * UTILISATION_WINDOW)
    is_long = series.end[one.rows[runs[:, 1] - 1]] - series.start[one.rows[runs[:, 0]]] >= least * 1e6
    found, seen, end = list[Gap](), series.find_seen(whole), np.iinfo(np.int64).min
    for begin, past in runs[is_long].tolist():
        start, end = max(_find_edge(one, begin, -1, level), end), _find_edge(one, past - 1, 1, level)
        needed = _find_fewest(one, runs, begin, past)
        for job in own_jobs if past - begin >= needed else ():
            part = Interval(max(start, job.window.start), min(end, job.window.end))
            active = job.active.get(series.device.id)
            if part.seconds >= shortest and not is_light_work(series, job.interval, active, part):
                seconds = total_seconds(intersection(seen, to_spans([part])))
                samples = series.count_readings(UTILISATION, one.rows[begin:past])
                found.append(Gap(part, seconds, samples, needed, float(one.used[begin:past].mean())))
    return found


def _read(series: DeviceSeries, window: Interval, limits: Limits) -> _Readings:
    """Return the readings of a GPU. With coarse samples, low utilisation is raised to 50% if power shows work.

    With samples over 2 s apart, the power limit is twice idle power at the same clock, if that is less.
    """
    rows, interval = series.find_known_rows(UTILISATION), series.interval
    times, still, is_coarse = series.times[rows], limits.still + 1e-6, interval > POINT_SAMPLE_SECONDS
    used, power, clock = (series.values(metric)[rows] for metric in (UTILISATION, POWER, CLOCK))
    inside = (times >= window.start) & (times <= window.end + series.shift)
    breaks = np.diff(times, prepend=times[:1]) > max(_NULL + interval, 3.5 * interval) * 1e6
    behind = np.searchsorted(rows, series.gap_rows)
    breaks[behind[behind < len(rows)]] = True
    # a run of coarse samples must be long enough within the job
    breaks |= is_coarse & np.diff(inside, prepend=inside[:1])
    calm = is_work = np.zeros(len(used), dtype=np.bool_)
    known = power[(used > _HALF) & ~np.isnan(power)]
    if len(known) and (rise := np.median(known) - (least := np.nanmin(power))) >= _LEAST_RISE:
        working = np.full(len(used), least + rise / 2)
        step = np.round(_CLOCK_STEPS * clock / max(np.nanmax(clock, initial=0.0), 1.0))
        rest = inside & (used <= limits.idle + 1e-6) & ~np.isnan(power)
        for each in np.unique(step[rest & ~np.isnan(step)]) if is_coarse else ():
            idle = _REST_TIMES * np.quantile(power[rest & (step == each)], _REST_QUANTILE)
            working[step == each] = min(working[0], idle)
        is_work = power > working
        if not is_coarse:
            # power this close to the power at rest shows that nothing ran between readings
            calm = power <= least + _NOISE * rise / 2
            # next to work, power still averages the second before
            low = np.pad(used <= still, 1)
            is_work &= low[:-2] & low[2:]
    if interval > (series.refresh_period(UTILISATION) or UTILISATION_WINDOW):
        used = np.where(is_work, np.maximum(used, _HALF), used)
    return _Readings(series, rows, times, used, used <= still, inside, breaks, calm)


def _find_low_runs(one: _Readings, own_jobs: Sequence[Job], limits: Limits) -> IntArray:
    """Return runs of low readings from a GPU that is idle or not yet at work. A stray reading does not end a run."""
    still, name, interval = limits.still + 1e-6, one.series.device.id, one.series.interval
    leads = [Interval(job.window.start, job.active[name].start) for job in own_jobs if name in job.active]
    is_before = contains(to_spans(leads), one.times - one.series.shift) & one.low
    used = np.where(is_before, 0.0, one.used)
    first, stop = find_hysteresis_runs(used, enter=limits.idle + 1e-6, leave=still, breaks=one.breaks)
    work, length, parted = np.append(0.0, np.cumsum(one.used)), stop - first, np.cumsum(one.breaks)
    between, busy = first[1:] - stop[:-1], work[first[1:]] - work[stop[:-1]]
    brief = (busy * interval <= _STRAY_SECONDS) & (busy <= still * (between + (length[1:] + length[:-1]) / 2))
    stray = (between == 1) & (busy <= _STRAY) & (np.minimum(length[1:], length[:-1]) >= _SETTLED)
    apart = (parted[first[1:]] > parted[stop[:-1] - 1]) | ~(brief | stray)
    is_first, is_last = np.append(True, apart)[: len(first)], np.append(apart, True)[: len(stop)]
    return np.column_stack([first[is_first], stop[is_last]])


def _find_edge(one: _Readings, inside: int, step: int, level: float) -> int:
    series, outside, used, times = one.series, inside + step, one.used, one.times
    is_parted = not 0 <= outside < len(used) or one.breaks[max(inside, outside)]
    if is_parted or series.interval > POINT_SAMPLE_SECONDS:
        return int((series.start if step < 0 else series.end)[one.rows[inside]]) - series.shift
    last, reach = int(times[inside]), UTILISATION_WINDOW * 1e6 + series.interval * 5e5
    while 0 <= outside + step < len(used) and used[outside] < level and abs(int(times[outside]) - last) < reach:
        inside, outside = outside, outside + step
    share = np.clip((level - used[inside]) / max(used[outside] - used[inside], 1e-9), 0.0, 1.0)
    return int(times[inside] + share * (times[outside] - times[inside])) - series.shift


def _find_fewest(one: _Readings, runs: IntArray, begin: int, past: int) -> int:
    """Return how many low readings in a row show that a GPU is idle.

    One reading is enough if it covers the time since the last, or if power is at idle level. Otherwise,
    if a share p of m nearby readings is low, k in a row occur m * p^k times by chance. A long run of low readings
    counts as one reading. If low readings are common, m counts all readings in the job.
    """
    covered = one.series.refresh_period(UTILISATION) or UTILISATION_WINDOW
    if one.series.interval <= covered or one.calm[begin:past].all():
        return 1
    left, right, long = max(begin - _AROUND, 0), min(past + _AROUND, len(one.used)), 1
    around = one.inside[left:right].copy()
    around[begin - left : past - left] = False
    near = runs[(runs[:, 1] > left) & (runs[:, 0] < right)]
    for start, end in near[np.ptp(near, axis=1) >= max(4, 0.6 * (past - begin))].tolist():
        part = slice(max(start - left, 0), end - left)
        long += int(around[part].any())
        around[part] = False
    if not (count := int(around.sum())):
        return 2
    share = (int(one.low[left:right][around].sum()) + long + 0.5) / (count + long + 1)
    places = count if share < _DENSE else max(int(one.inside.sum()), count)
    return max(int(np.ceil(np.log(_CHANCE / places) / np.log(share))), 2)


class Period(NamedTuple):
    seconds: float
    agreeing: float
    members: BoolArray


def find_period(starts: Sequence[int], agree: float, agree_few: float) -> Period | None:
    """Return a period that fits the share `agree` of distances (`agree_few` for few gaps), or None."""
    if len(starts) < _STARTS:
        return None
    distances, tolerance = np.diff(starts) / 1e6, _LOOSE if len(starts) >= _MANY else STRICT
    ranks = np.linspace(0, len(distances) - 1, min(len(distances), _TRIED)).round().astype(np.int64)
    tried = np.unique(np.sort(distances)[ranks]).tolist()
    fitted = (_fit_period(distances, each, tolerance) for each in tried)
    best = max(fitted, key=lambda one: (one.agreeing, one.seconds))
    return best if best.agreeing >= (agree_few if len(starts) < FEW else agree) else None


def _fit_period(distances: FloatArray, tried: float, tolerance: float) -> Period:
    times, fits = np.ones(len(distances)), distances == tried
    for _ in range(2):
        seconds = float(distances[fits].sum() / times[fits].sum())
        times = np.rint(distances / seconds).clip(1)
        fits = np.abs(distances - times * seconds) <= tolerance * seconds
    # half of the distances that agree must be one period, as a short one divides any other
    is_usual = 2 * (fits & (times == 1)).sum() >= fits.sum()
    return Period(seconds, float(fits.mean() * is_usual), np.append(fits, False) | np.append(False, fits))

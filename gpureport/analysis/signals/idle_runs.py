"""Runs of idle samples that are idle time and not an accident of sampling.

A utilisation value covers at most the second before it. At longer intervals it is a point sample, and a job that
alternates between work and short waits yields several low samples in a row by chance. A run counts only if it is
longer than the samples around it make likely.
"""

from dataclasses import dataclass

import numpy as np

from gpureport import gpus
from gpureport.analysis.job.phases import POINT_SAMPLE_SECONDS, STRAY_KERNEL, UTILISATION, UTILISATION_WINDOW
from gpureport.analysis.series import rest_to_work_power
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import find_hysteresis_runs
from gpureport.analysis.signals.chance_runs import ChanceRunDoubt, ChanceRunTest, find_longest_beat_run
from gpureport.analysis.thresholds import pragmatic
from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.findings import Interval

SHORTEST = pragmatic(5.0, "s", "with a sample every 1 s, shorter gaps cannot be seen")
"""Shortest idle run that is a gap."""

_ACTIVE = 0.5
"""Utilisation at the edge of a run where no sample says what work looks like: half of the time."""
_SETTLED = 3
"""Readings of a run on both sides of a lone one that is bridged.

Fewer are a burst themselves. Measured on 148 generated and recorded logs: 2 gives the same findings, 4 and 6 change
the idle gaps of one log.
"""


BRIDGE_SECONDS = 1.6  # s; one sample at 1 s, with jitter
"""Longest interruption of an idle run that is bridged."""
BRIDGE_BUSY = 0.2  # s; a stray kernel, not a training step
"""Busy time that a bridged interruption may hold."""
BRIDGE_RATIO = STRAY_KERNEL
"""Utilisation of a single reading that is bridged between longer runs, however coarse."""
NULL_SECONDS = 10.0  # s; a driver that answers N/A for a moment
"""Longest stretch without values that is bridged."""
CHANCE = 0.05  # the usual level of significance, over all places a run could be
"""Probability with which a log of chance samples may hold a run as long."""
NEIGHBOURS = 30.0  # rows; enough to know how the GPU works around it
"""Samples on each side that the chance is judged by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What makes a run idle.

    Attributes:
        idle: utilisation that at least one sample of a run must not exceed.
        still: utilisation that ends a run when exceeded.
        shortest_seconds: shortest run.
    """

    idle: float
    still: float
    shortest_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleRun:
    """One run: start and end in microseconds, its readings, and how many would have been needed.

    `highest_power` goes from rest (0) to work (1); None where it is not known, or no doubt had to be cleared.
    """

    start: int
    end: int
    samples: int
    needed: int
    mean: float
    highest_power: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _KnownSamples:
    """The samples with a value, which of them begin a segment, and which lie in the job window."""

    rows: IntArray
    times: IntArray
    values: FloatArray
    breaks: BoolArray
    job: BoolArray


def _collect_known_samples(series: DeviceSeries, window: Interval) -> _KnownSamples:
    values = series.values(UTILISATION)
    rows, times = np.arange(len(values)), series.times
    if not series.is_complete(UTILISATION):
        rows = np.flatnonzero(series.known_rows(UTILISATION))
        times, values = times[rows], values[rows]
    longest = NULL_SECONDS + series.interval
    breaks = np.zeros(len(rows), dtype=np.bool_)
    np.greater(np.diff(times), max(longest, 3.5 * series.interval) * 1e6, out=breaks[1:])
    behind_gaps = np.searchsorted(rows, series.gap_rows)
    breaks[behind_gaps[(behind_gaps > 0) & (behind_gaps < len(rows))]] = True
    job = np.zeros(len(rows), dtype=np.bool_)
    job[np.searchsorted(times, window.start) : np.searchsorted(times, window.end + series.shift, side="right")] = True
    if series.interval > POINT_SAMPLE_SECONDS:
        # a run that began before the job must prove itself within it, by samples few enough as they are
        breaks[1:] |= np.diff(job.astype(np.int8)) > 0
    return _KnownSamples(rows=rows, times=times, values=values, breaks=breaks, job=job)


def _bridge_short_work(
    known_samples: _KnownSamples, first: IntArray, stop: IntArray, series: DeviceSeries, limits: Limits
) -> tuple[IntArray, IntArray]:
    """Join runs parted by a moment of little work, such as one stray kernel."""
    interval = series.interval
    repeats = series.resolution(UTILISATION) / interval
    if len(first) < 2:  # noqa: PLR2004 - it takes two to be joined
        return first, stop
    between = first[1:] - stop[:-1]
    work = np.concatenate([[0.0], np.cumsum(known_samples.values)])
    busy = work[first[1:]] - work[stop[:-1]]
    breaks = np.flatnonzero(known_samples.breaks)
    whole = np.searchsorted(breaks, first[1:], side="right") == np.searchsorted(breaks, stop[:-1])
    length = stop - first
    # work that recurs, such as requests to a service, is no stray: with half of both runs little enough must run
    spanned = between + (length[1:] + length[:-1]) / 2
    brief = (between * interval <= BRIDGE_SECONDS) & (busy * interval <= BRIDGE_BUSY)
    brief &= busy <= limits.still * spanned
    settled = np.minimum(length[1:], length[:-1]) >= _SETTLED * repeats
    lone = (between <= repeats) & (busy <= BRIDGE_RATIO * repeats) & settled
    apart = ~(whole & (brief | lone))
    return first[np.append(True, apart)], stop[np.append(apart, True)]


def _interpolate_edge(known_samples: _KnownSamples, inside: int, outside: int, level: float, interval: float) -> int:
    """Return when utilisation crossed `level` between a run's end sample and its busy neighbour."""
    step, last = outside - inside, int(known_samples.times[inside])
    fine = interval <= POINT_SAMPLE_SECONDS
    reach = round(UTILISATION_WINDOW * 1e6 + interval * 5e5) if fine else 0
    while (
        0 <= outside + step < len(known_samples.values)
        and known_samples.values[outside] < level
        and abs(int(known_samples.times[outside]) - last) < reach
    ):
        inside, outside = outside, outside + step
    low, high = float(known_samples.values[inside]), float(known_samples.values[outside])
    share = 0.5
    if fine and high > low:
        share = min(max((level - low) / (high - low), 0.0), 1.0)
    return int(known_samples.times[inside] + share * (known_samples.times[outside] - known_samples.times[inside]))


def _find_edges(
    known_samples: _KnownSamples, series: DeviceSeries, first: int, stop: int, level: float
) -> tuple[int, int]:
    if first == 0 or known_samples.breaks[first]:
        start = int(series.start[known_samples.rows[first]])
    else:
        start = _interpolate_edge(known_samples, first, first - 1, level, series.interval)
    if stop == len(known_samples.rows) or known_samples.breaks[stop]:
        end = int(series.end[known_samples.rows[stop - 1]])
    else:
        end = _interpolate_edge(known_samples, stop - 1, stop, level, series.interval)
    return start - series.shift, end - series.shift


def _build_doubt(
    series: DeviceSeries, known_samples: _KnownSamples, first: IntArray, stop: IntArray, limits: Limits
) -> ChanceRunDoubt:
    model, coarse = gpus.find_gpu(series.device.model), series.interval > POINT_SAMPLE_SECONDS
    return ChanceRunDoubt(
        chance=ChanceRunTest(
            low=known_samples.values <= limits.still,
            job=known_samples.job,
            first=first,
            stop=stop,
            significance=CHANCE,
            neighbours=round(NEIGHBOURS),
        ),
        power=rest_to_work_power.scale_power(
            known_samples.values, series.values("gpu_power_watts")[known_samples.rows], known_samples.job
        ),
        resting=rest_to_work_power.RESTING_LEVEL.value,
        decisive=not coarse and model is not None and model.power_window == "1 s",
        fewest=2 if coarse else 1,
    )


def find_idle_runs(series: DeviceSeries, limits: Limits, window: Interval) -> tuple[IdleRun, ...]:
    """Return the idle runs of one GPU over the whole recording, start-up and tail included.

    Args:
        series: the GPU's samples.
        limits: what makes a run idle.
        window: the job window; its samples show how likely low samples are.
    """
    known = _collect_known_samples(series, window)
    if len(known.rows) == 0:
        return ()
    raw = find_hysteresis_runs(known.values, enter=limits.idle, leave=limits.still, breaks=known.breaks)
    first, stop = _bridge_short_work(known, *raw, series, limits)
    if len(first) == 0:
        return ()
    active = known.values[np.flatnonzero(known.values > limits.still)]
    level = float(np.median(active)) / 2 if len(active) else _ACTIVE
    covered = (series.refresh_period(UTILISATION) or 0.0) / series.interval
    doubt = _build_doubt(series, known, first, stop, limits) if covered < 1 else None
    reach = 2 * max(series.interval, UTILISATION_WINDOW)
    long_enough = (known.times[stop - 1] - known.times[first]) / 1e6 + reach >= limits.shortest_seconds
    fine = series.interval <= POINT_SAMPLE_SECONDS
    beating = find_longest_beat_run(known.values, doubt.chance, covered) if doubt and fine else 0
    runs = []
    for begin, past in zip(first[long_enough].tolist(), stop[long_enough].tolist(), strict=True):
        start, end = _find_edges(known, series, begin, past, level)
        samples = series.count_readings(UTILISATION, known.rows[begin:past])
        if end - start < limits.shortest_seconds * 1e6:
            continue
        needed, highest_power, doubtful = doubt.judge(begin, past, samples) if doubt else (1, None, False)
        if not doubtful and (past - begin >= beating or (doubt and doubt.is_resting(highest_power))):
            mean = float(known.values[begin:past].mean())
            runs.append(
                IdleRun(start=start, end=end, samples=samples, needed=needed, mean=mean, highest_power=highest_power)
            )
    return tuple(runs)

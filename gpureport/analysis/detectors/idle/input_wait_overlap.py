"""Idle runs beside episodes of waiting for input: which are part of one, and what of a run lies behind it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpureport.analysis.job.phases import UTILISATION
from gpureport.analysis.rules.rule import Context
from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.signals.idle_runs import IdleRun
from gpureport.analysis.signals.waits import waiting_gpus
from gpureport.findings import Interval

_LONE = 1.5
"""Intervals a single sample may speak for, with jitter."""
_OWN_GAP = 4.0  # rows; fewer idle readings in a row are usual while waiting for input
"""Readings from which on an idle run within an episode of waiting is a gap of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GapCandidate:
    """The part of an idle run within the job."""

    interval: Interval
    run: IdleRun
    is_wait: bool


def separate_gaps_from_waits(  # noqa: PLR0913 - where runs lie, and what a gap is
    context: Context,
    series: DeviceSeries,
    runs: Sequence[IdleRun],
    job: Interval,
    *,
    shortest: float,
    resting: float,
    coarse: bool,
) -> list[GapCandidate]:
    """Return the parts of idle runs that are gaps, and those that are waits for input.

    Args:
        context: the recording, with the findings of waiting for input.
        series: the GPU.
        runs: its idle runs.
        job: when it belonged to the job.
        shortest: seconds of a gap at least.
        resting: power up to which a run is at rest, from rest (0) to work (1).
        coarse: whether samples are points, so that low ones within a wait are that wait.
    """
    waits = _collect_waits(context, series.device.id)
    spans = [Interval(max(run.start, job.start), min(run.end, job.end)) for run in runs]
    candidates = [
        GapCandidate(interval=span, run=run, is_wait=is_wait)
        for span, run, is_wait in zip(spans, runs, _lie_mostly_inside(waits, spans), strict=True)
    ]
    if coarse:
        least = max(shortest, _LONE * series.interval)
        candidates = [
            _cut_to_longest_outside(series, waits, part, least) if _is_part_of_wait(part, resting) else part
            for part in candidates
        ]
    return [part for part in candidates if part.interval.seconds >= shortest]


def _collect_waits(context: Context, device: str) -> Spans:
    found = (finding for finding in context.findings_on(device) if finding.kind in waiting_gpus.WAIT_KINDS)
    return intervals.to_spans(part for finding in found for part in finding.intervals)


def _lie_mostly_inside(episodes: Spans, spans: Sequence[Interval]) -> list[bool]:
    edges = np.array([(span.start, span.end) for span in spans], dtype=np.int64).reshape(-1, 2)
    shared = intervals.overlap_seconds(edges[:, 0], edges[:, 1], episodes)
    return [2 * seconds >= span.seconds for seconds, span in zip(shared.tolist(), spans, strict=True)]


def _is_part_of_wait(part: GapCandidate, resting: float) -> bool:
    """Whether a part is of the ups and downs of an episode, as far as point samples tell: short, or not at rest."""
    run = part.run
    busy = run.highest_power is not None and run.highest_power > resting
    return part.is_wait and (busy or run.samples < max(_OWN_GAP, run.needed))


def _cut_to_longest_outside(series: DeviceSeries, episodes: Spans, part: GapCandidate, least: float) -> GapCandidate:
    """Return the longest stretch of a candidate outside episodes, an empty one if none is long enough."""
    left = intervals.difference(intervals.to_spans([part.interval]), episodes)
    outside = [span for span in intervals.to_intervals(left) if span.seconds >= least]
    begin = part.interval.start
    span = max(outside, key=lambda span: span.seconds, default=Interval(begin, begin))
    rows = series.rows_between(span.start + series.shift, span.end + series.shift)
    return GapCandidate(
        interval=span, run=replace(part.run, samples=series.count_readings(UTILISATION, rows)), is_wait=False
    )


def average_between_gaps(series: DeviceSeries, gaps: Sequence[Interval], job: Interval) -> float:
    """Return the mean utilisation of a GPU in the job outside its gaps, 1 if no time is left."""
    start, end = series.averaging_windows(job)
    utilisation = series.values(UTILISATION)
    seconds = (end - start) / 1e6 - intervals.overlap_seconds(start, end, intervals.to_spans(gaps))
    seconds[np.isnan(utilisation)] = 0.0
    return float(np.nansum(utilisation * seconds) / seconds.sum()) if seconds.sum() > 0 else 1.0

"""Where every second of every GPU went, and which findings follow from which. Runs after all rules."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gpureport.analysis import clock_signals, intervals, waiting
from gpureport.analysis.base import GPU_TIME_CLASSES, Context, GpuTime
from gpureport.analysis.cells import Cells
from gpureport.analysis.clock_signals import Slowed
from gpureport.analysis.intervals import Spans
from gpureport.analysis.phases import ACTIVE, NO_WORK, UTILISATION
from gpureport.analysis.statistics import IDLE_RATIO
from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.findings import Finding

_ROUNDING = 1e-6


def gpu_time(
    context: Context, findings: Sequence[Finding], device: str, *, low: Spans, slowed: Slowed | None
) -> GpuTime:
    """Return the seconds of one GPU by class, adding up to the time from first to last sample of the run.

    Each moment falls into the first of these that applies: no samples (or none with a utilisation); start-up and
    tail, as far as utilisation was at most 12 %; an episode of waiting for input; an idle gap; an episode of low use;
    a sample at a utilisation of at most 5 %, which is idle as the gap is; any other. Of such a wait the share in which
    no kernel ran is waiting for input, of low use it is low use, of any other moment short pauses. The share in
    which one ran is computing, less what throttled clocks cost of it. So computing means the same in every step that
    is compared.

    Args:
        context: the recording.
        findings: all that was found.
        device: the GPU.
        low: its episodes of low use.
        slowed: its rows with throttled clocks, None when nobody looked.
    """
    cells, window = context.cells[device], context.whole
    start, end = cells.tiles(window)
    used = cells.values(UTILISATION)
    left = _where(start, end, ~np.isnan(used))
    seconds = dict.fromkeys(GPU_TIME_CLASSES, 0.0)
    seconds["no_samples"] = window.seconds - intervals.total_seconds(left)
    resting = _where(start, end, used <= ACTIVE.value + _ROUNDING)
    at_work = [found for found in findings if found.cause != NO_WORK]
    for name, kind in (("startup", "startup_idle"), ("tail", "tail_idle")):
        held = intervals.intersection(resting, intervals.of_kinds(at_work, device, {kind}))
        left = _take(seconds, name, left, held)
    unused = 1 - np.clip(used, 0, 1)
    starved = intervals.intersection(left, intervals.of_kinds(findings, device, waiting.KINDS))
    left = intervals.difference(left, starved)
    gaps = intervals.of_kinds(findings, device, {"idle_gap"})
    left = _take(seconds, "idle", left, gaps)
    still = _where(start, end, used <= IDLE_RATIO + _ROUNDING)
    # without any sustained work, whatever is not idle is low use
    low = intervals.intersection(left, intervals.difference(left, still) if context.window is None else low)
    left = _take(seconds, "idle", intervals.difference(left, low), still)
    for name, when in (("waiting_for_input", starved), ("low_use", low), ("short_pauses", left)):
        seconds[name] = float(np.nansum(unused * intervals.overlap(start, end, when)))
    working = intervals.union(np.concatenate([starved, low, left]))
    seconds["throttled"] = float((_clock_loss(cells, slowed) * intervals.overlap(start, end, working)).sum())
    seconds["computing"] = max(window.seconds - sum(seconds.values()), 0.0)
    return GpuTime(device=device, seconds=tuple(seconds.items()))


def _where(start: IntArray, end: IntArray, rows: BoolArray) -> Spans:
    return intervals.union(np.column_stack([start[rows], end[rows]]))


def _take(seconds: dict[str, float], name: str, left: Spans, held: Spans) -> Spans:
    """Count the time held among what is left to a class, and return the rest."""
    seconds[name] += intervals.total_seconds(intervals.intersection(left, held))
    return intervals.difference(left, held)


def _clock_loss(cells: Cells, slowed: Slowed | None) -> FloatArray:
    """Return the share of each row's time that throttled clocks cost, 0 where it is not known."""
    lost = None
    if slowed is not None and slowed.rows.any():
        lost = clock_signals.lost_ratio(cells, clock_signals.signals(cells), slowed)
    return np.zeros(len(cells)) if lost is None else lost


def linked(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the findings, each of waiting for input with the idle gaps inside it as its consequences."""
    return tuple(replace(f, consequences=_gaps_in(f, findings)) if f.kind in waiting.KINDS else f for f in findings)


def _gaps_in(root: Finding, findings: Sequence[Finding]) -> tuple[str, ...]:
    held = intervals.spans(root.intervals)
    inside = (
        found.fingerprint
        for found in findings
        if found.kind == "idle_gap" and found.cause == "data" and set(found.devices) <= set(root.devices)
        if len(intervals.intersection(intervals.spans(found.intervals), held))
    )
    return tuple(dict.fromkeys(inside))

"""Where every second of every GPU went. Runs after all rules.

Each moment falls into the first of these that applies: no samples (or none with a utilisation), of which what
follows on the loss of a GPU is lost with it; no job that holds the GPU; a GPU that was never used; start-up and
tail, as far as utilisation was at most 12%; an episode of waiting for input; an idle gap; an episode of high
utilisation with little work; an episode in which it did less than its peers, or of low use; a sample at a
utilisation of at most 5% outside the job, which is idle as the gap is, or start-up and tail where the log shows that
the job began and ended in it; any other. Of waiting for input the share
in which no kernel ran counts, of low use it is low use, of any other moment short pauses, whatever the utilisation
of a single sample: fine samples show a pause of a tenth of a second as one at 0%, coarse ones as one at 90%.
Samples more than 5 min apart show no pause to be short: that is low use. The share in which one ran is computing,
less what throttled clocks cost of it; of high utilisation with little work what that cost is hollow. So computing
means the same in every step that is compared.
"""

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from gpureport.analysis import phrases
from gpureport.analysis.engine.gpu_time_ledger import Ledger
from gpureport.analysis.job.phases import ACTIVE, UTILISATION, WITHOUT_LASTING_WORK
from gpureport.analysis.results import GpuTime
from gpureport.analysis.rulebook import Context, Rule, kinds_by_gpu_time_class
from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.series.statistics import IDLE_RATIO
from gpureport.analysis.signals import clock_signals, gpu_loss_times, load
from gpureport.analysis.signals.clock_signals import ThrottledTime
from gpureport.findings import Finding, Interval

UNUSED = "unused"
"""Cause of an idle gap of a GPU that never worked: its time is not idle but unused."""

UNKNOWN, OUTSIDE = "unknown", "outside gaps"
"""Causes of idle time: of a gap that names none, and of still samples before, after or without sustained work."""

BELOW_PEERS = "imbalance"
"""Cause of low use of a GPU that did less than its peers."""

FAR_SECONDS = 300.0
"""Interval above which samples do not tell a short pause from a long one (pragmatic: two of them are ten minutes)."""

_ROUNDING = 1e-6


def attribute_gpu_time(
    context: Context,
    rules: Sequence[Rule],
    device: str,
    *,
    low: Spans,
    throttled: ThrottledTime | None,
) -> GpuTime:
    """Return the seconds of one GPU by class, adding up to the time from first to last sample of the run.

    The context holds all findings as earlier ones.
    """
    ledger = fill_ledger(context, rules, device, low=low, throttled=throttled)
    return ledger.close(device)


def fill_ledger(
    context: Context,
    rules: Sequence[Rule],
    device: str,
    *,
    low: Spans,
    throttled: ThrottledTime | None,
) -> Ledger:
    """Return the time of one GPU by class, with the stretches it lies in."""
    kinds, findings = kinds_by_gpu_time_class(rules), context.findings_on(device)
    series, window = context.full_series(device), context.whole
    start, end = series.averaging_windows(window)
    used = np.clip(series.values(UTILISATION), 0, 1)
    ledger = _open_ledger(context, findings, series)
    resting = intervals.rows_to_spans(start, end, used <= ACTIVE.value + _ROUNDING)
    _take_startup_and_tail(ledger, findings, device, resting)
    waits = [
        (kind, ledger.claim(intervals.collect_finding_spans(findings, device, {kind})))
        for kind in kinds.get("waiting_for_input", ())
    ]
    for cause, gaps in _list_gaps_by_cause(findings, device):
        ledger.take("idle", gaps, cause)
    episodes = _list_hollow_episodes(findings, kinds.get("hollow", ()), device)
    hollow = [(ratio, ledger.claim(when)) for ratio, when in episodes]
    still = intervals.difference(intervals.rows_to_spans(start, end, used <= IDLE_RATIO + _ROUNDING), context.work)
    uneven = ledger.claim(_find_time_below_peers(context, device))
    low_use_findings = intervals.collect_finding_spans(findings, device, load.LOW_USE_KINDS)
    low = intervals.union(np.concatenate([low, low_use_findings]))
    # without any sustained work, as with samples that show no pause to be short, whatever is not idle is low use
    coarse = series.interval > FAR_SECONDS
    low = ledger.claim(intervals.difference(ledger.left, still) if context.window is None or coarse else low)
    for name, when in _find_observed_edges(context):
        ledger.take(name, intervals.intersection(still, when))
    ledger.take("idle", still, OUTSIDE)
    unused, rows = 1 - used, (start, end)
    for kind, when in waits:
        ledger.add_rows("waiting_for_input", when, unused, rows, kind)
    for ratio, when in hollow:
        ledger.add("hollow", when, share=ratio)
        ledger.add_rows("short_pauses", when, (1 - ratio) * unused, rows)
    for name, when, cause in (
        ("low_use", uneven, BELOW_PEERS),
        ("low_use", low, UNKNOWN),
        ("short_pauses", ledger.left, ""),
    ):
        ledger.add_rows(name, when, unused, rows, cause)
    if throttled is not None and throttled.rows.any():
        working = intervals.union(np.concatenate([*(when for _, when in waits), uneven, low, ledger.left]))
        lost = clock_signals.compute_lost_ratio(series, clock_signals.gather_signals(series), throttled)
        if lost is not None:
            for cause, when in _split_by_cause(findings, kinds.get("throttled", ()), device, working):
                ledger.add_rows("throttled", when, np.minimum(lost, used), rows, cause)
    return ledger


def _open_ledger(context: Context, findings: Sequence[Finding], series: DeviceSeries) -> Ledger:
    """Return the ledger of a GPU with the time without samples, without a job and of a GPU that was never used."""
    device, window = series.device.id, context.whole
    never_used = _find_unused_time(findings, device, window)
    is_known = series.known_rows(UTILISATION)
    left = intervals.rows_to_spans(*series.averaging_windows(window), is_known)
    if not series.is_recorded(UTILISATION):
        # memory that no process held shows it as well
        left = intervals.intersection(intervals.rows_to_spans(*series.averaging_windows(window), ~is_known), never_used)
    ledger = Ledger(window=window, left=left)
    unseen = intervals.difference(intervals.to_spans([window]), left)
    gone = _find_lost_time(findings, device)
    ledger.add("gpu_lost", intervals.intersection(unseen, gone))
    ledger.add("no_samples", intervals.difference(unseen, gone))
    # the first sample without a job speaks of the time before its stamp, its memory of the moment
    ledger.take("no_job", context.time_without_job.get(device, intervals.NO_SPANS) - np.array([series.shift, 0]))
    ledger.take("unused", never_used)
    return ledger


def _find_lost_time(findings: Sequence[Finding], device: str) -> Spans:
    """Return when a GPU no longer answered, as the log or its empty rows say; an Xid error alone loses no GPU."""
    lost = [found for found in findings if found.kind == "gpu_lost" and found.cause in gpu_loss_times.FATAL_CAUSES]
    return intervals.collect_finding_spans(lost, device, {"gpu_lost"})


def _find_unused_time(findings: Sequence[Finding], device: str, window: Interval) -> Spans:
    """Return when a GPU was unused by a finding: the whole run where it names no time."""
    named = [
        found
        for found in findings
        if (found.kind == "unused_gpu" or (found.kind, found.cause) == ("idle_gap", UNUSED)) and device in found.devices
    ]
    return intervals.to_spans(interval for found in named for interval in found.intervals or (window,))


def _take_startup_and_tail(ledger: Ledger, findings: Sequence[Finding], device: str, resting: Spans) -> None:
    at_work = [found for found in findings if found.cause not in WITHOUT_LASTING_WORK]
    for name, kind in (("startup", "startup_idle"), ("tail", "tail_idle")):
        ledger.take(name, intervals.intersection(resting, intervals.collect_finding_spans(at_work, device, {kind})))


def _find_observed_edges(context: Context) -> Iterator[tuple[str, Spans]]:
    """Yield the time before the first and after the last work, where the log shows the job's beginning and end.

    Without them the log may hold a part of the job, and what lies there is idle for an unknown reason.
    """
    if context.window is None:
        return
    job, whole, window = context.observed_job, context.whole, context.window
    if job.started is not None:
        yield "startup", intervals.to_spans([Interval(whole.start, window.start)])
    if job.ended is not None:
        yield "tail", intervals.to_spans([Interval(window.end, whole.end)])


def _list_gaps_by_cause(findings: Sequence[Finding], device: str) -> Iterator[tuple[str, Spans]]:
    gaps = [found for found in findings if found.kind == "idle_gap"]
    for cause in sorted({found.cause or UNKNOWN for found in gaps}):
        alike = [found for found in gaps if (found.cause or UNKNOWN) == cause]
        yield cause, intervals.collect_finding_spans(alike, device, {"idle_gap"})


def _split_by_cause(
    findings: Sequence[Finding], kinds: Collection[str], device: str, held: Spans
) -> Iterator[tuple[str, Spans]]:
    """Yield some time by the cause of the findings of some kinds that speak of it, then what none speaks of."""
    for found in findings:
        if found.kind in kinds and found.cause and device in found.devices:
            when = intervals.to_spans(found.intervals)
            yield found.cause, intervals.intersection(held, when)
            held = intervals.difference(held, when)
    yield "", held


def _find_time_below_peers(context: Context, device: str) -> Spans:
    """Return when a GPU did less than its peers: the one named, or all others of its model where that did more."""
    parts = [intervals.NO_SPANS]
    for found in context.findings(BELOW_PEERS):
        if found.lost_gpu_seconds is not None:
            models = {context.series[name].device.model for name in found.devices}
            means = {each.statistic: each.observed for each in found.evidence}
            is_below = means["mean"] < means[phrases.PEERS_MEAN]
            if context.series[device].device.model in models and (device in found.devices) == is_below:
                parts.append(intervals.to_spans(found.intervals))
    return intervals.union(np.concatenate(parts))


def _list_hollow_episodes(
    findings: Sequence[Finding], kinds: Collection[str], device: str
) -> Iterator[tuple[float, Spans]]:
    """Yield when a GPU was busy with little work, with the share of that time that was lost: all where not known."""
    for found in findings:
        if found.kind in kinds and (not found.devices or device in found.devices):
            held = sum(part.seconds for part in found.intervals) * max(len(found.devices), 1)
            lost = held if found.lost_gpu_seconds is None else found.lost_gpu_seconds
            yield min(lost / held, 1.0) if held else 1.0, intervals.to_spans(found.intervals)

"""Assigns every second of every GPU to a class, after all rules have run.

Each moment falls into the first class of `_list_claims` that applies. For waiting, low use and
short pauses, only the share without a running kernel counts. The rest is computing, less time
lost to throttled clocks, so that computing means the same throughout a comparison.
"""

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from gpureport.analysis import phrases
from gpureport.analysis.job.jobs import ACTIVE, WITHOUT_LASTING_WORK
from gpureport.analysis.results import GPU_TIME_CLASSES, GpuTime, TimePart
from gpureport.analysis.rulebook import Context, Rule, kinds_by_gpu_time_class
from gpureport.analysis.rules import clocks, low_use
from gpureport.analysis.rules.health import LOST_CAUSES
from gpureport.analysis.series import UTILISATION
from gpureport.analysis.series.clock_and_power import compute_loss
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import (
    NO_SPANS,
    Spans,
    contains,
    difference,
    intersection,
    row_spans,
    to_spans,
    union,
)
from gpureport.analysis.series.statistics import IDLE_RATIO
from gpureport.columns import FloatArray, IntArray
from gpureport.findings import Finding, Interval

UNKNOWN, OUTSIDE = "unknown", "outside gaps"
"""Causes of idle time: gaps of unknown cause, and idle samples outside sustained work."""
FAR_SECONDS = 300.0
"""Sampling interval above which samples cannot show short pauses."""
_BELOW_PEERS = "imbalance"  # the kind of a GPU that does less than its peers
_ROUNDING = 1e-6
_BY_USE = float("nan")  # instead of a share: the part of each moment without a kernel

Claim = tuple[str, str, Spans, float]
"""A class, its cause, the time that it claims, and the share of that time that counts."""
Divided = dict[tuple[str, str], FloatArray]


def attribute_gpu_times(context: Context, rules: Sequence[Rule]) -> Iterator[GpuTime]:
    window = context.whole
    for device, divided in divide_gpu_times(context, rules, np.array([window.start, window.end])):
        taken = {key: round(seconds[0] * 1e6) for key, seconds in divided.items()}
        left = window.end - window.start - sum(taken.values())
        taken[max(taken, key=lambda key: taken[key])] += min(left, 0)
        totals = dict.fromkeys(GPU_TIME_CLASSES, 0) | {"computing": max(left, 0)}
        for (name, _), amount in taken.items():
            totals[name] += amount
        yield GpuTime(
            device=device,
            seconds=tuple((name, amount / 1e6) for name, amount in totals.items()),
            parts=tuple(
                TimePart(name=name, cause=cause, seconds=amount / 1e6)
                for (name, cause), amount in taken.items()
                if cause and amount
            ),
        )


def divide_gpu_times(
    context: Context, rules: Sequence[Rule], edges: IntArray, devices: Collection[str] | None = None
) -> Iterator[tuple[str, Divided]]:
    limits = {rule.name: rule.limits for rule in rules}
    low, throttling = limits.get("low_util_cause_unknown"), limits.get("throttling")
    # low use as detected by its rule, even if there is no finding
    episodes = {} if low is None else low_use.find_low_use(context, low).spans
    kinds = kinds_by_gpu_time_class(rules).get("throttled", ())
    for device in context.gpus():
        if devices is None or device in devices:
            series = context.all_series[device]
            claims = list(_list_claims(context, rules, series, episodes.get(device, NO_SPANS)))
            held = None if throttling is None else clocks.find_slowdowns(series, throttling, context.whole)[1]
            lost = compute_loss(series, held, held.share) if held and held.share.any() else None
            slowing = [one for one in context.findings_on(device) if one.kind in kinds and one.cause and one.devices]
            causes = [("throttled", one.cause or "", to_spans(one.intervals), _BY_USE) for one in slowing]
            causes.append(("throttled", "", to_spans([context.whole]), _BY_USE))
            yield device, _divide(series, context.whole, claims, [] if lost is None else causes, lost, edges)


def _divide(  # noqa: PLR0913, PLR0917 - the classes of time, and the share of each row lost to low clocks, by cause
    series: DeviceSeries,
    window: Interval,
    claims: Sequence[Claim],
    causes: Sequence[Claim],
    lost: FloatArray | None,
    edges: IntArray,
) -> Divided:
    """Return the seconds per class and cause between `edges`. If claims overlap, the first applies."""
    (start, end), whole = series.averaging_windows(window), to_spans([window])
    held = [intersection(spans, whole) for _, _, spans, _ in [*claims, *causes]]
    cuts = np.sort(np.concatenate([start, end, edges, *(spans.ravel() for spans in held)]), kind="stable")
    cuts = cuts[np.append(True, cuts[1:] > cuts[:-1])]
    masks = np.stack([contains(spans, cuts[:-1]) for spans in held])
    row = np.minimum(np.searchsorted(end, cuts[:-1], side="right"), len(end) - 1)
    used = np.clip(series.values(UTILISATION), 0, 1)[row]
    first = masks[: len(claims)].argmax(axis=0)
    share = np.array([part for *_, part in claims])[first]
    by_use, free = np.isnan(share), np.nan_to_num(1 - used)
    seconds, bucket = np.diff(cuts) / 1e6, np.searchsorted(edges, cuts[:-1], side="right") - 1
    divided: Divided = {}

    def count(names: Sequence[tuple[str, str]], which: IntArray, weight: FloatArray) -> None:
        size = (len(edges) - 1) * len(names)
        sums = np.bincount(bucket * len(names) + which, weight * seconds, minlength=size).reshape(-1, len(names))
        for place, name in enumerate(names):
            divided[name] = divided.get(name, np.zeros(len(sums))) + sums[:, place]

    count([claim[:2] for claim in claims], first, np.where(by_use, free, share))
    # not counted as hollow time
    count([("short_pauses", "")], np.zeros_like(first), np.where(by_use, 0.0, (1 - share) * free))
    if lost is not None:
        weight = np.where(by_use, np.nan_to_num(np.minimum(lost[row], used)), 0.0)
        count([cause[:2] for cause in causes], masks[len(claims) :].argmax(axis=0), weight)
    return divided


def _list_claims(context: Context, rules: Sequence[Rule], series: DeviceSeries, low: Spans) -> Iterator[Claim]:
    device, window, kinds = series.device.id, context.whole, kinds_by_gpu_time_class(rules)
    findings, whole = context.findings_on(device), to_spans([context.whole])

    def collect(*names: str, among: Sequence[Finding] = findings) -> Spans:
        return to_spans(part for found in among if found.kind in names for part in found.intervals)

    (start, end), used = series.averaging_windows(window), series.values(UTILISATION)
    resting = row_spans(start, end, used <= ACTIVE.value + _ROUNDING)
    still = difference(row_spans(start, end, used <= IDLE_RATIO + _ROUNDING), context.work)
    seen = series.find_seen(window)
    never_used = to_spans(
        part
        for found in findings
        if found.devices and (found.kind == "unused_gpu" or (found.kind, found.cause) == ("idle_gap", "unused"))
        for part in found.intervals or (window,)
    )
    if not series.is_recorded(UTILISATION):
        # empty memory also shows that a GPU was unused
        seen = intersection(union(np.column_stack([start, end])), never_used)
    unseen = difference(whole, seen)
    # utilisation describes the time before a sample, and memory the moment of the sample
    yield "no_job", "", context.time_without_job.get(device, NO_SPANS) - np.array([series.shift, 0]), 1.0
    # an Xid error alone does not mean that the GPU was lost
    lost = [found for found in findings if found.kind == "gpu_lost" and found.cause in LOST_CAUSES]
    yield "gpu_lost", "", intersection(unseen, collect("gpu_lost", among=lost)), 1.0
    yield "no_samples", "", unseen, 1.0
    yield "unused", "", never_used, 1.0
    at_work = [found for found in findings if found.cause not in WITHOUT_LASTING_WORK]
    yield "startup", "", intersection(resting, collect("startup_idle", among=at_work)), 1.0
    yield "tail", "", intersection(resting, collect("tail_idle", among=at_work)), 1.0
    for kind in kinds.get("waiting_for_input", ()):
        yield "waiting_for_input", kind, collect(kind), _BY_USE
    for gap in sorted((one for one in findings if one.kind == "idle_gap"), key=lambda one: one.cause or UNKNOWN):
        yield "idle", gap.cause or UNKNOWN, to_spans(gap.intervals), 1.0
    for found in findings:
        if found.kind in kinds.get("hollow", ()):
            held = sum(part.seconds for part in found.intervals) * len(found.devices)
            yield "hollow", "", to_spans(found.intervals), (found.lost_gpu_seconds or 0.0) / held
    below = list[Interval]()
    for found in context.findings(_BELOW_PEERS):
        models = {context.series[name].device.model for name in found.devices}
        means = {each.statistic: each.observed for each in found.evidence}
        if found.lost_gpu_seconds is not None and series.device.model in models:
            is_below = means["mean"] < means[phrases.PEERS_MEAN]
            below += found.intervals if (device in found.devices) == is_below else ()
    yield "low_use", _BELOW_PEERS, to_spans(below), _BY_USE
    # without sustained work, or with coarse samples, all time that is not idle is low use
    if context.window is None or series.interval > FAR_SECONDS:
        low = difference(whole, still)
    else:
        low = union(np.concatenate([low, collect(*low_use.KINDS_OF_LOW_USE)]))
    yield "low_use", UNKNOWN, low, _BY_USE
    # idle time at an end is start-up or tail only if the job began or ended in the log
    if context.window is not None and context.observed_job.started is not None:
        yield "startup", "", intersection(still, to_spans([Interval(window.start, context.window.start)])), 1.0
    if context.window is not None and context.observed_job.ended is not None:
        yield "tail", "", intersection(still, to_spans([Interval(context.window.end, window.end)])), 1.0
    yield "idle", OUTSIDE, still, 1.0
    yield "short_pauses", "", whole, _BY_USE

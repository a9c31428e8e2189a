"""Links findings to root causes, states each kind's outcome, and lists what samples cannot show."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from gpureport.analysis import doubts, phrases
from gpureport.analysis.job.jobs import POINT_SAMPLE_SECONDS, SHORTEST_GAP
from gpureport.analysis.rulebook import KINDS, Context, RootCause, Rule
from gpureport.analysis.series import POWER, UTILISATION
from gpureport.analysis.series.device_series import CAPPED, DeviceSeries
from gpureport.analysis.series.intervals import intersection, to_spans, total_seconds
from gpureport.findings import Answer, Confidence, Finding, Interval, NotJudged, Outcome, Severity
from gpureport.metrics import find_gpu
from gpureport.names import group_pairs
from gpureport.recording import Device, Run

_RANK = list(Severity)
_COVERED_SHARE = 0.9  # share of a consequence's time that its root must cover
_RESOLVED = 1.8
"""Number of sampling intervals per driver period above which rows repeat readings: two, less jitter."""
_PART_TIME, _AVERAGING = {(8, 0), (9, 0)}, (8, 0)
"""Compute capabilities of GPUs that measure power a quarter of the time, and the first that averages it (NVML)."""


def link_findings(findings: Sequence[Finding], whole: Interval, gpus: Collection[str]) -> tuple[Finding, ...]:
    """Return the findings in the same order, each linked to its root cause or consequences.

    Findings that share a kind and a cause count as one root cause.
    """

    def climb(place: int) -> int:
        roots = (_find_root(root, place, findings, whole, gpus) for root in KINDS[findings[place].kind].follows)
        above = next((one for one in roots if one is not None), None)
        return place if above is None else climb(above)

    tops = list(map(climb, range(len(findings))))
    below = group_pairs(zip(tops, findings, strict=True))
    return tuple(
        replace(
            found,
            severity=max([found, *below.get(place, ())], key=lambda one: _RANK.index(one.severity)).severity,
            consequences=tuple(dict.fromkeys(one.fingerprint for one in below.get(place, ()) if one is not found)),
            root=findings[tops[place]].fingerprint if place != tops[place] else None,
        )
        for place, found in enumerate(findings)
    )


def _find_root(
    root: RootCause, place: int, findings: Sequence[Finding], whole: Interval, gpus: Collection[str]
) -> int | None:
    if root.explains and findings[place].cause not in root.explains:
        return None
    wanted = set(findings[place].devices or gpus)
    families = dict[str | None, dict[int, set[str]]]()
    for other, found in enumerate(findings):
        devices = set(found.devices or gpus)
        is_named = found.kind == root.kind and (not root.causes or found.cause in root.causes)
        is_placed = bool(found.devices and found.intervals) or not root.needs_place
        if other != place and is_named and is_placed and (root.on_any_device or devices & wanted):
            families.setdefault(found.cause, {})[other] = devices
    for family in families.values():
        is_covered = root.on_any_device or set().union(*family.values()) >= wanted
        if is_covered and _fits(root, findings[place], [findings[other] for other in family], whole):
            return min(family)
    return None


def _fits(root: RootCause, found: Finding, roots: Iterable[Finding], whole: Interval) -> bool:
    if root.when == "ever":
        return True
    parts = [part for one in roots for part in one.intervals or (whole,)]
    if root.when == "since":
        parts = [Interval(min(part.start for part in parts), whole.end)]
    own = to_spans(found.intervals or (whole,))
    return total_seconds(intersection(own, to_spans(parts))) >= _COVERED_SHARE * total_seconds(own) > 0


def withdraw_headroom(findings: list[Finding], run: Run) -> tuple[list[Finding], list[NotJudged]]:
    leaking = {device for found in findings if found.kind == "mem_leak" for device in found.devices}
    devices = {device for found in findings if found.kind == "mem_headroom" for device in found.devices}
    code = "memory_keeps_growing" if devices & leaking else "mig_mode"
    if devices.isdisjoint(leaking | {gpu.id for gpu in run.gpus if gpu.mig}):
        return findings, []
    return [found for found in findings if found.kind != "mem_headroom"], [doubts.unjudged("mem_headroom", code)]


def merge_not_judged(entries: Sequence[NotJudged], context: Context) -> tuple[NotJudged, ...]:
    if context.recording.run.is_mean:
        return tuple(doubts.unjudged(kind, "single_mean") for kind in dict.fromkeys(entry.kind for entry in entries))
    columns = set(context.recording.rows.schema.names)
    pairs = list[tuple[NotJudged, NotJudged]]()
    devices: dict[NotJudged, set[str | None]] = {}
    for said in entries:
        lacking, entry = [name for name in said.metrics if not context.recorded(name)], said
        own = context.series.get(said.device or "")
        series = context.series.values() if own is None else [own]
        doubted = [name for name in said.metrics if any(one.explain_implausibility(name) for one in series)]
        if doubted:
            entry = doubts.unjudged(said.kind, "implausible_readings", said.device, what=doubted[0])
        elif lacking and columns.issuperset(lacking):
            # recording a column that has no values again would not help
            entry = doubts.unjudged(said.kind, "logged_without_values", said.device, what=" and ".join(lacking))
        pairs.append((entry, whole := replace(entry, device=None)))
        devices.setdefault(whole, set()).add(entry.device)
    everybody = set(context.gpus())
    return tuple(dict.fromkeys(whole if devices[whole] >= everybody else entry for entry, whole in pairs))


def answer_kinds(
    run: Run, rules: Sequence[Rule], findings: Sequence[Finding], not_judged: Sequence[NotJudged]
) -> Iterator[Answer]:
    """Yield each kind's outcome per node and GPU model, including findings on the node's hosts."""
    groups = group_pairs(((gpu.node, gpu.model), gpu) for gpu in run.gpus)
    for (node, model), gpus in groups.items() or [((None, None), list[Device]())]:
        hosts = (host.id for host in run.hosts if not gpus or host.node in {None, node})
        beside = {*(gpu.id for gpu in gpus), *hosts}
        found_here = [one for one in findings if not one.devices or not beside.isdisjoint(one.devices)]
        missing_here = [one for one in not_judged if one.device is None or one.device in beside]
        for kind in (kind for rule in rules for kind in rule.kinds):
            found = [one for one in found_here if one.kind == kind]
            missing = tuple(one for one in missing_here if one.kind == kind)
            sure = any(one.confidence is not Confidence.LOW for one in found)
            unfound = Outcome.CANNOT_JUDGE if missing else Outcome.JUDGED
            yield Answer(
                kind=kind,
                group=f"{len(gpus)} x {model or 'GPU'}" + (f" of {node}" if node else "") if gpus else "no GPU",
                devices=tuple(gpu.id for gpu in gpus),
                outcome=Outcome.FOUND if sure else Outcome.SUSPECTED if found else unfound,
                findings=tuple(dict.fromkeys(one.fingerprint for one in found)),
                missing=missing,
            )


def list_caveats(context: Context) -> Iterator[tuple[str, str]]:
    known = [series for series in context.gpus().values() if series.observed_seconds > 0]
    yield from _describe_sampling(known)
    told = {series.device.id: series.explain_implausibility(POWER) for series in known}
    for doubt in dict.fromkeys(filter(None, told.values())):
        whose = phrases.gpu_names([device for device, said in told.items() if said == doubt], tuple(told))
        yield "implausible_power", f"The power of {whose} {doubt}, so it cannot be right and is left out."
    metered = [series for series in known if series.is_recorded(POWER)]
    logged = ((each, name, each.rows.column(name)) for each in known for name in CAPPED if each.is_recorded(name))
    if wild := sum(len(each) - cells.null_count - each.count_values(name) for each, name, cells in logged):
        yield "implausible_readings", f"Impossible power or memory readings are left out ({wild:,} in total)."
    if frozen := sum(len(context.recording.rows_of(name)) - len(one) for name, one in context.all_series.items()):
        yield "frozen_readings", f"{frozen:,} samples that repeat a working GPU's readings for minutes are left out."
    if metered:
        yield "energy_by_samples", "Energy is the integral of sampled power, accurate to a few per cent at best."
    for gpu in {gpu.model: gpu for series in metered if (gpu := find_gpu(series.device.model))}.values():
        if gpu.compute_capability in _PART_TIME:
            yield "power_sensor", f"The {gpu.model} measures power only a quarter of the time (arXiv 2312.02741)."
        elif gpu.compute_capability < _AVERAGING:
            yield "power_sensor", f"A power reading of the {gpu.model} covers one moment, not the whole interval."
    if metered and any(context.all_series[series.device.id].gaps for series in known):
        yield "energy_without_gaps", "The integral of power leaves out log gaps."


def _describe_sampling(known: Sequence[DeviceSeries]) -> Iterator[tuple[str, str]]:
    used = [series for series in known if series.is_recorded(UTILISATION)]
    if used:
        interval = max(series.interval for series in known)
        apart, shortest = f"samples {phrases.duration(interval)} apart", 2 * interval + 1
        unseen = f"shorter than {phrases.duration(shortest)} cannot be seen with {apart}"
        unsought = f"shorter than {SHORTEST_GAP:.0f} s are ignored"
        yield "short_gaps", f"Idle gaps {unsought if shortest < SHORTEST_GAP else unseen}."
        if interval > POINT_SAMPLE_SECONDS:
            many = "waits that recur faster than the sampling rate are visible only in the mean"
            yield "point_samples", f"With {apart}, each utilisation value covers at most 1 s: {many}."
    if denser := [series.interval for series in known if series.sampling_rate.denser]:
        apart = f"{phrases.duration(max(denser))} apart, closer in parts"
        yield "denser_part", f"Samples are {apart}; even there, shorter events are ignored."
    if slow := [each.interval for series in known for each in series.sampling_rate.slow]:
        apart = f"up to {phrases.duration(max(slow))} apart"
        yield "sparser_part", f"In parts of the log, samples are {apart}; idle gaps are not sought there."
    if slow := [time for each in used if (time := each.resolution(UTILISATION)) > _RESOLVED * each.interval]:
        period = phrases.duration(max(slow))
        yield "slow_refresh", f"The driver updates utilisation at most every {period}, so some rows repeat a value."

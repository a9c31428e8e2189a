"""What findings come to: which follows from which, and what became of every kind on every group of devices."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from gpureport.analysis import doubts
from gpureport.analysis.kinds import KINDS, RootCause
from gpureport.analysis.rulebook import Context, Rule
from gpureport.analysis.series import intervals
from gpureport.findings import Answer, Confidence, Finding, Interval, NotJudged, Outcome, Severity
from gpureport.recording import Device, Run

_GROWS = "memory keeps growing, so its peak does not say what the job needs"
_SPLIT = "the GPU is in MIG mode, and the memory of an instance was not recorded"
_MEAN = "the table holds one mean of the whole run, and no check is made of it"
_RANK = list(Severity)
_COVERED_SHARE = 0.9  # share of the time of a consequence that its root must cover


def link_findings(findings: Sequence[Finding], whole: Interval, gpus: Collection[str]) -> tuple[Finding, ...]:
    """Return the findings, in the order of preferred roots, with their consequences or their root.

    Findings of one kind and cause are one root, each for its own devices. A root that follows from another passes its
    consequences on, and is as severe as what it led to. A finding without intervals stands for the whole run, one
    without devices for all GPUs.
    """
    above: dict[int, int] = {}
    for place, found in enumerate(findings):
        for root in KINDS[found.kind].follows:
            top = _find_root(root, place, findings, whole, gpus)
            if top is not None and _climb(top, above) != place:
                above[place] = top
                break
    tops = {place: _climb(place, above) for place in above}
    below: dict[int, list[Finding]] = {}
    for place, top in sorted(tops.items()):
        below.setdefault(top, []).append(findings[place])
    return tuple(
        replace(
            found,
            severity=max([found, *below.get(place, ())], key=lambda one: _RANK.index(one.severity)).severity,
            consequences=tuple(dict.fromkeys(one.fingerprint for one in below.get(place, ()))),
            root=findings[tops[place]].fingerprint if place in tops else None,
        )
        for place, found in enumerate(findings)
    )


def _find_root(
    root: RootCause, place: int, findings: Sequence[Finding], whole: Interval, gpus: Collection[str]
) -> int | None:
    if root.explains and findings[place].cause not in root.explains:
        return None
    wanted, families = set(findings[place].devices or gpus), dict[str | None, dict[int, set[str]]]()
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
    own = intervals.to_spans(found.intervals or (whole,))
    inside = intervals.total_seconds(intervals.intersection(own, intervals.to_spans(parts)))
    return inside >= _COVERED_SHARE * intervals.total_seconds(own) > 0


def _climb(place: int, above: Mapping[int, int]) -> int:
    while place in above:
        place = above[place]
    return place


def withdraw_headroom(findings: Sequence[Finding], run: Run) -> tuple[list[Finding], list[NotJudged]]:
    """Return the findings without free memory of GPUs that leak, or share a board in MIG mode, and why not."""
    leaking = {device for found in findings if found.kind == "mem_leak" for device in found.devices}
    split, steady = {gpu.id for gpu in run.gpus if gpu.mig}, "a run of the job once its memory no longer grows"
    kept, entries = list[Finding](), list[NotJudged]()
    for found in findings:
        devices = set(found.devices) if found.kind == "mem_headroom" else set()
        if devices & leaking:
            entries.append(doubts.denied(found.kind, "memory_keeps_growing", _GROWS, steady))
        elif devices & split:
            entries.append(doubts.denied(found.kind, "mig_mode", _SPLIT, "nvidia-smi -q -d MEMORY"))
        else:
            kept.append(found)
    return kept, entries


def list_unmet_requirements(rule: Rule, context: Context) -> Iterator[NotJudged]:
    absent = [group[0] for group in rule.requires if not any(map(context.recorded, group))]
    doubtful = (name for name in absent if any(one.explain_implausibility(name) for one in context.series.values()))
    doubted = next(doubtful, None)
    for kind in rule.kinds if absent else ():
        if doubted is None:
            yield doubts.not_recorded(kind, None, *absent)
        else:
            yield doubts.implausible(kind, None, doubted)


def list_unevaluated_kinds(context: Context, rules: Sequence[Rule], answered: Collection[str]) -> Iterator[NotJudged]:
    gpus = context.gpus()
    readings = max(map(len, gpus.values()), default=0)
    for kind in (kind for rule in rules for kind in rule.descriptions):
        unsaid = kind.name not in answered and readings < doubts.SURE_READINGS
        if unsaid and gpus and not kind.judges_few_samples:
            yield doubts.too_few(kind.name, readings)
        elif unsaid and not gpus and kind.needs_gpus:
            metrics = ("gpu_utilization_ratio", "gpu_memory_used_bytes")
            yield doubts.unjudged(kind.name, None, "no GPU was recorded", metrics, code="no_gpu_recorded")


def merge_not_judged(entries: Sequence[NotJudged], context: Context) -> tuple[NotJudged, ...]:
    """Return the entries, each once, merged where they say the same of every GPU.

    Nobody is told to record again what the log holds a column of, and no value.
    """
    if context.recording.run.is_mean:
        kinds = dict.fromkeys(entry.kind for entry in entries)
        return tuple(doubts.denied(kind, "single_mean", _MEAN, "") for kind in kinds)
    columns = set(context.recording.rows.schema.names)
    known = [_drop_useless_recording(entry, context, columns) for entry in entries]
    devices: dict[NotJudged, set[str | None]] = {}
    for entry in known:
        devices.setdefault(replace(entry, device=None), set()).add(entry.device)
    everybody = set(context.gpus())
    pairs = ((entry, replace(entry, device=None)) for entry in known)
    return tuple(dict.fromkeys(whole if devices[whole] >= everybody else entry for entry, whole in pairs))


def _drop_useless_recording(entry: NotJudged, context: Context, columns: set[str]) -> NotJudged:
    lacking = [name for name in entry.metrics if not context.recorded(name)]
    if not lacking or not columns.issuperset(lacking):
        return entry
    reason = f"{' and '.join(lacking)} logged without a value: this machine does not report it"
    return doubts.denied(entry.kind, "logged_without_values", reason, "", entry.device)


def answer_kinds(
    run: Run, rules: Sequence[Rule], findings: Sequence[Finding], not_judged: Sequence[NotJudged]
) -> Iterator[Answer]:
    """Yield each kind of the rules exactly once for each group of devices.

    A group is the GPUs of one node and model, since a source records the same for them. What is said of the whole
    run, or of the host of a node, is said of each group there.
    """
    groups: dict[tuple[str | None, str | None], list[Device]] = {}
    for gpu in run.gpus:
        groups.setdefault((gpu.node, gpu.model), []).append(gpu)
    for (node, model), gpus in groups.items() or [((None, None), list[Device]())]:
        name = f"{len(gpus)} x {model or 'GPU'}" + (f" of {node}" if node else "") if gpus else "no GPU"
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
                group=name,
                devices=tuple(gpu.id for gpu in gpus),
                outcome=Outcome.FOUND if sure else Outcome.SUSPECTED if found else unfound,
                findings=tuple(dict.fromkeys(one.fingerprint for one in found)),
                missing=missing,
            )

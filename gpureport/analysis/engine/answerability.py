"""What became of every kind on every group of devices: found, judged with nothing found, or why not judged."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from gpureport.analysis.rulebook import Rule
from gpureport.findings import Answer, Confidence, Finding, NotJudged, Outcome
from gpureport.recording import Device, Run

NO_GPU = "no GPU"

T = TypeVar("T", bound=Finding | NotJudged)


def answer_kinds(
    run: Run, rules: Sequence[Rule], findings: Sequence[Finding], not_judged: Sequence[NotJudged]
) -> tuple[Answer, ...]:
    """Return each kind of the rules exactly once for each group of devices.

    A group is the GPUs of one node that are of one model, since what a source records is the same for them. What a
    finding or a gap in the data says of the whole run, or of the host of a node, it says of each group there.
    """
    groups = tuple(_group_gpus(run))
    found = _sort_by_group(findings, [one.devices for one in findings], run, groups)
    missing = _sort_by_group(not_judged, [(one.device,) if one.device else () for one in not_judged], run, groups)
    return tuple(
        _answer_kind(kind, name, devices, found.get((kind, place), []), missing.get((kind, place), []))
        for place, (name, devices) in enumerate(groups)
        for rule in rules
        for kind in rule.kinds
    )


def _sort_by_group(
    entries: Sequence[T], devices: Sequence[Sequence[str]], run: Run, groups: Sequence[tuple[str, tuple[Device, ...]]]
) -> dict[tuple[str, int], list[T]]:
    """Return what was said of each kind and place of a group; what names no device is said of every group."""
    hosts = run.hosts
    groups_of: dict[str, list[int]] = {}
    for place, (_, gpus) in enumerate(groups):
        nodes = {gpu.node for gpu in gpus}
        own_hosts = [host for host in hosts if not gpus or host.node is None or host.node in nodes]
        for one in [*gpus, *own_hosts]:
            groups_of.setdefault(one.id, []).append(place)
    by_group: dict[tuple[str, int], list[T]] = {}
    for entry, own in zip(entries, devices, strict=True):
        concerned = {place for device in own for place in groups_of.get(device, ())} if own else range(len(groups))
        for place in concerned:
            by_group.setdefault((entry.kind, place), []).append(entry)
    return by_group


def _group_gpus(run: Run) -> Iterator[tuple[str, tuple[Device, ...]]]:
    gathered: dict[tuple[str | None, str | None], list[Device]] = {}
    for gpu in run.gpus:
        gathered.setdefault((gpu.node, gpu.model), []).append(gpu)
    for (node, model), devices in gathered.items():
        name = f"{len(devices)} x {model or 'GPU'}"
        yield (f"{name} of {node}" if node else name), tuple(devices)
    if not gathered:
        yield NO_GPU, ()


def _answer_kind(
    kind: str, name: str, devices: tuple[Device, ...], found: Sequence[Finding], missing: Sequence[NotJudged]
) -> Answer:
    return Answer(
        kind=kind,
        group=name,
        devices=tuple(device.id for device in devices),
        outcome=_decide_outcome(found, missing),
        findings=tuple(dict.fromkeys(one.fingerprint for one in found)),
        missing=tuple(missing),
    )


def _decide_outcome(found: Sequence[Finding], missing: Sequence[NotJudged]) -> Outcome:
    if any(one.confidence is not Confidence.LOW for one in found):
        return Outcome.FOUND
    if found:
        return Outcome.SUSPECTED
    return Outcome.CANNOT_JUDGE if missing else Outcome.JUDGED

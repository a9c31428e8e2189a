"""What became of every kind on every group of devices: found, judged with nothing found, or why not judged."""

from collections.abc import Iterator, Sequence

from gpureport.analysis.rules.rule import Rule
from gpureport.answers import Answer, Outcome
from gpureport.findings import Confidence, Finding, NotJudged
from gpureport.recording import Device, Run

NO_GPU = "no GPU"


def answer_kinds(
    run: Run, rules: Sequence[Rule], findings: Sequence[Finding], not_judged: Sequence[NotJudged]
) -> tuple[Answer, ...]:
    """Return each kind of the rules exactly once for each group of devices.

    A group is the GPUs of one node that are of one model, since what a source records is the same for them. What a
    finding or a gap in the data says of the whole run, or of the host of a node, it says of each group there.
    """
    return tuple(
        _answer_kind(kind, name, devices, run, findings, not_judged)
        for name, devices in _group_gpus(run)
        for rule in rules
        for kind in rule.kinds
    )


def _group_gpus(run: Run) -> Iterator[tuple[str, tuple[Device, ...]]]:
    gathered: dict[tuple[str | None, str | None], list[Device]] = {}
    for gpu in run.gpus:
        gathered.setdefault((gpu.node, gpu.model), []).append(gpu)
    for (node, model), devices in gathered.items():
        name = f"{len(devices)} x {model or 'GPU'}"
        yield (f"{name} of {node}" if node else name), tuple(devices)
    if not gathered:
        yield NO_GPU, ()


def _answer_kind(  # noqa: PLR0913, PLR0917 - what an answer is made of
    kind: str,
    name: str,
    devices: tuple[Device, ...],
    run: Run,
    findings: Sequence[Finding],
    not_judged: Sequence[NotJudged],
) -> Answer:
    ids = {device.id for device in devices}
    nodes = {device.node for device in devices}
    hosts = {host.id for host in run.hosts if not devices or host.node is None or host.node in nodes}
    found = [one for one in findings if one.kind == kind and (not one.devices or (ids | hosts) & set(one.devices))]
    missing = [
        entry for entry in not_judged if entry.kind == kind and (entry.device is None or entry.device in ids | hosts)
    ]
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

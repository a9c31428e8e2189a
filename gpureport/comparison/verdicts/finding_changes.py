"""What became of the findings of one step in the next: new, persisting, resolved or unknown."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import fsum

from gpureport.analysis.results import Analysis
from gpureport.comparison.steps.step_figures import SHORTEST_SECONDS, observed_seconds
from gpureport.comparison.steps.steps import Step
from gpureport.findings import AdvisedStep, Finding, Severity

_SEVERITIES = list(Severity)


class ChangeKind(StrEnum):
    """What became of a finding, in the order shown."""

    NEW = "new"
    PERSISTING = "persisting"
    RESOLVED = "resolved"
    CANNOT_TELL = "cannot_tell"


class UnknownCause(StrEnum):
    """Why a step cannot say that a finding is absent there."""

    TOO_SHORT = "too_short"
    NOT_JUDGED = "not_judged"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFindings:
    """The findings of one kind, cause and set of devices in the runs of one step.

    Attributes:
        runs: how many runs of the step have any.
        findings: how many there are.
        severity: the highest.
        lost_gpu_seconds: GPU time lost, a mean over the runs of the step; None when not known of any.
    """

    runs: int
    findings: int
    severity: Severity
    lost_gpu_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingChange:
    """One kind of finding on the same devices, in a step and in the one before.

    Attributes:
        base: label of the earlier step.
        step: label of the later step.
        change: what became of it.
        kind: name of the rule.
        cause: what lies behind it, where known.
        devices: device ids of the later step, of the earlier one where it is only there.
        fingerprint: of the finding in the later step, of the earlier one where it is only there.
        before: what the earlier step holds; None when nothing.
        after: what the later step holds; None when nothing.
        unknown: why the step without it does not tell; None when it does.
        judged: of the step without it, how many runs could be judged, and how many it has; None where both have it, or
            what became of it is not known.
        root: fingerprint of the finding it follows from, in the step that `fingerprint` is of; None where of none.
        steps: what to do about it there, the most promising first.
    """

    base: str
    step: str
    change: ChangeKind
    kind: str
    cause: str | None
    devices: tuple[str, ...]
    fingerprint: str
    before: StepFindings | None
    after: StepFindings | None
    unknown: UnknownCause | None
    judged: tuple[int, int] | None = None
    root: str | None = None
    steps: tuple[AdvisedStep, ...] = ()


_Groups = dict[str, list[tuple[int, Finding]]]
"""Findings with the position of their run, by fingerprint."""


def compare_findings(base: Step, step: Step) -> tuple[FindingChange, ...]:
    """Return the findings of two steps, matched by fingerprint, else by kind, cause and a device they share."""
    before, after = _groups(base), _groups(step)
    found = [
        _compare_groups(base, step, before.get(ours), after.get(theirs)) for ours, theirs in _matched(before, after)
    ]
    return tuple(sorted(found, key=_place))


def summarize_by_kind(changes: Sequence[FindingChange]) -> dict[tuple[str, str | None], ChangeKind]:
    """Return what became of each kind and cause over all devices, in the order given.

    A finding that went on some devices and came on others is still there. One that is unknown on a device is unknown.
    """
    found: dict[tuple[str, str | None], set[ChangeKind]] = {}
    for each in changes:
        found.setdefault((each.kind, each.cause), set()).add(each.change)
    return {key: _join_changes(kinds) for key, kinds in found.items()}


def _join_changes(kinds: set[ChangeKind]) -> ChangeKind:
    if ChangeKind.PERSISTING in kinds or {ChangeKind.NEW, ChangeKind.RESOLVED} <= kinds:
        return ChangeKind.PERSISTING
    return ChangeKind.CANNOT_TELL if ChangeKind.CANNOT_TELL in kinds else next(iter(kinds))


def _groups(step: Step) -> _Groups:
    groups: _Groups = {}
    for position, analysis in enumerate(step.analyses):
        for finding in analysis.findings:
            groups.setdefault(finding.fingerprint, []).append((position, finding))
    return groups


def _matched(before: _Groups, after: _Groups) -> Iterator[tuple[str, str]]:
    left = [name for name in after if name not in before]
    for name, group in before.items():
        same = name if name in after else next((other for other in left if _alike(group, after[other])), "")
        if same in left:
            left.remove(same)
        yield name, same
    yield from (("", name) for name in left)


def _alike(first: Sequence[tuple[int, Finding]], second: Sequence[tuple[int, Finding]]) -> bool:
    one, other = first[0][1], second[0][1]
    return (one.kind, one.cause) == (other.kind, other.cause) and bool({*one.devices} & {*other.devices})


def _compare_groups(
    base: Step, step: Step, before: Sequence[tuple[int, Finding]] | None, after: Sequence[tuple[int, Finding]] | None
) -> FindingChange:
    finding = (after or before or [])[0][1]
    unknown, judged = None, None
    if not before or not after:
        other = step if before else base
        count = sum(can_tell(analysis, finding) for analysis in other.analyses)
        unknown = None if count else _why_unknown(other)
        judged = (count, len(other.analyses)) if count else None
    change = ChangeKind.PERSISTING if before and after else ChangeKind.RESOLVED if before else ChangeKind.NEW
    return FindingChange(
        base=base.label,
        step=step.label,
        change=ChangeKind.CANNOT_TELL if unknown else change,
        kind=finding.kind,
        cause=finding.cause,
        devices=finding.devices,
        fingerprint=finding.fingerprint,
        before=_side(base, before),
        after=_side(step, after),
        unknown=unknown,
        judged=judged,
        root=finding.root,
        steps=finding.steps,
    )


def can_tell(analysis: Analysis, finding: Finding) -> bool:
    """Return whether a run can say that a finding of another one is absent there."""
    if observed_seconds([analysis]) < SHORTEST_SECONDS:
        return False
    gaps = (entry for entry in analysis.not_judged if entry.kind == finding.kind)
    return not any(entry.device is None or not finding.devices or entry.device in finding.devices for entry in gaps)


def _why_unknown(other: Step) -> UnknownCause:
    return UnknownCause.TOO_SHORT if observed_seconds(other.analyses) < SHORTEST_SECONDS else UnknownCause.NOT_JUDGED


def _side(step: Step, group: Sequence[tuple[int, Finding]] | None) -> StepFindings | None:
    if not group:
        return None
    lost = [finding.lost_gpu_seconds for _, finding in group if finding.lost_gpu_seconds is not None]
    return StepFindings(
        runs=len({position for position, _ in group}),
        findings=len(group),
        severity=max((finding.severity for _, finding in group), key=_SEVERITIES.index),
        lost_gpu_seconds=fsum(lost) / len(step.analyses) if lost else None,
    )


def _place(entry: FindingChange) -> tuple[int, int, float, str, tuple[str, ...]]:
    """Sort by what became of it, then the gravest, then what costs most."""
    sides = [side for side in (entry.before, entry.after) if side is not None]
    gravest = max(_SEVERITIES.index(side.severity) for side in sides)
    lost = max(side.lost_gpu_seconds or 0.0 for side in sides)
    return list(ChangeKind).index(entry.change), -gravest, -lost, entry.kind, entry.devices

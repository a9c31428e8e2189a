"""What became of the findings of one step in the next, and what a step still loses."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import fsum

from gpureport.analysis.results import GPU_TIME_CLASSES, LOST_CLASSES, Analysis
from gpureport.comparison.figures import SHORTEST_SECONDS, observed_seconds
from gpureport.comparison.steps import Step
from gpureport.findings import AdvisedStep, Finding, Severity

_SEVERITIES = list(Severity)
_Group = list[tuple[int, Finding]]  # findings with the place of their run


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
    """Findings of one kind and cause in a step: in how many runs, how many, the gravest, and a mean loss."""

    runs: int
    findings: int
    severity: Severity
    lost_gpu_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingChange:
    """One kind of finding on the same devices, in a step and in the one before; None on the side that has none.

    What is said is of the later step that has it. Of the other one, `unknown` says why it does not tell, and `judged`
    how many of its runs could be judged, of how many.
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
    judged: tuple[int, int] | None
    root: str | None
    steps: tuple[AdvisedStep, ...]


def compare_findings(base: Step, step: Step) -> tuple[FindingChange, ...]:
    """Return the findings of two steps, matched by fingerprint, else kind, cause and a shared device."""
    before, after = _group_by_fingerprint(base), _group_by_fingerprint(step)
    found = [_compare_groups(base, step, ours, theirs) for ours, theirs in _match(before, after)]
    return tuple(sorted(found, key=_place))


def _group_by_fingerprint(step: Step) -> dict[str, _Group]:
    groups: dict[str, _Group] = {}
    for place, analysis in enumerate(step.analyses):
        for finding in analysis.findings:
            groups.setdefault(finding.fingerprint, []).append((place, finding))
    return groups


def _match(before: dict[str, _Group], after: dict[str, _Group]) -> Iterator[tuple[_Group, _Group]]:
    left = {name: group for name, group in after.items() if name not in before}
    for name, group in before.items():
        same = next((other for other in left if _are_alike(group[0][1], left[other][0][1])), "")
        yield group, after[name] if name in after else left.pop(same, [])
    yield from (([], group) for group in left.values())


def _are_alike(one: Finding, other: Finding) -> bool:
    return (one.kind, one.cause) == (other.kind, other.cause) and bool({*one.devices} & {*other.devices})


def _compare_groups(base: Step, step: Step, before: _Group, after: _Group) -> FindingChange:
    finding, unknown, judged = (after or before)[0][1], None, None
    change = ChangeKind.PERSISTING if before and after else ChangeKind.RESOLVED if before else ChangeKind.NEW
    if not before or not after:
        other = step if before else base
        count = sum(can_tell(analysis, finding) for analysis in other.analyses)
        judged = (count, len(other.runs)) if count else None
        if not count:
            is_short = observed_seconds(other.analyses) < SHORTEST_SECONDS
            unknown = UnknownCause.TOO_SHORT if is_short else UnknownCause.NOT_JUDGED
    return FindingChange(
        base=base.label,
        step=step.label,
        change=ChangeKind.CANNOT_TELL if unknown else change,
        kind=finding.kind,
        cause=finding.cause,
        devices=finding.devices,
        fingerprint=finding.fingerprint,
        before=_summarize(before, len(base.runs)),
        after=_summarize(after, len(step.runs)),
        unknown=unknown,
        judged=judged,
        root=finding.root,
        steps=finding.steps,
    )


def can_tell(analysis: Analysis, finding: Finding) -> bool:
    """Return whether a run can say that another's finding is absent there."""
    if observed_seconds([analysis]) < SHORTEST_SECONDS:
        return False
    gaps = (entry for entry in analysis.not_judged if entry.kind == finding.kind)
    return not any(entry.device is None or not finding.devices or entry.device in finding.devices for entry in gaps)


def _summarize(group: _Group, runs: int) -> StepFindings | None:
    if not group:
        return None
    lost = [finding.lost_gpu_seconds for _, finding in group if finding.lost_gpu_seconds is not None]
    return StepFindings(
        runs=len({place for place, _ in group}),
        findings=len(group),
        severity=max((finding.severity for _, finding in group), key=_SEVERITIES.index),
        lost_gpu_seconds=fsum(lost) / runs if lost else None,
    )


def _place(entry: FindingChange) -> tuple[int, int, float, str, tuple[str, ...]]:
    sides = [side for side in (entry.before, entry.after) if side is not None]
    gravest = max(_SEVERITIES.index(side.severity) for side in sides)
    lost = max(side.lost_gpu_seconds or 0.0 for side in sides)
    return list(ChangeKind).index(entry.change), -gravest, -lost, entry.kind, entry.devices


def summarize_by_kind(changes: Sequence[FindingChange]) -> dict[tuple[str, str | None], ChangeKind]:
    """Return what became of each kind and cause over all devices: one that came and went is still there."""
    found: dict[tuple[str, str | None], set[ChangeKind]] = {}
    for each in changes:
        found.setdefault((each.kind, each.cause), set()).add(each.change)
    return {key: _join(kinds) for key, kinds in found.items()}


def _join(kinds: set[ChangeKind]) -> ChangeKind:
    if ChangeKind.PERSISTING in kinds or {ChangeKind.NEW, ChangeKind.RESOLVED} <= kinds:
        return ChangeKind.PERSISTING
    return ChangeKind.CANNOT_TELL if ChangeKind.CANNOT_TELL in kinds else next(iter(kinds))


@dataclass(frozen=True, slots=True, kw_only=True)
class LargestFinding:
    """The findings of one kind and cause that lost most in a step; the words are of the one that did."""

    kind: str
    cause: str | None
    severity: Severity
    devices: tuple[str, ...]
    fingerprints: tuple[str, ...]
    runs: int
    findings: int
    lost_gpu_seconds: float
    summary: str
    recommendation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemainingLoss:
    """What a step loses, by class, the largest first; amounts are means over its runs.

    Nothing is known of what is unseen, for it has no utilisation; short pauses count as work, though some may be lost.
    """

    step: str
    runs: int
    held_gpu_seconds: float
    unseen_gpu_seconds: float
    pause_gpu_seconds: float
    lost_gpu_seconds: tuple[tuple[str, float], ...]
    largest: LargestFinding | None

    @property
    def lost(self) -> float:
        """All GPU time lost, in seconds."""
        return fsum(amount for _, amount in self.lost_gpu_seconds)


def measure_remaining_loss(label: str, analyses: Sequence[Analysis]) -> RemainingLoss:
    """Return what a labelled step loses, by the analyses of its runs."""
    amounts: defaultdict[str, list[float]] = defaultdict(list)
    for name, amount in (each for analysis in analyses for gpu in analysis.gpu_time for each in gpu.seconds):
        amounts[name].append(amount)
    order = (*GPU_TIME_CLASSES, *sorted(set(amounts) - set(GPU_TIME_CLASSES)))
    seconds = {name: fsum(amounts[name]) / len(analyses) for name in order if name in amounts}
    lost = [(name, amount) for name, amount in seconds.items() if name in LOST_CLASSES and amount > 0]
    return RemainingLoss(
        step=label,
        runs=len(analyses),
        held_gpu_seconds=fsum(amount for name, amount in seconds.items() if name != "no_job"),
        unseen_gpu_seconds=seconds.get("no_samples", 0.0),
        pause_gpu_seconds=seconds.get("short_pauses", 0.0),
        lost_gpu_seconds=tuple(sorted(lost, key=lambda each: -each[1])),
        largest=_find_largest(analyses),
    )


def _find_largest(analyses: Sequence[Analysis]) -> LargestFinding | None:
    groups: defaultdict[tuple[str, str], _Group] = defaultdict(list)
    for place, analysis in enumerate(analyses):
        followed = {name for finding in analysis.findings for name in finding.consequences}
        for finding in analysis.findings:
            if finding.lost_gpu_seconds and finding.fingerprint not in followed:
                groups[finding.kind, finding.cause or ""].append((place, finding))
    found = {name: _summarize(group, len(analyses)) for name, group in groups.items()}
    lost = {name: each.lost_gpu_seconds or 0.0 for name, each in found.items() if each is not None}
    # of equal losses the name decides, whatever the order of runs
    most = min(lost, key=lambda name: (-lost[name], name), default=None)
    if most is None or (summary := found[most]) is None:
        return None
    findings = [finding for _, finding in groups[most]]
    worst = max(findings, key=lambda each: (each.lost_gpu_seconds or 0.0, each.summary))
    return LargestFinding(
        kind=worst.kind,
        cause=worst.cause,
        severity=summary.severity,
        devices=tuple(sorted({device for finding in findings for device in finding.devices})),
        fingerprints=tuple(sorted({finding.fingerprint for finding in findings})),
        runs=summary.runs,
        findings=summary.findings,
        lost_gpu_seconds=lost[most],
        summary=worst.summary,
        recommendation=worst.recommendation,
    )

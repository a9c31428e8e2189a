"""Finds changes in set-up and findings between two steps, and a step's remaining losses."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import fsum

from gpureport.analysis.job.params import read_params
from gpureport.analysis.results import GPU_TIME_CLASSES, LOST_CLASSES, Analysis
from gpureport.comparison.comparable import HARDWARE, has_same_memory, read_property
from gpureport.comparison.factors import Factor
from gpureport.comparison.figures import SHORTEST_SECONDS, observed_seconds
from gpureport.comparison.steps import Step
from gpureport.findings import AdvisedStep, Finding, Severity
from gpureport.names import group_pairs
from gpureport.redaction import HIDDEN

_COMMAND = "command"  # the tag with the command line of a recording
_SETTINGS = (
    *("workers", "precision", "batch", "accumulation", "pin_memory", "non_blocking", "persistent_workers"),
    *("prefetch_factor", "prefetch", "compiled", "cuda_graphs", "cudnn_benchmark", "pretrained"),
    "asynchronous_checkpoints",
)
"""The fields of `JobParams` that advice mentions, except CPU cores, a property of the machine."""
_OF_ONE_RUN = {
    *("id", "ids", "uuid", "run_id", "job_id", "pid", "run_name", "experiment_name", "log_url", "run_url"),
    *("time", "date", "timestamp", "created", "started", "finished", "start_time", "end_time", "creation_time"),
    *("modification_time", "ping_time", "running_time", "monitoring_time", "duration", "runtime"),
    *("commit", "git_commit", "commit_hash", "git_hash", "git_sha", "sha", "user", "username", "owner", "author"),
    *("output_dir", "log_dir", "logdir", "logging_dir", "run_dir", "save_dir", "checkpoint_dir", "ckpt_dir"),
    *("note", "description", "state", "status", "port", "master_port"),
    *("account", "project", "job", "job_name", "job_state", "pod", "namespace"),
}
"""Last components of param and tag names that describe one run, not its set-up."""
_SEVERITIES = list(Severity)
_Group = list[tuple[int, Finding]]  # findings, each with the index of its run


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingValue:
    text: str | None
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupChange:
    """A `param`, `tag` or `hardware` property that differs. The most common values come first."""

    base: str
    step: str
    kind: str
    key: str
    before: str | None
    after: str | None
    values_before: tuple[SettingValue, ...]
    values_after: tuple[SettingValue, ...]
    of_one_run: bool = False

    @property
    def texts(self) -> tuple[str | None, ...]:
        return tuple(value.text for value in (*self.values_before, *self.values_after))


class ChangeKind(StrEnum):
    NEW = "new"
    PERSISTING = "persisting"
    RESOLVED = "resolved"
    CANNOT_TELL = "cannot_tell"


class UnknownCause(StrEnum):
    TOO_SHORT = "too_short"
    NOT_JUDGED = "not_judged"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFindings:
    runs: int
    findings: int
    severity: Severity
    lost_gpu_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingChange:
    """How a finding changed. Details are from the later step with the finding."""

    base: str
    step: str
    change: ChangeKind
    kind: str
    cause: str | None
    devices: tuple[str, ...]
    fingerprint: str
    before: StepFindings | None
    after: StepFindings | None
    unknown: UnknownCause | None  # Why the step without the finding could not show it.
    judged: tuple[int, int] | None  # Assessed runs and all runs in that step.
    root: str | None
    steps: tuple[AdvisedStep, ...]


def compare_setups(base: Step, step: Step) -> tuple[SetupChange, ...]:
    found = [*_compare_labels(base, step, "param"), *_compare_labels(base, step, "tag"), *_compare_gpus(base, step)]
    return tuple(sorted(found, key=_rank))


def _rank(change: SetupChange) -> tuple[int, int]:
    setups = [read_params([(change.key, text)]) for text in change.texts if text is not None]
    known = (place for place, name in enumerate(_SETTINGS) if any(getattr(one, name) is not None for one in setups))
    if change.kind != "hardware" and (place := next(known, None)) is not None:
        return 0, place
    return ("hardware", "param", "tag").index(change.kind) + 1, int(change.key == _COMMAND)


def list_distinct_changes(changes: Sequence[SetupChange]) -> tuple[SetupChange, ...]:
    """Return changes except those of single runs and, if params changed, of the command."""
    has_param = any(change.kind == "param" for change in changes)
    return tuple(each for each in changes if not (each.of_one_run or (has_param and each.key == _COMMAND)))


def has_params(base: Step, step: Step) -> bool:
    return all(any(run.info.states_setup for run in side.runs) for side in (base, step))


def _compare_labels(base: Step, step: Step, kind: str) -> Iterator[SetupChange]:
    sides = [[Factor(kind=kind).labels(run.info) for run in side.runs] for side in (base, step)]
    for key in sorted({key for side in sides for one in side for key in one}):
        counts = [Counter(one.get(key) for one in side) for side in sides]
        texts = [text for side in counts for text in side]
        # two redacted values may or may not be equal
        is_hidden = all(any(side) for side in counts) and any(HIDDEN in (text or "") for text in texts)
        shares = [{text: runs / side.total() for text, runs in side.items()} for side in counts]
        if shares[0] == shares[1] or is_hidden:
            continue
        differ = None not in texts and len(set(texts)) == len(base.runs) + len(step.runs)
        plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key).lstrip("-").replace("-", "_").lower()
        is_own = key.lower() == "mlflow.note.content" or re.split(r"[./:]", plain)[-1] in _OF_ONE_RUN
        orders = (sorted(side.items(), key=lambda each: (-each[1], each[0] or "")) for side in counts)
        before, after = (tuple(SettingValue(text=text, runs=runs) for text, runs in order) for order in orders)
        yield SetupChange(
            base=base.label,
            step=step.label,
            kind=kind,
            key=key,
            before=", ".join(sorted(filter(None, counts[0]))) or None,
            after=", ".join(sorted(filter(None, counts[1]))) or None,
            values_before=before,
            values_after=after,
            of_one_run=is_own or (differ and max(map(len, counts)) > 1),
        )


def _compare_gpus(base: Step, step: Step) -> Iterator[SetupChange]:
    for key in HARDWARE:
        before, after = (read_property(side, key) for side in (base, step))
        is_same = has_same_memory(base, step) if key == "gpu_memory" else before == after
        if before is not None and after is not None and not is_same:
            yield SetupChange(
                base=base.label,
                step=step.label,
                kind="hardware",
                key=key,
                before=str(before),
                after=str(after),
                values_before=(SettingValue(text=str(before), runs=len(base.runs)),),
                values_after=(SettingValue(text=str(after), runs=len(step.runs)),),
            )


def compare_findings(base: Step, step: Step) -> tuple[FindingChange, ...]:
    """Match findings by fingerprint or, failing that, by kind, cause and device."""
    before, after = _group_by_fingerprint(base), _group_by_fingerprint(step)
    left = {name: group for name, group in after.items() if name not in before}
    found = []
    for name, group in before.items():
        one = group[0][1]
        alike = [name for name, ((_, each), *_) in left.items() if (each.kind, each.cause) == (one.kind, one.cause)]
        same = next((other for other in alike if {*one.devices} & {*left[other][0][1].devices}), "")
        found.append(_compare_groups(base, step, group, after[name] if name in after else left.pop(same, [])))
    found += [_compare_groups(base, step, [], group) for group in left.values()]
    return tuple(sorted(found, key=_place))


def _group_by_fingerprint(step: Step) -> dict[str, _Group]:
    found = ((place, each) for place, analysis in enumerate(step.analyses) for each in analysis.findings)
    return group_pairs((each.fingerprint, (place, each)) for place, each in found)


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
    """Return the change of each kind and cause: `persisting` if only the devices changed."""
    found = group_pairs(((each.kind, each.cause), each.change) for each in changes)
    came_and_went = {ChangeKind.NEW, ChangeKind.RESOLVED}
    stayed = {key for key, kinds in found.items() if ChangeKind.PERSISTING in kinds or came_and_went <= {*kinds}}
    return {
        key: ChangeKind.PERSISTING if key in stayed else max(kinds, key=list(ChangeKind).index)
        for key, kinds in found.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class LargestFinding:
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
    """The mean losses per run, by class of GPU time, largest first."""

    step: str
    runs: int
    held_gpu_seconds: float
    unseen_gpu_seconds: float
    pause_gpu_seconds: float
    lost_gpu_seconds: tuple[tuple[str, float], ...]
    largest: LargestFinding | None

    @property
    def lost(self) -> float:
        return fsum(amount for _, amount in self.lost_gpu_seconds)


def measure_remaining_loss(label: str, analyses: Sequence[Analysis]) -> RemainingLoss:
    amounts = group_pairs(each for analysis in analyses for gpu in analysis.gpu_time for each in gpu.seconds)
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
    lost = {
        name: fsum(finding.lost_gpu_seconds or 0.0 for _, finding in group) / len(analyses)
        for name, group in groups.items()
    }
    if not lost:
        return None
    # order equal losses by name, whatever the order of runs
    most = min(lost, key=lambda name: (-lost[name], name))
    findings = [finding for _, finding in groups[most]]
    worst = max(findings, key=lambda each: (each.lost_gpu_seconds or 0.0, each.summary))
    return LargestFinding(
        kind=worst.kind,
        cause=worst.cause,
        severity=max((finding.severity for finding in findings), key=_SEVERITIES.index),
        devices=tuple(sorted({device for finding in findings for device in finding.devices})),
        fingerprints=tuple(sorted({finding.fingerprint for finding in findings})),
        runs=len({place for place, _ in groups[most]}),
        findings=len(findings),
        lost_gpu_seconds=lost[most],
        summary=worst.summary,
        recommendation=worst.recommendation,
    )

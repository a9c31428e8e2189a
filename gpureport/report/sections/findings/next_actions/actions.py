"""What to do next: at most three things over all runs, by gain and certainty, measurements last."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import fsum

from gpureport.analysis.signals import load
from gpureport.analysis.signals.load import BESIDE_OTHERS
from gpureport.comparison.gains.known_loss import is_recording_too_short
from gpureport.comparison.steps.steps import Comparison
from gpureport.findings import Confidence, Finding, Severity
from gpureport.report.model.finding_rows import FindingRow
from gpureport.report.model.head import Action
from gpureport.report.runs.gpu_time import name_whole
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.findings.next_actions import (
    action_wording,
    group_wording,
    measurement_actions,
    startup_memory,
    workers_trial,
)
from gpureport.report.sections.findings.next_actions.action_words import UNKNOWN_GAIN, ActionWording
from gpureport.report.sections.findings.rows import range_wording, row_groups
from gpureport.report.sections.findings.rows.row_groups import RowGroup
from gpureport.report.wording import display

MOST = 3
"""Actions shown."""

_NOTABLE = 0.01
"""Share of the GPU time from which a saving is worth naming."""

_MOST_OF_IT = 0.5
"""Share of the GPU time from which on waiting decides what is worth a change."""

_SHORT_RUN = 600.0
"""Seconds below which a long start-up says more of the length of the run than of its start."""

_WEIGHTS = {Confidence.HIGH: 1.0, Confidence.MEDIUM: 0.8, Confidence.LOW: 0.5}
_NOTES = {"startup_idle", "tail_idle", "pcie_degraded", "log_gap"}
"""Kinds that ask for nothing while they are information alone."""

_BELOW = 0.9
"""Share of the power drawn while slowed that a limit is set to, as the advice on it says."""

_STEP_WATTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """An action, and what it is ranked by."""

    action: Action
    severity: int
    is_follow_up: bool
    score: float


def build_actions(
    runs: Sequence[ReportRun],
    rows: Sequence[FindingRow],
    comparison: Comparison,
    best: str | None = None,
    *,
    is_hinted: bool = False,
) -> tuple[Action, ...]:
    """Return what to do next, the most promising first, at most three.

    Args:
        runs: the runs in the order of their steps.
        rows: the rows of findings over all runs.
        comparison: the runs as steps.
        best: label of the group whose findings count; those of the last step when None.
        is_hinted: whether the lead says how to give steps of one run as repetitions of each other.
    """
    step = best if best is not None and any(run.step == best for run in runs) else runs[-1].step
    groups = row_groups.gather_row_groups(runs)
    parts = [
        (row, part) for row, group in zip(rows, groups, strict=True) if (part := group.restrict_to(step)) is not None
    ]
    last = [(row, part) for row, part in parts if _stands_alone(part)]
    candidates = [
        each
        for row, group in last
        for each in _propose(
            row,
            group,
            [other for _, other in last],
            stopped=row_groups.find_stopped_gpus(group, [part for _, part in parts]),
            several=len(runs) > 1,
        )
    ]
    steps = [run for run in runs if run.step == step]
    trial = workers_trial.find_trial(steps, [group for _, group in last])
    if trial is not None:
        rank = row_groups.SEVERITIES.index(Severity.WARNING)
        candidates.append(_Candidate(action=trial, severity=rank, is_follow_up=False, score=0.0))
    candidates.sort(key=lambda each: (-each.severity, each.is_follow_up, -each.score))
    actions = [each.action for each in candidates]
    measured = measurement_actions.build_measurement_actions(
        steps, [group for _, group in last], comparison, is_hinted=is_hinted
    )
    needed = any(each.is_needed for each in measured)
    chosen = [
        *measurement_actions.record_steps_longer(comparison),
        *_unique(actions)[: MOST - 1 if needed else MOST],
        *(each.action for each in measured),
    ]
    return tuple(_unique(chosen)[:MOST])


def _unique(actions: Sequence[Action]) -> list[Action]:
    unique: dict[str, Action] = {}
    for action in actions:
        unique.setdefault(action.title, action)
    return list(unique.values())


def _stands_alone(group: RowGroup) -> bool:
    return None in group.roots


def _propose(
    row: FindingRow, group: RowGroup, others: Sequence[RowGroup], *, stopped: RowGroup | None, several: bool
) -> Iterator[_Candidate]:
    """Yield what to do about findings of the last step; nothing where they ask for nothing."""
    wording = group_wording.choose_wording(group, others, stopped)
    if wording is None or (group.severity is Severity.INFO and group.kind in _NOTES):
        return
    if group.kind == group_wording.OVERSIZED and group_wording.has_alternative(group, others):
        # the smaller GPU is named with the free memory
        return
    if group.kind == group_wording.ROOM and any(map(_waits_most_of_the_time, others)):
        # a larger batch needs its data just as slowly loaded
        return
    is_too_short = all(map(is_recording_too_short, (run.analysis for run in group.runs.values())))
    is_known = not (wording.gain or is_too_short)
    share = find_saving(group, [each for each in others if each is not group]) if is_known else 0.0
    is_single = len(group.findings) == 1 and not several
    summary = row.summary if is_single else range_wording.describe_range(group, several=several)
    if group.kind == "startup_idle":
        summary = startup_memory.describe_empty_startup(group.runs.values()) or summary
    yield _Candidate(
        action=_fill(
            wording,
            row,
            group,
            gain=_describe_gain(wording, share, group, several=several),
            why=summary or row.summary,
            stopped=stopped,
        ),
        severity=row_groups.SEVERITIES.index(group.severity),
        is_follow_up=False,
        # where the gain is not known, what was lost decides: the headline tells of the largest loss
        score=(share or max(group.lost_shares, default=0.0)) * _WEIGHTS[group.confidence],
    )
    if group.kind == "thermal_throttle" and (watts := find_capped_power(group)):
        limit = display.power(_limit_power(watts))
        why = f"It drew only {display.power(watts)} while slowed. Try {limit}: its clock may then hold."
        yield _Candidate(
            action=_fill(action_wording.COOLING_LATER, row, group, gain=UNKNOWN_GAIN, why=why, watts=watts),
            severity=row_groups.SEVERITIES.index(group.severity),
            is_follow_up=True,
            score=0.0,
        )


def _waits_most_of_the_time(group: RowGroup) -> bool:
    """Whether GPUs wait for input for most of a run, or may do so beside a CPU that other programs fill."""
    is_wait = group.kind in load.WAIT_KINDS or group.cause == BESIDE_OTHERS
    return is_wait and max(group.lost_shares, default=0.0) > _MOST_OF_IT


def _fill(  # noqa: PLR0913 - the parts of an action
    wording: ActionWording,
    row: FindingRow,
    group: RowGroup,
    *,
    gain: str,
    why: str,
    watts: float = 0.0,
    stopped: RowGroup | None = None,
) -> Action:
    filled = group_wording.fill_wording(wording, group, stopped, _limit_power(watts))
    return Action(
        title=filled.title,
        gain=gain,
        text=f"{why} {filled.how}".strip(),
        certainty=f"Confidence {row.confidence}: in {row.runs}." if row.marks else f"Confidence {row.confidence}.",
        finding=row.id,
        command=filled.command,
    )


def _describe_gain(wording: ActionWording, share: float, group: RowGroup, *, several: bool) -> str:
    """Return what an action saves; not known where the share is small or overlaps another."""
    if wording.gain or share < _NOTABLE:
        return wording.gain or UNKNOWN_GAIN
    runs = group.runs.values()
    of = "a run" if several else "the GPU time" if any(len(run.run.gpus) > 1 for run in runs) else name_whole(runs)
    is_short = group.kind == "startup_idle" and max(run.seconds for run in runs) < _SHORT_RUN
    return f"Saves up to {display.percent(share)} of {'a run this short' if is_short else of}"


def find_saving(group: RowGroup, others: Sequence[RowGroup]) -> float:
    """Return the share of the GPU time that findings lost, a mean over their runs; 0 where it overlaps another loss.

    Args:
        group: findings of one step.
        others: the other findings of that step.
    """
    for position in group.runs:
        own = _losing(group, position)
        if any(_overlap(finding, other) for finding in own for each in others for other in _losing(each, position)):
            return 0.0
    held = fsum(run.analysis.job_gpu_seconds for run in group.runs.values())
    return fsum(group.lost_by_run.values()) / held if held else 0.0


def _losing(group: RowGroup, position: int) -> list[Finding]:
    findings = [finding for each in group.groups if each.position == position for finding in each.findings]
    return [finding for finding in findings if finding.lost_gpu_seconds]


def _overlap(one: Finding, other: Finding) -> bool:
    """Return whether two findings speak of the same time of the same GPU."""
    if one.devices and other.devices and not set(one.devices) & set(other.devices):
        return False
    if not one.intervals or not other.intervals:
        return True
    return any(
        mine.start < theirs.end and theirs.start < mine.end for mine in one.intervals for theirs in other.intervals
    )


def _limit_power(watts: float) -> int:
    """Return the power limit to try, in watts, of a GPU that drew this while slowed."""
    return int(watts * _BELOW // _STEP_WATTS * _STEP_WATTS)


def find_capped_power(group: RowGroup) -> float | None:
    """Return the least power that a GPU drew while it was slowed, in watts; None where it was not recorded."""
    drawn = group.evidence("gpu_power_watts", ("mean while slowed",))
    return min((entry.observed for entry in drawn), default=None)

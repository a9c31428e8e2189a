"""Findings of one kind and cause over all runs, gathered for one row."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

from gpureport.findings import Confidence, Evidence, Finding, Severity
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.findings import finding_groups
from gpureport.report.sections.findings.finding_groups import Group
from gpureport.report.wording.grouping import group_holders

SEVERITIES = list(Severity)
_CONFIDENCES = list(Confidence)

Root = tuple[str, str | None]
"""Kind and cause of what findings follow from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroup:
    """All findings of one kind and cause.

    Attributes:
        kind: the kind.
        cause: the cause; None where the kind names none.
        groups: the findings, those of one run and one root together, in the order of the runs.
    """

    kind: str
    cause: str | None
    groups: tuple[Group, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all runs."""
        return tuple(finding for group in self.groups for finding in group.findings)

    @property
    def severity(self) -> Severity:
        """The highest severity."""
        return max((finding.severity for finding in self.findings), key=SEVERITIES.index)

    @property
    def confidence(self) -> Confidence:
        """The lowest confidence."""
        return max((finding.confidence for finding in self.findings), key=_CONFIDENCES.index)

    @property
    def runs(self) -> dict[int, ReportRun]:
        """The runs that have it, by their position in the report."""
        return {group.position: group.run for group in self.groups}

    @property
    def lost_by_run(self) -> dict[int, float]:
        """GPU-seconds that each run lost, by position; without runs whose loss is not known."""
        known = [(group.position, group.lost) for group in self.groups if group.lost is not None]
        return {position: fsum(amounts) for position, amounts in group_holders(known).items()}

    @property
    def lost(self) -> float:
        """GPU-seconds lost in the run that lost most; 0 where no run says how much."""
        return max(self.lost_by_run.values(), default=0.0)

    @property
    def lost_shares(self) -> list[float]:
        """Share of the GPU time of each run that was lost; without runs whose loss is not known."""
        held = {position: run.analysis.job_gpu_seconds for position, run in self.runs.items()}
        return [amount / held[position] for position, amount in self.lost_by_run.items() if held[position]]

    @property
    def worst(self) -> Group:
        """The group that lost most; without losses the gravest."""
        return max(self.groups, key=lambda group: (group.lost or 0.0, SEVERITIES.index(group.severity)))

    @property
    def step_names(self) -> frozenset[str]:
        """Names of the steps that its findings are given."""
        return frozenset(step.name for finding in self.findings for step in finding.steps)

    def find_suggestion(self, name: str) -> str:
        """Return how far to go with a step, by the finding that lost most; empty where none says it."""
        steps = (step for finding in (self.worst.worst, *self.findings) for step in finding.steps)
        return next((step.suggestion for step in steps if step.name == name and step.suggestion), "")

    @property
    def roots(self) -> dict[Root | None, int]:
        """What its findings follow from, each with the number of runs; None where they stand for themselves."""
        positions = group_holders((group.root, group.position) for group in self.groups)
        return {root: len(set(held)) for root, held in positions.items()}

    def restrict_to(self, step: str) -> "RowGroup | None":
        """Return the findings of one step alone; None where it has none."""
        groups = tuple(group for group in self.groups if group.run.step == step)
        return RowGroup(kind=self.kind, cause=self.cause, groups=groups) if groups else None

    def evidence(self, metric: str, statistics: Sequence[str]) -> list[Evidence]:
        """Return measured values of all findings.

        Args:
            metric: name of the column or quantity.
            statistics: beginnings of the statistic; one that ends with a dot must match in full.
        """
        return [
            entry
            for finding in self.findings
            for entry in finding.evidence
            if entry.metric == metric and any(_matches(entry.statistic, wanted) for wanted in statistics)
        ]


def _matches(statistic: str, wanted: str) -> bool:
    return statistic == wanted[:-1] if wanted.endswith(".") else statistic.startswith(wanted)


def gather_row_groups(runs: Sequence[ReportRun]) -> tuple[RowGroup, ...]:
    """Return the findings of all runs by kind and cause: by severity, then by the worst run's loss, roots first."""
    held = group_holders(
        ((group.worst.kind, group.worst.cause), group)
        for position, run in enumerate(runs)
        for group in finding_groups.groups(position, run)
    )
    gathered = [RowGroup(kind=kind, cause=cause, groups=tuple(groups)) for (kind, cause), groups in held.items()]
    return tuple(sorted(gathered, key=_rank))


def _rank(group: RowGroup) -> tuple[int, float, bool]:
    return -SEVERITIES.index(group.severity), -group.lost, None not in group.roots


def find_stopped_gpus(group: RowGroup, groups: Sequence[RowGroup]) -> RowGroup | None:
    """Return the idle gaps that follow from a hang: those of the GPUs that stopped; None where none are known.

    Args:
        group: the findings.
        groups: all findings of the same runs.
    """
    if group.cause != "hang":
        return None
    return next((each for each in groups if each.kind == "idle_gap" and (group.kind, group.cause) in each.roots), None)


def list_devices(group: RowGroup) -> list[str]:
    """Return the names of the GPUs concerned, once for each way the runs name them."""
    devices = group_holders((one.position, device) for one in group.groups for device in one.devices or [""])
    runs = group.runs
    return list(
        dict.fromkeys(runs[position].devices([each for each in named if each]) for position, named in devices.items())
    )

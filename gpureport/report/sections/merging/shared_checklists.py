"""Checklists of several runs: those with the same answers as one, with their runs named."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpureport.report.model.report_content import CheckLine, Checklist
from gpureport.report.wording import numbered_labels
from gpureport.report.wording.numbered_labels import group_holders


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedChecklist:
    """Answers, and the labels of the runs that they hold for."""

    labels: tuple[str, ...]
    lines: tuple[CheckLine, ...]

    @property
    def runs(self) -> str:
        """Its runs in words."""
        return numbered_labels.list_labels(self.labels)


def merge_checklists(runs: Sequence[Checklist]) -> tuple[SharedChecklist, ...]:
    """Return each set of answers once, that of the last run first, then by their last run."""
    holders = group_holders((run.lines, run.label) for run in reversed(runs))
    return tuple(SharedChecklist(labels=tuple(reversed(labels)), lines=lines) for lines, labels in holders.items())

"""Checklists of several runs: those with the same answers as one, with their runs named."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpureport.report.model.report_content import CheckLine, Checklist
from gpureport.report.wording import numbered_labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """Answers, and the labels of the runs that they hold for."""

    labels: tuple[str, ...]
    lines: tuple[CheckLine, ...]

    @property
    def runs(self) -> str:
        """Its runs in words."""
        return numbered_labels.list_labels(self.labels)


def shared(runs: Sequence[Checklist]) -> tuple[Shared, ...]:
    """Return each set of answers once, that of the last run first, then by their last run."""
    held: dict[tuple[CheckLine, ...], list[str]] = {}
    for run in reversed(runs):
        held.setdefault(run.lines, []).insert(0, run.label)
    return tuple(Shared(labels=tuple(labels), lines=lines) for lines, labels in held.items())

"""The headline of a run: a sentence in the present tense on its worst finding."""

from collections.abc import Sequence

from gpureport.findings import Severity
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.findings.found import Found, gather, rank
from gpureport.report.sections.findings.words import tell_finding
from gpureport.report.wording import display

_NOTABLE = 0.1
"""Share of the run from which a fact that calls for no action is the headline of a run without problems."""
_NOTED = {"no_progress", "log_gap", "startup_idle", "tail_idle"}


def find_worst(runs: Sequence[ReportRun]) -> Found | None:
    """Return the worst findings of some runs: by severity, then by GPU time lost; None where all is well.

    What follows from another finding is never the worst. A fact counts where it takes a tenth of its run.
    """
    every = [group for found in gather(runs) for group in found.groups if None in group.roots]
    return min(filter(_calls_for_attention, every), key=rank, default=None)


def _calls_for_attention(found: Found) -> bool:
    if found.severity is not Severity.INFO:
        return True
    whole = found.run.seconds
    is_noted = found.finding.kind in _NOTED and whole > 0
    return is_noted and (found.share if found.shares else found.seconds / whole) >= _NOTABLE


def describe_finding(found: Found) -> str:
    """Return the headline on findings; without words of its own the first sentence of the worst, or its title."""
    said = display.clean_sentence(found.finding.summary).partition(". ")[0].rstrip(".")
    where = f", {found.run.devices(found.devices)}" if found.devices else ""
    return tell_finding(found, now=True) or f"{said or display.shorten(f'{found.title}{where}', 80)}."

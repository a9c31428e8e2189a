"""What became of findings from one step to the next, in words."""

from collections.abc import Iterator, Sequence

from gpureport.comparison.changes import ChangeKind, FindingChange, StepFindings
from gpureport.report.model.shapes import Fact
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.findings.cards import count_findings
from gpureport.report.sections.findings.found import Found, Part
from gpureport.report.wording import display, terms
from gpureport.report.wording.differences.comparison_reasons import describe_unknown_change
from gpureport.report.wording.numbered_labels import group_holders

_NAMES = {
    ChangeKind.NEW: "New",
    ChangeKind.PERSISTING: "Persisting",
    ChangeKind.RESOLVED: "Resolved",
    ChangeKind.CANNOT_TELL: "Cannot tell",
}


def build_finding_change_facts(changes: Sequence[FindingChange], inputs: Sequence[ReportRun]) -> Iterator[Fact]:
    """Yield what became of findings, those of one kind and cause together under the name of the change.

    Args:
        changes: of one link.
        inputs: the runs, for the names of their devices.
    """
    groups = group_holders(((each.change, each.kind, each.cause, each.unknown, each.judged), each) for each in changes)
    for entries in groups.values():
        change, kind, cause = entries[0].change, entries[0].kind, entries[0].cause
        whose = next(run for run in inputs if run.step == display.clean(_step(entries[0])))
        devices = [device for entry in entries for device in entry.devices]
        title = terms.kind_title(display.clean(kind), cause)
        where = f", {whose.devices(devices)}" if devices else ""
        named = f" (cause: {display.clean(cause)})" if cause and cause not in terms.CAUSES else ""
        why = f"; {why}" if (why := _why(entries[0])) else ""
        root = _root(entries[0], inputs)
        yield Fact(name=_NAMES[change], text=f"{title}{where}{named}: {_became(entries, inputs)}{why}{root}")


def _why(entry: FindingChange) -> str:
    """Return why the change is not known, or how many repetitions it rests on if not on all; empty otherwise."""
    if entry.judged is None or entry.judged[0] == entry.judged[1]:
        return display.clean(describe_unknown_change(entry))
    count, runs = entry.judged
    without = entry.step if entry.before else entry.base
    return f"only {count} of {runs} runs of {display.clean(without)} could be judged"


def _root(entry: FindingChange, inputs: Sequence[ReportRun]) -> str:
    """Return what a finding follows from, in words; empty where from none."""
    found = (
        finding
        for run in inputs
        if run.step == display.clean(_step(entry))
        for finding in run.analysis.findings
        if finding.fingerprint == entry.root
    )
    root = next(found, None) if entry.root else None
    return f"; follows from {terms.kind_title(display.clean(root.kind), root.cause)}" if root else ""


def _step(entry: FindingChange) -> str:
    return entry.step if entry.after else entry.base


def _became(entries: Sequence[FindingChange], inputs: Sequence[ReportRun]) -> str:
    before = [entry.before for entry in entries if entry.before]
    after = [entry.after for entry in entries if entry.after]
    was = _describe_findings(before, entries[0].base, entries, inputs)
    now = _describe_findings(after, entries[0].step, entries, inputs)
    if before and after:
        return f"{was}, then {now}"
    return now if after else f"was {was}"


def _in_run(position: int, run: ReportRun, entries: Sequence[FindingChange]) -> Found | None:
    """Return what the one run of a step shows as one card; None where it has none."""
    asked = entries[0]
    devices = {device for entry in entries for device in entry.devices}
    found = tuple(
        Part(position, run, finding, None)
        for finding in run.analysis.findings
        if (finding.kind, finding.cause) == (asked.kind, asked.cause) and devices >= {*finding.devices}
    )
    return Found(found) if found else None


def _describe_findings(
    sides: Sequence[StepFindings], step: str, entries: Sequence[FindingChange], inputs: Sequence[ReportRun]
) -> str:
    """Return how many findings a step has, counted as on their card, and what they cost; of several runs a mean."""
    if not sides:
        return ""
    held = [(position, run) for position, run in enumerate(inputs) if run.step == display.clean(step)]
    group = _in_run(*held[0], entries) if len(held) == 1 else None
    number = sum(side.findings for side in sides)
    alike = group is not None and len(group.findings) == number
    count = count_findings(group) if group and alike else display.plural(number, "finding")
    runs = max(side.runs for side in sides)
    count += f" in {runs} runs" if runs > 1 else ""
    lost = [side.lost_gpu_seconds for side in sides if side.lost_gpu_seconds is not None]
    each = " a run" if len(held) > 1 else ""
    return f"{count}, up to {display.gpu_time(sum(lost))}{each}" if lost else count

"""What became of findings from one step to the next, in words."""

from collections.abc import Iterator, Sequence

from gpureport.comparison.changes import ChangeKind, FindingChange
from gpureport.report.model.shapes import Fact
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.findings.cards import count_findings
from gpureport.report.sections.findings.found import Found, Part
from gpureport.report.wording import display, terms
from gpureport.report.wording.numbered_labels import group_holders
from gpureport.report.wording.reasons import describe_unknown_change
from gpureport.report.wording.words import say

_NAMES = {
    ChangeKind.NEW: "New",
    ChangeKind.PERSISTING: "Persisting",
    ChangeKind.RESOLVED: "Resolved",
    ChangeKind.CANNOT_TELL: "Cannot tell",
}


def list_finding_changes(changes: Sequence[FindingChange], inputs: Sequence[ReportRun]) -> Iterator[Fact]:
    """Yield what became of findings, those of one kind and cause together under the name of the change.

    Args:
        changes: of one link.
        inputs: the runs, for the names of their devices.
    """
    groups = group_holders(((each.change, each.kind, each.cause, each.unknown, each.judged), each) for each in changes)
    for entries in groups.values():
        one = entries[0]
        runs = [run for run in inputs if run.step == display.clean(one.step if one.after else one.base)]
        devices = [device for entry in entries for device in entry.devices]
        every = (finding for run in runs for finding in run.analysis.findings)
        root = next((finding for finding in every if one.root and finding.fingerprint == one.root), None)
        count, of = one.judged or (0, 0)
        text = say(
            "finding.became",
            title=terms.kind_title(display.clean(one.kind), one.cause),
            devices=runs[0].devices(devices) if devices else "",
            cause=display.clean(one.cause) if one.cause and one.cause not in terms.CAUSES else "",
            was=_describe_side(entries, inputs, is_before=True),
            now=_describe_side(entries, inputs, is_before=False),
            count=str(count) if count != of else "",
            runs=of,
            without=display.clean(one.step if one.before else one.base),
            why=display.clean(describe_unknown_change(one)),
            root=terms.kind_title(display.clean(root.kind), root.cause) if root else "",
        )
        yield Fact(name=_NAMES[one.change], text=text)


def _describe_side(entries: Sequence[FindingChange], inputs: Sequence[ReportRun], *, is_before: bool) -> str:
    """Return how many findings a step has, counted as on their card, and what they cost; of several runs a mean."""
    found = [(each.before if is_before else each.after) for each in entries]
    sides = [side for side in found if side]
    if not sides:
        return ""
    label = entries[0].base if is_before else entries[0].step
    held = [(position, run) for position, run in enumerate(inputs) if run.step == display.clean(label)]
    number, runs = sum(side.findings for side in sides), max(side.runs for side in sides)
    parts = _list_parts(*held[0], entries) if len(held) == 1 else ()
    lost = [side.lost_gpu_seconds for side in sides if side.lost_gpu_seconds is not None]
    return say(
        "finding.side",
        count=count_findings(Found(parts)) if parts and len(parts) == number else display.plural(number, "finding"),
        runs=runs if runs > 1 else 0,
        lost=display.gpu_time(sum(lost)) if lost else "",
        several=len(held) > 1,
    )


def _list_parts(position: int, run: ReportRun, entries: Sequence[FindingChange]) -> tuple[Part, ...]:
    """Return what the one run of a step shows of the findings."""
    key, devices = (entries[0].kind, entries[0].cause), {device for entry in entries for device in entry.devices}
    return tuple(
        Part(position, run, finding, None)
        for finding in run.analysis.findings
        if (finding.kind, finding.cause) == key and devices >= {*finding.devices}
    )

"""One step against the one before it: what changed, what may be said of each figure, and what may be doubted."""

from collections.abc import Iterator, Sequence

from gpureport.comparison.chain import Comparison, StepPair, compare, pair_steps
from gpureport.comparison.changes import ChangeKind, FindingChange, StepFindings
from gpureport.comparison.comparable import Comparability
from gpureport.comparison.evidence import Reason, ReasonKind
from gpureport.comparison.figures import SHORTEST_REPETITION_SECONDS
from gpureport.comparison.run import SampledRun
from gpureport.comparison.setup import SetupChange
from gpureport.comparison.steps import Step
from gpureport.comparison.training import TrainingGoals
from gpureport.comparison.verdict import Delta, Verdict
from gpureport.report.model.comparison_parts import EarlierComparison, StepPairView
from gpureport.report.model.shapes import Cell, Fact, Table
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.findings.cards import count_findings
from gpureport.report.sections.findings.found import Found, Part
from gpureport.report.sections.steps import quality
from gpureport.report.sections.steps.figures import Figures, build_table, describe_prices
from gpureport.report.wording import differences, display, terms
from gpureport.report.wording.differences import FigureFormat
from gpureport.report.wording.numbered_labels import group_holders
from gpureport.report.wording.reasons import (
    SINGLE_RUN_SCATTER,
    describe_check,
    describe_left_out,
    describe_reason,
    describe_unknown_change,
    list_reasons,
)
from gpureport.report.wording.words import WORDS, name_some, say

_VALUE = 22
"""Most characters of a value, so that two stand side by side on a terminal."""
_NAME = 36
"""Most characters of the name of a setting or a metric: its last part often tells it from others."""
_LISTED = 5
"""Most names of settings that only tell runs apart."""
_SILENT = {"different_runs", "observed_time", "coverage", "source_kind"}
"""Checks that are shown only when they fail."""
_ABSENT = {"timezone": "not known", "work_unit": "not given"}
_LENGTHS = {"observed_time", "duration"}
"""Checks of how long a recording is, the limit of which is 20 s."""
_AGREE = {True: "yes", False: "doubtful", None: "unknown"}
_CHANGES = {
    ChangeKind.NEW: "New",
    ChangeKind.PERSISTING: "Persisting",
    ChangeKind.RESOLVED: "Resolved",
    ChangeKind.CANNOT_TELL: "Cannot tell",
}
_Shown = Sequence[tuple[FigureFormat, Delta]]
"""Figures of two steps in the order shown."""


def build_step_pairs(
    comparison: Comparison, links: Sequence[StepPair], inputs: Sequence[ReportRun]
) -> Iterator[StepPairView]:
    """Yield every step against the one before, and where that is another one against the first."""
    figures, first = Figures(comparison), comparison.steps[0].label
    for link in links:
        since = comparison.between(first, link.step.label) if link.base.label != first else ()
        sides = link.base, link.step
        shown = figures.list_pair(sides, link.deltas)
        doubtful = {("hardware", check.check) for check in link.doubts}
        unknown = [
            WORDS[f"check.{each.check}"]
            for each in link.comparability
            # no figure depends on the time zone
            if each.comparable is None and each.check != "timezone"
        ]
        yield StepPairView(
            label=f"{display.clean(link.base.label)} to {display.clean(link.step.label)}",
            changes=tuple(_list_changes([each for each in link.changes if (each.kind, each.key) not in doubtful])),
            figures=_build_difference_table(shown, sides, link),
            effects=_build_verdict_table(shown, since, sides, link),
            whole=_build_whole_recording_table(shown),
            verdicts=(*_list_verdicts(shown), *quality.list_verdicts(link.quality)),
            training=tuple(quality.list_facts(link.quality)),
            findings=tuple(_list_finding_changes(link.finding_changes, inputs)),
            checks=_build_check_table(link.comparability),
            doubts=tuple(map(_describe_doubt, link.doubts)),
            unknown=say("agree.names", names=display.join_words(unknown)) if unknown else "",
        )


def compare_with_earlier(
    title: str,
    earlier: Sequence[SampledRun],
    later: Sequence[SampledRun],
    goals: TrainingGoals,
    *,
    is_baseline: bool = False,
) -> EarlierComparison:
    """Return the change of every figure of some runs since earlier ones, with the verdict on each.

    Args:
        title: what the earlier runs are, as a heading.
        earlier: the runs before.
        later: the runs now.
        goals: what a person says of training metrics.
        is_baseline: whether rules on a change compare with them.
    """
    comparison = compare([*(run.in_step("before") for run in earlier), *(run.in_step("after") for run in later)], goals)
    (link,) = pair_steps(comparison)
    sides = link.base, link.step
    shown = Figures(comparison).list_pair(sides, link.deltas)
    decides = any(delta.verdict is Verdict.UNCONFIRMED and max(delta.runs) > 1 for delta in link.deltas)
    why = [say("pair.rule", scatter=SINGLE_RUN_SCATTER)] if is_baseline and decides else []
    return EarlierComparison(
        title=title,
        table=_build_verdict_table(shown, (), sides),
        notes=(*map(_describe_doubt, link.doubts), *why),
    )


def _list_notes(shown: _Shown, steps: Sequence[Step]) -> Iterator[str]:
    if any(delta.window == "steady" for _, delta in shown):
        yield WORDS["pair.settled"]
    yield describe_prices(steps, [delta.metric for _, delta in shown])


def _build_difference_table(shown: _Shown, steps: Sequence[Step], link: StepPair) -> Table:
    """Return one row a figure: before, after, and how far apart, of what had settled where it had."""
    rows = [[each.title_of(delta), *each.format_sides(delta), each.format_interval(delta)] for each, delta in shown]
    rows += quality.list_difference_rows(link.quality)
    notes = *_list_notes(shown, steps), WORDS["quality.note"] if link.quality else ""
    return build_table(("", "Before", "After", "Difference", "95% interval"), rows, *notes)


def _build_verdict_table(
    shown: _Shown, first: Sequence[Delta], steps: Sequence[Step], link: StepPair | None = None
) -> Table:
    """Return one row a figure: before, after, what changed, what may be said of it, also since the first."""
    since = {delta.metric: delta for delta in first}
    rows: list[list[Cell | str]] = []
    reasons: list[tuple[Reason | None, str]] = []
    for each, delta in shown:
        far = since.get(delta.metric)
        row: list[Cell | str] = [each.title_of(delta), *each.format_pair(delta.before, delta.after)]
        for one in filter(None, (delta, far)):
            *_, change = each.format_sides(one)
            row.append(Cell(text=change, small=each.format_interval(one), value=one.difference))
            row.append(differences.describe_verdict(one))
        rows.append(row)
        near, beyond = (one.reason and one.reason.of_any_run if one else None for one in (delta, far))
        reasons += [(near, each.noun), *([(beyond, f"{each.noun} since the first step")] if beyond != near else [])]
    columns = ("", "Before", "After", "Difference", "Verdict", "Since first", "Verdict since first")
    changes = link.quality if link else ()
    rows += quality.list_verdict_rows(changes, link.quality_since_first if link and since else None)
    notes = list_reasons(reasons), WORDS["quality.note"] if changes else ""
    return build_table(columns if since else columns[:5], rows, *_list_notes(shown, steps), *notes)


def _build_whole_recording_table(shown: _Shown) -> Table | None:
    """Return the figures over whole recordings, start-up and end included; None where nothing else is shown."""
    if all(delta.window != "steady" for _, delta in shown):
        return None
    rows = []
    for each, delta in shown:
        size, before = delta.whole.difference, delta.whole.before
        relative = differences.format_percent_change(1 + size / before) if before and size else ""
        if delta.window == "steady":
            rows.append([each.title, *each.format_sides(delta.whole), relative])
    return build_table(("", "Before", "After", "Difference", "Relative"), rows)


def _list_verdicts(shown: _Shown) -> Iterator[Fact]:
    """Yield the verdict on each figure; why no more is said once where it is the same of several."""
    first: dict[Reason, str] = {}
    named: set[str] = set()
    for each, delta in shown:
        reason = delta.reason if delta.reason and delta.reason.kind is not ReasonKind.NOT_REPEATED else None
        name, verdict = each.title_of(delta), differences.describe_verdict(delta).capitalize()
        precision = list(each.describe_precision(delta))
        if reason and delta.verdict is Verdict.NOT_ENOUGH_DATA and not precision:
            if reason in first:
                yield Fact(name=name, text=f"{verdict}, as for {first[reason]}.")
                continue
            first[reason] = each.noun
        left_out = describe_left_out([run for run in delta.left_out if run.run not in named])
        named.update(run.run for run in delta.left_out)
        why = display.clean_sentence(describe_reason(reason))
        yield Fact(name=name, text=" ".join(filter(None, (f"{verdict}.", why, left_out, *precision))))


# --- the set-up, and what must agree


def _list_changes(changes: Sequence[SetupChange]) -> Iterator[Fact]:
    """Yield what changed, and the names of what only tells runs apart."""
    for change in changes:
        if not change.of_one_run:
            name = differences.name_setting(change)
            name = name if change.kind == "hardware" else f"{change.kind} {name}"
            values = map(differences.describe_values, (change.values_before, change.values_after))
            yield Fact(name=display.shorten_middle(name, _NAME), text=", then ".join(values))
    if names := [differences.name_setting(change) for change in changes if change.of_one_run]:
        yield Fact(name="Of each run", text=f"{name_some(names, _LISTED)} tell runs apart.")


def _build_check_table(checks: Sequence[Comparability]) -> Table:
    columns, rows = ("", "Before", "After", "Comparable"), []
    for check in checks:
        if check.check not in _SILENT or not check.comparable:
            texts = *_format_sides(check), _AGREE[check.comparable]
            rows.append([WORDS[f"check.{check.check}"], *(display.shorten_middle(text, _VALUE) for text in texts)])
    return build_table(columns, rows, in_words=columns)


def _format_sides(check: Comparability) -> Iterator[str]:
    """Yield what was recorded of the earlier and of the later step."""
    for value in (check.before, check.after):
        if value is None:
            yield _ABSENT.get(check.check, display.NOT_RECORDED)
        elif isinstance(value, str):
            yield display.clean(value)
        elif check.check in _LENGTHS:
            yield display.duration_below(value, SHORTEST_REPETITION_SECONDS)
        else:
            yield display.quantity(value, check.unit)


def _describe_doubt(check: Comparability) -> str:
    """Return what differs between two steps that may be no fair pair, and why it matters."""
    return f"{WORDS[f'check.{check.check}']}: {' against '.join(_format_sides(check))}. {describe_check(check)}"


# --- what became of findings


def _list_finding_changes(changes: Sequence[FindingChange], inputs: Sequence[ReportRun]) -> Iterator[Fact]:
    """Yield what became of findings, those of one kind and cause together under the name of the change."""
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
            was=_describe_side(one.base, entries, [each.before for each in entries], inputs),
            now=_describe_side(one.step, entries, [each.after for each in entries], inputs),
            count=str(count) if count != of else "",
            runs=of,
            without=display.clean(one.step if one.before else one.base),
            why=display.clean(describe_unknown_change(one)),
            root=terms.kind_title(display.clean(root.kind), root.cause) if root else "",
        )
        yield Fact(name=_CHANGES[one.change], text=text)


def _describe_side(
    label: str,
    entries: Sequence[FindingChange],
    found: Sequence[StepFindings | None],
    inputs: Sequence[ReportRun],
) -> str:
    """Return how many findings a step has, counted as on their card, and what they cost; of several runs a mean."""
    sides = [side for side in found if side]
    if not sides:
        return ""
    held = [(position, run) for position, run in enumerate(inputs) if run.step == display.clean(label)]
    number, runs = sum(side.findings for side in sides), max(side.runs for side in sides)
    key, devices = (entries[0].kind, entries[0].cause), {device for entry in entries for device in entry.devices}
    parts = tuple(
        Part(position, run, finding, None)
        for position, run in (held if len(held) == 1 else ())
        for finding in run.analysis.findings
        if (finding.kind, finding.cause) == key and devices >= {*finding.devices}
    )
    lost = [side.lost_gpu_seconds for side in sides if side.lost_gpu_seconds is not None]
    return say(
        "finding.side",
        count=count_findings(Found(parts)) if parts and len(parts) == number else display.plural(number, "finding"),
        runs=runs if runs > 1 else 0,
        lost=display.gpu_time(sum(lost)) if lost else "",
        several=len(held) > 1,
    )

"""One step against the one before it: what changed, what may be said of each figure, and what may be doubted."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from gpureport.comparison.chain import Comparison, StepPair, compare, pair_steps
from gpureport.comparison.changes import ChangeKind, FindingChange, SetupChange, summarize_by_kind
from gpureport.comparison.comparable import Comparability
from gpureport.comparison.evidence import Reason, ReasonKind
from gpureport.comparison.figures import SHORTEST_REPETITION_SECONDS
from gpureport.comparison.run import SampledRun
from gpureport.comparison.steps import Step
from gpureport.comparison.training import TrainingGoals
from gpureport.comparison.verdict import Delta, Verdict
from gpureport.report.blocks.reference import merge_facts, merge_texts
from gpureport.report.model.blocks import Block
from gpureport.report.model.shapes import Cell, Fact, Table, build_table
from gpureport.report.sections.steps import quality
from gpureport.report.sections.steps.figures import Figures, Line, describe_prices
from gpureport.report.wording import differences, display, terms
from gpureport.report.wording.differences import FigureFormat
from gpureport.report.wording.reasons import (
    SINGLE_RUN_SCATTER,
    describe_check,
    describe_left_out,
    describe_reason,
    describe_unknown_change,
)
from gpureport.report.wording.words import WORDS, name_some, say

_VALUE, _NAME = 22, 36
"""Most characters of a value, so that two stand side by side on a terminal, and of the name of a setting or metric."""
_LISTED = 5
"""Most names of settings that only tell runs apart."""
_SILENT = {"different_runs", "observed_time", "coverage", "source_kind"}
"""Checks that are shown only when they fail."""
_ABSENT = {"timezone": "not known", "work_unit": "not given"}
_LENGTHS = {"observed_time", "duration"}
"""Checks of how long a recording is, the limit of which is 20 s."""
_AGREE = {True: "yes", False: "doubtful", None: "unknown"}
_FATES = {
    ChangeKind.RESOLVED: "Gone",
    ChangeKind.NEW: "New",
    ChangeKind.PERSISTING: "Still there",
    ChangeKind.CANNOT_TELL: "Assessed in only one of the two",
}
_Shown = Sequence[tuple[FigureFormat, Delta]]
"""Figures of two steps in the order shown."""


def list_pairs(comparison: Comparison, links: Sequence[StepPair]) -> Iterator[Block]:
    """Yield every step against the one before and also the first, then whether all were recorded alike."""
    figures, first, noted, is_first = Figures(comparison), comparison.steps[0].label, set[str](), True
    labels = [f"{display.clean(link.base.label)} to {display.clean(link.step.label)}" for link in links]
    whole = []
    for link, label in zip(links, labels, strict=True):
        since = comparison.between(first, link.step.label) if link.base.label != first else ()
        sides = link.base, link.step
        shown = figures.list_pair(sides, link.deltas)
        doubtful = {("hardware", check.check) for check in link.doubts}
        lines = [*_list_lines(shown), *quality.list_lines(link.quality)]
        beyond = {line.metric: line for line in _list_lines(figures.list_pair(sides, since))} if since else {}
        beyond |= {line.metric: line for line in quality.list_lines(link.quality_since_first)} if since else {}
        notes = [*_list_notes(shown, sides), WORDS["quality.note"] if link.quality else ""]
        table = _build_table(lines, beyond, [note for note in notes if note not in noted])
        noted.update(notes)
        yield Block(title=label, level=3, warnings=[*map(_describe_doubt, link.doubts)], table=table)
        changes = [each for each in link.changes if (each.kind, each.key) not in doubtful]
        yield Block(title="Changed", level=4, facts=[*_list_changes(changes)])
        # the table has the verdicts
        why = [Fact(name=line.title, text=line.why) for line in lines if line.why]
        texts = [WORDS["precision.note"]] if is_first and why else []
        yield Block(title="How sure", level=4, texts=texts, facts=why)
        yield Block(title="Training at the end", level=4, facts=[*quality.list_facts(link.quality)])
        found = [*_list_fates(link.finding_changes)] or [Fact(name="", text="Neither step has one.")]
        yield Block(title="Findings", level=4, facts=found)
        title, is_first = "Whole recordings, start-up and end included", False
        whole.append(Block(title=title, label=label, level=3, table=_build_whole_recording_table(shown)))
    yield Block(
        title="Whether both were recorded alike",
        level=3,
        texts=merge_texts([(label, [_name_unknown(link)]) for label, link in zip(labels, links, strict=True)]),
        facts=merge_facts(
            [(label, [*_list_checks(link.comparability)]) for label, link in zip(labels, links, strict=True)]
        ),
    )
    yield from whole


def compare_with_earlier(
    title: str,
    earlier: Sequence[SampledRun],
    later: Sequence[SampledRun],
    goals: TrainingGoals,
    *,
    is_baseline: bool = False,
) -> Block:
    """Return the change of every figure of some runs since earlier ones, with the verdict on each.

    `title` is what the earlier runs are; `is_baseline` whether rules on a change compare with them.
    """
    comparison = compare([*(run.in_step("before") for run in earlier), *(run.in_step("after") for run in later)], goals)
    (link,) = pair_steps(comparison)
    sides = link.base, link.step
    shown = Figures(comparison).list_pair(sides, link.deltas)
    decides = any(delta.verdict is Verdict.UNCONFIRMED and max(delta.runs) > 1 for delta in link.deltas)
    why = [say("pair.rule", scatter=SINGLE_RUN_SCATTER)] if is_baseline and decides else []
    # nothing else says here what verdicts rest on
    lines = [line._replace(verdict=replace(line.verdict, small=line.why)) for line in _list_lines(shown)]
    table = _build_table(lines, {}, _list_notes(shown, sides))
    return Block(title=title, table=table, texts=(*map(_describe_doubt, link.doubts), *why))


def _list_notes(shown: _Shown, steps: Sequence[Step]) -> Iterator[str]:
    if any(delta.window == "steady" for _, delta in shown):
        yield WORDS["pair.settled"]
    yield describe_prices(steps, [delta.metric for _, delta in shown])


def _list_lines(shown: _Shown) -> Iterator[Line]:
    """Yield the line of each figure; runs are named once, and so is why no more is said of several figures."""
    named: set[str] = set()
    first: dict[Reason, str] = {}
    for each, delta in shown:
        before, after = each.format_pair(delta.before, delta.after)
        reason = delta.reason if delta.reason and delta.reason.kind is not ReasonKind.NOT_REPEATED else None
        why = display.clean_sentence(describe_reason(reason))
        precision = list(each.describe_precision(delta))
        if reason and delta.verdict is Verdict.NOT_ENOUGH_DATA and not precision:
            why = f"As for {first[reason]}." if reason in first else why
            first.setdefault(reason, each.noun)
        left_out = describe_left_out([run for run in delta.left_out if run.run not in named])
        named.update(run.run for run in delta.left_out)
        size = each.format_sides(delta)[-1]
        yield Line(
            metric=delta.metric,
            title=each.title_of(delta),
            before=before,
            after=after,
            change=Cell(text=size, small=each.format_interval(delta), value=delta.difference),
            verdict=Cell(text=differences.describe_verdict(delta)),
            why=display.join(why, left_out, *precision, by=" "),
        )


def _build_table(lines: Sequence[Line], since: Mapping[str, Line], notes: Iterable[str]) -> Table:
    """Return one row a figure: before, after, what changed, what may be said of it, also since the first."""
    rows: list[list[Cell | str]] = []
    for line in lines:
        row: list[Cell | str] = [line.title, line.before, line.after]
        for each in (line, since.get(line.metric)) if since else (line,):
            row += [each.change, each.verdict] if each else ["", ""]
        rows.append(row)
    columns = ("", "Before", "After", "Difference", "Verdict", "Since first", "Verdict since first")
    shown = columns if since else columns[:5]
    return build_table(shown, rows, *notes, in_words=("Verdict", "Verdict since first"))


def _build_whole_recording_table(shown: _Shown) -> Table | None:
    """Return the figures over whole recordings, start-up and end included; None where nothing else is shown."""
    rows = []
    for each, delta in shown:
        size, before = delta.whole.difference, delta.whole.before
        relative = differences.format_percent_change(1 + size / before) if before and size else ""
        if delta.window == "steady":
            rows.append([each.title, *each.format_sides(delta.whole), relative])
    return build_table(("", "Before", "After", "Difference", "Relative"), rows) if rows else None


# --- the set-up, and what must agree


def _list_changes(changes: Sequence[SetupChange]) -> Iterator[Fact]:
    for change in changes:
        if not change.of_one_run:
            name = differences.name_setting(change)
            name = name if change.kind == "hardware" else f"{change.kind} {name}"
            values = map(differences.describe_values, (change.values_before, change.values_after))
            yield Fact(name=display.shorten_middle(name, _NAME), text=", then ".join(values))
    if names := [differences.name_setting(change) for change in changes if change.of_one_run]:
        yield Fact(name="Of each run", text=f"{name_some(names, _LISTED)} tell runs apart.")


def _name_unknown(link: StepPair) -> str:
    """Return what may make a comparison doubtful but was not recorded; no figure depends on the time zone."""
    unknown = [each.check for each in link.comparability if each.comparable is None and each.check != "timezone"]
    names = display.join_words([WORDS[f"check.{check}"] for check in unknown])
    return say("agree.names", names=names) if unknown else ""


def _list_checks(checks: Sequence[Comparability]) -> Iterator[Fact]:
    for check in checks:
        if check.check not in _SILENT or not check.comparable:
            before, after = (display.shorten_middle(text, _VALUE) for text in _format_sides(check))
            both = before if before == after else f"{before}, then {after}"
            yield Fact(name=WORDS[f"check.{check.check}"], text=f"{both}; alike: {_AGREE[check.comparable]}")


def _format_sides(check: Comparability) -> Iterator[str]:
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
    return f"{WORDS[f'check.{check.check}']}: {' against '.join(_format_sides(check))}. {describe_check(check)}"


# --- what became of findings


def _list_fates(changes: Sequence[FindingChange]) -> Iterator[Fact]:
    fates = summarize_by_kind(changes)
    for fate, name in _FATES.items():
        titles = (terms.kind_title(display.clean(kind), cause) for (kind, cause), each in fates.items() if each is fate)
        if named := dict.fromkeys(titles):
            yield Fact(name=name, text="; ".join(named))
    if why := dict.fromkeys(display.clean(describe_unknown_change(each)) for each in changes if each.unknown):
        yield Fact(name="Not known", text="; ".join(why))

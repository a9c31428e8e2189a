"""Statements that hold for several runs, each made once with the runs that it holds for."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, TypeVar

from gpureport.findings import Outcome
from gpureport.report.model.comparison_parts import ComparisonPart, StepPairView
from gpureport.report.model.report_content import (
    AnswerLine,
    Answers,
    CheckLine,
    Checklist,
    GpuTable,
    Report,
    RunFacts,
    RunQuality,
    RunTable,
)
from gpureport.report.model.shapes import EMPTY, HEADING, Cell, Fact, ReportSection, Table
from gpureport.report.wording import display, numbered_labels
from gpureport.report.wording.numbered_labels import group_holders

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

LabelledTable = TypeVar("LabelledTable", bound=GpuTable | RunTable)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedText:
    """A statement, and the runs that it holds for in words; empty where it holds for all of them."""

    runs: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFact:
    """What is said of runs under one name."""

    name: str
    said: tuple[SharedText, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedChecklist:
    """Answers, and the labels of the runs that they hold for, also in words."""

    labels: tuple[str, ...]
    lines: tuple[CheckLine, ...]
    runs: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedAnswer:
    """What became of a kind, in how many runs, and the cards of all of them."""

    line: AnswerLine
    runs: str
    cards: tuple[str, ...]


def merge_facts(runs: Sequence[RunFacts | RunQuality]) -> tuple[SharedFact, ...]:
    """Return the statements of runs by their names, in the order in which they first stand."""
    holders = group_holders((fact, run.label) for run in runs for fact in run.facts)
    names = group_holders((fact.name, _share(fact.text, labels, len(runs))) for fact, labels in holders.items())
    return tuple(SharedFact(name=name, said=tuple(texts)) for name, texts in names.items())


def merge_notes(runs: Sequence[RunQuality]) -> tuple[SharedText, ...]:
    """Return what else a reader must know of runs, in the order in which it first stands."""
    holders = group_holders((note, run.label) for run in runs for note in dict.fromkeys(run.notes))
    return tuple(_share(note, labels, len(runs)) for note, labels in holders.items())


def _share(text: str, labels: Sequence[str], runs: int) -> SharedText:
    return SharedText(runs="" if len(labels) == runs else numbered_labels.list_labels(labels), text=text)


def merge_checklists(runs: Sequence[Checklist]) -> tuple[SharedChecklist, ...]:
    """Return each set of answers once, that of the last run first, then by their last run."""
    holders = group_holders((run.lines, run.label) for run in reversed(runs))
    return tuple(
        SharedChecklist(labels=tuple(labels[::-1]), lines=lines, runs=numbered_labels.list_labels(labels[::-1]))
        for lines, labels in holders.items()
    )


def merge_answers(runs: Sequence[Answers]) -> Iterator[tuple[AnswerLine, list[SharedAnswer]]]:
    """Yield each kind of each group of devices with its answers, and the runs that each holds for."""
    lines = group_holders(((line.title, line.group), (line, run.label)) for run in runs for line in run.lines)
    for held in lines.values():
        answers = group_holders((replace(line, cards=()), (line, label)) for line, label in held)
        yield (
            held[0][0],
            [
                SharedAnswer(
                    line=line,
                    runs="" if len(each) == len(held) else f"{len(each)} of {display.plural(len(held), 'run')}",
                    cards=tuple(dict.fromkeys(card for one, _ in each for card in one.cards)),
                )
                for line, each in answers.items()
            ],
        )


def join_single_row_tables(runs: Sequence[LabelledTable]) -> tuple[LabelledTable, ...]:
    """Return tables of runs, those of one row as one; as they are unless all have one row and the same columns."""
    columns = {run.table.columns for run in runs}
    if len(runs) == 1 or len(columns) != 1 or any(len(run.table.rows) != 1 for run in runs):
        return tuple(runs)
    one, of_gpus = runs[0], isinstance(runs[0], GpuTable)
    # a GPU is not named where every run has the same one
    is_named = not of_gpus or len({run.table.rows[0].head.text for run in runs}) > 1
    rows = tuple(
        replace(row, head=Cell(text=f"{run.label}, {row.head.text}" if is_named else run.label))
        for run in runs
        for row in run.table.rows
    )
    # what no run recorded is under the first table of GPUs
    notes = one.table.notes
    if not of_gpus:
        holders = group_holders((note, run.label) for run in runs for note in run.table.notes)
        shared = [note for note, labels in holders.items() if len(labels) == len(runs)]
        own = [f"{display.join_words(held)}: {note}" for note, held in holders.items() if len(held) < len(runs)]
        notes = (*shared, *own)
    named = ("Run" if of_gpus else f"Run, {one.table.columns[0].lower()}", *one.table.columns[1:])
    return (
        replace(one, label=f"all {len(runs)} runs", table=replace(one.table, columns=named, rows=rows, notes=notes)),
    )


def list_plain_sections(report: Report) -> Iterator[ReportSection]:
    """Yield the sections of every field of the report that has a heading, in the order of the fields."""
    for part in fields(report):
        heading, several = part.metadata.get(HEADING, ""), len(report.quality) > 1
        found = getattr(report, part.name) if heading else ()
        facts = tuple(
            Fact(name=fact.name, text=f"{each.runs}: {each.text}" if each.runs else each.text)
            for fact in merge_facts([each for each in found if isinstance(each, RunFacts)])
            for each in fact.said
        )
        if facts:
            yield ReportSection(heading=heading, facts=facts)
        tables = [each for each in found if isinstance(each, RunTable)]
        joined = join_single_row_tables(tables) if tables else ()
        for each in joined:
            # one table for all runs names them in its rows
            label = each.label if several and len(joined) == len(tables) else ""
            yield ReportSection(heading=heading, label=label, table=each.table)


def list_comparison_sections(part: ComparisonPart) -> Iterator[ReportSection]:
    """Yield the charts of steps in words, then every other field that has a heading, of each pair of steps last."""
    for chart in part.charts:
        facts = tuple(Fact(name=row.label, text=row.sentence) for row in chart.rows)
        yield ReportSection(heading=chart.title, facts=facts)
    yield from _list_titled(part, "")
    for pair in part.links:
        yield from _list_titled(pair, pair.label)


def _list_titled(part: "DataclassInstance", label: str) -> Iterator[ReportSection]:
    """Yield every field that has a heading and holds a table or statements."""
    for each in fields(part):
        heading, value = each.metadata.get(HEADING), getattr(part, each.name) or each.metadata.get(EMPTY)
        if not heading or not value:
            continue
        if isinstance(value, Table):
            yield ReportSection(heading=heading, label=label, table=value)
            continue
        said = (value,) if isinstance(value, str) else value
        yield from (entry for entry in said if isinstance(entry, ReportSection))
        facts = [Fact(name="", text=entry) if isinstance(entry, str) else entry for entry in said]
        if isinstance(facts[0], Fact):
            yield ReportSection(heading=heading, label=label, facts=tuple(facts))


def share_content(report: Report) -> dict[str, Sequence[SharedFact] | Sequence[SharedText]]:
    """Return what the pages of a PDF say of several runs or comparisons: each statement once."""
    links = report.comparison.links if report.comparison else ()
    words = {line.outcome: line.outcome_text for each in report.answers for line in each.lines}
    return {
        "spending": merge_facts(report.spending),
        "quality": merge_facts(report.quality),
        "notes": merge_notes(report.quality),
        "answers": merge_facts(
            [RunFacts(label=run.label, facts=tuple(_list_answers(run, words))) for run in report.answers]
        ),
        "verdicts": merge_facts([RunFacts(label=link.label, facts=link.verdicts) for link in links]),
        "recordings": merge_facts([RunFacts(label=link.label, facts=tuple(_list_recordings(link))) for link in links]),
    }


def _list_answers(run: Answers, words: Mapping[str, str]) -> Iterator[Fact]:
    """Yield the kinds of a run by what became of them, as far as anything became of one in any run."""
    for outcome in filter(words.get, Outcome):
        kinds = []
        for line in run.lines:
            about = ", ".join([*filter(None, [line.group]), *line.cards])
            kinds += [f"{line.title} ({about})" if about else line.title] if line.outcome == outcome else []
        yield Fact(name=display.raise_first(words[outcome]), text=", ".join(kinds) or "none")


def _list_recordings(link: StepPairView) -> Iterator[Fact]:
    """Yield what must agree between the two sides of a comparison, with both values where they differ."""
    for row in link.checks.rows:
        before, after, alike = (cell.text for cell in row.cells)
        both = before if before == after else f"{before}, then {after}"
        yield Fact(name=row.head.text, text=f"{both}; alike: {alike}")

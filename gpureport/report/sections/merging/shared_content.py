"""What the pages of a PDF say of several runs or comparisons: each statement once, with those that it holds for."""

from collections.abc import Iterator
from dataclasses import dataclass

from gpureport.findings import Outcome
from gpureport.report.model.comparison_parts import StepPairView
from gpureport.report.model.report_content import AnswerLine, Answers, Report
from gpureport.report.model.shapes import Fact
from gpureport.report.sections.merging.shared_facts import SharedFact, SharedText, merge_facts, merge_notes
from gpureport.report.wording import display


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """What is said under one name of a run or a comparison."""

    label: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedContent:
    """Statements by their names.

    Attributes:
        spending: energy and cost.
        quality: how much of the data could be used.
        notes: what else a reader must know of it.
        answers: the kinds, by what became of them.
        verdicts: how sure each figure of a comparison is.
        recordings: whether both sides of a comparison were recorded alike.
    """

    spending: tuple[SharedFact, ...]
    quality: tuple[SharedFact, ...]
    notes: tuple[SharedText, ...]
    answers: tuple[SharedFact, ...]
    verdicts: tuple[SharedFact, ...]
    recordings: tuple[SharedFact, ...]


def share_content(report: Report) -> SharedContent:
    """Return the statements of a report that several of its runs or comparisons may have in common."""
    links = report.comparison.links if report.comparison else ()
    return SharedContent(
        spending=merge_facts(report.spending),
        quality=merge_facts(report.quality),
        notes=merge_notes(report.quality),
        answers=merge_facts([_answers(run, report.answers) for run in report.answers]),
        verdicts=merge_facts([Statements(label=link.label, facts=link.verdicts) for link in links]),
        recordings=merge_facts([Statements(label=link.label, facts=tuple(_recordings(link))) for link in links]),
    )


def _answers(run: Answers, runs: tuple[Answers, ...]) -> Statements:
    """Return the kinds of a run by what became of them, as far as anything became of one in any run."""
    words = {line.outcome: line.outcome_text for each in runs for line in each.lines}
    kinds = {
        words[outcome]: [_kind(line) for line in run.lines if line.outcome == outcome]
        for outcome in Outcome
        if outcome in words
    }
    facts = (Fact(name=display.raise_first(name), text=", ".join(found) or "none") for name, found in kinds.items())
    return Statements(label=run.label, facts=tuple(facts))


def _kind(line: AnswerLine) -> str:
    """Return a kind in words, with the group of GPUs and the cards that an answer is about."""
    about = [*filter(None, [line.group]), *line.cards]
    return f"{line.title} ({', '.join(about)})" if about else line.title


def _recordings(link: StepPairView) -> Iterator[Fact]:
    """Yield what must agree between the two sides of a comparison, with both values where they differ."""
    for row in link.checks.rows:
        before, after, alike = (cell.text for cell in row.cells)
        both = before if before == after else f"{before}, then {after}"
        yield Fact(name=row.head.text, text=f"{both}; alike: {alike}")

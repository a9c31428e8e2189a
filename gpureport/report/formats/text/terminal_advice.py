"""Steps to take, checklists and answers as lines of plain text."""

from collections.abc import Iterator, Sequence

from gpureport.report.model.finding_card import AdviceStep
from gpureport.report.model.report_content import AnswerLine, Answers, Checklist
from gpureport.report.sections.merging import merge_checklists
from gpureport.report.wording import display
from gpureport.report.wording.terminal_lines import Line, Page


def step_lines(lines: Sequence[AdviceStep], page: Page) -> Iterator[Line]:
    """Yield the steps one below the other, each with what it needs, risks and shows."""
    for place, step in enumerate(lines, 1):
        yield from page.wrapped(f"{step.title}: {step.do}", 3, f"Step {place}")
        yield from page.wrapped(f"When: {step.when}", 5, " ")
        if step.unknown:
            yield from page.wrapped(f"Not known: whether {step.unknown}.", 5, " ")
        yield from page.wrapped(f"Risk: {step.risk} Check: {step.check}", 5, " ")


def checklist_lines(runs: Sequence[Checklist], page: Page) -> Iterator[Line]:
    """Yield the questions of the practice, and what to record to answer more of them.

    Answers that several runs have in common stand once, those of the last run at the end.
    """
    for each in reversed(merge_checklists(runs)):
        yield from page.heading("Checklist", each.runs if len(runs) > 1 else "")
        widest = max((display.terminal_width(line.state_text) for line in each.lines), default=0)
        for line in each.lines:
            yield from page.wrapped(f"{line.title}: {line.reason}", 2, display.pad_to_width(line.state_text, widest))
            if line.recording:
                yield from page.wrapped(line.recording, 4, "Needs")


def answer_lines(runs: Sequence[Answers], page: Page) -> Iterator[Line]:
    """Yield what became of the checks: how many of each outcome, and which ones."""
    for run in runs:
        yield from page.heading("Every kind", run.label if len(runs) > 1 else "")
        yield from page.wrapped(f"{run.summary}.", 2)
        for group in dict.fromkeys(line.group for line in run.lines):
            yield from _group(group, [line for line in run.lines if line.group == group], page)


def _group(name: str, lines: Sequence[AnswerLine], page: Page) -> Iterator[Line]:
    if name:
        yield from page.wrapped(f"{name}:", 2)
    for outcome in dict.fromkeys(line.outcome_text for line in lines):
        kinds = ", ".join(_kind(line) for line in lines if line.outcome_text == outcome)
        yield from page.wrapped(f"{outcome}: {kinds}", 2)


def _kind(line: AnswerLine) -> str:
    cards = f" ({', '.join(line.cards)})" if line.cards else ""
    part = " in part" if line.reason and line.cards else ""
    return f"{line.kind}{cards}{part}"

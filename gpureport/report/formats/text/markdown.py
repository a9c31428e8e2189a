"""The report as Markdown for a merge request or a job summary: the first screen, the steps and a row a finding.

Text from logs is escaped, so that names cannot become markup. Whatever else a report holds is on the page and in JSON.
"""

from collections.abc import Iterator

from gpureport.report.formats.text.follow_up import build_report_command
from gpureport.report.formats.text.markdown_parts import (
    LIMIT,
    LONGEST_CELL,
    LONGEST_TEXT,
    MOST_ROWS,
    fit_lines,
    format_action,
    format_rows,
    format_table,
    head_lines,
    list_notes,
    spent_lines,
    write_sentence,
)
from gpureport.report.formats.text.markdown_syntax import escape, inline_code
from gpureport.report.model.pictures import SignalHistory
from gpureport.report.model.report_content import Report
from gpureport.report.model.shapes import Table
from gpureport.report.wording import display

__all__ = ["LIMIT", "render"]

_DOUBTS = 5


def render(report: Report) -> str:
    """Return the report as Markdown of at most `LIMIT` bytes."""
    return fit_lines(_body_lines(report), _closing_lines(report))


def _body_lines(report: Report) -> Iterator[str]:
    yield from head_lines(report)
    if report.policy:
        yield from ("## Rules", "", *format_table(report.policy), "", *list_notes(report.policy), "")
    if report.worst:
        yield from _worst_lines(report.worst)
    if report.spent:
        yield from spent_lines(report.spent)
    if report.actions:
        yield from ("## What to do next", "")
        yield from (f"{place}. {format_action(each)}" for place, each in enumerate(report.actions, 1))
        yield ""
    if report.steps:
        yield from _step_lines(report, report.steps)
    yield from _finding_lines(report)
    yield from (write_sentence(report.judgement.sentence), "")
    yield from ([write_sentence(report.judgement.advice), ""] if report.judgement.advice else [])


def _worst_lines(history: SignalHistory) -> Iterator[str]:
    """Yield what the signals of the worst GPU show, in words."""
    notes = [f"{panel.label}: {panel.note}" for panel in history.panels if panel.note]
    if notes:
        told = [*notes, *([history.span_text] if history.span_text else [])]
        yield from (f"**{escape(history.title)}:** {write_sentence('; '.join(told))}", "")


def _step_lines(report: Report, steps: Table) -> Iterator[str]:
    """Yield the study of groups, the table of steps, and what makes a comparison doubtful."""
    part = report.comparison
    for section in part.study if part else ():
        title = ", ".join(filter(None, (section.heading, section.label)))
        yield from (f"## {write_sentence(title)}", "", *(format_table(section.table) if section.table else ()), "")
        yield from ([*list_notes(section.table), ""] if section.table else [])
        yield from (
            f"- {write_sentence(': '.join(filter(None, (fact.name, fact.text))))}" for fact in section.facts[:MOST_ROWS]
        )
        yield ""
    yield from (f"## {write_sentence(report.steps_heading)}", "", *format_table(steps), "", *list_notes(steps), "")
    doubts = dict.fromkeys(doubt for pair in (part.links if part else ()) for doubt in pair.doubts)
    yield from (f"- {write_sentence(doubt)}" for doubt in list(doubts)[:_DOUBTS])
    yield from ([""] if doubts else [])


def _finding_lines(report: Report) -> Iterator[str]:
    if not report.rows:
        return
    rows = (
        (
            row.severity,
            f"{row.title} ({row.kind})\n{row.summary}",
            row.runs,
            row.extent,
            display.shorten(row.advice, LONGEST_CELL),
        )
        for row in report.rows
    )
    yield from ("## Findings", "", *format_rows(("", "Finding", "Runs", "How much", "What to do"), rows), "")


def _closing_lines(report: Report) -> Iterator[str]:
    words = build_report_command(display.shorten(report.method.command, LONGEST_TEXT))
    command = f" · full report: {inline_code(' '.join(words))}" if words else ""
    yield f"gpureport {escape(display.shorten(report.version, LONGEST_CELL))}{command}"

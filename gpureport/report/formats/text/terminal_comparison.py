"""The whole of a comparison of steps as text for a terminal or a pipe."""

from collections.abc import Iterator

from gpureport.report.formats.text import follow_up, terminal_gains, terminal_head, terminal_overview, terminal_tables
from gpureport.report.model.report_content import Report
from gpureport.report.sections.comparison.comparison_content import ComparisonView
from gpureport.report.wording.terminal_lines import Line, Page, render_lines


def render(view: ComparisonView, width: int = 80, *, colour: bool = False, report: Report | None = None) -> str:
    """Return the comparison as text.

    Args:
        view: the content.
        width: columns to fill.
        colour: whether headings and warnings may carry escape codes.
        report: the report on the same runs, whose head comes first; without it the view's own sentence does.
    """
    page = Page(width=width, ascii=False)
    return render_lines(_lines(view, report, page), colour=colour)


def _lines(view: ComparisonView, report: Report | None, page: Page) -> Iterator[Line]:
    if report is None:
        yield from page.wrapped(view.subtitle, style="soft")
        if view.sentence:
            yield Line()
            yield from page.wrapped(view.sentence, style="heading")
    else:
        yield from terminal_head.head_lines(report, page)
    head = (*report.verdict.details, *report.verdict.notes) if report else ()
    for note in view.notes:
        if note not in head:
            yield from page.wrapped(note, 2)
    if report:
        yield from terminal_overview.list_actions(report.actions, page, has_rows=False)
    if view.gains:
        yield from terminal_gains.gain_lines(view.gains, page)
    yield from terminal_tables.comparison_lines(view, page)
    if report:
        yield from follow_up.report_lines(report.method.command, page)

"""A comparison of steps as text for a terminal or a pipe."""

from collections.abc import Iterator

from gpureport.report.formats.text import terminal_gains, terminal_tables
from gpureport.report.sections.comparison.comparison_content import ComparisonView
from gpureport.report.wording.terminal_lines import Line, Page, render_lines


def render(view: ComparisonView, width: int = 80, *, colour: bool = False) -> str:
    """Return the comparison as text.

    Args:
        view: the content.
        width: columns to fill.
        colour: whether headings and warnings may carry escape codes.
    """
    page = Page(width=width, ascii=False)
    return render_lines(_lines(view, page), colour=colour)


def _lines(view: ComparisonView, page: Page) -> Iterator[Line]:
    yield from page.wrapped(view.subtitle, style="soft")
    if view.sentence:
        yield Line()
        yield from page.wrapped(view.sentence, style="heading")
    for note in view.notes:
        yield from page.wrapped(note, 2)
    if view.gains:
        yield from terminal_gains.gain_lines(view.gains, page)
    yield from terminal_tables.comparison_lines(view, page)

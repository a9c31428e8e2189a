"""An explanation as text for a terminal or a pipe."""

from collections.abc import Iterator

from gpureport.report.model.shapes import Explanation, Section
from gpureport.report.wording.terminal_lines import Line, Page, render_lines


def render(content: Explanation, width: int = 80, *, colour: bool = False) -> str:
    """Return the explanation as text; lines to be copied are never wrapped.

    Args:
        content: what to say.
        width: columns to fill.
        colour: whether headings may carry escape codes.
    """
    page = Page(width=width, ascii=False)
    return render_lines(_lines(content, page), colour=colour)


def _lines(content: Explanation, page: Page) -> Iterator[Line]:
    yield from page.wrapped(content.title, style="heading")
    for section in content.sections:
        yield from _section(section, page)


def _section(section: Section, page: Page) -> Iterator[Line]:
    yield Line()
    if section.title:
        yield from page.wrapped(section.title, style="heading")
    yield from (Line(line) for line in section.code)
    for paragraph in section.paragraphs:
        yield from page.wrapped(paragraph, 2)
    column = max((len(fact.name) for fact in section.facts), default=0) + 1
    before = ""
    for fact in section.facts:
        name = "" if fact.name == before else fact.name
        yield from page.wrapped(fact.text, 2, name.ljust(column) if fact.name else "")
        before = fact.name

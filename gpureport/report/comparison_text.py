"""A comparison of steps as text for a terminal or a pipe."""

from collections.abc import Iterator

from gpureport.report import text_tables
from gpureport.report.comparison_view import ComparisonView, LinkView
from gpureport.report.lines import Line, Page, finished


def render(view: ComparisonView, width: int = 80, *, colour: bool = False) -> str:
    """Return the comparison as text.

    Args:
        view: the content.
        width: columns to fill.
        colour: whether headings and warnings may carry escape codes.
    """
    page = Page(width=width, ascii=False)
    return "\n".join(finished(line, colour=colour, ascii_only=False) for line in _lines(view, page)) + "\n"


def _lines(view: ComparisonView, page: Page) -> Iterator[Line]:
    yield from page.wrapped(view.subtitle, style="soft")
    if view.sentence:
        yield Line()
        yield from page.wrapped(view.sentence, style="heading")
    for note in view.notes:
        yield from page.wrapped(note, 2)
    if view.steps:
        yield from page.heading("Steps")
        yield from text_tables.grid(view.steps, page, whole=True)
        if view.steps.note:
            yield from page.wrapped(view.steps.note, 2, style="soft")
    if view.since_first:
        yield from page.heading("Since the first step")
        yield from text_tables.facts(view.since_first, page)
    if view.groups:
        yield from page.heading("Steps as groups")
        yield from text_tables.grid(view.groups, page, whole=True)
    if view.across:
        yield from page.heading("Over all steps")
        yield from text_tables.facts(view.across, page)
    if view.left:
        yield from page.heading("Left in the last step")
        yield from text_tables.facts(view.left, page)
    for link in view.links:
        yield from _link(link, page)


def _link(link: LinkView, page: Page) -> Iterator[Line]:
    if link.changes:
        yield from page.heading("Changed", link.label)
        yield from text_tables.facts(link.changes, page)
    yield from page.heading("Differences", link.label)
    yield from text_tables.grid(link.figures, page, whole=True)
    if link.figures.note:
        yield from page.wrapped(link.figures.note, 2, style="soft")
    yield from page.heading("Verdicts", link.label)
    yield from text_tables.facts(link.verdicts, page)
    if link.whole:
        yield from page.heading("Whole recordings", link.label)
        yield from text_tables.grid(link.whole, page, whole=True)
    if link.training:
        yield from page.heading("Training at the end", link.label)
        yield from text_tables.facts(link.training, page)
    yield from _findings(link, page)
    yield from _comparable(link, page)


def _findings(link: LinkView, page: Page) -> Iterator[Line]:
    yield from page.heading("Findings", link.label)
    yield from text_tables.facts(link.findings, page)
    if not link.findings:
        yield from page.wrapped("Neither step has a finding.", 2)


def _comparable(link: LinkView, page: Page) -> Iterator[Line]:
    yield from page.heading("Comparable?", link.label)
    yield from text_tables.grid(link.checks, page, whole=True)
    for doubt in link.doubts:
        yield from page.wrapped(doubt, 2, "Doubtful", style="warning")
    if link.unknown:
        yield from page.wrapped(link.unknown, 2, "Unknown")

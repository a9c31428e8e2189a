"""A comparison of steps as text for a terminal or a pipe."""

from collections.abc import Iterator, Sequence

from gpureport.report.formats.text import terminal_tables
from gpureport.report.model.comparison_parts import StepPairView
from gpureport.report.model.shapes import Fact, Table
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
    yield from _table("Steps", view.steps, page)
    yield from _facts("Since the first step", view.since_first, page)
    yield from _table("Steps as groups", view.groups, page)
    yield from _facts("What is still lost", view.remaining, page)
    yield from _facts("What to do next", view.advice, page)
    yield from _facts("Over all steps", view.across, page)
    for link in view.links:
        yield from _link_lines(link, page)


def _table(title: str, table: Table | None, page: Page) -> Iterator[Line]:
    if table is not None:
        yield from page.heading(title)
        yield from terminal_tables.grid_lines(table, page, whole=True)
        if table.note:
            yield from page.wrapped(table.note, 2, style="soft")


def _facts(title: str, facts: Sequence[Fact], page: Page) -> Iterator[Line]:
    if facts:
        yield from page.heading(title)
        yield from terminal_tables.fact_lines(facts, page)


def _link_lines(link: StepPairView, page: Page) -> Iterator[Line]:
    if link.changes:
        yield from page.heading("Changed", link.label)
        yield from terminal_tables.fact_lines(link.changes, page)
    yield from page.heading("Differences", link.label)
    yield from terminal_tables.grid_lines(link.figures, page, whole=True)
    if link.figures.note:
        yield from page.wrapped(link.figures.note, 2, style="soft")
    yield from page.heading("Verdicts", link.label)
    yield from terminal_tables.fact_lines(link.verdicts, page)
    if link.whole:
        yield from page.heading("Whole recordings", link.label)
        yield from terminal_tables.grid_lines(link.whole, page, whole=True)
    if link.training:
        yield from page.heading("Training at the end", link.label)
        yield from terminal_tables.fact_lines(link.training, page)
    yield from _findings(link, page)
    yield from _comparable(link, page)


def _findings(link: StepPairView, page: Page) -> Iterator[Line]:
    yield from page.heading("Findings", link.label)
    yield from terminal_tables.fact_lines(link.findings, page)
    if not link.findings:
        yield from page.wrapped("Neither step has a finding.", 2)


def _comparable(link: StepPairView, page: Page) -> Iterator[Line]:
    yield from page.heading("Comparable?", link.label)
    yield from terminal_tables.grid_lines(link.checks, page, whole=True)
    for doubt in link.doubts:
        yield from page.wrapped(doubt, 2, "Doubtful", style="warning")
    if link.unknown:
        yield from page.wrapped(link.unknown, 2, "Unknown")

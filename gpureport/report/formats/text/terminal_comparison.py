"""A comparison of steps as text for a terminal or a pipe."""

from collections.abc import Iterator

from gpureport.report.formats.text import terminal_gains, terminal_tables
from gpureport.report.model.comparison_parts import StepPairView
from gpureport.report.model.shapes import ReportSection
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
    yield from terminal_gains.gain_lines(view.gains, page)
    sections = [
        ReportSection(heading="Steps", table=view.steps),
        ReportSection(heading="Since the first step", facts=view.since_first),
        ReportSection(heading="Steps as groups", table=view.groups),
        *view.study,
        ReportSection(heading="What is still lost", facts=view.remaining),
        ReportSection(heading="What to do next", facts=view.advice),
        ReportSection(heading="Over all steps", facts=view.across),
    ]
    for section in sections:
        yield from terminal_tables.section_lines(section, page)
    for link in view.links:
        yield from _link_lines(link, page)


def _link_lines(link: StepPairView, page: Page) -> Iterator[Line]:
    sections = [
        ReportSection(heading="Changed", label=link.label, facts=link.changes),
        ReportSection(heading="Differences", label=link.label, table=link.figures),
        ReportSection(heading="Verdicts", label=link.label, facts=link.verdicts),
        ReportSection(heading="Whole recordings", label=link.label, table=link.whole),
        ReportSection(heading="Training at the end", label=link.label, facts=link.training),
    ]
    for section in sections:
        yield from terminal_tables.section_lines(section, page)
    yield from terminal_tables.finding_change_lines("Findings", link, page)
    yield from terminal_tables.section_lines(
        ReportSection(heading="Comparable?", label=link.label, table=link.checks), page
    )
    for doubt in link.doubts:
        yield from page.wrapped(doubt, 2, "Doubtful", style="warning")
    if link.unknown:
        yield from page.wrapped(link.unknown, 2, "Unknown")

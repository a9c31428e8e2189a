"""Tables as lines of plain text."""

from collections.abc import Iterable, Iterator, Sequence

from gpureport.report.model.comparison_parts import StepPairView
from gpureport.report.model.shapes import Fact, ReportSection, Table
from gpureport.report.wording import display
from gpureport.report.wording.terminal_lines import Line, Page


def block_lines(table: Table, page: Page) -> Iterator[Line]:
    """Yield a table as blocks: one line a value, since eight columns do not fit a terminal."""
    for row in table.rows:
        yield from page.wrapped(
            " ".join(filter(None, [row.head.text, f"({row.head.small})" if row.head.small else ""]))
        )
        for name, cell in zip(table.columns[1:], row.cells, strict=True):
            small = f"  {cell.small}" if cell.small else ""
            yield from page.wrapped(f"{name:<26} {cell.text}{small}", 2)
    if table.note:
        yield from page.wrapped(table.note, 2, style="soft")


def grid_lines(table: Table, page: Page, *, whole: bool = False) -> Iterator[Line]:
    """Yield a table with its titles stacked over two lines.

    Args:
        table: the table.
        page: where it has to fit.
        whole: whether columns that do not fit follow below, instead of being left out, those without a value first.
    """
    titles = [title.replace(", ", " ").rsplit(" ", 1) for title in table.columns]
    rows = [[row.head.text, *(cell.text for cell in row.cells)] for row in table.rows]
    heads = [[title[0] for title in titles], [title[1] if len(title) > 1 else "" for title in titles]]
    widths = [max(display.terminal_width(row[place]) for row in [*heads, *rows]) for place in range(len(titles))]
    places = list(range(1, len(titles)))
    if len(_fitting_columns(places, widths, page.width)) < len(places):
        places = [place for place in places if any(row[place] != display.NOT_RECORDED for row in rows)] or places
    while places:
        shown = _fitting_columns(places, widths, page.width)
        left = {0, *(place for place in shown if not table.numeric[place - 1])}
        # a title of one word leaves its second line empty
        above = [head for head in heads if any(head[place] for place in [0, *shown])]
        for position, row in enumerate([*above, *rows]):
            cells = (display.pad_to_width(row[place], widths[place], right=place not in left) for place in [0, *shown])
            yield Line(f"  {'  '.join(cells)}", "soft" if position < len(above) else "")
        places = places[len(shown) :] if whole else []


def _fitting_columns(places: Sequence[int], widths: Sequence[int], width: int) -> Sequence[int]:
    """Return the columns that fit beside the first, at least one."""
    room = [sum(widths[place] + 2 for place in places[: count + 1]) for count in range(len(places))]
    return places[: max(sum(widths[0] + 2 + taken <= width for taken in room), 1)]


def fact_lines(named: Iterable[Fact], page: Page) -> Iterator[Line]:
    """Yield named statements, the names in a column of their own, as wide as the longest."""
    shown = list(named)
    widest = max((display.terminal_width(fact.name) for fact in shown), default=0)
    for fact in shown:
        yield from page.wrapped(fact.text, 2, display.pad_to_width(fact.name, widest) if fact.name else "")


def section_lines(section: ReportSection, page: Page) -> Iterator[Line]:
    """Yield a section of a table or of statements; nothing where it has neither."""
    if section.table or section.facts:
        yield from page.heading(section.heading, section.label)
    if section.table:
        yield from grid_lines(section.table, page, whole=True)
        if section.table.note:
            yield from page.wrapped(section.table.note, 2, style="soft")
    yield from fact_lines(section.facts, page)


def finding_change_lines(heading: str, link: StepPairView, page: Page) -> Iterator[Line]:
    """Yield what became of the findings of one step by the next."""
    yield from page.heading(heading, link.label)
    yield from fact_lines(link.findings, page)
    if not link.findings:
        yield from page.wrapped("Neither step has a finding.", 2)

"""Tables as lines of plain text."""

from collections.abc import Iterable, Iterator, Sequence

from gpureport.report.model.comparison_parts import ComparisonPart
from gpureport.report.model.shapes import Cell, Fact, ReportSection, Row, Table
from gpureport.report.sections.merging import list_comparison_sections
from gpureport.report.wording import display
from gpureport.report.wording.terminal_lines import Line, Page


def block_lines(table: Table, page: Page) -> Iterator[Line]:
    """Yield a table as blocks with its note: one line a value, since eight columns do not fit a terminal."""
    yield from _row_blocks(table, page)
    if table.note:
        yield from page.wrapped(table.note, 2, style="soft")


def _row_blocks(table: Table, page: Page) -> Iterator[Line]:
    for row in table.rows:
        yield from page.wrapped(
            " ".join(filter(None, [row.head.text, f"({row.head.small})" if row.head.small else ""]))
        )
        for name, cell in zip(table.columns[1:], row.cells, strict=True):
            yield from page.wrapped("  ".join(filter(None, (f"{name:<26} {cell.text}", _small_text(cell)))), 2)


def _small_text(cell: Cell) -> str:
    """Return what stands below a figure: its change with verdict and interval, and the small line."""
    change = cell.change
    parts = (change.text, change.verdict, change.interval and f"({change.interval})") if change else ()
    return " ".join(filter(None, (*parts, cell.small)))


def grid_lines(table: Table, page: Page, *, whole: bool = False) -> Iterator[Line]:
    """Yield a table with its titles stacked over two lines.

    Args:
        table: the table.
        page: where it has to fit.
        whole: whether columns that do not fit follow below, instead of being left out, those without a value first.
    """
    titles = [title.replace(", ", " ").rsplit(" ", 1) for title in table.columns]
    rows = [line for row in table.rows for line in _grid_rows(row)]
    heads = [[title[0] for title in titles], [title[1] if len(title) > 1 else "" for title in titles]]
    widths = [max(display.terminal_width(row[place]) for row in [*heads, *rows]) for place in range(len(titles))]
    places = list(range(1, len(titles)))
    if whole and widths[0] + max(widths[1:], default=0) + 4 > page.width:
        # a name and one figure do not fit beside each other
        yield from _row_blocks(table, page)
        return
    if len(_fitting_columns(places, widths, page.width)) < len(places):
        places = [place for place in places if any(row[place] != display.NOT_RECORDED for row in rows)] or places
    while places:
        shown = _fitting_columns(places, widths, page.width)
        left = {0, *(place for place in shown if not table.numeric[place - 1])}
        # a title of one word leaves its second line empty
        above = [head for head in heads if any(head[place] for place in [0, *shown])]
        below = [row for row in rows if any(row[place] for place in shown)]
        for position, row in enumerate([*above, *below]):
            cells = (display.pad_to_width(row[place], widths[place], right=place not in left) for place in [0, *shown])
            yield Line(f"  {'  '.join(cells)}", "soft" if position < len(above) else "")
        places = places[len(shown) :] if whole else []


def _grid_rows(row: Row) -> Iterator[list[str]]:
    """Yield a row, and below it its small lines where it has any."""
    cells = (row.head, *row.cells)
    yield [cell.text for cell in cells]
    small = [_small_text(cell) for cell in cells]
    if any(small):
        yield small


def _fitting_columns(places: Sequence[int], widths: Sequence[int], width: int) -> Sequence[int]:
    """Return the columns that fit beside the first, at least one."""
    room = [sum(widths[place] + 2 for place in places[: count + 1]) for count in range(len(places))]
    return places[: max(sum(widths[0] + 2 + taken <= width for taken in room), 1)]


def fact_lines(named: Iterable[Fact], page: Page) -> Iterator[Line]:
    """Yield named statements, the names in a column as wide as the longest; long ones on lines of their own."""
    shown = list(named)
    widest = max((display.terminal_width(fact.name) for fact in shown), default=0)
    for fact in shown:
        if widest > page.width // 2:
            yield from page.wrapped(fact.name, 2)
            yield from page.wrapped(fact.text, 4)
            continue
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


def comparison_lines(part: ComparisonPart, page: Page) -> Iterator[Line]:
    """Yield what is said of steps: over all of them, then of each against the one before."""
    for section in list_comparison_sections(part):
        yield from section_lines(section, page)

"""The page on many runs as text for a terminal or a pipe: one screen, or everything."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from gpureport.fleet.page.page_model import FleetPage, PagePart
from gpureport.fleet.page.parts.loss_tables import RUNS, describe_first_runs
from gpureport.fleet.page.parts.savings import HEADING
from gpureport.report.formats.text import terminal_bars, terminal_head, terminal_screen, terminal_tables
from gpureport.report.model.shapes import Table
from gpureport.report.wording import display
from gpureport.report.wording.terminal_lines import Line, Page, render_lines

_MOST = {"details": 4, "bars": 6, "actions": 3, "rows": 4, "parts": 2, "runs": 3}
"""How much a screen has of each part at most; the worst runs are no part that gives way to others."""

_LEAST = (
    *(("bars", 5), ("rows", 3), ("details", 3), ("bars", 4), ("rows", 2), ("actions", 2), ("details", 2)),
    *(("bars", 2), ("runs", 2), ("rows", 1), ("runs", 1), ("actions", 1), ("details", 1), ("parts", 0)),
    *(("bars", 0), ("actions", 0), ("details", 0)),
)
"""What gives way where a screen is full, in this order, and how much of it stays."""


def render(
    page: FleetPage, width: int = 80, *, colour: bool = False, ascii_only: bool = False, full: bool = False
) -> str:
    """Return the page as text.

    Args:
        page: the content.
        width: columns to fill.
        colour: whether headings may carry escape codes.
        ascii_only: whether nothing but ASCII may be used.
        full: whether everything is shown; else one screen of it.
    """
    place = Page(width=width, ascii=ascii_only)
    lines = _list_all(page, place) if full else _list_screen(page, place)
    return render_lines(lines, colour=colour, ascii_only=ascii_only)


def _list_screen(page: FleetPage, place: Page) -> list[Line]:
    """Return the page in at most 30 lines."""
    limits = dict(_MOST)
    lines = list(_list_head(page, place, limits))
    for part, least in _LEAST:
        while len(lines) > terminal_screen.HEIGHT and limits[part] > least:
            limits[part] -= 1
            lines = list(_list_head(page, place, limits))
    return lines


def _list_head(page: FleetPage, place: Page, limits: Mapping[str, int]) -> Iterator[Line]:
    yield from terminal_head.headline_lines(page, place, limits["details"], is_spaced=False)
    if page.spent and limits["bars"]:
        yield from terminal_screen.heading_lines(
            f"WHERE THE GPU TIME WENT{display.GAP * 2}{page.spent.columns[0]}", place
        )
        bars = replace(page.spent, bars=page.spent.bars[: limits["bars"]])
        yield from terminal_bars.bar_lines(bars, place, limits["bars"])
    yield from terminal_screen.action_lines(page.actions[: limits["actions"]], place, HEADING.upper())
    shown = [part for part in page.parts if part.is_open and not part.weeks]
    for part in [part for part in shown if part.id != RUNS][: limits["parts"]]:
        yield from _list_first_rows(_describe_first_rows(part, limits["rows"]), place, limits["rows"])
    for part in (part for part in shown if part.id == RUNS):
        yield from _list_first_rows(describe_first_runs(part, limits["runs"]), place, limits["runs"])
    yield Line("Details: --detail full", "soft")


def _describe_first_rows(part: PagePart, most: int) -> PagePart:
    """Return a part whose line says how many of its rows are shown, where that is not all."""
    rows = len(part.table.rows) if part.table else 0
    if rows <= most or not part.count:
        return part
    return replace(part, line=f"{part.count}; first {most} of {rows} rows")


def _list_first_rows(part: PagePart, place: Page, most: int) -> Iterator[Line]:
    """Yield the heading of a part and the first rows of its table."""
    yield from terminal_screen.heading_lines(f"{part.title.upper()}{display.GAP * 2}{part.line}", place)
    if part.table:
        yield from _list_rows(part.table, place, most)


def _list_rows(table: Table, place: Page, most: int) -> Iterator[Line]:
    """Yield the first rows of a table: figures in columns, then the words without small print."""
    if not table.numeric[0]:
        for row in table.rows[:most]:
            words = (cell.text for cell, is_figure in zip(row.cells, table.numeric, strict=True) if not is_figure)
            yield Line(display.shorten("  ".join(("", row.head.text, *words)), place.width))
        return
    cut = tuple(
        replace(row, head=replace(row.head, small=""), cells=tuple(replace(cell, small="") for cell in row.cells))
        for row in table.rows[:most]
    )
    yield from terminal_tables.grid_lines(replace(table, rows=cut), place)


def _list_all(page: FleetPage, place: Page) -> Iterator[Line]:
    yield from terminal_head.head_lines(page, place)
    if page.spent:
        yield from place.heading("Where the GPU time went", page.spent.columns[0])
        yield from terminal_bars.bar_lines(page.spent, place, len(page.spent.bars))
    for number, action in enumerate(page.actions, 1):
        if number == 1:
            yield from place.heading(HEADING)
        yield from place.wrapped(f"{number}. {action.title}: {display.lower_first(action.gain)}", 2)
        yield from place.wrapped(" ".join(filter(None, (action.text, action.certainty))), 5)
    for part in page.parts:
        yield from _list_part(part, place)


def _list_part(part: PagePart, place: Page) -> Iterator[Line]:
    yield from place.heading(part.title)
    yield from place.wrapped(f"{display.raise_first(part.line)}.", 2)
    if part.table:
        yield from terminal_tables.grid_lines(part.table, place, whole=True)
    yield from terminal_tables.fact_lines(part.facts, place)
    for note in part.notes:
        yield from place.wrapped(note, 2, style="soft")

"""The table of gains as lines of plain text: figures in columns, and below them what is said in words."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from gpureport.report.model.gain_table import GainCell, GainRow, GainTable
from gpureport.report.wording import display
from gpureport.report.wording.display import GAP
from gpureport.report.wording.terminal_lines import Line, Page

HEADING = "Table of gains"
_INDENT, _BETWEEN = 2, 2
_WIDEST = 20
"""Most columns that a figure takes."""


def gain_lines(table: GainTable, page: Page) -> Iterator[Line]:
    """Yield the table with its notes, and what the last step could gain at most."""
    yield from page.heading(HEADING)
    titles = table.columns[1:]
    width = _measure_column(len(titles), page)
    if titles:
        yield from _column_lines([[title] for title in titles], width, "soft")
    for row in table.rows:
        yield from _row_lines(row, width, page)
    if table.potential:
        yield from page.wrapped(table.potential, 0, "Potential")
    for note in table.notes:
        yield from page.wrapped(note, _INDENT, style="soft")


def _measure_column(count: int, page: Page) -> int:
    return min((page.width - _INDENT) // max(count, 1) - _BETWEEN, _WIDEST)


def _row_lines(row: GainRow, width: int, page: Page) -> Iterator[Line]:
    yield from page.wrapped(f"{row.head.text} ({row.head.small})" if row.head.small else row.head.text)
    yield from _column_lines([_wrap_cell(cell, width) for cell in row.cells], width)
    for fact in row.facts:
        yield from page.wrapped(fact.text, _INDENT, fact.name)


def _wrap_cell(cell: GainCell, width: int) -> list[str]:
    return [line for text in (cell.text, *cell.lines) for line in _wrap(text, width)]


def _wrap(text: str, width: int) -> Iterator[str]:
    """Yield words in lines of a column; a longer word is cut."""
    line = ""
    for word in text.replace(GAP, " ").split():
        if line and display.terminal_width(f"{line} {word}") > width:
            yield line
            line = ""
        line = f"{line} {word}".lstrip()
    yield line


def _column_lines(columns: Sequence[Sequence[str]], width: int, style: str = "") -> Iterator[Line]:
    for texts in zip_longest(*columns, fillvalue=""):
        cells = (display.pad_to_width(display.shorten(text, width), width) for text in texts)
        yield Line(f"{'':{_INDENT}}{(' ' * _BETWEEN).join(cells)}".rstrip(), style)

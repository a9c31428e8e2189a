"""The table of gains as lines of plain text: figures in columns, and below them what is said in words."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from textwrap import wrap

from gpureport.report.model.comparison_parts import GainCell, GainTable
from gpureport.report.wording import display
from gpureport.report.wording.display import GAP
from gpureport.report.wording.terminal_lines import Line, Page

HEADING = "Table of gains"
_WORDS = 15
"""Columns that the longest verdict takes."""


def gain_lines(table: GainTable, page: Page) -> Iterator[Line]:
    """Yield the table with its notes, and what the last step could gain at most."""
    yield from page.heading(HEADING)
    titles = [[title] for title in table.columns[1:]]
    is_roomy = 2 + len(titles) * (_WORDS + 2) <= page.width
    indent, width = (2, _WORDS + 2) if is_roomy else (0, _WORDS + 1)
    yield from _column_lines(titles, indent, width, "soft")
    for row in table.rows:
        yield from page.wrapped(f"{row.head.text} ({row.head.small})" if row.head.small else row.head.text)
        yield from _column_lines([_cell_lines(cell, width - 1) for cell in row.cells], indent, width)
        for fact in row.facts:
            yield from page.wrapped(fact.text, 2, fact.name)
    if table.potential:
        yield from page.wrapped(table.potential, 0, "Potential")
    for note in table.notes:
        yield from page.wrapped(note, 2, style="soft")


def _cell_lines(cell: GainCell, width: int) -> list[str]:
    texts = filter(None, (cell.text, cell.interval, cell.verdict))
    return [line for text in texts for line in wrap(text.replace(GAP, " "), width)]


def _column_lines(columns: Sequence[Sequence[str]], indent: int, width: int, style: str = "") -> Iterator[Line]:
    for texts in zip_longest(*columns, fillvalue=""):
        cells = (display.pad_to_width(text, width) for text in texts)
        yield Line(f"{'':{indent}}{''.join(cells)}".rstrip(), style)

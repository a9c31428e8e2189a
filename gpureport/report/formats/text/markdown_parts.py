"""The parts of a page as Markdown: the first screen, bars, actions, tables. Text from logs is escaped."""

from collections.abc import Iterable, Iterator, Sequence

from gpureport.report.formats.text.markdown_syntax import escape, escape_line_start, inline_code, table_lines
from gpureport.report.formats.text.terminal_bars import class_signs, count_cells
from gpureport.report.model.head import Action, Change, FirstScreen, Tile
from gpureport.report.model.pictures import SpentBar, TimeSpent
from gpureport.report.model.shapes import Cell, Table
from gpureport.report.wording import display
from gpureport.report.wording.terminal_lines import Page

LIMIT = 20_000
"""Most bytes: a summary that is longer than its server takes would be lost whole."""

MOST_ROWS = 24
"""Most rows of a table."""

LONGEST_TEXT, LONGEST_CELL = 600, 240
"""Most characters of a sentence, and of a cell."""

_BLOCKS = 24
"""Characters of the longest bar."""

_SIGNS = class_signs(Page(width=80, ascii=False))
_CUT = "\n**Shortened: the full report has the rest.**\n"


def fit_lines(lines: Iterable[str], closing: Iterable[str]) -> str:
    """Return lines as Markdown of at most `LIMIT` bytes: as many as fit, then those that close it."""
    last = "".join(f"{line}\n" for line in closing)
    room = LIMIT - len(f"{_CUT}{last}".encode())
    shown: list[str] = []
    for line in lines:
        room -= len(f"{line}\n".encode())
        if room < 0:
            return "".join([*shown, _CUT, last])
        shown.append(f"{line}\n")
    return "".join([*shown, last])


def head_lines(report: FirstScreen) -> Iterator[str]:
    """Yield the headline, what was read, the lead, and the key figures."""
    first, further = display.headline(report.verdict.sentence)
    lead = " ".join(filter(None, (further, *report.verdict.details)))
    yield from (
        f"# {write_sentence(first)}",
        "",
        escape_line_start(display.shorten(report.quiet_line, LONGEST_TEXT)),
        "",
    )
    yield from ([escape_line_start(display.shorten(lead, 4 * LONGEST_TEXT)), ""] if lead else [])
    if report.tiles:
        has_changes = any(tile.change for tile in report.tiles)
        titles = ("Figure", "First → last", "Change", "") if has_changes else ("Figure", "Value", "")
        yield from (*format_rows(titles, (_tile(tile, has_changes=has_changes) for tile in report.tiles)), "")


def _tile(tile: Tile, *, has_changes: bool) -> tuple[str, ...]:
    value = " ".join(filter(None, (f"{tile.before} → {tile.value}" if tile.before else tile.value, tile.unit)))
    return (tile.label, value, *([_change(tile.change)] if has_changes else []), tile.context)


def _change(change: Change | None) -> str:
    """Return a change with its verdict, its interval on a line of its own."""
    if change is None:
        return ""
    since = f" since {change.since}" if change.since else ""
    words = ", ".join(filter(None, (f"{change.text}{since}", change.verdict)))
    return "\n".join(filter(None, (words, change.interval)))


def spent_lines(spent: TimeSpent) -> Iterator[str]:
    """Yield the bars as characters, each with its total, its change and the figure beside it."""
    has_change, has_beside = any(bar.change for bar in spent.bars), any(bar.beside for bar in spent.bars)
    titles = (spent.columns[0], *(["Change"] if has_change else []), *([spent.columns[1]] if has_beside else []))
    longest = max((sum(part.value for part in bar.segments) for bar in spent.bars), default=0)
    yield from ("## Where the GPU time went", "", write_sentence(spent.caption), "")
    yield f"| | | {' | '.join(map(escape, titles))} |"
    yield f"|---|---|{'---|' * len(titles)}"
    for bar in spent.bars[:MOST_ROWS]:
        total = bar.total or " · ".join(f"{part.label} {part.text}" for part in bar.segments)
        figures = ["\n".join(filter(None, (total, bar.note)))]
        figures += [_change(bar.change)] if has_change else []
        figures += ["\n".join(filter(None, (bar.beside, _change(bar.beside_change))))] if has_beside else []
        label = "\n".join(filter(None, (bar.label, bar.small)))
        yield f"| {_cell(label)} | {inline_code(_blocks(bar, longest))} | {' | '.join(map(_cell, figures))} |"
    if spent.since_first or spent.beside_since_first:
        changes = [_change(spent.since_first)] if has_change else []
        changes += [_change(spent.beside_since_first)] if has_beside else []
        yield f"| Since the first | | | {' | '.join(map(_cell, changes))} |"
    named = " · ".join(f"{inline_code(_SIGNS.get(each.key, '+'))} {escape(each.label)}" for each in spent.legend)
    yield from ("", *([named, ""] if named else []))
    yield from ([write_sentence(spent.rest), ""] if spent.rest else [])


def _blocks(bar: SpentBar, longest: float) -> str:
    values = [part.value for part in bar.segments]
    cells = max(1, round(sum(values) / longest * _BLOCKS)) if longest else 1
    counts = count_cells(values, cells)
    return "".join(_SIGNS.get(part.key, "+") * count for part, count in zip(bar.segments, counts, strict=True)) or " "


def format_action(action: Action) -> str:
    """Return what to do, with its gain, why and how, and how sure it is."""
    words = " ".join(write_sentence(text) for text in (action.gain and f"{action.gain}.", action.text) if text)
    command = f" {inline_code(display.shorten(action.command, LONGEST_TEXT))}" if action.command else ""
    return f"**{write_sentence(action.title)}.** {words}{command} {write_sentence(action.certainty)}".rstrip()


def write_sentence(text: str) -> str:
    """Return a sentence, escaped and not too long."""
    return escape(display.shorten(text, LONGEST_TEXT))


def _cell(text: str) -> str:
    return "<br>".join(map(escape, _shorten_lines(text).splitlines()))


def list_notes(table: Table) -> list[str]:
    """Return the notes of a table as one paragraph; none without notes."""
    return [" ".join(map(write_sentence, table.notes))] if table.notes else []


def format_table(table: Table) -> Iterator[str]:
    """Yield a table, small lines below the text of their cells."""
    rows = (tuple(_cell_text(cell) for cell in (row.head, *row.cells)) for row in table.rows)
    yield from format_rows(table.columns, rows)


def format_rows(columns: Sequence[str], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    """Yield a table of at most `MOST_ROWS` rows, and how many more there are."""
    cells = list(rows)
    yield from table_lines(columns, (tuple(map(_shorten_lines, row)) for row in cells[:MOST_ROWS]))
    if len(cells) > MOST_ROWS:
        yield from ("", f"{len(cells) - MOST_ROWS} more rows are in the full report.")


def _shorten_lines(text: str) -> str:
    return "\n".join(display.shorten(line, LONGEST_CELL) for line in text.splitlines())


def _cell_text(cell: Cell) -> str:
    return "\n".join(filter(None, (cell.text, _change(cell.change), cell.small)))

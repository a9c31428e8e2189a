"""The report as Markdown for a merge request or a job summary: the first screen, the steps and a row a finding.

Text from logs is escaped, so that names cannot become markup. Whatever else a report holds is on the page and in JSON.
"""

from collections.abc import Iterator, Sequence

from gpureport.report.formats.text.follow_up import build_report_command
from gpureport.report.formats.text.markdown_syntax import escape, escape_line_start, inline_code, table_lines
from gpureport.report.formats.text.terminal_bars import class_signs, count_cells
from gpureport.report.model.head import Action, Change, Tile
from gpureport.report.model.pictures import SignalHistory, SpentBar, TimeSpent
from gpureport.report.model.report_content import Report
from gpureport.report.model.shapes import Cell, Table
from gpureport.report.wording import display
from gpureport.report.wording.terminal_lines import Page

LIMIT = 20_000
"""Most bytes: a summary that is longer than its server takes would be lost whole."""

_ROWS = 24
"""Most rows of a table."""

_TEXT, _CELL = 600, 240
"""Most characters of a sentence, and of a cell."""

_DOUBTS = 5
_BLOCKS = 24
"""Characters of the longest bar."""

_SIGNS = class_signs(Page(width=80, ascii=False))
_CUT = "\n**Shortened: the full report has the rest.**\n"


def render(report: Report) -> str:
    """Return the report as Markdown of at most `LIMIT` bytes."""
    last = "".join(f"{line}\n" for line in _closing_lines(report))
    room = LIMIT - len(f"{_CUT}{last}".encode())
    shown = ""
    for line in _body_lines(report):
        if len(f"{shown}{line}\n".encode()) > room:
            return f"{shown}{_CUT}{last}"
        shown += f"{line}\n"
    return f"{shown}{last}"


def _body_lines(report: Report) -> Iterator[str]:
    """Yield the lines of the report, the most important first."""
    yield from _head_lines(report)
    if report.policy:
        yield from ("## Rules", "", *_table(report.policy), "", *_notes(report.policy), "")
    if report.worst:
        yield from _worst_lines(report.worst)
    if report.spent:
        yield from _spent_lines(report.spent)
    if report.actions:
        yield from ("## What to do next", "")
        yield from (f"{place}. {_action(each)}" for place, each in enumerate(report.actions, 1))
        yield ""
    if report.steps:
        yield from _step_lines(report, report.steps)
    yield from _finding_lines(report)
    yield from (_sentence(report.judgement.sentence), "")
    yield from ([_sentence(report.judgement.advice), ""] if report.judgement.advice else [])


def _head_lines(report: Report) -> Iterator[str]:
    first, further = display.headline(report.verdict.sentence)
    lead = " ".join(filter(None, (further, *report.verdict.details)))
    yield from (f"# {_sentence(first)}", "", escape_line_start(display.shorten(report.quiet_line, _TEXT)), "")
    yield from ([escape_line_start(display.shorten(lead, 4 * _TEXT)), ""] if lead else [])
    if report.tiles:
        has_changes = any(tile.change for tile in report.tiles)
        titles = ("Figure", "First → last", "Change", "") if has_changes else ("Figure", "Value", "")
        yield from (*_rows(titles, (_tile(tile, has_changes=has_changes) for tile in report.tiles)), "")


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


def _worst_lines(history: SignalHistory) -> Iterator[str]:
    """Yield what the signals of the worst GPU show, in words."""
    notes = [f"{panel.label}: {panel.note}" for panel in history.panels if panel.note]
    if notes:
        told = [*notes, *([history.span_text] if history.span_text else [])]
        yield from (f"**{escape(history.title)}:** {_sentence('; '.join(told))}", "")


def _spent_lines(spent: TimeSpent) -> Iterator[str]:
    """Yield the bars as characters, each with its total, its change and the figure beside it."""
    has_change, has_beside = any(bar.change for bar in spent.bars), any(bar.beside for bar in spent.bars)
    titles = (spent.columns[0], *(["Change"] if has_change else []), *([spent.columns[1]] if has_beside else []))
    longest = max((sum(part.value for part in bar.segments) for bar in spent.bars), default=0)
    yield from ("## Where the GPU time went", "", _sentence(spent.caption), "")
    yield f"| | | {' | '.join(map(escape, titles))} |"
    yield f"|---|---|{'---|' * len(titles)}"
    for bar in spent.bars[:_ROWS]:
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
    yield from ([_sentence(spent.rest), ""] if spent.rest else [])


def _blocks(bar: SpentBar, longest: float) -> str:
    values = [part.value for part in bar.segments]
    cells = max(1, round(sum(values) / longest * _BLOCKS)) if longest else 1
    counts = count_cells(values, cells)
    return "".join(_SIGNS.get(part.key, "+") * count for part, count in zip(bar.segments, counts, strict=True)) or " "


def _action(action: Action) -> str:
    words = " ".join(_sentence(text) for text in (action.gain and f"{action.gain}.", action.text) if text)
    command = f" {inline_code(display.shorten(action.command, _TEXT))}" if action.command else ""
    return f"**{_sentence(action.title)}.** {words}{command} {_sentence(action.certainty)}".rstrip()


def _step_lines(report: Report, steps: Table) -> Iterator[str]:
    """Yield the study of groups, the table of steps, and what makes a comparison doubtful."""
    part = report.comparison
    for section in part.study if part else ():
        title = ", ".join(filter(None, (section.heading, section.label)))
        yield from (f"## {_sentence(title)}", "", *(_table(section.table) if section.table else ()), "")
        yield from ([*_notes(section.table), ""] if section.table else [])
        yield from (f"- {_sentence(': '.join(filter(None, (fact.name, fact.text))))}" for fact in section.facts[:_ROWS])
        yield ""
    yield from (f"## {_sentence(report.steps_heading)}", "", *_table(steps), "", *_notes(steps), "")
    doubts = dict.fromkeys(doubt for pair in (part.links if part else ()) for doubt in pair.doubts)
    yield from (f"- {_sentence(doubt)}" for doubt in list(doubts)[:_DOUBTS])
    yield from ([""] if doubts else [])


def _finding_lines(report: Report) -> Iterator[str]:
    """Yield a row a finding, the summary under its title."""
    if not report.rows:
        return
    rows = (
        (
            row.severity,
            f"{row.title} ({row.kind})\n{row.summary}",
            row.runs,
            row.extent,
            display.shorten(row.advice, _CELL),
        )
        for row in report.rows
    )
    yield from ("## Findings", "", *_rows(("", "Finding", "Runs", "How much", "What to do"), rows), "")


def _closing_lines(report: Report) -> Iterator[str]:
    """Yield where the full report is."""
    words = build_report_command(display.shorten(report.method.command, _TEXT))
    command = f" · full report: {inline_code(' '.join(words))}" if words else ""
    yield f"gpureport {escape(display.shorten(report.version, _CELL))}{command}"


def _sentence(text: str) -> str:
    return escape(display.shorten(text, _TEXT))


def _cell(text: str) -> str:
    return "<br>".join(map(escape, _shorten_lines(text).splitlines()))


def _notes(table: Table) -> list[str]:
    return [" ".join(map(_sentence, table.notes))] if table.notes else []


def _table(table: Table) -> Iterator[str]:
    rows = ((row.head.text, *(_cell_text(cell) for cell in row.cells)) for row in table.rows)
    yield from _rows(table.columns, rows)


def _rows(columns: Sequence[str], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    """Yield a table of at most `_ROWS` rows, and how many more there are."""
    cells = list(rows)
    yield from table_lines(columns, (tuple(map(_shorten_lines, row)) for row in cells[:_ROWS]))
    if len(cells) > _ROWS:
        yield from ("", f"{len(cells) - _ROWS} more rows are in the full report.")


def _shorten_lines(text: str) -> str:
    return "\n".join(display.shorten(line, _CELL) for line in text.splitlines())


def _cell_text(cell: Cell) -> str:
    return "\n".join(filter(None, (cell.text, _change(cell.change), cell.small)))

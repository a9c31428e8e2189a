"""Blocks as Markdown for merge requests and job summaries. Text from logs is escaped."""

import re
from collections.abc import Iterable, Iterator, Sequence

from gpureport.report.blocks import describe_change, list_blocks
from gpureport.report.formats.terminal import BLOCKS, build_report_command, draw_bar
from gpureport.report.model.blocks import Block, Form, select_blocks
from gpureport.report.model.head import FirstScreen
from gpureport.report.model.pictures import TimeSpent
from gpureport.report.model.report_content import Report
from gpureport.report.model.shapes import Table
from gpureport.report.wording.display import headline, join, shorten

LIMIT = 20_000  # maximum size in bytes: servers reject longer summaries
_MOST_ROWS = 24
_LONGEST_TEXT, _LONGEST_CELL = 600, 240
_BAR = 24  # Length of the longest bar.
_CUT = "\n**Shortened: the full report contains the rest.**\n"
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$&])")
_ADDRESS = re.compile(r":(?=//)|(?<=\bwww)\.")
_LIST = re.compile(r"^(?:\d+(?=[.)](?:\s|$))|(?=[-+=]))")


def escape(text: str) -> str:
    escaped = _ADDRESS.sub(lambda match: f"\\{match.group()}", _SPECIAL.sub(r"\\\1", text))
    # a zero-width space after @ prevents mentions; a backslash does not
    return escaped.replace("@", "@&#8203;")


def render(report: Report) -> str:
    return write_blocks(
        list_blocks(report),
        report.version,
        " ".join(build_report_command(report.method.command)),
    )


def write_blocks(blocks: Iterable[Block], version: str, command: str) -> str:
    last = f"gpureport {_say(version)}{command and f' · full report: {_code(command)}'}\n"
    room = LIMIT - len(f"{_CUT}{last}".encode())
    shown: list[str] = []
    for line in (line for block in select_blocks(blocks, Form.MARKDOWN) for line in _body(block)):
        room -= len(f"{line}\n".encode())
        if room < 0:
            return "".join([*shown, _CUT, last])
        shown.append(f"{line}\n")
    return "".join([*shown, last])


def _body(block: Block) -> Iterator[str]:
    if block.title:
        yield from (f"{'#' * block.level} {_say(join(block.title, block.label, by=': '))}", "")
    yield from _head(block.head) if block.head else ()
    for text in filter(None, (*block.warnings, *block.texts)):
        yield from (_begin(text), "")
    yield from _bars(block.bars) if block.bars else ()
    tiles = [(tile.label, tile.figures, describe_change(tile.change), tile.context) for tile in block.tiles]
    yield from _rows(("Figure", "Value", "Change", ""), tiles) if tiles else ()
    yield from _table(block.table) if block.table else ()
    named = [(join(each.name, each.ends, by=", "), each.note) for each in block.series]
    named += [("Marked", block.marked)] if block.marked else []
    named += [(fact.name, fact.text) for fact in block.facts]
    items = [f"- {join(name and f'**{_say(name)}**', _say(text), by=' ')}" for name, text in named]
    for place, action in enumerate(block.actions, 1):
        gain = action.gain and f"{action.gain}."
        command = action.command and _code(action.command)
        words = (f"{place}. **{_say(action.title)}.**", _say(gain), _say(action.text), command, _say(action.certainty))
        items.append(join(*words, by=" "))
    items += map(_code, block.code)
    yield from [*items, ""] if items else ()


def _head(head: FirstScreen) -> Iterator[str]:
    first, further = headline(head.verdict.sentence)
    yield f"# {_say(first)}"
    for text in filter(None, (head.quiet_line, join(further, *head.verdict.details, by=" "))):
        yield from ("", _begin(text, 4))
    yield ""


def _bars(spent: TimeSpent) -> Iterator[str]:
    longest = max(sum(part.value for part in bar.segments) for bar in spent.bars)
    rows = []
    for bar in spent.bars:
        total = bar.total or " · ".join(f"{part.label} {part.text}" for part in bar.segments)
        beside = join(bar.beside, describe_change(bar.beside_change), by="\n")
        figures = (join(total, bar.note, by="\n"), describe_change(bar.change), beside)
        rows.append((join(bar.label, bar.small, by="\n"), _code(draw_bar(bar.segments, longest, _BAR)), *figures))
    since = (describe_change(spent.since_first), describe_change(spent.beside_since_first))
    rows += [("Since the first", "", "", *since)] if any(since) else []
    yield from _rows(("", "", spent.columns[0], "Change", spent.columns[1]), rows)
    yield from (" · ".join(f"{_code(BLOCKS.get(each.key, '+'))} {escape(each.label)}" for each in spent.legend), "")
    yield from (_say(spent.rest), "") if spent.rest else ()


def _table(table: Table) -> Iterator[str]:
    yield from _rows(
        table.columns,
        [
            tuple(join(each.text, describe_change(each.change), each.small, by="\n") for each in (row.head, *row.cells))
            for row in table.rows
        ],
    )
    yield from (" ".join(map(_say, table.notes)), "") if table.notes else ()


def _rows(columns: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    places = [place for place in range(len(columns)) if any(row[place] for row in rows)]
    yield from (f"| {' | '.join(escape(columns[place]) for place in places)} |", f"|{'---|' * len(places)}")
    for row in rows[:_MOST_ROWS]:
        cells = ("<br>".join(_say(line, _LONGEST_CELL) for line in row[place].splitlines()) for place in places)
        yield f"| {' | '.join(cells)} |"
    hidden = len(rows) - _MOST_ROWS
    yield from ("", f"{hidden} more rows are in the full report.", "") if hidden > 0 else ("",)


def _say(text: str, longest: int = _LONGEST_TEXT) -> str:
    return text if text.startswith("`") else escape(shorten(text, longest))


def _begin(text: str, times: int = 1) -> str:
    return _LIST.sub(r"\g<0>\\", _say(text, times * _LONGEST_TEXT))


def _code(text: str) -> str:
    return "`" + shorten(text, _LONGEST_TEXT).replace("`", "'") + "`"

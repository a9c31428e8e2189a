"""Blocks as text for terminals and pipes, either as one screen or in full."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from os.path import commonprefix

import numpy as np

from gpureport.report.blocks import describe_change, list_blocks, shared_total
from gpureport.report.model.blocks import SECTION, Block, Form, Series, select_blocks
from gpureport.report.model.head import Action, Change, FirstScreen, Tile, Verdict
from gpureport.report.model.pictures import TimeSegment, TimeSpent
from gpureport.report.model.report_content import Report
from gpureport.report.model.shapes import Fact, Table
from gpureport.report.wording.display import GAP, NOT_RECORDED, join, lower_first, pad_to_width, plural, terminal_width
from gpureport.report.wording.terminal_lines import PIPE, Line, Page

_HEIGHT, _COMMAND = 30, 4  # most lines on a screen, and of its command
_MOST = {"gaps": 2, "rules": 3, "signals": 3, "uses": 2, "bars": 8, "tiles": 6, "details": 6, "actions": 3}
_MOST |= {"rows": 4, "runs": 3}
_LEAST = (
    *(("rules", 1), ("uses", 1), ("details", 3), ("signals", 2), ("tiles", 4), ("gaps", 0), ("rows", 3)),
    *(("details", 2), ("bars", 6), ("rows", 2), ("tiles", 3), ("actions", 2), ("tiles", 2), ("bars", 4), ("runs", 2)),
    *(("bars", 2), ("rows", 1), ("runs", 1), ("details", 1), ("uses", 0), ("signals", 0), ("tiles", 0)),
    *(("actions", 1), ("rows", 0), ("details", 0), ("bars", 0), ("actions", 0)),
)
"""Steps that shorten a screen until it fits. Each step limits the entries of a part."""
_CLASSES = (
    *("computing", "short_pauses", "hollow", "low_use", "throttled", "waiting_for_input"),
    *("idle", "unused", "held", "startup", "tail", "gpu_lost", "no_samples"),
)
BLOCKS = dict(zip(_CLASSES, "█▌▚▖▓▒░oH·-x?", strict=True))
_LETTERS = dict(zip(_CLASSES, "#=hltw.oHs-x?", strict=True))
_HEIGHTS, _DIGITS = " ▁▂▃▄▅▆▇█", " 123456789"
_GUTTER = 2
_NAME, _WORDS = 24, 22  # most columns of a name, and fewest of its text
_SHORTEST_BAR, _SHORTEST_SERIES = 10, 16
"""Minimum length of the longest bar, and of a series beside its note."""
_EVENTS = "events"
_ONLY_THERE = {"-q", "--quiet", "-v", "--verbose", "--debug"}
_ONLY_THERE_WITH_VALUE = {"--format", "--detail"}
"""Options that are not copied into the suggested command."""
_BLANK = 0.005  # relative height below which nothing is drawn


def render(report: Report, page: Page = PIPE, *, full: bool = True) -> str:
    command = build_report_command(report.method.command)
    text = " ".join(each.replace(" ", "\0") for each in command)
    # continued lines of a command end with a backslash
    lines = replace(page, width=page.width - 2).wrap(text, 2, "Full report: ")
    texts = " \\\n".join(line.text for line in lines).split("\n") if command else []
    if not full and len(texts) > _COMMAND:
        texts[_COMMAND - 2 : -1] = ["  … \\"]
    closing = [Line(each.replace("\0", " "), "soft") for each in texts]
    return write_blocks(list_blocks(report), page, closing, full=full)


def build_report_command(command: str) -> list[str]:
    try:
        program, verb, *arguments = (word for word in shlex.split(command) if word not in _ONLY_THERE)
    except ValueError:
        return []
    kept, waiting = [], iter(arguments if verb != "demo" else ())
    for argument in waiting:
        name, equals, _ = argument.partition("=")
        if name not in _ONLY_THERE_WITH_VALUE:
            # an ellipsis replaces omitted names
            kept.append(argument if argument == "…" else shlex.quote(argument))
        elif not equals:
            next(waiting, None)
    if program != "gpureport" or not (kept or verb == "demo"):
        return []
    return [program, "demo" if verb == "demo" else "report", *kept, "-o", "report.html"]


def write_blocks(blocks: Iterable[Block], page: Page, closing: Sequence[Line] = (), *, full: bool = True) -> str:
    shown = select_blocks(blocks, Form.TEXT if full else Form.SCREEN)
    if full:
        lines = [line for block in shown for line in set_block(block, page)]
        return page.render([*lines, Line(), *closing] if closing else lines).lstrip("\n")
    closing = [Line("Details: --detail full", "soft"), *closing]
    limits = dict(_MOST)
    lines = _screen(shown, page, limits)
    for part, fewest in _LEAST:
        while len(lines) + len(closing) > _HEIGHT and limits[part] > fewest:
            limits[part] -= 1
            lines = _screen(shown, page, limits)
    return page.render([*lines, *closing])


def _screen(blocks: Sequence[Block], page: Page, limits: Mapping[str, int]) -> list[Line]:
    """Return lines with at most `limits` entries per part (`gaps`: blank lines)."""
    allowed = ((block, limits.get(block.part, 1)) for block in blocks)
    lines = [line for block, most in allowed if most or block.head for line in set_block(block, page, most)]
    blank = [place for place, line in enumerate(lines) if not line.text]
    last = [place for place in blank[1:] if place > len(lines) - 4]
    for place in [*last, *blank[:1]][: _MOST["gaps"] - limits["gaps"]]:
        del lines[place]
    return lines


def set_block(block: Block, page: Page, most: int | None = None) -> Iterator[Line]:
    """Yield a heading and a body with at most `most` entries (None: all)."""
    body = list(_body(block, page, most))
    if block.title:
        yield Line()
        title = block.title.upper() if block.level == SECTION else block.title
        label = block.label
        if most is not None:
            rows = len(block.table.rows) if block.table else 0
            cut = f"first {most} of {rows}" if rows > most else ""
            label = join(join(label, *dict.fromkeys(each.ends for each in block.series[:most]), by=", "), cut)
        yield from page.wrap(join(title, label, by=GAP * 2), style=block.style or "heading")
    yield from body


def _body(block: Block, page: Page, most: int | None) -> Iterator[Line]:
    if block.head:
        yield from _head(block.head, page, most)
    for text in (*block.warnings, *block.texts) if most is None else ():
        yield from page.wrap(text, _GUTTER)
    yield from _bars(block.bars, page, most) if block.bars else ()
    yield from _series(block, page, most) if block.series else ()
    yield from _tiles(block.tiles, page, most) if block.tiles else ()
    yield from _actions(block.actions, page, most) if block.actions else ()
    yield from _table(block.table, page, most) if block.table else ()
    yield from _facts(block.facts[:most], page)
    yield from (Line(f"{'':{_GUTTER * 2}}{code}") for code in block.code)


def _head(head: FirstScreen, page: Page, most: int | None) -> Iterator[Line]:
    yield from page.wrap(head.verdict.sentence, style="heading")
    yield Line()
    facts = head.quiet_line.split(" · ")
    joined = (each.replace(" ", GAP) if len(each) < page.width - _GUTTER else each for each in facts)
    yield from page.wrap(f"{GAP}· ".join(joined), style="soft")
    yield from _lead(head.verdict, page, most)


def _lead(verdict: Verdict, page: Page, most: int | None) -> list[Line]:
    """Return the sentences that fit. Caveats come first, with a count of those left out."""
    details, doubts = verdict.details, verdict.doubts
    if most is None:
        return list(page.wrap(" ".join(details)))
    lines: list[Line] = []
    for count in range(len(details), 0, -1):
        hidden = max(doubts - count, 0) + verdict.further_doubts
        counted = f"{plural(hidden, 'more caveat')}: see --detail full." if hidden else ""
        lines = list(page.wrap(join(*details[: min(count, doubts)], counted, *details[doubts:count], by=" ")))
        if len(lines) <= (max(most, _MOST["details"]) if count <= doubts else most) or (count == 1 and doubts):
            return lines
    kept = lines[:most]
    return [*kept[:-1], Line(f"{kept[-1].text[: page.width - 2].rstrip(' .')} …")] if kept else []


def _shorten_change(change: Change | None) -> tuple[str, str, str]:
    if change is None:
        return "", "", ""
    verdict = change.verdict.partition(" (")[0]
    return change.text, verdict, verdict if verdict in {"better", "worse"} else ""


def _measure(rows: Iterable[Sequence[str]]) -> list[int]:
    return [max(map(terminal_width, column)) for column in zip(*rows, strict=True)]


def _set_columns(texts: Sequence[str], widths: Sequence[int], rights: Sequence[bool]) -> str:
    columns = zip(texts, widths, rights, strict=True)
    padded = (pad_to_width(text, width, right=right) for text, width, right in columns if width)
    return "".join(f"{'':{_GUTTER}}{text}" for text in padded)


def draw_bar(segments: Sequence[TimeSegment], longest: float, length: int, signs: Mapping[str, str] = BLOCKS) -> str:
    total = sum(part.value for part in segments)
    cells = round(total / longest * length) if longest else 0
    exact = [part.value / total * cells if total else 0.0 for part in segments]
    counts = [int(value) for value in exact]
    for place in sorted(range(len(exact)), key=lambda at: counts[at] - exact[at])[: cells - sum(counts)]:
        counts[place] += 1
    return "".join(signs.get(part.key, "+") * count for part, count in zip(segments, counts, strict=True))


def _shorten_alike(names: Sequence[str]) -> list[str]:
    """Return long names without their common prefix."""
    start = len(commonprefix(names)) if max(map(len, names)) > _NAME else 0  # noqa: RUF071 - of any names
    return [f"…{name[start:]}" for name in names] if 1 < start < min(map(len, names)) else [*names]


def _bars(spent: TimeSpent, page: Page, most: int | None) -> Iterator[Line]:
    """Yield a line per bar, then the legend. Keep at least the first, last and worst bars."""
    bars, are_steps = spent.bars, any(bar.change for bar in spent.bars)
    ends = {0, len(bars) - 1}
    wanted = sorted(range(len(bars)), key=lambda place: (place not in ends, not bars[place].is_bad, place))
    shown = [bars[place] for place in sorted(wanted[:most])]
    names = _shorten_alike([bar.label for bar in shown])
    label = min(max(map(terminal_width, names)), _NAME)
    signs = _LETTERS if page.ascii else BLOCKS
    texts = []
    for bar in shown:
        change, verdict, _ = _shorten_change(bar.change)
        note = bar.note if bar.is_bad or not are_steps else ""
        texts.append(("" if shared_total(spent) else bar.total, change, verdict or note))
    widths, rights = _measure(texts), (True, True, False)
    # drop words first, then changes
    for place in (2, 1, None):
        length = page.width - 2 * _GUTTER - label + 1 - sum(width + _GUTTER for width in widths if width)
        if place and length < _SHORTEST_BAR:
            widths[place] = 0
    length = max(length, _SHORTEST_BAR)
    longest = max(sum(part.value for part in bar.segments) for bar in bars)
    drawn: set[str] = set()
    for bar, name, words in zip(shown, names, texts, strict=True):
        cells = draw_bar(bar.segments, longest, length, signs)
        drawn |= set(cells)
        start = f"{'':{_GUTTER}}{page.column(name, label)} {cells:<{length}}"
        tail = _set_columns(words[1:], widths[1:], rights[1:])
        style = "worse" if bar.is_bad else _shorten_change(bar.change)[2]
        yield Line(start + _set_columns(words[:1], widths[:1], rights[:1]), tail=tail, tail_style=style)
    labels = {entry.key: entry.label for entry in spent.legend}
    labels |= {part.key: part.label for bar in shown for part in bar.segments if part.key not in labels}
    named = [f"{signs.get(key, '+')} {name}" for key, name in labels.items() if signs.get(key, "+") in drawn]
    legend = "   ".join(each.replace(" ", GAP) for each in named)
    yield from page.wrap(legend, _GUTTER + label + 1, style="soft")
    hidden = f"{len(bars) - len(shown)} more: --detail full." if len(shown) < len(bars) else ""
    yield from page.wrap(join(spent.rest, hidden, by=" "), _GUTTER, style="soft")


def _series(block: Block, page: Page, most: int | None) -> Iterator[Line]:
    shown = block.series[:most]
    names = _shorten_alike([each.name for each in shown])
    names = names if most else [join(name, each.ends, by=", ") for name, each in zip(names, shown, strict=True)]
    label = min(max(map(terminal_width, [*names, *([_EVENTS] if block.events else [])])), _NAME)
    indent = _GUTTER + label + 1
    notes = max(terminal_width(each.note) for each in shown)
    is_beside = page.width - indent - _GUTTER - notes >= _SHORTEST_SERIES
    length = page.width - indent - (_GUTTER + notes if is_beside and notes else 0)
    for name, each in zip(names, shown, strict=True):
        drawn = _draw_heights(each, min(max(round(length * each.share), 1), length), page)
        note = f"{'':{_GUTTER}}{each.note}" if is_beside else ""
        yield Line(f"{'':{_GUTTER}}{page.column(name, label)} {drawn}{note}")
        yield from page.wrap("" if is_beside else each.note, indent)
    if block.events:
        places = {min(int(share * length), length - 1) for share in block.events}
        line = "".join("^" if place in places else " " for place in range(length))
        yield Line(f"{'':{_GUTTER}}{page.column(_EVENTS, label)} {line}")
    if not block.marks:
        return
    marks = [" "] * length
    for start, end in block.marks:
        first = min(max(round(start * length), 0), length - 1)
        last = min(max(first + 1, round(end * length)), length)
        marks[first:last] = ("=" if page.ascii else "▔") * (last - first)
    line = f"{'':{indent}}{''.join(marks)}{'':{_GUTTER}}"
    is_beside = terminal_width(line + block.marked) <= page.width
    yield Line(line + (block.marked if is_beside else ""))
    yield from page.wrap("" if is_beside else block.marked, min(indent, max(page.width - 40, _GUTTER)))


def _draw_heights(series: Series, length: int, page: Page) -> str:
    values, signs = series.values, _DIGITS if page.ascii else _HEIGHTS
    ends = np.arange(length + 1) * len(values) // max(length, 1)
    top, drawn = len(signs) - 1, ""
    for start, end in zip(ends, np.maximum(ends[1:], ends[:-1] + 1), strict=False):
        known = values[start:end][np.isfinite(values[start:end])]
        height = (known.mean() - series.low) / max(series.high - series.low, 1e-9) if len(known) else 0.0
        sign = signs[min(int(np.ceil(height * top)), top) if height >= _BLANK else 0]
        drawn += sign if len(known) else "?"
    return drawn


def _tiles(tiles: Sequence[Tile], page: Page, most: int | None) -> Iterator[Line]:
    if most is None:
        texts = (join(tile.figures, describe_change(tile.change), tile.context) for tile in tiles)
        yield from _facts([Fact(name=tile.label, text=text) for tile, text in zip(tiles, texts, strict=True)], page)
        return
    rows = [(tile.label, tile.figures, _shorten_change(tile.change)[0]) for tile in tiles[:most]]
    widths = _measure(rows)
    room = page.width - _GUTTER - sum(width + _GUTTER for width in widths if width)
    for row, tile in zip(rows, tiles, strict=False):
        _, verdict, style = _shorten_change(tile.change)
        words = verdict or tile.context
        while terminal_width(words) > max(room, 0):
            words = max((words.rpartition(mark)[0] for mark in (". ", "; ", ": ", ", ")), key=len)
        change = _set_columns(row[2:], widths[2:], (True,))
        start = _set_columns(row[:2], widths[:2], (False, False))
        yield Line(start, tail=f"{change}{'':{_GUTTER}}{words}", tail_style=style)


def _actions(actions: Sequence[Action], page: Page, most: int | None) -> Iterator[Line]:
    shown, indent = actions[:most], _GUTTER + 3
    widest = max(terminal_width(action.title) for action in shown)
    is_beside = indent + widest + _GUTTER + max(terminal_width(action.gain) for action in shown) <= page.width
    for place, action in enumerate(shown, 1):
        gain = f" ({lower_first(action.gain)})" if action.gain else ""
        if is_beside:
            gain = f"{'':{_GUTTER}}{action.gain}"
            text = f"{pad_to_width(action.title, widest)}{gain}".rstrip().replace(" ", GAP)
        else:
            text = f"{action.title}{gain}"
        yield from page.wrap(text, indent, f"{'':{_GUTTER}}{place}")
        if most is None:
            where = f"See {action.finding}." if action.finding else ""
            yield from page.wrap(join(action.text, action.certainty, where, by=" "), indent)
            yield from [Line(f"{'':{indent}}{action.command}")] if action.command else []


def _table(table: Table, page: Page, most: int | None = None) -> Iterator[Line]:
    """Yield a table. Columns that do not fit appear below; a screen omits them."""
    titles = [title.replace(", ", " ").rsplit(" ", 1) for title in table.columns]
    heads = [[title[0] for title in titles], [title[1] if len(title) > 1 else "" for title in titles]]
    rows = []
    for row in table.rows[:most]:
        cells = (row.head, *row.cells)
        small = [join(describe_change(cell.change), cell.small, by=" ") for cell in cells]
        rows += [[cell.text for cell in cells], *([small] if any(small) and most is None else [])]
    widths, rights = _measure([*heads, *rows]), (False, *table.numeric)
    places, room = list(range(1, len(titles))), page.width - _GUTTER - widths[0]
    if most is None and max(widths[1:], default=0) + _GUTTER > room:
        for row in table.rows:
            head, *texts = (
                join(each.text, describe_change(each.change), each.small, by=" ") for each in (row.head, *row.cells)
            )
            yield from page.wrap(head, _GUTTER)
            named = zip(table.columns[1:], texts, strict=True)
            yield from _facts([Fact(name=name, text=text) for name, text in named if text], page, 2 * _GUTTER)
        places = []
    elif most and sum(widths[place] + _GUTTER for place in places) > room:
        places = [place for place in places if any(row[place] != NOT_RECORDED for row in rows)] or places
    while places:
        taken = np.cumsum([widths[place] + _GUTTER for place in places])
        shown = [0, *places[: max(int(np.sum(taken <= room)), 1)]]
        for lines, style in ((heads, "soft"), (rows, "")):
            picked = ([line[place] for place in shown] for line in lines)
            # print the small text of row heads only below the first figures
            kept = (line for line in picked if any(line[1:] if lines is rows and 1 not in shown else line))
            sizes, ends = [widths[place] for place in shown], [rights[place] for place in shown]
            yield from (Line(_set_columns(line, sizes, ends), style) for line in kept)
        places = places[len(shown) - 1 :] if most is None else []
    yield from page.wrap(table.note if most is None else "", _GUTTER, style="soft")


def _facts(facts: Sequence[Fact], page: Page, indent: int = _GUTTER) -> Iterator[Line]:
    widest = max((terminal_width(fact.name) for fact in facts), default=0)
    for before, fact in zip(("", *(fact.name for fact in facts)), facts, strict=False):
        name = "" if fact.name == before else fact.name
        if widest > min(page.width // 2, page.width - indent - _WORDS):
            yield from page.wrap(name, indent)
            yield from page.wrap(fact.text, 2 * indent)
        else:
            column = indent + widest + (_GUTTER if widest else 0)
            yield from page.wrap(fact.text, column, f"{'':{indent}}{name}")

"""The report as one screen of text: what happened, by how much, why, and what to do next."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from gpureport.columns import FloatArray
from gpureport.report.formats.text import follow_up, terminal_bars, terminal_head, terminal_timeline
from gpureport.report.model.head import Action, Tile
from gpureport.report.model.pictures import SignalHistory, SignalPanel, TimeSpent, UseOverTime
from gpureport.report.model.report_content import Report
from gpureport.report.model.shapes import Table
from gpureport.report.wording import display
from gpureport.report.wording.terminal_lines import Line, Page

HEIGHT = 30
"""Lines of a screen at most."""

_MOST = {"gaps": 2, "rules": 3, "signals": 3, "uses": 2, "bars": 8, "tiles": 6, "details": 6, "actions": 3}
"""Lines that each part has at most."""

_LEAST = (
    *(("rules", 1), ("uses", 1), ("details", 3), ("signals", 2), ("tiles", 4), ("gaps", 0), ("details", 2)),
    *(("bars", 6), ("tiles", 3), ("actions", 2), ("tiles", 2), ("bars", 4), ("details", 1), ("bars", 2)),
    *(("uses", 0), ("signals", 0), ("tiles", 0), ("actions", 1), ("details", 0), ("bars", 0)),
)
"""What gives way where a screen is full, in this order, and how many lines of it stay."""

_LINES_OF_A_DOUBT = 2
"""Lines that stay of each detail without which the headline is not to be believed."""

_GUTTER = 2
_LABEL = 16
_SHORTEST = 16
"""Characters of a series at least."""

_SEVERITIES = ("problem", "warning", "info")


def screen_lines(report: Report, page: Page) -> list[Line]:
    """Return the report in at most 30 lines; what gives way stands in the full text."""
    limits = dict(_MOST)
    lines = list(_lines(report, page, limits))
    for part, most in _LEAST:
        least = max(most, _LINES_OF_A_DOUBT * report.verdict.doubts) if part == "details" else most
        while len(lines) > HEIGHT and limits[part] > least:
            limits[part] -= 1
            lines = list(_lines(report, page, limits))
    return lines


def _lines(report: Report, page: Page, limits: Mapping[str, int]) -> Iterator[Line]:
    yield from terminal_head.headline_lines(report, page, limits["details"], is_spaced=limits["gaps"] > 0)
    is_chain = report.steps is not None
    if report.spent and report.spent.bars and limits["bars"]:
        yield from _spent_heading(report.spent, page)
        yield from terminal_bars.bar_lines(report.spent, page, limits["bars"])
    has_spans = report.worst is not None and bool(report.worst.spans)
    if report.worst and has_spans and not is_chain and limits["signals"]:
        yield from _signals(report.worst, page, limits["signals"])
    elif report.use and not is_chain and limits["uses"]:
        yield from _uses(report.use, page, limits["uses"])
    if limits["tiles"] and not has_spans:
        yield from _tiles(report.tiles[: limits["tiles"]], page)
    yield from action_lines(report.actions[: limits["actions"]], page)
    if report.policy:
        yield from _rules(report.policy, page, limits["rules"])
    if limits["gaps"] > 1:
        yield Line()
    yield from _findings(report, page)
    yield from follow_up.follow_up_lines(report.method.command, page)


def heading_lines(text: str, page: Page, right: str = "", width: int = 0) -> Iterator[Line]:
    """Yield a heading after a blank line, with text over the last columns where there is room for it."""
    yield Line()
    gap = page.width - display.terminal_width(text) - max(width, display.terminal_width(right))
    if right and gap >= _GUTTER:
        yield Line(text, "heading", tail=f"{'':{gap}}{right}", tail_style="soft")
    else:
        yield from page.wrapped(text, style="heading")


def _spent_heading(spent: TimeSpent, page: Page) -> Iterator[Line]:
    each, unit = terminal_bars.shared_total(spent), spent.columns[0]
    if each:
        # the total of a GPU holds its unit, that of a step has it in the heading of its column
        unit = f"{each} {unit}" if unit else f"{each} each" if len(spent.bars) > 1 else each
    changes = terminal_bars.measure_right(spent)
    yield from heading_lines(
        f"WHERE THE GPU TIME WENT{display.GAP * 2}{unit}".rstrip(), page, "vs previous step" if changes else "", changes
    )


def _signals(history: SignalHistory, page: Page, most: int) -> Iterator[Line]:
    """Yield a line a quantity, the stretches that a finding speaks of, and the time axis."""
    panels = ([panel for panel in history.panels if panel.note] or list(history.panels))[:most]
    scales = dict.fromkeys(panel.label.rpartition(", ")[2] for panel in panels)
    yield from heading_lines(f"{history.title.upper()}{display.GAP * 2}{', '.join(scales)}", page)
    indent = _GUTTER + _LABEL
    notes = max(display.terminal_width(panel.note) for panel in panels)
    length = max(page.width - indent - _GUTTER - notes, _SHORTEST)
    for panel in panels:
        line = terminal_timeline.draw_heights(_main_line(panel), length, page, (panel.low, panel.high))
        name = panel.label.rpartition(", ")[0] or panel.label
        yield Line(f"{'':{_GUTTER}}{page.column(name, _LABEL - 1)} {line}{'':{_GUTTER}}{panel.note}")
    marks = _mark_spans(history, length, page)
    if indent + length + _GUTTER + display.terminal_width(history.span_text) <= page.width:
        yield Line(f"{'':{indent}}{marks}{'':{_GUTTER}}{history.span_text}")
        return
    yield Line(f"{'':{indent}}{marks}".rstrip())
    yield from page.wrapped(history.span_text, min(indent, max(page.width - 40, _GUTTER)))


def _main_line(panel: SignalPanel) -> FloatArray:
    return next((line.mean for line in panel.lines if line.is_main), panel.lines[0].mean)


def _mark_spans(history: SignalHistory, length: int, page: Page) -> str:
    """Return a line under the signals that marks the stretches, at least a column each."""
    sign = "=" if page.ascii else "▔"
    marks = [" "] * length
    seconds = max(history.end - history.start, 1e-3)
    for start, end in history.spans:
        first = min(round((start - history.start) / seconds * length), length - 1)
        last = max(first + 1, round((end - history.start) / seconds * length))
        marks[max(first, 0) : last] = sign * (min(last, length) - max(first, 0))
    return "".join(marks)


def _uses(use: UseOverTime, page: Page, most: int) -> Iterator[Line]:
    yield from heading_lines(f"GPU USE OVER TIME{display.GAP * 2}0 to 100%", page)
    rows = use.rows[:most]
    label = min(max(display.terminal_width(row.label) for row in rows), _LABEL)
    length = max(page.width - _GUTTER * 2 - label - max(display.terminal_width(row.total) for row in rows), 20)
    for row in rows:
        own = max(round(length * len(row.mean) * row.bucket_seconds / max(use.seconds, 1e-3)), 1)
        line = terminal_timeline.draw_heights(row.mean, min(own, length), page)
        yield Line(f"{'':{_GUTTER}}{page.column(row.label, label)} {line} {row.total}")


def _tiles(tiles: Sequence[Tile], page: Page) -> Iterator[Line]:
    """Yield a figure a line: of steps in order that of the first and the last, the change and its verdict."""
    if not tiles:
        return
    yield from heading_lines("FIRST → LAST" if any(tile.change for tile in tiles) else "KEY FIGURES", page)
    rows = [_tile_texts(tile) for tile in tiles]
    widths = [max(display.terminal_width(row[place]) for row in rows) for place in range(3)]
    for (label, figures, change, words), tile in zip(rows, tiles, strict=True):
        start = f"{'':{_GUTTER}}{display.pad_to_width(label, widths[0])}{'':{_GUTTER}}"
        start += display.pad_to_width(figures, widths[1])
        middle = f"{'':{_GUTTER}}{display.pad_to_width(change, widths[2], right=True)}" if widths[2] else ""
        room = page.width - display.terminal_width(start + middle) - _GUTTER
        style = terminal_bars.change_words(tile.change)[2]
        yield Line(start, tail=f"{middle}{'':{_GUTTER}}{_first_part(words, room)}", tail_style=style)


def _tile_texts(tile: Tile) -> tuple[str, str, str, str]:
    figures = f"{tile.before} → {tile.value}" if tile.before else tile.value
    if tile.unit:
        figures = f"{figures}{display.GAP}{tile.unit}"
    change, verdict, _ = terminal_bars.change_words(tile.change)
    return tile.label, figures, change, verdict or tile.context


def _first_part(text: str, room: int) -> str:
    """Return text if there is room for it, else its parts up to the last that fits whole, else nothing."""
    while text and display.terminal_width(text) > room:
        text = max((text.rpartition(mark)[0] for mark in (". ", "; ", ": ", ", ")), key=len)
    return text


def action_lines(actions: Sequence[Action], page: Page, heading: str = "WHAT TO DO NEXT") -> Iterator[Line]:
    """Yield what to do, with the gain in a column where every one fits on its line, else below."""
    if not actions:
        return
    yield from heading_lines(heading, page)
    indent = _GUTTER + 3
    widest = max(display.terminal_width(action.title) for action in actions)
    gains = max(display.terminal_width(action.gain) for action in actions)
    beside = indent + widest + _GUTTER + gains <= page.width
    for place, action in enumerate(actions, 1):
        number = f"{'':{_GUTTER}}{place}  "
        if beside:
            gain = f"{'':{_GUTTER}}{action.gain}" if action.gain else ""
            yield Line(f"{number}{display.pad_to_width(action.title, widest)}{gain}")
            continue
        text = f"{action.title} ({display.lower_first(action.gain)})" if action.gain else action.title
        first, *rest = page.wrapped(text, indent)
        yield Line(f"{number}{first.text.lstrip()}")
        yield from rest


def _rules(policy: Table, page: Page, most: int) -> Iterator[Line]:
    """Yield the rules that do not hold, each with what was observed."""
    failed = [row for row in policy.rows if row.cells[0].flagged]
    yield Line()
    hidden = f", {most} shown" if len(failed) > most else ""
    yield from page.wrapped(
        f"RULES{display.GAP * 2}{len(failed)} of {len(policy.rows)} failed or not assessed{hidden}."
    )
    for row in failed[:most]:
        outcome, observed, _ = row.cells
        words = " ".join(filter(None, (observed.text, observed.small)))
        yield from page.wrapped(f"{outcome.text}: {row.head.text}{f' ({words})' if words else ''}", _GUTTER)


def _findings(report: Report, page: Page) -> Iterator[Line]:
    """Yield how many findings of each severity there are, and what became of the checks."""
    severities = Counter(row.severity for row in report.rows) or Counter(card.severity for card in report.findings)
    counted = [_count(severities[name], name) for name in _SEVERITIES if severities[name]]
    start = f"FINDINGS{display.GAP * 2}{', '.join(counted) or 'none'}. "
    whole, *_ = report.judgement.sentence.split(". ")
    yield from page.wrapped(f"{start}{whole.rstrip('.')}.")


def _count(number: int, name: str) -> str:
    return f"{number} {name}" if name == "info" else display.plural(number, name)

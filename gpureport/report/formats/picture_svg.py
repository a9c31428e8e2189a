"""The figures of a report below each other, as an SVG file: vector, with text that stays text, on white."""

import textwrap
from collections.abc import Iterator, Sequence
from html import escape

from gpureport.report.charts.elements import draw_swatch, rect, text, write_document
from gpureport.report.charts.palette import DARK_TEXT, LIGHT_TEXT, MUTED
from gpureport.report.charts.rows import draw_signal_panels, draw_spent_bars, draw_use_rows
from gpureport.report.charts.strips import WIDTH, draw_interval_chart, draw_timeline
from gpureport.report.model.head import Change
from gpureport.report.model.pictures import Timeline, TimeSpent
from gpureport.report.model.report_content import Report
from gpureport.report.wording import display

_ROW_END, _ROW_TEXT = 640.0, 655.0
"""Where a figure in a row ends, and where the words right of it begin."""

_MARGIN, _LINE, _SMALL = 12.0, 14.0, 10.0
_HEADLINE, _LINE_LETTERS, _NAME, _LISTED = 110, 140, 90, 12

Placed = tuple[float, float, str]
"""Elements or a figure, drawn at a place across and down from the top of a part of the picture."""


def render(report: Report) -> str:
    """Return the bars of GPU time, its use, charts of steps and timelines, or why there are none.

    The colours are those of a light page: a slide that a picture is pasted into has no style sheet.
    """
    top, body = 0.0, []
    for heading, lines, placed in _list_parts(report):
        body.append(text(_MARGIN, top + 17, heading, size=12, bold=True))
        body += [text(_MARGIN, top + 33 + _LINE * at, words, MUTED, size=_SMALL) for at, words in enumerate(lines)]
        top += 30 + _LINE * len(lines)
        body += [each.replace("<svg", f'<svg x="{x:g}" y="{top + y:g}"', 1) for x, y, each in placed]
        top += max((y + _measure_height(each) for _, y, each in placed), default=0.0) + _MARGIN
    size = f'width="{WIDTH:g}" height="{top:g}"'
    words = f"<title>{escape(report.title)}</title>"
    ground = rect(0, 0, WIDTH, top, f'fill="{LIGHT_TEXT}"')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {top:g}" {size} '
        f'font-family="DejaVu Sans, sans-serif">{words}{ground}{"".join(body)}</svg>\n'
    ).replace('"currentColor"', f'"{DARK_TEXT}"')


def _list_parts(report: Report) -> Iterator[tuple[str, list[str], list[Placed]]]:
    """Yield the heading of each part, lines below it, and its figures."""
    if report.spent:
        rows = [
            (bar.label, _join(bar.total, _say(bar.change), bar.note), _join(bar.beside, _say(bar.beside_change)))
            for bar in report.spent.bars
        ]
        legend = _draw_legend(report.spent)
        left = _measure_names(rows)
        below = legend[-1][1] + 26 if legend else 0.0
        drawn = _place_rows(draw_spent_bars(report.spent, "spent", _ROW_END - left), rows, left, below)
        yield display.shorten(report.verdict.sentence, _HEADLINE), [report.spent.caption], [*legend, *drawn]
    if report.use:
        rows = [(_join(row.label, row.small), row.total, row.text) for row in report.use.rows]
        left = _measure_names(rows)
        drawn = _place_rows(draw_use_rows(report.use, "use", _ROW_END - left), rows, left, 0.0)
        yield "GPU use over time", [report.use.caption], drawn
    if report.worst:
        *panels, axis = draw_signal_panels(report.worst, WIDTH - 2 * _MARGIN)
        placed: list[Placed] = []
        for panel, figure in zip(report.worst.panels, panels, strict=True):
            below = placed[-1][1] + _measure_height(placed[-1][2]) + 4 if placed else 0.0
            placed += [
                (_MARGIN, below, _write_words(": ".join(filter(None, (panel.label, panel.note))))),
                (_MARGIN, below + 20, figure),
            ]
        placed.append((_MARGIN, placed[-1][1] + _measure_height(placed[-1][2]), axis))
        yield report.worst.title, textwrap.wrap(report.worst.caption, _LINE_LETTERS), placed
    part = report.comparison
    for chart in part.charts if part else ():
        lines = textwrap.wrap(part.legend, _LINE_LETTERS) if part and chart is part.charts[-1] else []
        yield chart.title, lines, [(0.0, 0.0, draw_interval_chart(chart, WIDTH))]
    for at, run in enumerate(report.timeline):
        name = display.shorten(run.label, _NAME)
        if run.strips:
            heading = f"{name}: mean GPU utilisation over time, height 0 to 100%, hatched not recorded"
            yield heading, _list_marks(report, at, run), [(0.0, 0.0, draw_timeline(run, f"run{at}"))]
        else:
            yield f"{name}: {display.lower_first(run.absent)}", [], []


def _draw_legend(spent: TimeSpent) -> list[Placed]:
    """Return the swatches and names of classes, in lines."""
    placed: list[Placed] = []
    x = y = 0.0
    for at, each in enumerate(spent.legend):
        wide = 40 + 6.5 * len(each.label)
        if x + wide > WIDTH - 2 * _MARGIN:
            x, y = 0.0, y + 18
        placed.append((_MARGIN + x, y + 3, draw_swatch(each.key, each.label, f"legend{at}")))
        placed.append((_MARGIN + x + 21, y, _write_words(each.label)))
        x += wide
    return placed


def _measure_names(rows: Sequence[tuple[str, str, str]]) -> float:
    """Return where figures in rows begin, so that their names have room."""
    return min(max(6.5 * max(len(row[0]) for row in rows) + 16, 70.0), 190.0)


def _place_rows(figures: Sequence[str], rows: Sequence[tuple[str, str, str]], left: float, top: float) -> list[Placed]:
    """Return rows of figures with their name at the left and two lines at the right, and the axis below."""
    placed: list[Placed] = []
    for figure, (label, *beside) in zip(figures, rows, strict=False):
        placed += [(_MARGIN, top, _write_words(display.shorten_middle(label, 26))), (left, top, figure)]
        shown = [display.shorten(words, 44) for words in beside]
        placed += [(_ROW_TEXT, top - 3 + _LINE * at, _write_words(words)) for at, words in enumerate(shown) if words]
        top += max(_measure_height(figure), 28.0) + 6
    return [*placed, (left, top, figures[-1])]


def _list_marks(report: Report, place: int, run: Timeline) -> list[str]:
    """Return the titles of the findings and events that the strips mark, in lines."""
    marked = {mark.card for strip in run.strips for mark in strip.marks}
    cards = [card for card in report.findings if card.run_index == place and card.id in marked]
    shown = [f"{card.id} {display.shorten(card.title, _NAME)} ({card.severity})" for card in cards]
    shown += [f"{event.id} {display.shorten(event.name, _NAME)}" for event in run.events if event.at is not None]
    more = [f"and {len(shown) - _LISTED} more"] if len(shown) > _LISTED else []
    return textwrap.wrap(" · ".join([*shown[:_LISTED], *more]), _LINE_LETTERS, break_on_hyphens=False)


def _write_words(words: str) -> str:
    return write_document([text(0, 13, words, size=10.5)], width=_ROW_END, height=18, label=words)


def _measure_height(figure: str) -> float:
    return float(figure.partition(' height="')[2].partition('"')[0])


def _say(change: Change | None) -> str:
    return f"{change.text} {change.verdict}".rstrip() if change else ""


def _join(*words: str) -> str:
    return "   ".join(filter(None, words))

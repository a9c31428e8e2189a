"""The figures of a report in one SVG file on a white background. Text stays selectable."""

import textwrap
from collections.abc import Iterator, Sequence
from html import escape
from itertools import zip_longest

from gpureport.report.charts.elements import draw_swatch, text, write_document
from gpureport.report.charts.palette import DARK_TEXT, LIGHT_TEXT
from gpureport.report.charts.rows import draw_signal_panels, draw_spent_bars, draw_use_rows
from gpureport.report.charts.strips import WIDTH, draw_interval_chart, draw_timeline
from gpureport.report.model.head import Change
from gpureport.report.model.pictures import Timeline, TimeSpent
from gpureport.report.model.report_content import Report
from gpureport.report.wording.display import join, lower_first, shorten

_MARGIN, _LINE, _SMALL, _DOT = 12.0, 14.0, 10.0, " · "
_HEADLINE, _LINE_LETTERS, _NAME, _LISTED = 110, 140, 90, 12
_ROOM = WIDTH - 2 * _MARGIN


def render(report: Report) -> str:
    # slides have no style sheet, so colours are attributes
    top, body = 0.0, []
    for heading, lines, names, figures in _list_parts(report):
        body.append(text(_MARGIN, top + 17, heading, size=12, bold=True))
        body += [text(_MARGIN, top + 33 + _LINE * at, words, "muted", size=_SMALL) for at, words in enumerate(lines)]
        top += 30 + _LINE * len(lines)
        for words, figure in zip_longest(names, figures, fillvalue=""):
            body.append(text(_MARGIN, top + 12, shorten(words, _LINE_LETTERS), size=10.5) if words else "")
            top += 17 if words else 0
            body.append(figure.replace("<svg", f'<svg x="{_MARGIN:g}" y="{top:g}"', 1))
            top += float(figure.partition(' height="')[2].partition('"')[0]) + 4
        top += _MARGIN
    size = f'width="{WIDTH:g}" height="{top:g}"'
    words = f"<title>{escape(report.title)}</title>"
    ground = f'<rect {size} fill="{LIGHT_TEXT}"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {top:g}" {size} '
        f'font-family="DejaVu Sans, sans-serif">{words}{ground}{"".join(body)}</svg>\n'
    ).replace('"currentColor"', f'"{DARK_TEXT}"')


def _list_parts(report: Report) -> Iterator[tuple[str, Sequence[str], Sequence[str], Sequence[str]]]:
    spent, use, worst, compared = report.spent, report.use, report.worst, report.comparison
    if spent:
        names = [
            join(bar.label, bar.total, _say(bar.change), bar.note, bar.beside, _say(bar.beside_change), by=_DOT)
            for bar in spent.bars
        ]
        figures = (_draw_legend(spent), *draw_spent_bars(spent, "spent", _ROOM))
        yield shorten(report.verdict.sentence, _HEADLINE), [spent.caption], ["", *names], figures
    if use:
        names = [join(row.label, row.small, row.total, row.text, by=_DOT) for row in use.rows]
        yield "GPU use over time", [use.caption], names, draw_use_rows(use, "use", _ROOM)
    if worst:
        names = [join(panel.label, panel.note, by=": ") for panel in worst.panels]
        yield worst.title, textwrap.wrap(worst.caption, _LINE_LETTERS), names, draw_signal_panels(worst, _ROOM)
    for chart in compared.charts if compared else ():
        lines = textwrap.wrap(compared.legend, _LINE_LETTERS) if compared and chart is compared.charts[-1] else []
        yield chart.title, lines, [], [draw_interval_chart(chart, _ROOM)]
    for at, run in enumerate(report.timeline):
        name = shorten(run.label, _NAME)
        if run.strips:
            heading = f"{name}: mean GPU utilisation over time, height: 0 to 100%, hatched: not recorded"
            yield heading, _list_marks(report, at, run), [], [draw_timeline(run, f"run{at}", _ROOM)]
        else:
            yield f"{name}: {lower_first(run.absent)}", [], [], []


def _draw_legend(spent: TimeSpent) -> str:
    body, x, y = [], 0.0, 0.0
    for at, each in enumerate(spent.legend):
        wide = 40 + 6.5 * len(each.label)
        x, y = (0.0, y + 18) if x + wide > _ROOM else (x, y)
        swatch = draw_swatch(each.key, each.label, f"legend{at}").replace(
            "<svg",
            f'<svg x="{x:g}" y="{y + 3:g}"',
            1,
        )
        body += [swatch, text(x + 21, y + 12, each.label, size=10.5)]
        x += wide
    return write_document(
        body,
        width=_ROOM,
        height=y + 18,
        label=", ".join(each.label for each in spent.legend),
    )


def _list_marks(report: Report, place: int, run: Timeline) -> list[str]:
    marked = {mark.card for strip in run.strips for mark in strip.marks}
    cards = [card for card in report.findings if card.run_index == place and card.id in marked]
    shown = [f"{card.id} {shorten(card.title, _NAME)} ({card.severity})" for card in cards]
    shown += [f"{event.id} {shorten(event.name, _NAME)}" for event in run.events if event.at is not None]
    more = [f"and {len(shown) - _LISTED} more"] if len(shown) > _LISTED else []
    return textwrap.wrap(" · ".join([*shown[:_LISTED], *more]), _LINE_LETTERS, break_on_hyphens=False)


def _say(change: Change | None) -> str:
    return f"{change.text} {change.verdict}".rstrip() if change else ""

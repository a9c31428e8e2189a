"""The pictures of a report in a file of their own: GPU time, its use, charts of steps, and the timeline.

It always has light colours: a slide that it is pasted into has no style sheet.
"""

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from matplotlib.figure import Figure

from gpureport.report.charts import canvas, event_marks, hero_pictures, interval_charts, timeline_strips
from gpureport.report.charts.palette import INK, MUTED
from gpureport.report.charts.vector import spent_bars
from gpureport.report.model.comparison_parts import ComparisonPart
from gpureport.report.model.finding_card import FindingCard
from gpureport.report.model.report_content import Report
from gpureport.report.model.time_charts import Timeline
from gpureport.report.wording import display

_HEADING, _TEXT = 12.0, 10.0
_ABOVE, _LINE, _MARGIN = 24.0, 14.0, 12.0
_LETTERS, _NAME, _MARKS, _HEADLINE = 140, 90, 12, 110


@dataclass(frozen=True, slots=True)
class ReportPicture:
    """A chart of steps, or the strips of one run, drawn; `spoken` is its alternative text."""

    figure: Figure
    spoken: str


def draw_report_pictures(report: Report) -> Iterator[ReportPicture]:
    """Yield where GPU time went, its use, charts of steps, and timelines, or why there are none."""
    yield from _draw_heroes(report)
    yield from _draw_charts(report.comparison) if report.comparison else ()
    for place, run in enumerate(report.timeline):
        name = display.shorten(run.label, _NAME)
        if run.strips:
            lines = _legend_lines([card for card in report.findings if card.run_index == place], run)
            below = _LINE * len(lines) + _MARGIN
            figure = timeline_strips.build_timeline_figure(run, above=_ABOVE, below=below)
            heading = f"{name}: mean GPU utilisation over time, height 0 to 100%, hatched not recorded"
        else:
            lines, figure = [], canvas.new_figure(canvas.WIDTH, _ABOVE + _MARGIN)
            heading = f"{name}: {display.lower_first(run.absent)}"
        _write_heading_and_legend(figure, heading, lines)
        yield ReportPicture(figure, "; ".join([heading, *lines]))


def _draw_heroes(report: Report) -> Iterator[ReportPicture]:
    """Yield the bars of GPU time below the headline, then its use over time."""
    if report.spent:
        figure = hero_pictures.build_spent_figure(report.spent, above=_ABOVE + _LINE + _MARGIN)
        headline = display.shorten(report.verdict.sentence, _HEADLINE)
        _write_heading_and_legend(figure, headline, [])
        _write_caption(figure, report.spent.caption)
        bars = [spent_bars.describe_bar(bar, report.spent.columns[0]) for bar in report.spent.bars]
        yield ReportPicture(figure, "; ".join(["Where the GPU time went", report.spent.caption, *bars]))
    if report.use:
        figure = hero_pictures.build_use_figure(report.use, above=_ABOVE + _LINE + _MARGIN)
        _write_heading_and_legend(figure, "GPU use over time", [])
        _write_caption(figure, report.use.caption)
        rows = [f"{row.label}: {row.text}" for row in report.use.rows]
        yield ReportPicture(figure, "; ".join(["GPU use over time", report.use.caption, *rows]))


def _write_caption(figure: Figure, text: str) -> None:
    height = figure.get_figheight() * 72
    with canvas.chart_settings():
        at = 1 - (17 + _LINE + 2) / height
        figure.text(_MARGIN / canvas.WIDTH, at, text, fontsize=_TEXT, color=MUTED.stand_in)


def _draw_charts(part: ComparisonPart) -> Iterator[ReportPicture]:
    """Yield the charts of steps, what their marks stand for below the last."""
    for chart in part.charts:
        lines = textwrap.wrap(part.legend, _LETTERS) if chart is part.charts[-1] else []
        below = _LINE * len(lines) + _MARGIN
        figure = interval_charts.build_interval_figure(chart, canvas.WIDTH, above=_ABOVE, below=below)
        _write_heading_and_legend(figure, chart.title, lines)
        yield ReportPicture(figure, "; ".join([interval_charts.describe_chart(chart), *lines]))


def _legend_lines(cards: list[FindingCard], run: Timeline) -> list[str]:
    """Return the titles of the findings and events that the strips mark, in lines."""
    marked = {mark.card for strip in run.strips for mark in strip.marks}
    shown = [f"{card.id} {display.shorten(card.title, _NAME)} ({card.severity})" for card in cards if card.id in marked]
    shown += [f"{event.id} {display.shorten(event.name, _NAME)}" for event in event_marks.timed_events(run)]
    more = [f"and {len(shown) - _MARKS} more"] if len(shown) > _MARKS else []
    return textwrap.wrap(" · ".join([*shown[:_MARKS], *more]), _LETTERS, break_on_hyphens=False)


def _write_heading_and_legend(figure: Figure, heading: str, lines: list[str]) -> None:
    height = figure.get_figheight() * 72
    left = _MARGIN / canvas.WIDTH
    with canvas.chart_settings():
        figure.text(left, 1 - 17 / height, heading, fontsize=_HEADING, fontweight="bold", color=INK.stand_in)
        for place, line in enumerate(reversed(lines)):
            at = (_MARGIN / 2 + _LINE * place + 2) / height
            figure.text(left, at, line, fontsize=_TEXT, color=MUTED.stand_in)

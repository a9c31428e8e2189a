"""The figures of a page, as templates set them: SVG elements that escape what they write."""

from collections.abc import Iterable
from typing import Any

from markupsafe import Markup

from gpureport.report.charts.elements import draw_swatch
from gpureport.report.charts.rows import draw_signal_panels, draw_spent_bars, draw_use_rows
from gpureport.report.charts.strips import draw_interval_chart, draw_timeline
from gpureport.report.model.pictures import TimeSpent
from gpureport.report.model.report_content import Report


def draw_page_pictures(report: Report) -> dict[str, Any]:
    """Return the figures by the names that templates use.

    `pictures` holds those in rows, a figure a row or a panel and then one of the axis, those that a row of findings is
    seen in by the id of the row, and figures of steps; `timelines` the strips of runs, each with what it shows.
    """
    charts = report.comparison.charts if report.comparison else ()
    return {
        "pictures": {
            "legend": draw_legend(report.spent),
            "spent": draw_spent(report.spent),
            "use": mark_safe(draw_use_rows(report.use, "use") if report.use else ()),
            "worst": mark_safe(draw_signal_panels(report.worst) if report.worst else ()),
            "panels": mark_safe(map(draw_interval_chart, charts)),
            "histories": {row.id: mark_safe(draw_signal_panels(row.history)) for row in report.rows if row.history},
        },
        "timelines": [
            (run, *mark_safe([draw_timeline(run, f"run{at}") if run.strips else ""]))
            for at, run in enumerate(report.timeline)
        ],
    }


def draw_legend(spent: TimeSpent | None) -> tuple[tuple[str, Markup], ...]:
    classes = spent.legend if spent else ()
    swatches = mark_safe(draw_swatch(each.key, each.label, "legend") for each in classes)
    return tuple(zip((each.label for each in classes), swatches, strict=True))


def draw_spent(spent: TimeSpent | None) -> tuple[Markup, ...]:
    return mark_safe(draw_spent_bars(spent, "spent") if spent else ())


def mark_safe(figures: Iterable[str]) -> tuple[Markup, ...]:
    return tuple(Markup(figure) for figure in figures)  # noqa: S704 - figures escape what they write

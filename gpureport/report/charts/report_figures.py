"""All figures of a page or a PDF as SVG elements."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpureport.report.model.report_content import Report
from gpureport.report.model.time_charts import Timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFigures:
    """The figures in their order; a timeline without strips is empty.

    Attributes:
        timelines: strips of runs.
        panels: figures of every step.
    """

    timelines: tuple[str, ...]
    panels: tuple[str, ...]


def draw_report_figures(
    report: Report, timelines: Sequence[tuple[Timeline, str]], width: float | None = None
) -> ReportFigures:
    """Draw the figures of a report.

    Args:
        report: the content.
        timelines: its runs, or parts of them, each with what begins every id in its figure.
        width: of all but the panels in points, that of a page when None.
    """
    from gpureport.report.charts import canvas, interval_charts, timeline_strips  # noqa: PLC0415 - loads matplotlib

    wide = width or canvas.WIDTH
    panels = report.comparison.charts if report.comparison else ()
    return ReportFigures(
        timelines=tuple(
            timeline_strips.draw_timeline(run, prefix, wide) if run.strips else "" for run, prefix in timelines
        ),
        panels=tuple(interval_charts.draw_interval_chart(chart, f"panel{at}") for at, chart in enumerate(panels)),
    )

"""The pictures of the open page and of its rows of findings, as SVG elements in the order that the page sets them."""

from dataclasses import dataclass

from markupsafe import Markup

from gpureport.report.charts.vector import class_patterns, signal_panels, spent_bars, use_rows
from gpureport.report.model.report_content import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePictures:
    """Each as one figure a row or a panel, and then one of the axis; nothing where the report has no such picture.

    Attributes:
        legend: name and swatch of each class of GPU time that a bar shows.
        spent: bars of GPU time.
        use: utilisation over time.
        worst: signals of the worst GPU.
        histories: signals that a row of findings is seen in, by the id of the row.
    """

    legend: tuple[tuple[str, Markup], ...]
    spent: tuple[Markup, ...]
    use: tuple[Markup, ...]
    worst: tuple[Markup, ...]
    histories: dict[str, tuple[Markup, ...]]


def draw_page_pictures(report: Report) -> PagePictures:
    """Draw the pictures of a page."""
    classes = report.spent.legend if report.spent else ()
    return PagePictures(
        legend=tuple(
            (each.label, Markup(class_patterns.draw_swatch(each.key, each.label, "legend")))  # noqa: S704 - figures escape what they write
            for each in classes
        ),
        spent=_mark_safe(spent_bars.draw_spent_bars(report.spent, "spent") if report.spent else ()),
        use=_mark_safe(use_rows.draw_use_rows(report.use, "use") if report.use else ()),
        worst=_mark_safe(signal_panels.draw_signal_panels(report.worst, "worst") if report.worst else ()),
        histories={
            row.id: _mark_safe(signal_panels.draw_signal_panels(row.history, f"history-{row.id}"))
            for row in report.rows
            if row.history
        },
    )


def _mark_safe(figures: tuple[str, ...]) -> tuple[Markup, ...]:
    return tuple(Markup(figure) for figure in figures)  # noqa: S704 - figures escape what they write

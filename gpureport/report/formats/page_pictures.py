"""The pictures of the open page and of its rows of findings, as SVG elements in the order that the page sets them."""

from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

from gpureport.report.charts.vector import class_patterns, signal_panels, spent_bars, use_rows
from gpureport.report.model.pictures import TimeSpent
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
    return PagePictures(
        legend=draw_legend(report.spent),
        spent=draw_spent(report.spent),
        use=mark_safe(use_rows.draw_use_rows(report.use, "use") if report.use else ()),
        worst=mark_safe(signal_panels.draw_signal_panels(report.worst, "worst") if report.worst else ()),
        histories={
            row.id: mark_safe(signal_panels.draw_signal_panels(row.history, f"history-{row.id}"))
            for row in report.rows
            if row.history
        },
    )


def draw_legend(spent: TimeSpent | None) -> tuple[tuple[str, Markup], ...]:
    """Draw the name and the swatch of each class that a bar shows."""
    classes = spent.legend if spent else ()
    swatches = mark_safe(class_patterns.draw_swatch(each.key, each.label, "legend") for each in classes)
    return tuple(zip((each.label for each in classes), swatches, strict=True))


def draw_spent(spent: TimeSpent | None) -> tuple[Markup, ...]:
    """Draw the bars of GPU time, and their axis."""
    return mark_safe(spent_bars.draw_spent_bars(spent, "spent") if spent else ())


def mark_safe(figures: Iterable[str]) -> tuple[Markup, ...]:
    """Return figures as a template sets them as they are."""
    return tuple(Markup(figure) for figure in figures)  # noqa: S704 - figures escape what they write

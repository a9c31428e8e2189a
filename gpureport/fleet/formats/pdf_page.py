"""The page on many runs set by typst: two pages for a meeting, and an appendix."""

from collections.abc import Sequence
from typing import Any

from gpureport.fleet.formats.loss_bars import draw_loss_bars
from gpureport.fleet.formats.week_columns import draw_week_columns
from gpureport.fleet.page.page_model import FleetPage
from gpureport.fleet.page.parts.savings import HEADING
from gpureport.report.charts.elements import draw_swatch
from gpureport.report.charts.rows import draw_spent_bars
from gpureport.report.formats import pdf_figures, typesetting
from gpureport.report.formats.branding import PLAIN, Brand
from gpureport.report.wording import display

TEMPLATE = "fleet.typ"

_ROW_WIDTH, _BAR_WIDTH, _PAGE_WIDTH = 238.0, 106.0, 510.0
"""Points on paper of a bar of GPU time, of a bar in a table, and between the margins."""


def render(page: FleetPage, brand: Brand = PLAIN, *, full: bool = False) -> bytes:
    """Return the page as a PDF file.

    Args:
        page: the content.
        brand: logo, accent, font and last line.
        full: whether every part is in the appendix; else those that a reader looks up first.

    Raises:
        RenderError: when fonts are missing or the logo cannot be set.
    """

    def describe(files: pdf_figures.FigureWriter) -> dict[str, Any]:
        return {
            "full": full,
            "heading": HEADING,
            "headline": list(display.headline(page.verdict.sentence)),
            "quiet_line": page.quiet_line,
            "figures": _draw_figures(page, files),
        }

    return typesetting.set_document(TEMPLATE, page, describe, brand=brand, ended=page.ended)


def _draw_figures(page: FleetPage, files: pdf_figures.FigureWriter) -> dict[str, Any]:
    """Draw every figure into a file, and return them by the names that the template uses."""
    row, bar, whole = (width / pdf_figures.SCALE for width in (_ROW_WIDTH, _BAR_WIDTH, _PAGE_WIDTH))
    legend = page.spent.legend if page.spent else ()
    swatches = [draw_swatch(each.key, each.label, f"legend{at}") for at, each in enumerate(legend)]
    weeks = [part.weeks for part in page.parts if part.weeks]
    return {
        "legend": files.write_all("legend", swatches),
        "spent": files.write_all("spent", draw_spent_bars(page.spent, "spent", row) if page.spent else ()),
        "weeks": files.write("weeks", draw_week_columns(weeks[0], "weeks", whole)) if weeks else None,
        "bars": {
            part.id: _write_bars(f"bars{at}-", draw_loss_bars(part.bars, f"bars{at}-", bar), files)
            for at, part in enumerate(page.parts)
            if part.bars
        },
    }


def _write_bars(name: str, drawn: Sequence[str], files: pdf_figures.FigureWriter) -> list[dict[str, Any] | None]:
    """Write a figure a row; None for a row without a bar."""
    return [files.write(f"{name}{at}", svg) if svg else None for at, svg in enumerate(drawn)]

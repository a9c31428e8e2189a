"""The page on many runs as one HTML file, with its style sheet and without a script."""

from markupsafe import Markup

from gpureport.fleet.formats.loss_bars import draw_loss_bars
from gpureport.fleet.formats.week_columns import draw_week_columns
from gpureport.fleet.page.page_model import FleetPage
from gpureport.report.formats import html, page_pictures, term_tooltips
from gpureport.report.formats.branding import PLAIN, Brand
from gpureport.report.model.shapes import Fact
from gpureport.report.wording.terms import DEFINITIONS

TEMPLATE = "fleet.html"


def render(page: FleetPage, brand: Brand = PLAIN, *, full: bool = False) -> str:
    """Return the page.

    Args:
        page: the content.
        brand: logo, accent and last line.
        full: as other formats take it; a page has everything, in folds.
    """
    del full
    pages = html.template_environment(brand)
    # a heading says what it means to whoever rests the pointer on it
    pages.filters["term"] = term_tooltips.term_filter([Fact(name=name, text=text) for name, text in DEFINITIONS])
    style = pages.get_template(html.STYLE).render()
    return pages.get_template(TEMPLATE).render(
        report=page,
        back="",
        samples=None,
        style=Markup(style),  # noqa: S704 - our file
        policy=html.content_security_policy(style),
        pictures=_draw_pictures(page),
    )


def _draw_pictures(page: FleetPage) -> dict[str, object]:
    """Return the pictures by the names that the templates use."""
    weeks = [part.weeks for part in page.parts if part.weeks]
    return {
        "legend": page_pictures.draw_legend(page.spent),
        "spent": page_pictures.draw_spent(page.spent),
        "weeks": page_pictures.mark_safe(draw_week_columns(each, "weeks") for each in weeks)[0] if weeks else "",
        "bars": {
            part.id: page_pictures.mark_safe(draw_loss_bars(part.bars, part.id)) for part in page.parts if part.bars
        },
    }

"""The site: static pages made from the history alone, the same bytes whenever they are made from it."""

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from markupsafe import Markup

from gpureport import __version__
from gpureport.errors import RenderError
from gpureport.nightly.changes.trend import Trend
from gpureport.nightly.history.night import Night
from gpureport.nightly.site import pages, shown
from gpureport.report.formats import html
from gpureport.store import writing

REPORTS = "nights"
"""Folder of the reports."""

BACK = "../index.html"
"""The first page, as seen from a report."""

_FIGURES = "figures"

Report = Callable[[Night], bytes | None]
"""Returns the report of a night as a page; None where its runs are kept no longer."""


def build(site: Path, nights: Sequence[Night], trends: Sequence[Trend], report: Report) -> None:
    """Write every page; the report of a night only where it is not there yet.

    Args:
        site: folder of the pages, made where it is not there.
        nights: all nights, the oldest first.
        trends: the course of every figure.
        report: renders the report of a night.

    Raises:
        RenderError: when a page cannot be written.
    """
    try:
        for folder in (site, site / REPORTS, site / _FIGURES):
            folder.mkdir(parents=True, exist_ok=True)
        writing.sweep(site)
        reports = {night.page for night in nights if night.measured and _reported(site, night, report)}
        for name, content in _pages(nights, trends, reports):
            _put(site, name, content.encode())
    except OSError as error:
        hint = "choose a folder that can be written with --site"
        raise RenderError(str(site), f"cannot be written ({error.strerror})", hint) from error


def _reported(site: Path, night: Night, report: Report) -> bool:
    """Return whether the report of a night is there, after having made it where it can be."""
    name = f"{REPORTS}/{night.page}.html"
    if (site / name).is_file():
        return True
    content = report(night)
    if content is None:
        return False
    _put(site, name, content)
    return True


def _put(site: Path, name: str, content: bytes) -> None:
    """Write a page whole or not at all, and not when it is there already."""
    path = site / name
    if not path.is_file() or sha256(path.read_bytes()).digest() != sha256(content).digest():
        writing.whole(path, content, site)


def _pages(nights: Sequence[Night], trends: Sequence[Trend], reports: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the name and the content of every page but reports."""
    templates = html.template_environment()
    style = "\n".join(line.strip() for line in templates.get_template("site.css").render().splitlines() if line.strip())
    shared = {"style": Markup(style), "policy": html.content_security_policy(style), "version": __version__}  # noqa: S704 - our file

    def page(template: str, **content: object) -> str:
        return templates.get_template(template).render(**shared, **content)

    yield "index.html", page("site_index.html", root="", page=pages.index(nights, trends, reports))
    yield "nights.html", page("site_nights.html", root="", nights=pages.night_table(nights, reports))
    addresses = pages.addresses(nights)
    for trend in trends:
        content = pages.figure_page(trend, reports, addresses)
        name = shown.address(trend.step, trend.model, trend.kind)
        yield f"{_FIGURES}/{name}.html", page("site_figure.html", root="../", page=content)

"""The site: static pages. The same history always yields the same bytes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from markupsafe import Markup

from gpureport import __version__
from gpureport.errors import RenderError
from gpureport.nightly import pages
from gpureport.nightly.latest import name_figure_page
from gpureport.nightly.records import NightlyRecord
from gpureport.nightly.trends import Trend, group_changes, map_verdicts
from gpureport.places import Place, stage_folder
from gpureport.recording import Run
from gpureport.report.formats import html
from gpureport.store import atomic_writes

INDEX = "index.html"
BACK = f"../{INDEX}"
"""Address of the index page, relative to a report."""
REPORTS, FIGURES = "nights", "figures"
"""Folders for reports and for figure pages."""
MARKER = "gpureport-site"
"""The file that marks a folder as a site. CI artifacts omit hidden files."""
_NIGHTS = "nights.html"
"""A page covering all nights, written by earlier versions."""
_MARKER_TEXT = f"gpureport nightly writes {INDEX}, {REPORTS}/ and {FIGURES}/ here.\n"
_GENERATOR = b'<meta name="generator" content="gpureport '
_HEAD = 4096
_WRITTEN = rf".+\.html|{MARKER}"
ReportRenderer = Callable[[NightlyRecord], bytes | None]
"""Returns a night's report as a page, or None if its runs are no longer stored."""


def check_site(site: Place) -> None:
    # check even a marked folder, as someone may have added a page
    if isinstance(site, Path) or not (site / MARKER).is_file():
        _refuse_foreign_page(site / INDEX)


def claim_site(site: Place, folder: Path, names: Iterable[str]) -> None:
    """Mark a folder as a site, and remove files that killed processes left behind.

    `folder` is the site itself, or a folder to be uploaded to the site's bucket. Raises RenderError, before any change,
    if a page with one of these names is not from gpureport.
    """
    is_marked = (site / MARKER).is_file()
    check_site(site)
    if not is_marked and not _names_generator(site / INDEX):
        for name in names:
            _refuse_foreign_page(site / name)
    for part in (folder, folder / REPORTS, folder / FIGURES):
        part.mkdir(parents=True, exist_ok=True)
    atomic_writes.remove_stale_files(folder, _WRITTEN)
    if isinstance(site, Path) and _names_generator(site / _NIGHTS):
        (site / _NIGHTS).unlink()
    if not is_marked:
        atomic_writes.write_bytes(folder / MARKER, _MARKER_TEXT.encode(), folder)


def _refuse_foreign_page(page: Place) -> None:
    if page.exists() and not _names_generator(page):
        hint = "choose another folder with --site, or move the page elsewhere"
        raise RenderError(str(page), "was not written by gpureport, so it was not changed", hint, code="foreign_page")


def _names_generator(page: Place) -> bool:
    return page.is_file() and _GENERATOR in page.read_bytes()[:_HEAD]


def write_site(
    site: Place,
    nights: Sequence[NightlyRecord],
    trends: Sequence[Trend],
    report: ReportRenderer,
    accepted: Sequence[Run] = (),
) -> None:
    figures = sorted(f"{FIGURES}/{name_figure_page(trend)}.html" for trend in trends)
    try:
        with stage_folder(site, INDEX) as folder:
            # the folder is the site itself, or is uploaded to the site
            claim_site(site, folder, [INDEX, *(f"{REPORTS}/{night.page}.html" for night in nights), *figures])
            reports = {path.stem for path in (site / REPORTS).iterdir()} & {
                night.page for night in nights if night.measured_runs
            }
            for night in nights:
                if night.measured_runs and night.page not in reports and (content := report(night)) is not None:
                    _write_page(folder, f"{REPORTS}/{night.page}.html", content)
                    reports.add(night.page)
            for name, page in _render_pages(nights, trends, reports, accepted):
                _write_page(folder, name, page.encode())
    except OSError as error:
        hint = "choose a writable folder with --site"
        raise RenderError(str(site), f"cannot be written ({error.strerror})", hint, code="unwritable") from error


def _write_page(site: Path, name: str, content: bytes) -> None:
    path = site / name
    if not path.is_file() or sha256(path.read_bytes()).digest() != sha256(content).digest():
        atomic_writes.write_bytes(path, content, site)


def _render_pages(
    nights: Sequence[NightlyRecord], trends: Sequence[Trend], reports: set[str], accepted: Sequence[Run]
) -> Iterator[tuple[str, str]]:
    templates = html.template_environment()
    style = "\n".join(line.strip() for line in templates.get_template("site.css").render().splitlines() if line.strip())
    shared = {"style": Markup(style), "policy": html.content_security_policy(style), "version": __version__}  # noqa: S704 - our file
    verdicts = map_verdicts(group_changes(trends))
    figure = templates.get_template("site_figure.html")
    for trend in trends:
        content = pages.build_figure_page(trend, verdicts, reports, nights)
        yield f"{FIGURES}/{name_figure_page(trend)}.html", figure.render(**shared, root="../", page=content)
    # the index comes last, as it links to all other pages
    index = pages.build_index(nights, trends, reports, accepted)
    yield INDEX, templates.get_template("site_index.html").render(**shared, root="", page=index)

"""The site: static pages made from the history alone, the same bytes whenever they are made from it."""

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from markupsafe import Markup

from gpureport import __version__
from gpureport.errors import RenderError
from gpureport.nightly.changes.change_events import group_changes, judge_events
from gpureport.nightly.changes.trend import Trend
from gpureport.nightly.history.nightly_record import NightlyRecord
from gpureport.nightly.site import night_wording, page_building
from gpureport.nightly.site.site_files import FIGURES, INDEX, REPORTS, claim_site
from gpureport.places import Place
from gpureport.places.transfer import stage_folder
from gpureport.recording import Run
from gpureport.report.formats import html
from gpureport.store import atomic_writes

BACK = "../index.html"
"""The first page, as seen from a report."""

ReportRenderer = Callable[[NightlyRecord], bytes | None]
"""Returns the report of a night as a page; None where its runs are kept no longer."""


def write_site(
    site: Place,
    nights: Sequence[NightlyRecord],
    trends: Sequence[Trend],
    report: ReportRenderer,
    accepted: Sequence[Run] = (),
) -> None:
    """Write every page; the report of a night only where it is not there yet.

    Args:
        site: folder of the pages, made where it is not there.
        nights: all nights, the oldest first.
        trends: the course of every figure.
        report: renders the report of a night.
        accepted: the runs of baselines.

    Raises:
        PlaceError: when the bucket of the site cannot be reached, or refuses.
        RenderError: when a page cannot be written.
    """
    try:
        with stage_folder(site, INDEX) as folder:
            # which is the site, or whose files are sent there
            claim_site(site, folder, _list_names(nights, trends))
            present = {path.name for path in (site / REPORTS).iterdir()}
            reports = {
                night.page
                for night in nights
                if night.measured_runs and (f"{night.page}.html" in present or _make_report(folder, night, report))
            }
            for name, content in _render_pages(nights, trends, reports, accepted):
                _write_page(folder, name, content.encode())
    except OSError as error:
        hint = "choose a folder that can be written with --site"
        raise RenderError(str(site), f"cannot be written ({error.strerror})", hint, code="unwritable") from error


def _list_names(nights: Sequence[NightlyRecord], trends: Sequence[Trend]) -> list[str]:
    figures = {night_wording.figure_page_name(trend.step, trend.model, trend.kind) for trend in trends}
    reports = [f"{REPORTS}/{night.page}.html" for night in nights]
    return [INDEX, *reports, *(f"{FIGURES}/{name}.html" for name in sorted(figures))]


def _make_report(site: Path, night: NightlyRecord, report: ReportRenderer) -> bool:
    """Write the report of a night where it can be made; return whether it is there."""
    content = report(night)
    if content is None:
        return False
    _write_page(site, f"{REPORTS}/{night.page}.html", content)
    return True


def _write_page(site: Path, name: str, content: bytes) -> None:
    """Write a page whole or not at all, and not when it is there already."""
    path = site / name
    if not path.is_file() or sha256(path.read_bytes()).digest() != sha256(content).digest():
        atomic_writes.write_bytes(path, content, site)


def _render_pages(
    nights: Sequence[NightlyRecord], trends: Sequence[Trend], reports: set[str], accepted: Sequence[Run]
) -> Iterator[tuple[str, str]]:
    """Yield the name and the content of every page but reports."""
    templates = html.template_environment()
    style = "\n".join(line.strip() for line in templates.get_template("site.css").render().splitlines() if line.strip())
    shared = {"style": Markup(style), "policy": html.content_security_policy(style), "version": __version__}  # noqa: S704 - our file

    def page(template: str, **content: object) -> str:
        return templates.get_template(template).render(**shared, **content)

    verdicts = judge_events(group_changes(trends))
    addresses = page_building.map_report_names(nights)
    for trend in trends:
        content = page_building.build_figure_page(trend, verdicts, reports, addresses)
        name = night_wording.figure_page_name(trend.step, trend.model, trend.kind)
        yield f"{FIGURES}/{name}.html", page("site_figure.html", root="../", page=content)
    # last, since it leads to all others
    yield INDEX, page("site_index.html", root="", page=page_building.build_index(nights, trends, reports, accepted))

"""Writing the page on many runs: the table of its formats, and one page for all files."""

import sys
from collections.abc import Sequence
from importlib import import_module

from gpureport.errors import RenderError
from gpureport.fleet.fleet_report import FleetReport
from gpureport.fleet.formats import fleet_json
from gpureport.fleet.page.page_building import build_page
from gpureport.fleet.page.page_model import FleetPage
from gpureport.places import Place
from gpureport.report.formats import output
from gpureport.report.formats.branding import PLAIN, Brand

FORMATS = {
    ".html": "gpureport.fleet.formats.html_page",
    ".json": "gpureport.fleet.formats.fleet_json",
    ".md": "gpureport.fleet.formats.markdown_page",
    ".pdf": "gpureport.fleet.formats.pdf_page",
    ".txt": "gpureport.fleet.formats.terminal_page",
}
"""Module that renders each format, by the extension of the file; imported when it is needed."""

_BRANDED = {".html", ".pdf"}
_WITH_FULL = {".txt", ".pdf"}


def check_fleet_outputs(paths: Sequence[Place], *, full: bool = False) -> None:
    """Refuse files of unknown kinds, and options that no file needs, before any work is done.

    Raises:
        RenderError: naming the file, or the option.
    """
    for path in paths:
        output.check_path(path, FORMATS)
    kinds = {".txt" if str(path) == "-" else path.suffix.lower() for path in paths}
    if full and kinds and not kinds & _WITH_FULL:
        hint = f"write one of {', '.join(sorted(_WITH_FULL))}"
        raise RenderError("--detail full", "no file to be written has a longer form", hint, code="nothing_to_show")


def write_fleet_report(  # noqa: PLR0913 - what a file depends on, each by name
    report: FleetReport,
    targets: Sequence[Place],
    *,
    command: str,
    version: str,
    brand: Brand = PLAIN,
    full: bool = False,
) -> FleetPage:
    """Write the report to every target, by its extension; `-` is plain text on standard output.

    Folders are made, a file appears whole or not at all.

    Args:
        report: the content.
        targets: the files.
        command: the command that the page prints.
        version: of gpureport.
        brand: logo, accent, font and last line of page and PDF.
        full: whether text and PDF have everything.

    Returns:
        The page, whose headline says what was written.

    Raises:
        RenderError: when no format has the extension, or a file cannot be written.
    """
    page = build_page(report, command=command, version=version)
    for target in targets:
        if str(target) == "-":
            sys.stdout.write(_render(report, page, ".txt", brand, full=full).decode())
            continue
        output.check_path(target, FORMATS)
        output.write_whole(target, _render(report, page, target.suffix.lower(), brand, full=full))
    return page


def _render(report: FleetReport, page: FleetPage, kind: str, brand: Brand, *, full: bool) -> bytes:
    """Return the page in one format, text as UTF-8; JSON is the report itself."""
    if kind == ".json":
        return fleet_json.render(report).encode()
    renderer = import_module(FORMATS[kind])
    if kind in _BRANDED:
        content = renderer.render(page, brand, full=full)
    elif kind in _WITH_FULL:
        content = renderer.render(page, full=full)
    else:
        content = renderer.render(page)
    return content if isinstance(content, bytes) else str(content).encode()

"""Creates reports. `build` creates the content, each format's renderer prints it, and `write` saves files.

Importing this package loads neither the renderers nor the libraries that they and `build` need.
"""

import sys
from collections.abc import Collection, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpureport.errors import RenderError
from gpureport.places import Place, RemotePath, is_bucket_url, parse_place
from gpureport.places.written_paths import ReadPath, WrittenPath, find_folder_obstacle, refuse_taken_paths
from gpureport.store import atomic_writes

if TYPE_CHECKING:
    from gpureport.report.formats.branding import Brand
    from gpureport.report.model.report_content import Report
    from gpureport.report.sections.builder import build as build

FORMATS = {
    ".html": "gpureport.report.formats.html",
    ".json": "gpureport.report.formats.report_json",
    ".md": "gpureport.report.formats.markdown",
    ".pdf": "gpureport.report.formats.pdf",
    ".png": "gpureport.report.formats.pdf:render_picture",
    ".svg": "gpureport.report.formats.picture_svg",
    ".txt": "gpureport.report.formats.terminal",
}
_GONE = {
    ".xml": "gpureport check --junit",
    ".prom": "gpureport check --export openmetrics=",
    "metrics.txt": "gpureport check --export openmetrics=",
}
"""Commands that replace a removed format."""
_LONGER = {".html", ".pdf", ".txt"}  # formats with a short and a full form
_ELSEWHERE = "choose a writable folder, or another name"


def check_path(path: Place, formats: Collection[str] = tuple(FORMATS)) -> None:
    if str(path) == "-":
        return
    kind = path.suffix.lower()
    if instead := _GONE.get(path.name.lower(), _GONE.get(kind)):
        raise RenderError(str(path), "this report format was removed", f"use {instead}", code="unknown_file_type")
    if kind not in formats:
        what, hint = "no report format has this extension", f"use one of {', '.join(formats)}"
        raise RenderError(str(path), what, hint, code="unknown_file_type")
    if isinstance(path, RemotePath):
        path.check_bucket()
    elif why := find_folder_obstacle(path):
        raise RenderError(str(path), f"cannot be written ({why})", _ELSEWHERE, code="cannot_write")


def refuse_sources(paths: Sequence[Place], sources: Iterable[str]) -> None:
    """Refuse to overwrite a source. Sources on servers or in trackers are not checked."""
    local = [each for each in sources if "://" not in each or is_bucket_url(each)]
    read = [ReadPath(place=parse_place(each), name="a source") for each in local]
    refuse_taken_paths([WrittenPath(place=path) for path in paths], read)


def check_detail(paths: Sequence[Place], detail: int) -> None:
    formats = {".txt" if str(path) == "-" else path.suffix.lower() for path in paths}
    if detail == 0 and not formats & _LONGER:
        what = "none of the requested files has a longer form"
        hint = f"use one of {', '.join(sorted(_LONGER))}"
        raise RenderError("--detail full", what, hint, code="nothing_to_show")
    if detail and ".html" not in formats:
        what, hint = "none of the requested files can contain samples", "use a .html file, or omit the option"
        raise RenderError(f"--detail {detail}", what, hint, code="nothing_to_show")


def render(report: "Report", extension: str, brand: "Brand | None" = None, detail: int | None = None) -> bytes:
    """Render a report. `detail` is the bucket size in seconds (0: in full, None: as much as fits)."""
    check_path(Path(f"report{extension}"))
    kind = extension.lower()
    options: dict[str, Any] = {"brand": brand} if brand and kind in {".html", ".pdf"} else {}
    if kind in _LONGER:
        options |= {"detail": detail} if kind == ".html" else {"full": detail == 0}
    module, _, function = FORMATS[kind].partition(":")
    content = getattr(import_module(module), function or "render")(report, **options)
    return content if isinstance(content, bytes) else str(content).encode()


def write(report: "Report", path: Place | str, *, brand: "Brand | None" = None, detail: int | None = None) -> None:
    """Write the report atomically, or as plain text to standard output if the path is `-`."""
    if str(path) == "-":
        sys.stdout.write(render(report, ".txt", detail=detail).decode())
        return
    target = parse_place(path) if isinstance(path, str) else path
    check_path(target)
    sources = (source.locator for run in report.timeline for source in run.recording.run.sources)
    refuse_sources([target], sources)
    write_whole(target, render(report, target.suffix, brand, detail))


def write_whole(target: Place, content: bytes) -> None:
    """Write a file atomically, creating its folder if needed. Raises RenderError."""
    try:
        atomic_writes.replace_file(target, content, target.parent)
    except OSError as error:
        what = f"cannot be written ({error.strerror})"
        raise RenderError(str(target), what, _ELSEWHERE, code="cannot_write") from error


def __getattr__(name: str) -> object:
    """Import `build` on first access, because it loads NumPy and pyarrow."""
    if name != "build":
        raise AttributeError(name)
    return import_module("gpureport.report.sections.builder").build

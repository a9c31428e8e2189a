"""Writing reports: the one place that opens files, and the table of formats."""

import os
import sys
from collections.abc import Collection, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from gpureport.errors import RenderError
from gpureport.places import Place, RemotePath, is_place, parse_place
from gpureport.places.transfer import write_part
from gpureport.places.written_paths import ReadPath, WrittenPath, find_folder_obstacle, refuse_taken_paths

if TYPE_CHECKING:
    from gpureport.report.formats.branding import Brand
    from gpureport.report.model.report_content import Report

FORMATS = {
    ".html": "gpureport.report.formats.html",
    ".json": "gpureport.report.formats.report_json",
    ".md": "gpureport.report.formats.text.markdown",
    ".pdf": "gpureport.report.formats.pdf",
    ".png": "gpureport.report.formats.picture_png",
    ".svg": "gpureport.report.formats.picture_svg",
    ".txt": "gpureport.report.formats.text.terminal",
}
"""Module that renders each format, by the extension of the file; imported when it is needed."""

_GONE = {
    ".xml": "gpureport check --junit",
    ".prom": "gpureport check --export openmetrics=",
    "metrics.txt": "gpureport check --export openmetrics=",
}
"""Extensions and file names whose formats went, and what writes such files."""

_WITH_SAMPLES = ".html"
"""The format that holds samples."""


_TEXT = ".txt"
"""The format that is one screen unless every detail is wanted."""

_PAPER = ".pdf"
"""The format that is a few pages unless every detail is wanted."""

_WITH_FULL = {_WITH_SAMPLES, _TEXT, _PAPER}
"""Formats that leave something out unless every detail is wanted."""

_ELSEWHERE = "choose a folder that can be written, or another name"


def check_path(path: Place, formats: Collection[str] = tuple(FORMATS)) -> None:
    """Refuse a path with an unknown extension, or where no file can be written; `-` is standard output.

    Args:
        path: where to.
        formats: extensions of the formats there are.

    Raises:
        PlaceError: when its bucket is not there, or cannot be reached.
        RenderError: naming the formats there are, or the place.
    """
    if str(path) == "-":
        return
    kind = path.suffix.lower()
    if instead := _GONE.get(path.name.lower(), _GONE.get(kind)):
        raise RenderError(str(path), "no report has this format", f"write it with {instead}", code="unknown_file_type")
    if kind not in formats:
        raise RenderError(
            str(path),
            "no report format has this extension",
            f"use one of {', '.join(formats)}",
            code="unknown_file_type",
        )
    if isinstance(path, RemotePath):
        path.check_bucket()
        return
    if why := find_folder_obstacle(path):
        raise RenderError(str(path), f"cannot be written ({why})", _ELSEWHERE, code="cannot_write")


def refuse_sources(paths: Sequence[Place], sources: Iterable[str]) -> None:
    """Refuse paths that are not the person's to write, such as those of logs that are read.

    Args:
        paths: what is to be written.
        sources: locators of what is read; those of servers and trackers are not looked at.

    Raises:
        RenderError: naming the path.
    """
    read = [ReadPath(place=parse_place(each), name="a source") for each in sources if is_place(each)]
    refuse_taken_paths([WrittenPath(place=path) for path in paths], read)


def check_detail(paths: Sequence[Place], detail: int) -> None:
    """Refuse `--detail` when no requested format depends on it.

    Args:
        paths: the files.
        detail: as `render` takes it.

    Raises:
        RenderError: naming the option.
    """
    formats = {_TEXT if str(path) == "-" else _format_extension(path) for path in paths}
    if detail == 0 and not formats & _WITH_FULL:
        kinds = ", ".join(sorted(_WITH_FULL))
        raise RenderError(
            "--detail full", "no file to be written has a longer form", f"write one of {kinds}", code="nothing_to_show"
        )
    if detail and _WITH_SAMPLES not in formats:
        raise RenderError(
            f"--detail {detail}",
            "no file to be written holds samples",
            f"write one of {_WITH_SAMPLES}, or leave it out",
            code="nothing_to_show",
        )


def _format_extension(path: Place) -> str:
    """Return the extension of the format that a file of this name is written in."""
    return path.suffix.lower()


def render(report: "Report", extension: str, brand: "Brand | None" = None, detail: int | None = None) -> bytes:
    """Return the report in the format of an extension (`.html`), text as UTF-8.

    Args:
        report: the content.
        extension: which format.
        brand: logo, accent, font and last line of pages and PDFs; gpureport's own when None.
        detail: seconds of the buckets that charts of a page are drawn from, 0 for every sample and for the long form
            of text and PDF; by size when None.

    Raises:
        RenderError: when no format has the extension.
    """
    check_path(Path(f"report{extension}"))
    kind = extension.lower()
    renderer = import_module(FORMATS[kind])
    branded = () if brand is None else (brand,)
    if kind == _WITH_SAMPLES:
        content = renderer.render(report, *branded, detail=detail)
    elif kind == _TEXT:
        content = renderer.render(report, full=detail == 0)
    elif kind == _PAPER:
        content = renderer.render(report, *branded, full=detail == 0)
    else:
        content = renderer.render(report)
    return content if isinstance(content, bytes) else str(content).encode()


def write(report: "Report", path: Place | str, *, brand: "Brand | None" = None, detail: int | None = None) -> None:
    """Write the report in the format that the extension names; `-` is plain text on standard output.

    Folders are made, the file appears whole or not at all.

    Args:
        report: the content.
        path: where to.
        brand: as `render` takes it.
        detail: as `render` takes it.

    Raises:
        RenderError: when no format has the extension, or the file cannot be written.
    """
    if str(path) == "-":
        sys.stdout.write(render(report, _TEXT, detail=detail).decode())
        return
    target = parse_place(path) if isinstance(path, str) else path
    check_path(target)
    sources = (source.locator for run in report.timeline for source in run.recording.run.sources)
    refuse_sources([target], sources)
    write_whole(target, render(report, _format_extension(target), brand, detail))


def write_whole(target: Place, content: bytes) -> None:
    """Write a file whole or not at all, and the folders it lies in.

    Raises:
        PlaceError: when the bucket cannot be written to.
        RenderError: when it cannot be written.
    """
    if isinstance(target, RemotePath):
        target.write_bytes(content)
        return
    try:
        _replace(target, content)
    except OSError as error:
        raise RenderError(
            str(target), f"cannot be written ({error.strerror})", _ELSEWHERE, code="cannot_write"
        ) from error


def _replace(target: Path, content: bytes) -> None:
    """Write beside the target and rename, so that nobody ever sees half a file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with write_part(target) as part:
        part.write_bytes(content)
        part.chmod(0o666 & ~_umask())


def _umask() -> int:
    """Return the process's umask, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask

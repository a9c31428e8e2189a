"""Writing reports: the one place that opens files, and the table of formats."""

import os
import sys
import tempfile
from collections.abc import Collection, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from gpureport.errors import RenderError

if TYPE_CHECKING:
    from gpureport.report.model.report_content import Report

FORMATS = {
    ".html": "gpureport.report.formats.html",
    ".json": "gpureport.report.formats.json.report_json",
    ".md": "gpureport.report.formats.text.markdown",
    ".pdf": "gpureport.report.formats.pdf",
    ".png": "gpureport.report.formats.picture_png",
    ".prom": "gpureport.report.formats.openmetrics",
    ".svg": "gpureport.report.formats.picture_svg",
    ".txt": "gpureport.report.formats.text.terminal",
    ".xml": "gpureport.report.formats.junit",
}
"""Module that renders each format, by the extension of the file; imported when it is needed."""

_FILE_NAMES = {"metrics.txt": ".prom"}
"""File names that CI servers require and whose extension belongs to another format."""

_THEMED = {".html", ".pdf"}
"""Formats with templates that a theme can replace."""

_WITH_SAMPLES = ".html"
"""The format that holds samples."""


_TEXT = ".txt"
"""The format that is one screen unless every detail is wanted."""

_PAPER = ".pdf"
"""The format that is a few pages unless every detail is wanted."""

_WITH_FULL = {_WITH_SAMPLES, _TEXT, _PAPER}
"""Formats that leave something out unless every detail is wanted."""

_ELSEWHERE = "choose a folder that can be written, or another name"


def check_path(path: Path, formats: Collection[str] = tuple(FORMATS)) -> None:
    """Refuse a path with an unknown extension, or where no file can be written; `-` is standard output.

    Args:
        path: where to.
        formats: extensions of the formats there are.

    Raises:
        RenderError: naming the formats there are, or the place.
    """
    if str(path) == "-":
        return
    if path.suffix.lower() not in formats:
        raise RenderError(str(path), "no report format has this extension", f"use one of {', '.join(formats)}")
    folder = next((each for each in path.absolute().parents if each.exists()), Path("/"))
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        why = "no permission to write there" if folder.is_dir() else "no folder"
        raise RenderError(str(path), f"cannot be written ({folder}: {why})", _ELSEWHERE)


def check_templates(templates: Path, paths: Sequence[Path]) -> None:
    """Refuse templates that cannot be used, or that no requested format uses, before any work is done.

    Raises:
        RenderError: naming the folder, or file and line.
    """
    if not {_format_extension(path) for path in paths} & _THEMED:
        kinds = ", ".join(sorted(_THEMED))
        raise RenderError(str(templates), "no file to be written is made from templates", f"write one of {kinds}")
    from gpureport.report.formats import themes  # noqa: PLC0415 - loads jinja2

    themes.check_theme(templates)


def check_detail(paths: Sequence[Path], detail: int) -> None:
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
        raise RenderError("--detail full", "no file to be written has a longer form", f"write one of {kinds}")
    if detail and _WITH_SAMPLES not in formats:
        raise RenderError(
            f"--detail {detail}",
            "no file to be written holds samples",
            f"write one of {_WITH_SAMPLES}, or leave it out",
        )


def _format_extension(path: Path) -> str:
    """Return the extension of the format that a file of this name is written in."""
    return _FILE_NAMES.get(path.name.lower(), path.suffix.lower())


def render(report: "Report", extension: str, templates: Path | None = None, detail: int | None = None) -> bytes:
    """Return the report in the format of an extension (`.html`), text as UTF-8.

    Args:
        report: the content.
        extension: which format.
        templates: folder whose templates stand in for those shipped, for formats made from templates.
        detail: seconds of the buckets that charts of a page are drawn from, 0 for every sample and for the long form
            of text and PDF; by size when None.

    Raises:
        RenderError: when no format has the extension.
    """
    check_path(Path(f"report{extension}"))
    kind = extension.lower()
    renderer = import_module(FORMATS[kind])
    if kind == _WITH_SAMPLES:
        content = renderer.render(report, templates, detail)
    elif kind == _TEXT:
        content = renderer.render(report, full=detail == 0)
    elif kind == _PAPER:
        content = renderer.render(report, templates, full=detail == 0)
    else:
        content = renderer.render(report)
    return content if isinstance(content, bytes) else str(content).encode()


def write(report: "Report", path: Path | str, *, templates: Path | None = None, detail: int | None = None) -> None:
    """Write the report in the format that the extension names; `-` is plain text on standard output.

    Folders are made, the file appears whole or not at all.

    Args:
        report: the content.
        path: where to.
        templates: folder whose templates stand in for those shipped.
        detail: as `render` takes it.

    Raises:
        RenderError: when no format has the extension, or the file cannot be written.
    """
    if str(path) == "-":
        sys.stdout.write(render(report, _TEXT, detail=detail).decode())
        return
    target = Path(path)
    check_path(target)
    write_whole(target, render(report, _format_extension(target), templates, detail))


def write_whole(target: Path, content: bytes) -> None:
    """Write a file whole or not at all, and the folders it lies in.

    Raises:
        RenderError: when it cannot be written.
    """
    try:
        _replace(target, content)
    except OSError as error:
        raise RenderError(str(target), f"cannot be written ({error.strerror})", _ELSEWHERE) from error


def _replace(target: Path, content: bytes) -> None:
    """Write beside the target and rename, so that nobody ever sees half a file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    half = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        half.chmod(0o666 & ~_umask())
        half.replace(target)
    finally:
        with suppress(FileNotFoundError):
            half.unlink()


def _umask() -> int:
    """Return the process's umask, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask

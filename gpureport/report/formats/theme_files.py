"""Files of a theme: regular ones inside its folder, by whatever name or link they are reached."""

from collections.abc import Callable
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from jinja2 import FileSystemLoader, TemplateRuntimeError

if TYPE_CHECKING:
    from jinja2 import Environment

LARGEST = 8 * 2**20
"""Bytes of the largest file: a page that carries a larger picture is too heavy to send (pragmatic)."""

LOGOS = ("logo.svg", "logo.png")
"""Names of a logo, which begins pages and PDFs; the first that there is."""


class ThemeFileError(TemplateRuntimeError):
    """A file that a theme may not use."""


def find_theme_file(folder: Path, name: str) -> Path | None:
    """Return a file by its name in the folder of a theme; None where there is none.

    Raises:
        ThemeFileError: when it leads out of the folder, is no regular file, or is too large.
    """
    path, parts = folder / name, PurePath(name)
    if parts.is_absolute() or ".." in parts.parts or folder.resolve() not in path.resolve().parents:
        raise ThemeFileError(f"{name!r} leads out of the folder of the theme; copy the file into it")
    if not path.exists():
        return None
    if not path.is_file():
        raise ThemeFileError(f"{name!r} is no regular file")
    if path.stat().st_size > LARGEST:
        raise ThemeFileError(f"{name!r} is larger than {LARGEST >> 20} MiB")
    return path


def find_logo(folder: Path | None) -> str:
    """Return the name of the logo in the folder of a theme; empty where there is none.

    Raises:
        ThemeFileError: when it leads out of the folder, is no regular file, or is too large.
    """
    if folder is None:
        return ""
    return next((name for name in LOGOS if find_theme_file(folder, name) is not None), "")


def adapts_to_dark(path: Path) -> bool:
    """Return whether a picture has colours of its own for a dark page, as only SVG can."""
    return path.suffix.lower() == ".svg" and b"prefers-color-scheme" in path.read_bytes()


class ThemeLoader(FileSystemLoader):
    """Finds templates in the folder of a theme and nowhere else."""

    def __init__(self, folder: Path) -> None:
        """Take the folder."""
        super().__init__(folder)
        self._folder = folder

    def get_source(self, environment: "Environment", template: str) -> tuple[str, str, Callable[[], bool]]:
        """Return text and path of a template.

        Raises:
            TemplateNotFound: when there is none.
            ThemeFileError: when it leads out of the folder, is no regular file, or is too large.
        """
        find_theme_file(self._folder, template)
        return super().get_source(environment, template)

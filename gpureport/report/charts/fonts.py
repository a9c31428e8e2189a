"""Fonts of the PDF: those that matplotlib carries, so that it looks the same on every machine."""

from collections.abc import Iterable
from functools import cache
from pathlib import Path

import matplotlib as mpl
from matplotlib.ft2font import FT2Font

from gpureport.errors import RenderError

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
"""Stands for a character that no font holds: archives forbid the empty boxes that would be drawn."""

_FILES = ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf", "DejaVuSansMono.ttf")
_NEVER_DRAWN = {0x09, 0x0A, 0x0D}


def shipped_fonts() -> tuple[Path, ...]:
    """Return the font files that matplotlib carries: plain, bold and of fixed width.

    Raises:
        RenderError: when one is missing, as in a distribution's package without its fonts.
    """
    folder = Path(mpl.get_data_path()) / "fonts" / "ttf"
    for name in _FILES:
        if not (folder / name).is_file():
            raise RenderError(
                str(folder / name),
                "this font of matplotlib is missing",
                "install matplotlib with pip",
                code="no_such_file",
            )
    return tuple(folder / name for name in _FILES)


def family_names(paths: Iterable[Path]) -> tuple[str, ...]:
    """Return the names of the fonts' families, each once.

    Raises:
        RenderError: when a file is no font.
    """
    return tuple(dict.fromkeys(open_font(path).family_name for path in paths))


def drawable_characters(paths: Iterable[Path]) -> frozenset[int]:
    """Return every character that one of the fonts can draw, as code points.

    Raises:
        RenderError: when a file is no font.
    """
    return frozenset[int]().union(*(open_font(path).get_charmap() for path in paths))


def find_missing_characters(text: str, drawable: frozenset[int]) -> list[int]:
    """Return the characters of a text that cannot be drawn, in order."""
    return sorted({ord(char) for char in set(text)} - drawable - _NEVER_DRAWN)


def replace_missing_characters(text: str, drawable: frozenset[int]) -> str:
    """Return text in which a sign stands for each character that cannot be drawn."""
    missing = find_missing_characters(text, drawable)
    return text.translate(dict.fromkeys(missing, REPLACEMENT)) if missing else text


@cache
def open_font(path: Path) -> FT2Font:
    """Return a font, read once.

    Raises:
        RenderError: when the file is no font.
    """
    try:
        return FT2Font(str(path))
    except (OSError, RuntimeError) as error:
        raise RenderError(
            str(path), "this font cannot be read", "replace or remove the file", code="not_a_font"
        ) from error

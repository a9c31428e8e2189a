"""Fonts of PDF and PNG: those that matplotlib carries, so that both look the same on every machine."""

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
    paths = tuple(Path(mpl.get_data_path()) / "fonts" / "ttf" / name for name in _FILES)
    for path in paths:
        if not path.is_file():
            what, hint = "this font of matplotlib is missing", "install matplotlib with pip"
            raise RenderError(str(path), what, hint, code="no_such_file")
    return paths


def family_names(paths: Iterable[Path]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_open_font(path).family_name for path in paths))


def drawable_characters(paths: Iterable[Path]) -> frozenset[int]:
    return frozenset[int]().union(*(_open_font(path).get_charmap() for path in paths))


def find_missing_characters(text: str, drawable: frozenset[int]) -> list[int]:
    return sorted({ord(char) for char in set(text)} - drawable - _NEVER_DRAWN)


def replace_missing_characters(text: str, drawable: frozenset[int]) -> str:
    """Return text in which a sign stands for each character that cannot be drawn."""
    missing = find_missing_characters(text, drawable)
    return text.translate(dict.fromkeys(missing, REPLACEMENT)) if missing else text


@cache
def _open_font(path: Path) -> FT2Font:
    """Return a font, read once.

    Raises:
        RenderError: when the file is no font.
    """
    try:
        return FT2Font(str(path))
    except (OSError, RuntimeError) as error:
        what, hint = "this font cannot be read", "replace or remove the file"
        raise RenderError(str(path), what, hint, code="not_a_font") from error

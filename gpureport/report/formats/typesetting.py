"""Sets a document with typst: a template, the content it reads from a JSON file, and figures.

A name in a log is a string of that file and never markup.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass
from math import isfinite
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import typst

from gpureport.errors import RenderError
from gpureport.places import find_shipped_folder
from gpureport.recording import Recording
from gpureport.report.charts import fonts
from gpureport.report.formats import pdf_figures
from gpureport.report.formats.branding import Brand

_MODEL, _COLOURS = "model.json", "colours.json"
_FONTS = "fonts"
_PACKAGES = "packages"
"""Folder of the packages, which is empty."""

_LISTED = 20
"""Most characters without a glyph that are named."""

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"

Describe: TypeAlias = Callable[[pdf_figures.FigureWriter], Mapping[str, Any]]
"""Draws the figures, and returns what a template needs besides the content."""


def set_document(name: str, content: object, describe: Describe, *, brand: Brand, ended: int = 0) -> bytes:
    """Return a PDF file.

    Args:
        name: of the template.
        content: what it reads as `report`.
        describe: draws the figures, and returns what the template reads besides.
        brand: logo, accent, font and last line.
        ended: date of the file in seconds since 1970, unless SOURCE_DATE_EPOCH states one.

    Raises:
        RenderError: when fonts are missing, or the logo cannot be set.
    """
    own_fonts = [brand.font] if brand.font else []
    paths = [*fonts.shipped_fonts(), *own_fonts]
    date = _choose_date(ended)
    try:
        with tempfile.TemporaryDirectory(prefix="gpureport-") as made:
            folder = Path(made)
            _copy_inputs(folder, brand, paths)
            drawable = fonts.drawable_characters(paths)
            files = pdf_figures.FigureWriter(folder, drawable)
            _write_inputs(content, describe, files, brand, fonts.family_names(own_fonts))
            try:
                return _compile(folder, name, date)
            except (typst.TypstError, RuntimeError) as error:
                # the only part that is not ours
                where = str(brand.logo or find_shipped_folder("templates") / name)
                what = f"cannot be set as PDF ({' '.join(str(error).split())})"
                hint = "save the logo again as SVG or PNG" if brand.logo else "report this as a bug of gpureport"
                raise RenderError(where, what, hint, code="cannot_set_pdf") from error
    except OSError as error:
        hint = "make room there, or set TMPDIR"
        raise RenderError(
            tempfile.gettempdir(), f"no PDF can be set here ({error.strerror})", hint, code="cannot_write"
        ) from error


def _choose_date(ended: int) -> int:
    """Return the date of the file in seconds since 1970: SOURCE_DATE_EPOCH, or the end of the last recording.

    The clock of this machine would make the same report different bytes each time.

    Raises:
        RenderError: when SOURCE_DATE_EPOCH is not a number.
    """
    stated = os.environ.get("SOURCE_DATE_EPOCH")
    if stated is None:
        return ended
    if not (stated.isascii() and stated.isdecimal()):
        hint = "state seconds since 1970, or unset it"
        raise RenderError("SOURCE_DATE_EPOCH", f"{stated!r} is not a whole number", hint, code="not_a_number")
    return int(stated)


def _copy_inputs(folder: Path, brand: Brand, paths: Sequence[Path]) -> None:
    """Lay out what typst may read: it sees nothing outside this folder."""
    source = find_shipped_folder("templates")
    for path in source.glob("*.typ"):
        shutil.copyfile(path, folder / path.name)
    if brand.logo:
        shutil.copyfile(brand.logo, folder / _logo_name(brand))
    (folder / _FONTS).mkdir()
    for place, path in enumerate(paths):
        # Fonts are given by folder, and matplotlib's holds others, which must not stand in for a missing glyph.
        shutil.copyfile(path, folder / _FONTS / f"{place}{path.suffix}")


def _logo_name(brand: Brand) -> str:
    return f"logo{brand.logo.suffix.lower()}" if brand.logo else ""


def _compile(folder: Path, name: str, date: int) -> bytes:
    content: bytes = typst.compile(
        folder / name,
        root=folder,
        font_paths=[folder / _FONTS],
        ignore_system_fonts=True,
        # neither this machine's packages nor those that an earlier document fetched
        package_path=folder / _PACKAGES,
        package_cache_path=folder / _PACKAGES,
        pdf_standards=["a-2a", "ua-1"],
        timestamp=date,
    )
    return content


def _write_inputs(
    content: object,
    describe: Describe,
    files: pdf_figures.FigureWriter,
    brand: Brand,
    families: Collection[str],
) -> None:
    """Write the content, the figures and the colours for the template to read."""
    folder, drawable = files.folder, files.drawable
    plain = json.dumps(convert_to_json(content), ensure_ascii=False, allow_nan=False)
    rest = {
        **describe(files),
        "scale": pdf_figures.SCALE,
        "fonts": list(families),
        "footer": brand.footer,
        "logo": _logo_name(brand),
        "missing": _missing_note(fonts.find_missing_characters(plain, drawable)),
    }
    text = f'{{"report": {plain}, {json.dumps(rest, ensure_ascii=False)[1:]}'
    (folder / _COLOURS).write_text(json.dumps(brand.colours), encoding="utf-8")
    (folder / _MODEL).write_text(fonts.replace_missing_characters(text, drawable), encoding="utf-8")


def _missing_note(missing: Sequence[int]) -> str:
    """Return which characters are not shown, in words; empty when all are."""
    if not missing:
        return ""
    more = f" and {len(missing) - _LISTED} more" if len(missing) > _LISTED else ""
    codes = ", ".join(f"U+{code:04X}" for code in missing[:_LISTED])
    return (
        f"{fonts.REPLACEMENT} stands for a character that the fonts of this PDF do not hold ({codes}{more}). "
        "A font named as font in [report] of gpureport.toml shows it; the HTML report does without."
    )


def convert_to_json(value: object) -> JsonValue:
    """Return a part of the content as JSON holds it; series are left out, as the figures show them."""
    if isinstance(value, tuple):
        return [convert_to_json(entry) for entry in value]
    if is_dataclass(value) and not isinstance(value, type):
        named = ((entry.name, getattr(value, entry.name)) for entry in fields(value))
        return {name: convert_to_json(entry) for name, entry in named if not isinstance(entry, Recording | np.ndarray)}
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if isinstance(value, bool | int | str) else None

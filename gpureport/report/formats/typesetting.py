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

from gpureport import resources
from gpureport.errors import RenderError
from gpureport.recording import Recording
from gpureport.report.charts import fonts, palette
from gpureport.report.formats import pdf_figures
from gpureport.report.formats.paper_colours import find_paper_colours, refuse_gone_accent
from gpureport.report.formats.theme_files import LOGOS, ThemeFileError, find_theme_file

_MODEL, _COLOURS = "model.json", "colours.json"
_FONTS = "fonts"
_THEME_FILES = {".svg", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".typ"}
"""Files of a person's folder that a template of theirs may name."""

_TEMPLATE, _PACKAGES, _PACKAGE = ".typ", "packages", b"@preview/"
"""Suffix of a template, folder of the packages, which is empty, and how a template asks for one from the network."""

_TRIAL = "trial-of-theme.typ"
"""A document made to find out whether the logo of a theme is at fault."""

_LISTED = 20
"""Most characters without a glyph that are named."""

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"

Describe: TypeAlias = Callable[[pdf_figures.FigureWriter], Mapping[str, Any]]
"""Draws the figures, and returns what a template needs besides the content."""


def set_document(
    name: str, content: object, describe: Describe, *, templates: Path | None = None, ended: int = 0
) -> bytes:
    """Return a PDF file.

    Args:
        name: of the template.
        content: what it reads as `report`.
        describe: draws the figures, and returns what the template reads besides.
        templates: folder whose templates stand in for those shipped; pictures and fonts in it can be used.
        ended: date of the file in seconds since 1970, unless SOURCE_DATE_EPOCH states one.

    Raises:
        RenderError: when fonts are missing, or the template or the style sheet of that folder cannot be used.
    """
    own = templates / name if templates else None
    template = own if own and own.is_file() else resources.find_shipped_folder("templates") / name
    theme_fonts = [_check_theme_file(path.parent, path) for path in fonts.find_theme_fonts(templates)]
    paths = [*fonts.shipped_fonts(), *theme_fonts]
    date = _choose_date(ended)
    colours = palette.SHARED | find_paper_colours(templates).taken
    try:
        with tempfile.TemporaryDirectory(prefix="gpureport-") as made:
            folder = Path(made)
            _copy_inputs(folder, templates, paths)
            drawable = fonts.drawable_characters(paths)
            files = pdf_figures.FigureWriter(folder, drawable, colours["busy"])
            _write_inputs(content, describe, files, colours, fonts.family_names(theme_fonts))
            try:
                return _compile(folder, name, date)
            except (typst.TypstError, RuntimeError) as error:
                _refuse_broken_logo(folder, templates, date)
                if templates:
                    refuse_gone_accent(templates)
                what = " ".join(str(error).split())
                raise RenderError(str(template), f"cannot be set as PDF ({what})", "mend the template") from error
    except OSError as error:
        hint = "make room there, or set TMPDIR"
        raise RenderError(tempfile.gettempdir(), f"no PDF can be set here ({error.strerror})", hint) from error


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
        raise RenderError("SOURCE_DATE_EPOCH", f"{stated!r} is not a whole number", hint)
    return int(stated)


def _copy_inputs(folder: Path, templates: Path | None, paths: Sequence[Path]) -> None:
    """Lay out what typst may read: it sees nothing outside this folder."""
    sources = [
        (resources.find_shipped_folder("templates"), {".typ"}),
        *([(templates, _THEME_FILES)] if templates else []),
    ]
    for source, suffixes in sources:
        for path in (*source.glob("*"), *source.glob("sections/*")):
            if path.suffix.lower() in suffixes and path.is_file():
                target = folder / path.relative_to(source)
                target.parent.mkdir(exist_ok=True)
                shutil.copyfile(path if source != templates else _check_theme_file(source, path), target)
    (folder / _FONTS).mkdir()
    for place, path in enumerate(paths):
        # Fonts are given by folder, and matplotlib's holds others, which must not stand in for a missing glyph.
        shutil.copyfile(path, folder / _FONTS / f"{place}{path.suffix}")


def _check_theme_file(templates: Path, path: Path) -> Path:
    """Return a file of a person's folder that typst may see.

    Raises:
        RenderError: when it leads out of the folder, is too large, or asks for a package, which would be fetched.
    """
    try:
        find_theme_file(templates, str(path.relative_to(templates)))
    except ThemeFileError as error:
        raise RenderError(str(path), str(error), "or take it out of the folder") from error
    if path.suffix.lower() == _TEMPLATE and _PACKAGE in path.read_bytes():
        raise RenderError(str(path), "packages are not fetched", "copy the files of the package into the folder")
    return path


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


def _refuse_broken_logo(folder: Path, templates: Path | None, date: int) -> None:
    """Refuse a logo of a theme that alone cannot be set, so that the file to mend is named.

    Raises:
        RenderError: naming the file.
    """
    for name in LOGOS:
        if templates is None or not (templates / name).is_file():
            continue
        trial = f'#set document(title: ".")\n#image("{name}", alt: ".")\n'
        (folder / _TRIAL).write_text(trial, encoding="utf-8")
        try:
            _compile(folder, _TRIAL, date)
        except (typst.TypstError, RuntimeError) as error:
            what = " ".join(str(getattr(error, "message", error)).split())
            hint = "save it again as SVG or PNG, or take it out of the folder"
            raise RenderError(str(templates / name), f"cannot be set as PDF ({what})", hint) from error


def _write_inputs(
    content: object,
    describe: Describe,
    files: pdf_figures.FigureWriter,
    colours: Mapping[str, str],
    families: Collection[str],
) -> None:
    """Write the content, the figures and the colours for the template to read."""
    folder, drawable = files.folder, files.drawable
    plain = json.dumps(convert_to_json(content), ensure_ascii=False, allow_nan=False)
    rest = {
        **describe(files),
        "scale": pdf_figures.SCALE,
        "fonts": list(families),
        "logo": next((name for name in LOGOS if (folder / name).is_file()), ""),
        "missing": _missing_note(fonts.find_missing_characters(plain, drawable)),
    }
    text = f'{{"report": {plain}, {json.dumps(rest, ensure_ascii=False)[1:]}'
    (folder / _COLOURS).write_text(json.dumps(colours), encoding="utf-8")
    (folder / _MODEL).write_text(fonts.replace_missing_characters(text, drawable), encoding="utf-8")


def _missing_note(missing: Sequence[int]) -> str:
    """Return which characters are not shown, in words; empty when all are."""
    if not missing:
        return ""
    more = f" and {len(missing) - _LISTED} more" if len(missing) > _LISTED else ""
    codes = ", ".join(f"U+{code:04X}" for code in missing[:_LISTED])
    return (
        f"{fonts.REPLACEMENT} stands for a character that the fonts of this PDF do not hold ({codes}{more}). "
        "A font put into the folder given with --templates shows it; the HTML report does without."
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

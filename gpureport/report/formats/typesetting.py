"""Sets a document with typst: a template, the content it reads from a JSON file, and figures.

A name in a log is a string of that file and never markup.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
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

_FONTS = "fonts"
JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"

Describe: TypeAlias = Callable[[pdf_figures.FigureWriter], Mapping[str, Any]]
"""Draws the figures, and returns what a template needs besides the content."""


def set_document(name: str, content: object, describe: Describe, *, brand: Brand, ended: int = 0) -> bytes:
    """Return a PDF file set from a template, which reads the content as `report`.

    Its date is `ended` in seconds since 1970, unless SOURCE_DATE_EPOCH states one.

    Raises:
        RenderError: when fonts are missing, or the logo cannot be set.
    """
    date, source, own_fonts = _choose_date(ended), find_shipped_folder("templates"), [brand.font] if brand.font else []
    paths = [*fonts.shipped_fonts(), *own_fonts]
    logo = f"logo{brand.logo.suffix.lower()}" if brand.logo else ""
    try:
        with tempfile.TemporaryDirectory(prefix="gpureport-") as made:
            folder = Path(made)
            (folder / _FONTS).mkdir()
            inputs = [(path, path.name) for path in source.glob("*.typ")] + ([(brand.logo, logo)] if brand.logo else [])
            # fonts are given by folder, and matplotlib's holds others, which must not stand in for a missing glyph
            inputs += [(path, f"{_FONTS}/{place}{path.suffix}") for place, path in enumerate(paths)]
            for path, copy in inputs:
                shutil.copyfile(path, folder / copy)
            files = pdf_figures.FigureWriter(folder, fonts.drawable_characters(paths))
            plain = json.dumps(convert_to_json(content), ensure_ascii=False, allow_nan=False)
            rest = {
                **describe(files),
                "scale": pdf_figures.SCALE,
                "fonts": list(fonts.family_names(own_fonts)),
                "footer": brand.footer,
                "logo": logo,
            }
            text = f'{{"report": {plain}, {json.dumps(rest, ensure_ascii=False)[1:]}'
            missing = json.dumps(_missing_note(fonts.find_missing_characters(text, files.drawable)), ensure_ascii=False)
            text = f'{{"missing": {missing}, {text[1:]}'
            (folder / "colours.json").write_text(json.dumps(brand.colours), encoding="utf-8")
            model = fonts.replace_missing_characters(text, files.drawable)
            (folder / "model.json").write_text(model, encoding="utf-8")
            return _compile(folder, name, date)
    except (typst.TypstError, RuntimeError) as error:
        # the only part that is not ours
        where = str(brand.logo or source / name)
        what = f"cannot be set as PDF ({' '.join(str(error).split())})"
        hint = "save the logo again as SVG or PNG" if brand.logo else "report this as a bug of gpureport"
        raise RenderError(where, what, hint, code="cannot_set_pdf") from error
    except OSError as error:
        what, hint = f"no PDF can be set here ({error.strerror})", "make room there, or set TMPDIR"
        raise RenderError(tempfile.gettempdir(), what, hint, code="cannot_write") from error


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


def _compile(folder: Path, name: str, date: int) -> bytes:
    content: bytes = typst.compile(
        folder / name,
        root=folder,
        font_paths=[folder / _FONTS],
        ignore_system_fonts=True,
        # empty: neither this machine's packages nor those that an earlier document fetched
        package_path=folder / "packages",
        package_cache_path=folder / "packages",
        pdf_standards=["a-2a", "ua-1"],
        timestamp=date,
    )
    return content


def _missing_note(missing: Sequence[int]) -> str:
    if not missing:
        return ""
    codes = ", ".join(f"U+{code:04X}" for code in missing[:20])
    more = f" and {len(missing) - 20} more" if missing[20:] else ""
    return (
        f"{fonts.REPLACEMENT} stands for a character that the fonts of this PDF do not hold ({codes}{more}). "
        "A font named as font in [report] of gpureport.toml shows it; the HTML report does without."
    )


def convert_to_json(value: object) -> JsonValue:
    """Return a part of the content as JSON holds it; series are left out, as the figures show them."""
    if isinstance(value, tuple | list):
        return [convert_to_json(entry) for entry in value]
    if is_dataclass(value) and not isinstance(value, type):
        named = ((entry.name, getattr(value, entry.name)) for entry in fields(value))
        return {name: convert_to_json(entry) for name, entry in named if not isinstance(entry, Recording | np.ndarray)}
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if isinstance(value, bool | int | str) else None

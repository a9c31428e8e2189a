"""Tagged PDF files with vector figures, made by typst for archives (PDF/A-2a) and screen readers (PDF/UA-1).

Templates read the content from a JSON file, so names from logs are never markup.
"""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import matplotlib as mpl
import numpy as np
import typst
from matplotlib.ft2font import FT2Font

from gpureport.errors import RenderError
from gpureport.places import find_shipped_folder
from gpureport.recording import Recording
from gpureport.report.blocks import list_findings, list_reference, list_study
from gpureport.report.charts.elements import find_fill, map_figures
from gpureport.report.charts.strips import draw_report, draw_timeline
from gpureport.report.formats import picture_svg
from gpureport.report.formats.branding import PLAIN, Brand
from gpureport.report.model.blocks import Block, Form, select_blocks
from gpureport.report.model.report_content import Report
from gpureport.report.wording import display

# makes text in figures as large as the text around them
SCALE = 0.68
_ROW, _PAGE, _BOX = 238.0 / SCALE, 510.0 / SCALE, 492.0 / SCALE
_STRIPS_WIDTH, _STRIPS_PER_PAGE = 680.0, 64
_HATCHED = re.compile(r'(<(?:rect|path) [^>]*)fill="url\(#[^)]*-(\w+)\)"([^>]*/>)')
_FONTS = ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf", "DejaVuSansMono.ttf")
# replaces characters that no font has, because PDF/A forbids missing glyphs
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_NEVER_DRAWN = {0x09, 0x0A, 0x0D}
_PICTURE = b"""#set page(width: auto, height: auto, margin: 0pt)
#image(bytes(sys.inputs.picture), format: "svg", width: 900pt)"""
_DPI = 144.0  # two pixels per point


def render(report: Report, brand: Brand = PLAIN, *, full: bool = False) -> bytes:
    def select(blocks: Iterable[Block]) -> object:
        return _convert_to_json(tuple(select_blocks(blocks, Form.SHEET if full else Form.PAPER)))

    rest = {
        "full": full,
        "headline": list(display.headline(report.verdict.sentence)),
        "quiet_line": report.quiet_line,
        "steps_heading": report.steps_heading,
        "actions_heading": report.actions_heading,
        "checks": report.judgement.sentence,
        "study": select(list_study(report)),
        "findings": select(list_findings(report)),
        "reference": select(list_reference(report)),
    }
    timelines = [
        [
            draw_timeline(replace(run, strips=run.strips[first:][:_STRIPS_PER_PAGE]), f"run{at}-{first}", _STRIPS_WIDTH)
            for first in range(0, len(run.strips), _STRIPS_PER_PAGE)
        ]
        for at, run in enumerate(report.timeline if full else ())
    ]
    figures = draw_report(report, (_ROW, _PAGE, _BOX), full=full) | {"timelines": timelines}
    ended = max((run.recording.run.ended for run in report.timeline), default=0) // 1_000_000
    # the blocks in `rest` contain the reference parts
    first = replace(report, comparison=None, findings=(), gpus=(), quality=(), answers=(), checklists=(), gpu_time=())
    return set_document("report.typ", first, rest, figures, brand=brand, ended=ended)


def set_document(  # noqa: PLR0913 - the parts of a document
    name: str, content: object, rest: Mapping[str, Any], figures: Mapping[str, Any], *, brand: Brand, ended: int = 0
) -> bytes:
    date, source, own_fonts = _choose_date(ended), find_shipped_folder("templates"), [brand.font] if brand.font else []
    paths = [*find_shipped_fonts(), *own_fonts]
    logo = f"logo{brand.logo.suffix.lower()}" if brand.logo else ""
    try:
        with tempfile.TemporaryDirectory(prefix="gpureport-") as made:
            folder = Path(made)
            (folder / "fonts").mkdir()
            inputs = [(path, path.name) for path in source.glob("*.typ")] + ([(brand.logo, logo)] if brand.logo else [])
            # elsewhere, other fonts would replace missing glyphs
            inputs += [(path, f"fonts/{place}{path.suffix}") for place, path in enumerate(paths)]
            for path, copy in inputs:
                shutil.copyfile(path, folder / copy)
            model = {
                **rest,
                "report": _convert_to_json(content),
                "figures": map_figures(figures, lambda name, svg: _write_figure(folder, name, svg, paths)),
                "scale": SCALE,
                "fonts": list(dict.fromkeys(_open_font(path).family_name for path in own_fonts)),
                "footer": brand.footer,
                "logo": logo,
            }
            text = json.dumps(model, ensure_ascii=False, allow_nan=False)
            missing = json.dumps(_explain_missing(_find_missing(text, paths)), ensure_ascii=False)
            (folder / "colours.json").write_text(json.dumps(brand.colours), encoding="utf-8")
            held = replace_missing_characters(f'{{"missing": {missing}, {text[1:]}', paths)
            (folder / "model.json").write_text(held, encoding="utf-8")
            document: bytes = typst.compile(
                folder / name,
                root=folder,
                font_paths=[folder / "fonts"],
                ignore_system_fonts=True,
                # this folder does not exist, so typst uses no packages from this machine
                package_path=folder / "packages",
                package_cache_path=folder / "packages",
                pdf_standards=["a-2a", "ua-1"],
                timestamp=date,
            )
            return document
    except (typst.TypstError, RuntimeError) as error:
        # gpureport provides every input except the logo
        where = str(brand.logo or source / name)
        what = f"cannot be written as PDF ({' '.join(str(error).split())})"
        hint = "save the logo again as SVG or PNG" if brand.logo else "report this as a bug in gpureport"
        raise RenderError(where, what, hint, code="cannot_set_pdf") from error
    except OSError as error:
        what = f"a PDF cannot be created here ({error.strerror})"
        hint = "free some space here, or set TMPDIR"
        raise RenderError(tempfile.gettempdir(), what, hint, code="cannot_write") from error


def _choose_date(ended: int) -> int:
    """Return SOURCE_DATE_EPOCH or, without it, `ended`, so that equal inputs give equal files."""
    stated = os.environ.get("SOURCE_DATE_EPOCH")
    if stated is None:
        return ended
    if not (stated.isascii() and stated.isdecimal()):
        hint = "set it to seconds since 1970, or unset it"
        raise RenderError("SOURCE_DATE_EPOCH", f"{stated!r} is not a whole number", hint, code="not_a_number")
    return int(stated)


def _write_figure(folder: Path, name: str, svg: str, fonts: Collection[Path]) -> dict[str, Any] | None:
    if not svg:
        return None
    root = ET.fromstring(svg)  # noqa: S314 - drawn a moment ago, not received
    width, height = map(float, root.get("viewBox", "").split()[2:])
    # draw the plain colour below the hatch: viewers leave white seams between tiles
    underlaid = _HATCHED.sub(lambda found: f'{found[1]}fill="{find_fill(found[2]).colour}"{found[3]}{found[0]}', svg)
    document = underlaid.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    (folder / f"{name}.svg").write_text(replace_missing_characters(document, fonts), encoding="utf-8")
    return {"file": f"{name}.svg", "width": width, "height": height, "alt": root.get("aria-label", "")}


def _convert_to_json(value: object) -> Any:
    if isinstance(value, tuple | list):
        return [_convert_to_json(entry) for entry in value]
    if is_dataclass(value) and not isinstance(value, type):
        named = ((entry.name, getattr(value, entry.name)) for entry in fields(value))
        return {name: _convert_to_json(entry) for name, entry in named if not isinstance(entry, Recording | np.ndarray)}
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if isinstance(value, bool | int | str) else None


# --- fonts: those included in matplotlib, so that a document looks the same on every machine


def find_shipped_fonts() -> tuple[Path, ...]:
    paths = tuple(Path(mpl.get_data_path()) / "fonts" / "ttf" / name for name in _FONTS)
    if lacking := [path for path in paths if not path.is_file()]:
        what, hint = "this matplotlib font is missing", "install matplotlib with pip"
        raise RenderError(str(lacking[0]), what, hint, code="no_such_file")
    return paths


def replace_missing_characters(text: str, fonts: Iterable[Path]) -> str:
    missing = _find_missing(text, fonts)
    return text.translate(dict.fromkeys(missing, _REPLACEMENT)) if missing else text


def _find_missing(text: str, fonts: Iterable[Path]) -> list[int]:
    wanted = {ord(char) for char in set(text)} - _NEVER_DRAWN
    return sorted(wanted.difference(*(_open_font(path).get_charmap() for path in fonts)))


def _explain_missing(missing: list[int]) -> str:
    if not missing:
        return ""
    codes = ", ".join(f"U+{code:04X}" for code in missing[:20])
    more = f" and {len(missing) - 20} more" if missing[20:] else ""
    return (
        f"{_REPLACEMENT} replaces a character that this PDF's fonts lack ({codes}{more}). "
        "To show it, set font under [report] in gpureport.toml, or read the HTML report."
    )


@cache
def _open_font(path: Path) -> FT2Font:
    try:
        return FT2Font(str(path))
    except (OSError, RuntimeError) as error:
        what, hint = "this font cannot be read", "replace or remove the file"
        raise RenderError(str(path), what, hint, code="not_a_font") from error


def render_picture(report: Report) -> bytes:
    paths = find_shipped_fonts()
    svg = replace_missing_characters(picture_svg.render(report), paths)
    held = typst.Fonts(include_system_fonts=False, include_embedded_fonts=False, font_paths=[paths[0].parent])
    content: bytes = typst.compile(_PICTURE, format="png", ppi=_DPI, font_paths=held, sys_inputs={"picture": svg})
    return content

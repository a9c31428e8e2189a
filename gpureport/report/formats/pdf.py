"""The report set by typst: figures as vectors, tagged, for archives (PDF/A-2a) and screen readers (PDF/UA-1).

The template reads the content from a JSON file, so that a name in a log is a string and never markup.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from math import isfinite
from pathlib import Path
from typing import TypeAlias
from xml.etree import ElementTree as ET

import numpy as np
import typst

from gpureport import resources
from gpureport.errors import RenderError
from gpureport.recording import Recording
from gpureport.report.charts import fonts, report_figures, timeline_pages
from gpureport.report.model.report_content import Report
from gpureport.report.model.time_charts import Timeline
from gpureport.report.sections.merging import shared_content
from gpureport.report.wording import display

TEMPLATE = "report.typ"
_MODEL = "model.json"
_FONTS = "fonts"
_THEME_FILES = {".svg", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".typ"}
"""Files of a person's folder that a template of theirs may name."""

_WIDTH = 680.0
"""Width of figures in points, so that their text is about as large as the text around them."""

_LISTED = 20
"""Most characters without a glyph that are named."""

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureFile:
    """A figure in a file of its own: its size in points, and what it shows in words."""

    file: str
    width: float
    height: float
    alt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureFiles:
    """The figures of a report; `bars` is None where GPU time could not be divided, a run without GPUs has none."""

    bars: FigureFile | None
    panels: tuple[FigureFile, ...]
    timelines: tuple[tuple[FigureFile, ...], ...]


def render(report: Report, templates: Path | None = None) -> bytes:
    """Return the report as a PDF file.

    Args:
        report: the content.
        templates: folder whose templates stand in for those shipped; pictures and fonts in it can be used.

    Raises:
        RenderError: when fonts are missing or the template cannot be compiled.
    """
    own = templates / TEMPLATE if templates else None
    template = own if own and own.is_file() else resources.find_shipped_folder("templates") / TEMPLATE
    theme_fonts = fonts.find_theme_fonts(templates)
    paths = [*fonts.shipped_fonts(), *theme_fonts]
    date = _file_date(report)
    try:
        with tempfile.TemporaryDirectory(prefix="gpureport-") as name:
            folder = Path(name)
            _copy_inputs(folder, templates, paths)
            _write_inputs(report, folder, fonts.drawable_characters(paths), fonts.family_names(theme_fonts))
            return _compile(folder, template, date)
    except OSError as error:
        hint = "make room there, or set TMPDIR"
        raise RenderError(tempfile.gettempdir(), f"no PDF can be set here ({error.strerror})", hint) from error


def _file_date(report: Report) -> int:
    """Return the date of the file in seconds since 1970: SOURCE_DATE_EPOCH, or the end of the last recording.

    The clock of this machine would make the same report different bytes each time.

    Raises:
        RenderError: when SOURCE_DATE_EPOCH is not a number.
    """
    stated = os.environ.get("SOURCE_DATE_EPOCH")
    if stated is None:
        return max((run.recording.run.ended for run in report.timeline), default=0) // 1_000_000
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
                shutil.copyfile(path, target)
    (folder / _FONTS).mkdir()
    for place, path in enumerate(paths):
        # Fonts are given by folder, and matplotlib's holds others, which must not stand in for a missing glyph.
        shutil.copyfile(path, folder / _FONTS / f"{place}{path.suffix}")


def _compile(folder: Path, template: Path, date: int) -> bytes:
    try:
        content: bytes = typst.compile(
            folder / TEMPLATE,
            root=folder,
            font_paths=[folder / _FONTS],
            ignore_system_fonts=True,
            pdf_standards=["a-2a", "ua-1"],
            timestamp=date,
        )
    except (typst.TypstError, RuntimeError) as error:
        what = " ".join(str(error).split())
        raise RenderError(str(template), f"cannot be set as PDF ({what})", "mend the template") from error
    return content


def _write_inputs(report: Report, folder: Path, drawable: frozenset[int], families: Collection[str]) -> None:
    """Write the content and the figures for the template to read."""
    content = json.dumps(_plain(report), ensure_ascii=False, allow_nan=False)
    rest = {
        "headline": display.headline(report.verdict.sentence),
        "shared": asdict(shared_content.share_content(report)),
        "figures": asdict(_draw_figures(report, folder, drawable)),
        "fonts": list(families),
        "missing": _missing_note(fonts.find_missing_characters(content, drawable)),
    }
    text = f'{{"report": {content}, {json.dumps(rest, ensure_ascii=False)[1:]}'
    (folder / _MODEL).write_text(fonts.replace_missing_characters(text, drawable), encoding="utf-8")


def _timeline_pages(report: Report) -> Iterator[tuple[Timeline, str]]:
    """Yield the timelines in pieces that a page holds, each with the name of its file."""
    for at, run in enumerate(report.timeline):
        for part, page in enumerate(timeline_pages.split_into_pages(run)):
            yield page, f"run{at}-{part}"


def _draw_figures(report: Report, folder: Path, drawable: frozenset[int]) -> FigureFiles:
    """Draw the figures into files of the folder."""
    parts = list(_timeline_pages(report))
    drawn = report_figures.draw_report_figures(report, parts, _WIDTH)

    def saved(name: str, svg: str) -> FigureFile:
        root = ET.fromstring(svg)  # noqa: S314 - drawn a moment ago, not received
        width, height = root.get("viewBox", "").split()[2:]
        document = svg.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
        (folder / f"{name}.svg").write_text(fonts.replace_missing_characters(document, drawable), encoding="utf-8")
        return FigureFile(file=f"{name}.svg", width=float(width), height=float(height), alt=root.get("aria-label", ""))

    strips_of = iter([saved(name, svg) for (_, name), svg in zip(parts, drawn.timelines, strict=True)])
    return FigureFiles(
        bars=saved("bars", drawn.bars) if drawn.bars else None,
        panels=tuple(saved(f"panel{at}", svg) for at, svg in enumerate(drawn.panels)),
        timelines=tuple(
            tuple(next(strips_of) for _ in timeline_pages.split_into_pages(run)) for run in report.timeline
        ),
    )


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


def _plain(value: object) -> JsonValue:
    """Return a part of the content as JSON holds it; series are left out, as the figures show them."""
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    if is_dataclass(value) and not isinstance(value, type):
        named = ((entry.name, getattr(value, entry.name)) for entry in fields(value))
        return {name: _plain(entry) for name, entry in named if not isinstance(entry, Recording | np.ndarray)}
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if isinstance(value, bool | int | str) else None

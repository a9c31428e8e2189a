"""The report set by typst: figures as vectors, tagged, for archives (PDF/A-2a) and screen readers (PDF/UA-1).

The template reads the content from a JSON file, so that a name in a log is a string and never markup.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
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
from gpureport.report.charts.class_patterns import draw_swatch
from gpureport.report.charts.signal_panels import draw_signal_panels
from gpureport.report.charts.spent_bars import draw_spent_bars
from gpureport.report.charts.use_rows import draw_use_rows
from gpureport.report.model.report_content import Report
from gpureport.report.sections.merging import shared_content
from gpureport.report.wording import display

TEMPLATE = "report.typ"
_MODEL = "model.json"
_FONTS = "fonts"
_THEME_FILES = {".svg", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".typ"}
"""Files of a person's folder that a template of theirs may name."""

_WIDTH = 680.0
"""Width of figures for reference in points, so that their text is about as large as the text around them."""

_SCALE = 0.68
"""How large on paper what figures of the page are drawn with is: their letters are then as large as those around."""

_ROW_WIDTH, _PAGE_WIDTH, _BOX_WIDTH = 250.0, 510.0, 492.0
"""Points on paper between labels and figures of a row, between the margins of a page, and within a box on it."""

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
    """The figures of a report.

    Attributes:
        legend: samples of the classes of GPU time, in the order of the legend.
        spent: a bar of GPU time a row, then the axis.
        use: utilisation over time a row, then the axis.
        worst: the panels of the worst GPU, then their axis.
        opened: the panels of the row of findings that is shown opened, then their axis.
        bars: shares of GPU time of every run; None where it could not be divided, and without `--detail full`.
        panels: figures of every step; none without `--detail full`.
        timelines: strips of each run, a run without GPUs has none; none without `--detail full`.
    """

    legend: tuple[FigureFile, ...]
    spent: tuple[FigureFile, ...]
    use: tuple[FigureFile, ...]
    worst: tuple[FigureFile, ...]
    opened: tuple[FigureFile, ...]
    bars: FigureFile | None = None
    panels: tuple[FigureFile, ...] = ()
    timelines: tuple[tuple[FigureFile, ...], ...] = ()


def render(report: Report, templates: Path | None = None, *, full: bool = False) -> bytes:
    """Return the report as a PDF file.

    Args:
        report: the content.
        templates: folder whose templates stand in for those shipped; pictures and fonts in it can be used.
        full: whether to add what is for reference: each finding of each run, timelines, comparisons, limits, terms.

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
            drawable = fonts.drawable_characters(paths)
            _write_inputs(report, folder, drawable, fonts.family_names(theme_fonts), full=full)
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


def _write_inputs(
    report: Report, folder: Path, drawable: frozenset[int], families: Collection[str], *, full: bool
) -> None:
    """Write the content and the figures for the template to read."""
    content = json.dumps(_plain(report), ensure_ascii=False, allow_nan=False)
    files = FigureWriter(folder, drawable)
    rest = {
        "full": full,
        "scale": _SCALE,
        "headline": display.headline(report.verdict.sentence),
        "steps_heading": report.steps_heading,
        "shared": asdict(shared_content.share_content(report)),
        "figures": asdict(_draw_figures(report, files, full=full)),
        "fonts": list(families),
        "missing": _missing_note(fonts.find_missing_characters(content, drawable)),
    }
    text = f'{{"report": {content}, {json.dumps(rest, ensure_ascii=False)[1:]}'
    (folder / _MODEL).write_text(fonts.replace_missing_characters(text, drawable), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class FigureWriter:
    """Writes figures into a folder; `drawable` are the characters that the fonts hold."""

    folder: Path
    drawable: frozenset[int]

    def write(self, name: str, svg: str) -> FigureFile:
        """Write a figure into a file of its own."""
        root = ET.fromstring(svg)  # noqa: S314 - drawn a moment ago, not received
        width, height = root.get("viewBox", "").split()[2:]
        document = svg if "xmlns=" in svg else svg.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
        text = fonts.replace_missing_characters(document, self.drawable)
        (self.folder / f"{name}.svg").write_text(text, encoding="utf-8")
        return FigureFile(file=f"{name}.svg", width=float(width), height=float(height), alt=root.get("aria-label", ""))

    def write_all(self, name: str, drawn: Sequence[str]) -> tuple[FigureFile, ...]:
        """Write several figures, numbered."""
        return tuple(self.write(f"{name}{at}", svg) for at, svg in enumerate(drawn))


def _draw_pictures(report: Report, files: FigureWriter) -> FigureFiles:
    """Draw what everybody gets: where GPU time went, use over time, the worst GPU and the finding shown opened."""
    legend = report.spent.legend if report.spent else ()
    row, page, box = (width / _SCALE for width in (_ROW_WIDTH, _PAGE_WIDTH, _BOX_WIDTH))
    opened = next((each.history for each in report.rows if each.history), None)
    swatches = [draw_swatch(each.key, each.label, f"legend{at}") for at, each in enumerate(legend)]
    return FigureFiles(
        legend=files.write_all("legend", swatches),
        spent=files.write_all("spent", draw_spent_bars(report.spent, "spent", row) if report.spent else ()),
        use=files.write_all("use", draw_use_rows(report.use, "use", row) if report.use else ()),
        worst=files.write_all("worst", draw_signal_panels(report.worst, "worst", page) if report.worst else ()),
        opened=files.write_all("opened", draw_signal_panels(opened, "opened", box) if opened else ()),
    )


def _draw_figures(report: Report, files: FigureWriter, *, full: bool) -> FigureFiles:
    """Draw the figures into files; those for reference only when `full`."""
    figures = _draw_pictures(report, files)
    if not full:
        return figures
    parts = [
        (page, f"run{at}-{part}")
        for at, run in enumerate(report.timeline)
        for part, page in enumerate(timeline_pages.split_into_pages(run))
    ]
    drawn = report_figures.draw_report_figures(report, parts, _WIDTH)
    strips_of = iter([files.write(name, svg) for (_, name), svg in zip(parts, drawn.timelines, strict=True)])
    return replace(
        figures,
        bars=files.write("bars", drawn.bars) if drawn.bars else None,
        panels=files.write_all("panel", drawn.panels),
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

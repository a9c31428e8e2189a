"""The figures of a PDF, each in a file of its own that the template names."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree as ET

from gpureport.report.charts import fonts, report_figures, timeline_pages
from gpureport.report.charts.vector.class_patterns import draw_swatch, find_fill
from gpureport.report.charts.vector.signal_panels import draw_signal_panels
from gpureport.report.charts.vector.spent_bars import draw_spent_bars
from gpureport.report.charts.vector.use_rows import draw_use_rows
from gpureport.report.model.report_content import Report

_WIDTH = 680.0
"""Width of figures for reference in points, so that their text is about as large as the text around them."""

SCALE = 0.68
"""How large on paper what figures of the page are drawn with is: their letters are then as large as those around."""

_ROW_WIDTH, _PAGE_WIDTH, _BOX_WIDTH = 238.0, 510.0, 492.0
"""Points on paper between labels and figures of a row, between the margins of a page, and within a box on it."""

_HATCHED = re.compile(r'(<(?:rect|path) [^>]*)fill="url\(#[^)]*-(\w+)\)"([^>]*/>)')
"""An element filled with the hatch of a class."""


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
        histories: by the id of a row of findings its panels, then their axis; without `--detail full` of the first
            row alone, which is shown opened.
        panels: figures of every step; none without `--detail full`.
        timelines: strips of each run, a run without GPUs has none; none without `--detail full`.
    """

    legend: tuple[FigureFile, ...]
    spent: tuple[FigureFile, ...]
    use: tuple[FigureFile, ...]
    worst: tuple[FigureFile, ...]
    histories: dict[str, tuple[FigureFile, ...]]
    panels: tuple[FigureFile, ...] = ()
    timelines: tuple[tuple[FigureFile, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class FigureWriter:
    """Writes figures into a folder.

    Attributes:
        folder: where to.
        drawable: the characters that the fonts hold.
    """

    folder: Path
    drawable: frozenset[int]

    def write(self, name: str, svg: str) -> FigureFile:
        """Write a figure into a file of its own."""
        root = ET.fromstring(svg)  # noqa: S314 - drawn a moment ago, not received
        width, height = root.get("viewBox", "").split()[2:]
        document = _underlay_hatches(svg).replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
        text = fonts.replace_missing_characters(document, self.drawable)
        (self.folder / f"{name}.svg").write_text(text, encoding="utf-8")
        return FigureFile(file=f"{name}.svg", width=float(width), height=float(height), alt=root.get("aria-label", ""))

    def write_all(self, name: str, drawn: Sequence[str]) -> tuple[FigureFile, ...]:
        """Write several figures, numbered."""
        return tuple(self.write(f"{name}{at}", svg) for at, svg in enumerate(drawn))


def _underlay_hatches(svg: str) -> str:
    """Return a figure with the plain colour of a class below its hatch: viewers leave white seams between its tiles."""
    return _HATCHED.sub(lambda found: f'{found[1]}fill="{find_fill(found[2]).colour}"{found[3]}{found[0]}', svg)


def _draw_pictures(report: Report, files: FigureWriter, *, full: bool) -> FigureFiles:
    """Draw what everybody gets: where GPU time went, use over time, the worst GPU and crops of findings."""
    legend = report.spent.legend if report.spent else ()
    row, page, box = (width / SCALE for width in (_ROW_WIDTH, _PAGE_WIDTH, _BOX_WIDTH))
    drawn = {each.id: each.history for each in report.rows if each.history}
    shown = list(drawn.items()) if full else list(drawn.items())[:1]
    swatches = [draw_swatch(each.key, each.label, f"legend{at}") for at, each in enumerate(legend)]
    return FigureFiles(
        legend=files.write_all("legend", swatches),
        spent=files.write_all("spent", draw_spent_bars(report.spent, "spent", row) if report.spent else ()),
        use=files.write_all("use", draw_use_rows(report.use, "use", row) if report.use else ()),
        worst=files.write_all("worst", draw_signal_panels(report.worst, "worst", page) if report.worst else ()),
        histories={name: files.write_all(name, draw_signal_panels(each, name, box)) for name, each in shown},
    )


def draw_figures(report: Report, files: FigureWriter, *, full: bool) -> FigureFiles:
    """Draw the figures into files; those for reference only when `full`."""
    figures = _draw_pictures(report, files, full=full)
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
        panels=files.write_all("panel", drawn.panels),
        timelines=tuple(
            tuple(next(strips_of) for _ in timeline_pages.split_into_pages(run)) for run in report.timeline
        ),
    )

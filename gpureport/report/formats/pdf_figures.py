"""The figures of a PDF, each in a file of its own that the template names."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from gpureport.report.charts import fonts
from gpureport.report.charts.elements import draw_swatch, find_fill
from gpureport.report.charts.rows import draw_signal_panels, draw_spent_bars, draw_use_rows
from gpureport.report.charts.strips import draw_interval_chart, draw_timeline
from gpureport.report.model.report_content import Report

SCALE = 0.68
"""How large on paper what figures of the page are drawn with is: their letters are then as large as those around."""

_ROW, _PAGE, _BOX = 238.0 / SCALE, 510.0 / SCALE, 492.0 / SCALE
"""Points between labels and figures of a row, between the margins of a page, and within a box on it."""

_STRIPS_WIDTH, _STRIPS_PER_PAGE = 680.0, 64
"""Width of strips in points, and most of them whose labels can still be read on one page."""

_HATCHED = re.compile(r'(<(?:rect|path) [^>]*)fill="url\(#[^)]*-(\w+)\)"([^>]*/>)')
"""An element filled with the hatch of a class."""


@dataclass(frozen=True, slots=True)
class FigureWriter:
    """Writes figures into a folder; `drawable` are the characters that the fonts hold."""

    folder: Path
    drawable: frozenset[int]

    def write(self, name: str, svg: str) -> dict[str, Any]:
        """Write a figure into a file of its own; return the file, its size in points, and what it shows in words."""
        root = ET.fromstring(svg)  # noqa: S314 - drawn a moment ago, not received
        width, height = map(float, root.get("viewBox", "").split()[2:])
        # the plain colour of a class lies below its hatch: viewers leave white seams between its tiles
        underlaid = _HATCHED.sub(
            lambda found: f'{found[1]}fill="{find_fill(found[2]).colour}"{found[3]}{found[0]}', svg
        )
        document = underlaid.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
        text = fonts.replace_missing_characters(document, self.drawable)
        (self.folder / f"{name}.svg").write_text(text, encoding="utf-8")
        return {"file": f"{name}.svg", "width": width, "height": height, "alt": root.get("aria-label", "")}

    def write_all(self, name: str, drawn: Iterable[str]) -> list[dict[str, Any]]:
        return [self.write(f"{name}{at}", svg) for at, svg in enumerate(drawn)]


def draw_figures(report: Report, files: FigureWriter, *, full: bool) -> dict[str, Any]:
    """Draw the figures into files, and return them by the names that the template uses.

    Only when `full` are there figures of steps, strips of runs, and the signals of every row of findings; otherwise
    those of the first row that has some, which is shown opened.
    """
    spent, charts = report.spent, report.comparison.charts if report.comparison and full else ()
    rows = [row for row in report.rows if row.history]
    swatches = (
        draw_swatch(each.key, each.label, f"legend{at}") for at, each in enumerate(spent.legend if spent else ())
    )
    return {
        "legend": files.write_all("legend", swatches),
        "spent": files.write_all("spent", draw_spent_bars(spent, "spent", _ROW) if spent else ()),
        "use": files.write_all("use", draw_use_rows(report.use, "use", _ROW) if report.use else ()),
        "worst": files.write_all("worst", draw_signal_panels(report.worst, _PAGE) if report.worst else ()),
        "histories": {
            row.id: files.write_all(row.id, draw_signal_panels(row.history, _BOX))
            for row in (rows if full else rows[:1])
            if row.history
        },
        "panels": files.write_all("panel", map(draw_interval_chart, charts)),
        "timelines": [
            [
                files.write(
                    name, draw_timeline(replace(run, strips=run.strips[first:][:_STRIPS_PER_PAGE]), name, _STRIPS_WIDTH)
                )
                for part, first in enumerate(range(0, len(run.strips), _STRIPS_PER_PAGE))
                for name in [f"run{at}-{part}"]
            ]
            for at, run in enumerate(report.timeline if full else ())
        ],
    }

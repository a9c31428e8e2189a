"""The report set by typst: figures as vectors, tagged, for archives (PDF/A-2a) and screen readers (PDF/UA-1)."""

from dataclasses import asdict

from gpureport.report.formats import pdf_figures, typesetting
from gpureport.report.formats.branding import PLAIN, Brand
from gpureport.report.model.report_content import Report
from gpureport.report.sections.merging import share_content
from gpureport.report.wording import display

TEMPLATE = "report.typ"


def render(report: Report, brand: Brand = PLAIN, *, full: bool = False) -> bytes:
    """Return the report as a PDF file.

    When `full`, it has what is for reference as well: each finding of each run, timelines, comparisons, limits, terms.

    Raises:
        RenderError: when fonts are missing or the logo cannot be set.
    """

    def describe(files: pdf_figures.FigureWriter) -> dict[str, object]:
        return {
            "full": full,
            "headline": list(display.headline(report.verdict.sentence)),
            "quiet_line": report.quiet_line,
            "steps_heading": report.steps_heading,
            "shared": {name: [asdict(each) for each in said] for name, said in share_content(report).items()},
            "figures": pdf_figures.draw_figures(report, files, full=full),
        }

    ended = max((run.recording.run.ended for run in report.timeline), default=0) // 1_000_000
    return typesetting.set_document(TEMPLATE, report, describe, brand=brand, ended=ended)

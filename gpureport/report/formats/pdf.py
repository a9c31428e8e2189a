"""The report set by typst: figures as vectors, tagged, for archives (PDF/A-2a) and screen readers (PDF/UA-1)."""

from collections.abc import Iterable
from dataclasses import replace

from gpureport.report.blocks.findings import list_findings
from gpureport.report.blocks.opening import list_study
from gpureport.report.blocks.reference import list_reference
from gpureport.report.formats import pdf_figures, typesetting
from gpureport.report.formats.branding import PLAIN, Brand
from gpureport.report.model.blocks import Block, Form, select_blocks
from gpureport.report.model.report_content import Report
from gpureport.report.wording import display

TEMPLATE = "report.typ"


def render(report: Report, brand: Brand = PLAIN, *, full: bool = False) -> bytes:
    """Return the report as a PDF file.

    When `full`, it has what is for reference as well: each finding of each run, timelines, comparisons, terms.

    Raises:
        RenderError: when fonts are missing or the logo cannot be set.
    """
    form = Form.PAGE if full else Form.PAPER

    def select(blocks: Iterable[Block]) -> object:
        return typesetting.convert_to_json(tuple(select_blocks(blocks, form)))

    def describe(files: pdf_figures.FigureWriter) -> dict[str, object]:
        return {
            "full": full,
            "headline": list(display.headline(report.verdict.sentence)),
            "quiet_line": report.quiet_line,
            "steps_heading": report.steps_heading,
            "checks": report.judgement.sentence,
            "study": select(list_study(report)),
            "findings": select(list_findings(report)),
            "reference": select(list_reference(report)),
            "figures": pdf_figures.draw_figures(report, files, full=full),
        }

    ended = max((run.recording.run.ended for run in report.timeline), default=0) // 1_000_000
    # what is for reference stands in blocks
    first = replace(report, comparison=None, findings=(), gpus=(), quality=(), answers=(), checklists=(), gpu_time=())
    return typesetting.set_document(TEMPLATE, first, describe, brand=brand, ended=ended)

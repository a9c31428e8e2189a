"""The report as PDF: set by typst, or drawn in a plainer form where typst is not installed."""

import os
from importlib.util import find_spec
from pathlib import Path

from gpureport.errors import RenderError
from gpureport.report.model import Report

PLAINER = "typst is not installed, so the PDF is plainer, without tags and links; pip install typst for a better one"


def render(report: Report, templates: Path | None = None) -> bytes:
    """Return the report as a PDF file.

    Args:
        report: the content.
        templates: folder whose `report.typ` stands in for the one shipped, and whose pictures and fonts it can use;
            where typst is not installed it is not looked at.

    Raises:
        RenderError: when fonts are missing or the template cannot be set.
    """
    if lacks():
        from gpureport.report import pdf_pages  # noqa: PLC0415 - only where typst is missing

        return pdf_pages.render(report, _date(report))
    from gpureport.report import typeset  # noqa: PLC0415 - needs typst

    return typeset.render(report, _date(report), templates)


def lacks() -> str:
    """Return in words what a PDF made on this machine lacks; empty when nothing."""
    return "" if find_spec("typst") else PLAINER


def _date(report: Report) -> int:
    """Return the time the file is dated with, in seconds since 1970: as builds state it, or the recordings' end.

    The clock of this machine would make the same report other bytes each time.

    Raises:
        RenderError: when SOURCE_DATE_EPOCH is no number.
    """
    stated = os.environ.get("SOURCE_DATE_EPOCH")
    if stated is None:
        return max((run.recording.run.ended for run in report.timeline), default=0) // 1_000_000
    if not (stated.isascii() and stated.isdecimal()):
        hint = "state seconds since 1970, or unset it"
        raise RenderError("SOURCE_DATE_EPOCH", f"{stated!r} is not a whole number", hint)
    return int(stated)

"""The report as PDF, set by typst."""

import os
from pathlib import Path

from gpureport.errors import RenderError
from gpureport.report.formats.pdf import typeset
from gpureport.report.model.content import Report


def render(report: Report, templates: Path | None = None) -> bytes:
    """Return the report as a PDF file.

    Args:
        report: the content.
        templates: folder whose `report.typ` stands in for the one shipped, and whose pictures and fonts it can use.

    Raises:
        RenderError: when fonts are missing or the template cannot be set.
    """
    return typeset.render(report, _date(report), templates)


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

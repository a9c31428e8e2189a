"""`gpureport.report`."""

from collections.abc import Sequence
from pathlib import Path
from typing import overload

from gpureport.api.analyzing import analyze
from gpureport.api.comparing import Run
from gpureport.api.notebook_results import Analysis, Comparison, comparison_content, report_content
from gpureport.errors import RenderError
from gpureport.places import Place, parse_place
from gpureport.recording import Recording
from gpureport.report.formats.output import render, write


@overload
def report(results: Run | Sequence[Run] | Comparison, path: str | Path, *, title: str | None = None) -> Place: ...


@overload
def report(results: Run | Sequence[Run] | Comparison, *, format: str, title: str | None = None) -> str: ...


def report(
    results: Run | Sequence[Run] | Comparison,
    path: str | Path | None = None,
    *,
    format: str | None = None,
    title: str | None = None,
) -> Place | str:
    """Write the report of one run, of several as steps, or of a comparison.

    Args:
        results: an analysis, several in the order of their steps, or a comparison. A recording is analysed first.
        path: file to write, or URL of an object of a bucket. Its suffix names the format: html, pdf, md, json, txt, svg
            or png.
        format: format of the text to return, such as `"md"`, instead of a file.
        title: title of the report; the names of the runs when None.

    Returns:
        The path or URL of the file, or the text.

    Raises:
        PlaceError: when the bucket cannot be reached, or refuses.
        RenderError: when no format has this name, a format that is no text is to be returned, or the file cannot be
            written.
        TypeError: when neither `path` nor `format` is given, or both are.
    """
    if (path is None) == (format is None):
        msg = "give either a path to write to, or a format to return"
        raise TypeError(msg)
    if isinstance(results, Comparison):
        content = comparison_content(results, title)
    else:
        content = report_content(_analyses(results), title)
    if path is not None:
        write(content, path)
        return parse_place(path) if isinstance(path, str) else path
    try:
        return render(content, f".{format}".replace("..", ".")).decode()
    except UnicodeDecodeError as error:
        raise RenderError(str(format), "this format is not text", "write it to a file", code="not_text") from error


def _analyses(results: Run | Sequence[Run]) -> tuple[Analysis, ...]:
    several = [results] if isinstance(results, Recording | Analysis) else results
    return tuple(one if isinstance(one, Analysis) else analyze(one) for one in several)

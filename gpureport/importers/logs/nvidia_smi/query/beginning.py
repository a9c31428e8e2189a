"""The beginning of a log, by which its lines are understood; below the output of a job where that stands above it."""

from collections.abc import Iterator

from gpureport.importers.decoding.pieces import head, pieces
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.logs.nvidia_smi.query.headerless import is_headerless
from gpureport.importers.logs.nvidia_smi.query.non_data_lines import QueryGpuDialect, headers
from gpureport.importers.protocol.importer import HEAD_BYTES, SEARCHED_BYTES

_LINES = 2_000
"""Lines whose content is looked at."""


def beginning(file: RawFile) -> str:
    """Return the first text of a log: as much as an importer sees, below its first header where that stands deeper."""
    text = head(file.again(), HEAD_BYTES)
    first = text.decode(errors="replace")
    if len(text) < HEAD_BYTES or _header(first) is not None or is_headerless(first_lines(first)):
        return first
    searched = head(file.again(), SEARCHED_BYTES).decode(errors="replace")
    place = _header(searched, first.rfind("\n") + 1)
    return first if place is None else searched[: place + HEAD_BYTES]


def every_line(file: RawFile) -> Iterator[str]:
    """Yield the lines of a log, read on the side."""
    for piece in pieces(file.again()):
        yield from piece.data.decode(errors="replace").splitlines()


def first_lines(text: str) -> list[str]:
    """Return the first lines of a text that say something."""
    return [line for each in text.splitlines()[:_LINES] if (line := each.strip())]


def around_header(text: str) -> list[str]:
    """Return as many lines, from some above the first header where that stands below them."""
    place = _header(text)
    if place is None or text.count("\n", 0, place) < _LINES:
        return first_lines(text)
    above = text[:place].splitlines()[-_LINES // 2 :]
    return first_lines("\n".join([*above, text[place:]]))


def _header(text: str, start: int = 0) -> int | None:
    """Return where the first header of a text from some line on begins, None when there is none."""
    return next((place for place, _ in headers(text, QueryGpuDialect(), start)), None)

"""The lines of a log one by one, for forms that are no tables of one layout."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.protocol.reject_reasons import NOT_TEXT, NUL_BYTES


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line that is not empty.

    Attributes:
        number: its number in the log, from 1.
        text: what it says, without the end of the line.
        fault: why it cannot be read, one of `reasons`; empty when it can.
        cut: whether the log ends inside it.
    """

    number: int
    text: str
    fault: str = ""
    cut: bool = False


def text_lines(log: Iterable[Piece]) -> Iterator[TextLine]:
    """Yield the lines of a log that are not empty."""
    for piece in log:
        rows = piece.data.split(b"\n")
        last = len(rows) - 1
        for place, row in enumerate(rows):
            if row.strip():
                yield _line(piece.first_line + place, row.rstrip(b"\r"), cut=piece.last and place == last)


def _line(number: int, row: bytes, *, cut: bool) -> TextLine:
    try:
        text = row.decode()
    except UnicodeDecodeError:
        return TextLine(number, row.decode(errors="replace"), NOT_TEXT, cut)
    return TextLine(number, text, NUL_BYTES if "\0" in text else "", cut)

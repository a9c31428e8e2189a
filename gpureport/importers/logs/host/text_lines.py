"""Numbers the lines of a text log."""

from collections.abc import Iterator

from gpureport.importers.decoding.pieces import Piece


def number_lines(piece: Piece) -> Iterator[tuple[int, str, bool]]:
    """Yield the lines of a piece: number, text without blanks at its end, and whether the log ends inside it."""
    text = piece.data.decode(errors="replace").replace("\0", " ")
    lines = text.split("\n")
    for place, line in enumerate(lines[:-1]):
        yield piece.first_line + place, line.rstrip(), False
    if lines[-1].strip():
        yield piece.first_line + len(lines) - 1, lines[-1].rstrip(), piece.last

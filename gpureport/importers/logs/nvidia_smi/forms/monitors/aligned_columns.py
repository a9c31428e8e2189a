"""Tables whose columns are parted by runs of blanks, or by commas, as lines of cells parted by single commas.

All of a piece is done at once: a monitor writes short lines, and looking at each would cost more than reading it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gpureport.columns import BoolArray, IntArray
from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.delimited.line_table import is_text
from gpureport.importers.delimited.row_sections import LineKind, NonDataLine
from gpureport.importers.logs.nvidia_smi.query.non_data_lines import QueryGpuDialect
from gpureport.importers.protocol.reject_reasons import BEFORE_HEADER, NOT_TEXT, NUL_BYTES, WRONG_CELLS
from gpureport.importers.text.text_log import Chunk
from gpureport.importers.values.cells import CUT_CELL

CUT = "The log has no newline at its end, so its last line may be cut."
_BLANK, _COMMA, _NEWLINE, _COLON, _SIGN = (ord(each) for each in " ,\n:#")
_ASCII = 127
_LOWER, _A, _LETTERS = (np.uint8(each) for each in (0x20, ord("a"), 26))
_TO_BLANK = bytes.maketrans(b"\t\r\v\f", b"    ")

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedLines:
    """The lines of a piece, with one comma between cells and none at the ends.

    Attributes:
        piece: where they come from.
        text: all lines, each with a newline.
        starts: where each line begins.
        ends: where each ends, its newline left out.
        cells: cells of each; 0 for a blank line.
        marked: lines that begin with `#` or a letter.
        damaged: lines with NUL bytes or others that are no ASCII.
        cut: whether the log ends inside the last line.
    """

    piece: Piece
    text: Bytes
    starts: IntArray
    ends: IntArray
    cells: IntArray
    marked: IntArray
    damaged: BoolArray
    cut: bool

    @classmethod
    def from_piece(cls, piece: Piece) -> "AlignedLines":
        """Return the lines of a piece; the last cell of a line that may be cut is marked as cut."""
        data, cut = piece.data, piece.last and bool(piece.data) and not piece.data.endswith(b"\n")
        if cut:
            data = _closed(data)
        text = _compacted(data)
        ends = np.flatnonzero(text == _NEWLINE)
        starts = np.append(0, ends[:-1] + 1) if len(ends) else ends
        commas = np.searchsorted(np.flatnonzero(text == _COMMA), np.append(starts, len(text)))
        lengths = ends - starts
        first = text[starts]
        damaged = np.zeros(len(ends), dtype=np.bool_)
        if not data.isascii() or b"\0" in data:
            damaged[np.searchsorted(ends, np.flatnonzero((text > _ASCII) | (text == 0)))] = True
        return cls(
            piece=piece,
            text=text,
            starts=starts,
            ends=ends,
            cells=np.where(lengths > 0, np.diff(commas) + 1, 0),
            marked=np.flatnonzero((first == _SIGN) | ((first | _LOWER) - _A < _LETTERS)),
            damaged=damaged,
            cut=cut,
        )

    def __len__(self) -> int:
        return len(self.ends)

    def line(self, place: int) -> bytes:
        """Return one line with its cells parted by commas."""
        return self.text[self.starts[place] : self.ends[place]].tobytes()

    def block(self, places: IntArray) -> bytes:
        """Return some lines, in their order, with their newlines."""
        if not len(places):
            return b""
        first, last = int(places[0]), int(places[-1])
        start, end = int(self.starts[first]), int(self.ends[last]) + 1
        if len(places) == last - first + 1:
            return self.text[start:end].tobytes()
        kept = np.zeros(last - first + 1, dtype=np.bool_)
        kept[places - first] = True
        lengths = self.ends[first : last + 1] + 1 - self.starts[first : last + 1]
        return self.text[start:end][np.repeat(kept, lengths)].tobytes()

    def damage(self, place: int) -> str:
        """Return why a damaged line cannot be read."""
        line = self.line(place)
        return NUL_BYTES if b"\0" in line else WRONG_CELLS if is_text(line) else NOT_TEXT

    def written(self) -> list[str]:
        """Return all lines as they stand in the log."""
        return [line.decode(errors="replace").rstrip("\r") for line in self.piece.data.split(b"\n")]


@dataclass(slots=True)
class Odd:
    """Lines of a piece that are no rows; what they say is taken from the log.

    Attributes:
        lines: the lines of the piece.
        taken: which of them are no rows.
    """

    lines: AlignedLines
    taken: BoolArray = field(init=False)
    _found: list[NonDataLine] = field(default_factory=list)
    _notes: list[str] = field(default_factory=list)
    _written: list[str] = field(default_factory=list)
    _kinds: dict[str, LineKind] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Start without any."""
        self.taken = np.zeros(len(self.lines), dtype=np.bool_)

    def add(self, place: int, kind: LineKind, reason: str = "") -> None:
        """Take a line; one that has not the cells of a row may be a message of the driver, or noise."""
        text = ""
        if kind is LineKind.REJECTED:
            self._written = self._written or self.lines.written()
            text = self._written[place]
            if reason in {WRONG_CELLS, BEFORE_HEADER}:
                kind = self._kinds.get(text) or self._kind(text)
        self.taken[place] = True
        self._found.append(NonDataLine(self.lines.piece.first_line + place, kind, reason, text))

    def _kind(self, text: str) -> LineKind:
        """Return what a line is that has not the cells of a row; thousands may say the same."""
        self._kinds[text] = kind = QueryGpuDialect().classify(text.strip())
        return kind

    def note(self, *notes: str) -> None:
        """Take what a reader must know."""
        self._notes += notes

    def chunk(self, notes: Sequence[str] = ()) -> Chunk:
        """Return a chunk of these lines and no row."""
        return Chunk(
            numbers=np.zeros(0, dtype=np.int64),
            times=None,
            data={},
            lines=len(self._found),
            other_lines=sorted(self._found, key=lambda line: line.number),
            notes=(*self._notes, *notes),
        )


def _closed(data: bytes) -> bytes:
    """Return text that ends inside a line with a newline; the last cell is marked as cut where no blank follows it."""
    if data[-1:].isspace():
        return data + b"\n"
    start = max(data.rfind(each) for each in (b" ", b"\t", b",", b"\n")) + 1
    return data[:start] + CUT_CELL.encode() + b"\n"


def _compacted(data: bytes) -> Bytes:
    """Return text with a comma for each run of blanks between cells; a blank is left between date and time."""
    if any(each in data for each in (b"\t", b"\r", b"\v", b"\f")):
        data = data.translate(_TO_BLANK)
    text: Bytes = np.frombuffer(data, dtype=np.uint8)
    if not len(text):
        return text
    blank = text == _BLANK
    before = np.append(blank[1:] | (text[1:] == _COMMA) | (text[1:] == _NEWLINE), True)
    text = text[~(blank & before)]
    behind = np.append(True, (text[:-1] == _COMMA) | (text[:-1] == _NEWLINE))
    text = text[~((text == _BLANK) & behind)]
    np.putmask(text, text == _BLANK, _COMMA)
    colons = np.flatnonzero(text == _COLON)
    clocks = colons[:-1][(np.diff(colons) == 3) & (colons[:-1] > 3)]  # noqa: PLR2004 - HH:MM:SS
    text[clocks[(text[clocks - 3] == _COMMA) & (text[clocks - 4] != _NEWLINE)] - 3] = _BLANK
    return text

"""What all forms of host logs share: they go line by line, and their tables become rows of the machine."""

from collections.abc import Iterable, Iterator
from typing import ClassVar

from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.logs.host.day_clock import DayClock
from gpureport.importers.logs.host.host_rows import HostRows
from gpureport.importers.logs.host.tick_totals import TickTotalsBuilder
from gpureport.importers.text.text_log import Chunk


class HostForm:
    """One way to write down what a machine did.

    Attributes:
        zone: the zone its times state.
        held_back: how many of the last rows later lines may add to.
    """

    name: ClassVar[str]
    averaged = False
    held_back: ClassVar[int] = 0

    def __init__(self, around: tuple[int, int] | None = None) -> None:
        """Start; `around` are the first and last local time of the log this one lies beside."""
        self.zone: str | None = None
        self._clock = DayClock(around)
        self._readings = HostRows()
        self._blocks = TickTotalsBuilder(self._readings)

    @staticmethod
    def identify(lines: list[str]) -> bool:
        """Return whether the first lines of a log, without blank ones, are of this form."""
        raise NotImplementedError

    def chunks(self, log: Iterable[Piece]) -> Iterator[Chunk]:
        """Yield what the log holds."""
        for piece in log:
            self._read_piece(piece)
            yield self._readings.chunk(keep=self.held_back)
        self._end()
        yield self._readings.chunk()

    def _read_piece(self, piece: Piece) -> None:
        for number, line, cut in number_lines(piece):
            if line.strip():
                self._line(number, line, cut=cut)
            else:
                self._blank_line()

    def _line(self, number: int, line: str, *, cut: bool) -> None:
        raise NotImplementedError

    def _blank_line(self) -> None:
        """A blank line ends nothing unless a form says so."""

    def _end(self) -> None:
        self._blocks.end()
        if self._clock.note:
            self._readings.notes[self._clock.note] = None


def number_lines(piece: Piece) -> Iterator[tuple[int, str, bool]]:
    """Yield the lines of a piece: number, text without blanks at its end, and whether the log ends inside it."""
    text = piece.data.decode(errors="replace").replace("\0", " ")
    lines = text.split("\n")
    for place, line in enumerate(lines[:-1]):
        yield piece.first_line + place, line.rstrip(), False
    if lines[-1].strip():
        yield piece.first_line + len(lines) - 1, lines[-1].rstrip(), piece.last

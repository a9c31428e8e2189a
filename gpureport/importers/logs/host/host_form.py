"""What all forms of host logs share: their tables become rows of the machine, and most go line by line."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import ClassVar

from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.logs.host.day_clock import DayClock
from gpureport.importers.logs.host.host_rows import HostRows
from gpureport.importers.logs.host.tick_totals import TickTotalsBuilder
from gpureport.importers.text.text_log import Chunk


class HostForm(ABC):
    """One way to write down what a machine did.

    Attributes:
        zone: the zone its times state.
    """

    name: ClassVar[str]
    averaged = False

    def __init__(self, around: tuple[int, int] | None = None) -> None:
        """Start; `around` are the first and last local time of the log this one lies beside."""
        self.zone: str | None = None
        self._clock = DayClock(around)
        self._readings = HostRows()
        self._blocks = TickTotalsBuilder(self._readings)

    @staticmethod
    @abstractmethod
    def identify(lines: list[str]) -> bool:
        """Return whether the first lines of a log, without blank ones, are of this form."""

    @abstractmethod
    def chunks(self, log: Iterable[Piece]) -> Iterator[Chunk]:
        """Yield what the log holds."""

    def _end(self) -> None:
        self._blocks.end()
        if self._clock.note:
            self._readings.notes[self._clock.note] = None


class LineForm(HostForm):
    """A form that is read line by line.

    Attributes:
        held_back: how many of the last rows later lines may add to.
    """

    held_back: ClassVar[int] = 0

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

    @abstractmethod
    def _line(self, number: int, line: str, *, cut: bool) -> None:
        """Take a line that is not blank."""

    def _blank_line(self) -> None:
        """A blank line ends nothing unless a form says so."""


def number_lines(piece: Piece) -> Iterator[tuple[int, str, bool]]:
    """Yield the lines of a piece: number, text without blanks at its end, and whether the log ends inside it."""
    text = piece.data.decode(errors="replace").replace("\0", " ")
    lines = text.split("\n")
    for place, line in enumerate(lines[:-1]):
        yield piece.first_line + place, line.rstrip(), False
    if lines[-1].strip():
        yield piece.first_line + len(lines) - 1, lines[-1].rstrip(), piece.last

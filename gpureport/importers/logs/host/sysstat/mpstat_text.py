"""Reads what `mpstat` prints: one table, with a line for all cores and, with `-P ALL`, one for each."""

from collections.abc import Iterable, Iterator
from typing import ClassVar

from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.logs.host.sysstat.sysstat_text import SysstatText, headings
from gpureport.importers.text.text_log import Chunk


class MpstatText:
    """The table of `mpstat`."""

    name: ClassVar[str] = "mpstat"
    averaged = False

    def __init__(self, around: tuple[int, int] | None = None) -> None:
        """Start; `around` are the first and last local time of the log this one lies beside."""
        self._text = SysstatText(around, in_turn=True)

    @property
    def zone(self) -> str | None:
        """The zone its times state."""
        return self._text.zone

    @staticmethod
    def identify(lines: list[str]) -> bool:
        """Return whether any of the first lines is the heading of `mpstat`: its `%irq` stands before `%steal`."""
        found = (headings(line) for line in lines)
        return any(names and {"CPU", "%irq", "%idle"} <= {*names[:6], names[-1]} for names in found)

    def chunks(self, log: Iterable[Piece]) -> Iterator[Chunk]:
        """Yield what the log holds."""
        return self._text.chunks(log)

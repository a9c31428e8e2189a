"""Reads what `sar` prints: every table for the whole time, then the next one, or all of them a time."""

from collections.abc import Iterable, Iterator
from typing import ClassVar

from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.logs.host.sysstat.sysstat_text import SysstatText, headings
from gpureport.importers.text.text_log import Chunk

_OWN = {"%system", "kbmemfree", "bread/s", "runq-sz", "DEV", "IFACE", "proc/s", "pgpgin/s", "cswch/s", "INTR", "%sys"}


class SarText:
    """Tables of `sar`."""

    name: ClassVar[str] = "sar"
    averaged = False

    def __init__(self, around: tuple[int, int] | None = None) -> None:
        """Start; `around` are the first and last local time of the log this one lies beside."""
        self._text = SysstatText(around, in_turn=False)

    @property
    def zone(self) -> str | None:
        """The zone its times state."""
        return self._text.zone

    @staticmethod
    def identify(lines: list[str]) -> bool:
        """Return whether any of the first lines is a heading of `sar`."""
        return any(
            "PID" not in names and set(names) & _OWN and "%irq" not in names[:6]
            for line in lines
            if (names := headings(line))
        )

    def chunks(self, log: Iterable[Piece]) -> Iterator[Chunk]:
        """Yield what the log holds."""
        return self._text.chunks(log)

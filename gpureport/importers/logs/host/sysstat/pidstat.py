"""Reads what `pidstat` prints: tables of processes, one after the other or, with `-h`, all on a line."""

from collections.abc import Iterable, Iterator
from typing import ClassVar

from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.logs.host.sysstat.sysstat_text import SysstatText, headings
from gpureport.importers.text.text_log import Chunk


class Pidstat:
    """Tables of `pidstat`."""

    name: ClassVar[str] = "pidstat"
    averaged = False

    def __init__(self, around: tuple[int, int] | None = None) -> None:
        """Start; `around` are the first and last local time of the log this one lies beside."""
        self._text = SysstatText(around, in_turn=True)

    @property
    def zone(self) -> str | None:
        """The zone its times state: none but where they are seconds since 1970."""
        return self._text.zone

    @staticmethod
    def identify(lines: list[str]) -> bool:
        """Return whether any of the first lines is a heading of `pidstat`."""
        found = (headings(line) for line in lines)
        return any(names and {"PID", "TGID"} & set(names) and names[-1] == "Command" for names in found)

    def chunks(self, log: Iterable[Piece]) -> Iterator[Chunk]:
        """Yield what the log holds."""
        return self._text.chunks(log)

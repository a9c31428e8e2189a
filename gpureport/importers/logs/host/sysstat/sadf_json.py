"""Reads what `sadf -j` prints; its stamps say whether they are UTC."""

from collections.abc import Iterable, Iterator
from typing import ClassVar

from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.logs.host.sysstat.sysstat_json import SysstatJson
from gpureport.importers.text.text_log import Chunk
from gpureport.importers.values.timestamps import parse_timestamp


class SadfJson:
    """JSON of `sadf -j`."""

    name: ClassVar[str] = "sadf -j"
    averaged = False

    def __init__(self, around: tuple[int, int] | None = None) -> None:
        """Start; its stamps hold a date, so what it lies beside does not matter."""
        del around
        self.zone: str | None = None
        self._stated: bool | None = None
        self._json = SysstatJson(self._at, lambda _: None)

    @staticmethod
    def identify(lines: list[str]) -> bool:
        """Return whether the first lines are those of `sadf -j`."""
        text = " ".join(lines)
        return '"sysstat"' in text and '"file-date"' in text

    def chunks(self, log: Iterable[Piece]) -> Iterator[Chunk]:
        """Yield what the log holds."""
        yield from self._json.chunks(log)
        yield self._json.readings.chunk()

    def _at(self, said: object) -> int | None:
        """Return the time an object states, None where it states none or one of another kind than those before."""
        if not isinstance(said, dict):
            return None
        found = parse_timestamp(f"{said.get('date')} {said.get('time')}")
        utc = said.get("utc") == 1 or said.get("tz") in {"UTC", "GMT"}
        if found is None:
            return None
        if self._stated is None:
            self._stated, self.zone = utc, "UTC" if utc else None
        return found.micros if utc == self._stated else None

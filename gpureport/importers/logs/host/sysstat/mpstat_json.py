"""Reads what `mpstat -o JSON` prints: times of day below a date."""

import re
from collections.abc import Iterable, Iterator
from typing import ClassVar

from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.logs.host.day_clock import DayClock, parse_time_of_day
from gpureport.importers.logs.host.sysstat.sysstat_json import SysstatJson
from gpureport.importers.text.text_log import Chunk

_DATE = re.compile(r'"date"\s*:\s*"([^"]*)"')


class MpstatJson:
    """JSON of `mpstat`."""

    name: ClassVar[str] = "mpstat -o JSON"
    averaged = False
    zone: str | None = None

    def __init__(self, around: tuple[int, int] | None = None) -> None:
        """Start; `around` are the first and last local time of the log this one lies beside."""
        self._clock = DayClock(around)
        self._json = SysstatJson(self._at, self._between)

    @staticmethod
    def identify(lines: list[str]) -> bool:
        """Return whether the first lines are those of `mpstat -o JSON`."""
        text = " ".join(lines)
        return '"sysstat"' in text and '"date"' in text and '"file-date"' not in text

    def chunks(self, log: Iterable[Piece]) -> Iterator[Chunk]:
        """Yield what the log holds."""
        yield from self._json.chunks(log)
        if self._clock.note:
            self._json.readings.notes[self._clock.note] = None
        yield self._json.readings.chunk()

    def _between(self, text: str) -> None:
        if match := _DATE.search(text):
            self._clock.date(match[1])

    def _at(self, said: object) -> int | None:
        time, _, half = said.partition(" ") if isinstance(said, str) else ("", "", "")
        since_midnight = parse_time_of_day(time, half.strip())
        return None if since_midnight is None else self._clock.at(since_midnight)

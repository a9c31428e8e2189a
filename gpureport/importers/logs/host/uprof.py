"""Reads the timechart of AMDuProf: power of the processors, with times of day below the time the profile started."""

import re
from datetime import datetime
from typing import ClassVar

from gpureport.importers.delimited.row_sections import LineKind
from gpureport.importers.logs.host.day_clock import parse_time_of_day
from gpureport.importers.logs.host.host_form import LineForm
from gpureport.importers.logs.host.host_rows import TableReading
from gpureport.importers.logs.host.printed_numbers import parse_number
from gpureport.importers.protocol.reject_reasons import BEFORE_HEADER, CUT_LAST_LINE, MALFORMED, NO_TIME, WRONG_CELLS

_TITLE = "AMDPROFILER"
_STARTED = re.compile(r"Profile Start Time:,(\w{3}-\d{1,2}-\d{4})_", re.ASCII)
_TIME = re.compile(r"(\d{1,2}):(\d{1,2}):(\d{1,2}):(\d{1,3})", re.ASCII)
_SOCKET = re.compile(r"socket\d+-package-power", re.ASCII)
_KEYS = 2
"""Cells before the values: number of the record, time."""


class Uprof(LineForm):
    """Records of an AMDuProf timechart."""

    name: ClassVar[str] = "AMDuProf timechart"

    def __init__(self, around: tuple[int, int] | None = None) -> None:
        """Start; `around` is as for all host logs."""
        super().__init__(around)
        self._names: list[str] = []
        self._sockets: list[int] = []

    @staticmethod
    def identify(lines: list[str]) -> bool:
        """Return whether the first line is the title of such a report."""
        return bool(lines) and lines[0].startswith(_TITLE)

    def _line(self, number: int, line: str, *, cut: bool) -> None:
        if match := _STARTED.match(line):
            self._date(match[1])
        if line.startswith("RecordId,Timestamp,") and not cut:
            self._heading(line.split(","))
            self._readings.lost(number, "", line, LineKind.HEADER)
        elif not self._names:
            self._readings.lost(number, "", line, LineKind.HEADER)
        elif cut:
            self._readings.lost(number, CUT_LAST_LINE, line)
        else:
            self._row(number, line)

    def _date(self, text: str) -> None:
        try:
            day = datetime.strptime(text, "%b-%d-%Y").date()
        except ValueError:
            # the clock then takes the day of the log beside it, or its rows are rejected
            return
        self._clock.date(day.isoformat())

    def _heading(self, cells: list[str]) -> None:
        self._names = cells
        self._sockets = [place for place, name in enumerate(cells) if _SOCKET.fullmatch(name.strip())]
        others = [
            name for place, name in enumerate(cells[_KEYS:], _KEYS) if place not in self._sockets and name.strip()
        ]
        if others:
            self._readings.notes[f"{len(others)} counters of the timechart are not kept, such as {others[0]}."] = None

    def _row(self, number: int, line: str) -> None:
        cells = line.split(",")
        if len(cells) == len(self._names) + 1 and not cells[-1].strip():
            cells.pop()
        time = _TIME.fullmatch(cells[1].strip()) if len(cells) > 1 else None
        if len(cells) != len(self._names):
            self._readings.lost(number, WRONG_CELLS, line)
        elif not self._sockets:
            self._readings.lost(number, BEFORE_HEADER, line)
        elif (stamp := self._at(time)) is None:
            self._readings.lost(number, NO_TIME, line)
        else:
            self._take(number, line, stamp, [cells[place].strip() for place in self._sockets])

    def _at(self, match: "re.Match[str] | None") -> int | None:
        if match is None:
            return None
        hour, minute, second, millis = map(int, match.groups())
        since_midnight = parse_time_of_day(f"{hour}:{minute:02}:{second:02}")
        return None if since_midnight is None else self._clock.at(since_midnight + millis * 1000)

    def _take(self, number: int, line: str, stamp: int, cells: list[str]) -> None:
        watts = [value for cell in cells if (value := parse_number(cell)) is not None and value >= 0]
        if len(watts) < len(cells):
            self._readings.lost(number, f"{MALFORMED} package power", line)
            return
        values = {"cpu_power_watts": sum(watts)}
        self._readings.put(TableReading(table="", stamp=stamp, number=number, lines=1, values=values))

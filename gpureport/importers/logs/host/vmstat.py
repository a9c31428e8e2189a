"""Reads what `vmstat -t` prints: one row a time, its date and time last, in a zone the heading names.

The first row of each time it was started speaks of the time since the machine was, so only its time is kept. Totals of
memory it has none.
"""

import re
from typing import ClassVar

from gpureport.importers.delimited.row_sections import LineKind
from gpureport.importers.logs.host.host_form import LineForm
from gpureport.importers.logs.host.host_rows import TableReading
from gpureport.importers.logs.host.printed_numbers import KIB, parse_number
from gpureport.importers.protocol.reject_reasons import BEFORE_HEADER, CUT_LAST_LINE, MALFORMED, NO_TIME, WRONG_CELLS
from gpureport.importers.values.timestamps import parse_timestamp

_COLONS = 2
_UTC = {"UTC", "GMT"}
_GROUPS = re.compile(r"-*procs-* -+memory-+ ")
_NEEDED = {"us", "sy", "id", "wa", "bi", "bo"}
_MOST = 1.03
"""Shares are rounded to whole per cent each."""
SINCE_START = "means since the machine was started"
_PAGE = 21
"""Rows below a heading where it is written again, in a file; on a screen they are as many as it shows."""
_SECOND = 1_000_000


class Vmstat(LineForm):
    """Rows of `vmstat`."""

    name: ClassVar[str] = "vmstat"

    def __init__(self, around: tuple[int, int] | None = None) -> None:
        """Start; `around` is as for all host logs."""
        super().__init__(around)
        self._names: list[str] = []
        self._begun = False
        self._below = 0
        self._page = _PAGE
        self._headed = False
        self._last = self._pace = 0

    @staticmethod
    def identify(lines: list[str]) -> bool:
        """Return whether any of the first lines is the heading of `vmstat`."""
        return any(_names(line.split()) is not None for line in lines)

    def _line(self, number: int, line: str, *, cut: bool) -> None:
        cells = line.split()
        if _GROUPS.match(line):
            self._readings.lost(number, "", line, LineKind.HEADER)
        elif (names := _names(cells)) is not None:
            self._heading(names, cells[len(names) :])
            self._readings.lost(number, "", line, LineKind.HEADER)
        elif not self._names:
            self._readings.lost(number, BEFORE_HEADER, line)
        else:
            self._row(number, line, cells, cut=cut)

    def _heading(self, names: list[str], zone: list[str]) -> None:
        self._names = names
        self._page, self._below, self._headed = self._below or self._page, 0, True
        if zone and not self._begun:
            self.zone = "UTC" if zone[0] in _UTC else None
            if self.zone is None:
                self._readings.notes[f"Its stamps are said to be {zone[0]}, read as local time of the machine."] = None
        self._readings.notes["vmstat writes no total of memory, so its columns of memory are not kept."] = None

    def _row(self, number: int, line: str, cells: list[str], *, cut: bool) -> None:
        count = len(self._names)
        found = parse_timestamp(" ".join(cells[count:]))
        if len(cells) == count:
            self._readings.lost(number, CUT_LAST_LINE if cut else NO_TIME, line)
        elif len(cells) != count + 2:
            self._readings.lost(number, CUT_LAST_LINE if cut else WRONG_CELLS, line)
        elif found is None or cells[-1].count(":") != _COLONS:
            # a time cut behind its minutes is a time as well
            self._readings.lost(number, CUT_LAST_LINE if cut else f"{MALFORMED} timestamp", line)
        else:
            self._take(number, line, found.micros, dict(zip(self._names, cells, strict=False)))

    def _take(self, number: int, line: str, at: int, row: dict[str, str]) -> None:
        read = {name: parse_number(row[name]) for name in sorted(_NEEDED)}
        known = {name: value for name, value in read.items() if value is not None and value >= 0}
        if len(known) < len(read):
            name = next(name for name in read if name not in known)
            self._readings.lost(number, f"{MALFORMED} {name}", line)
            return
        busy, waiting = 1 - (known["id"] + known["wa"]) / 100, known["wa"] / 100
        if busy < 1 - _MOST:
            self._readings.lost(number, f"{MALFORMED} id", line)
            return
        values = {
            "cpu_utilization_ratio": max(busy, 0.0),
            "cpu_iowait_ratio": waiting,
            "host_disk_read_bytes_per_second": known["bi"] * KIB,
            "host_disk_write_bytes_per_second": known["bo"] * KIB,
        }
        if self._begins(at):
            values = {}
            key = "us sy id wa bi bo", SINCE_START
            self._readings.absent[key] = self._readings.absent.get(key, 0) + 1
        self._readings.put(TableReading(table="", stamp=at, number=number, lines=1, values=values))

    def _begins(self, at: int) -> bool:
        """Return whether a row is the first of vmstat started anew; below a heading only, which is also repeated."""
        step, pace, headed = at - self._last, self._pace, self._headed
        self._last, self._pace, self._headed = at, step, False
        self._below += 1
        if not self._begun:
            self._begun, self._pace = True, 0
            return True
        if not headed:
            return False
        # no screen shows one row alone
        alone = self._page == 1
        # half the pace, or the second to which stamps are cut (pragmatic)
        late = abs(step - pace) > max(pace // 2, _SECOND)
        begins = alone or late or (self._page != _PAGE and step != pace)
        self._pace = 0 if begins else step
        return begins


def _names(cells: list[str]) -> list[str] | None:
    """Return the names of the columns of a heading, its zone left out; None where the line is none."""
    if not set(cells) >= _NEEDED:
        return None
    known = cells[: max(cells.index(name) for name in ("wa", "st", "gu") if name in cells) + 1]
    return known if set(known) >= _NEEDED else None

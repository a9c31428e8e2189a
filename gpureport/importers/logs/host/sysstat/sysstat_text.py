"""The tables `sar`, `mpstat` and `pidstat` print: a banner with the date, headings, and rows that begin with a time."""

import re
import sys
from typing import ClassVar

from gpureport.importers.delimited.row_sections import LineKind
from gpureport.importers.logs.host.day_clock import find_dates, parse_time_of_day
from gpureport.importers.logs.host.host_form import LineForm
from gpureport.importers.logs.host.printed_numbers import parse_number
from gpureport.importers.logs.host.sysstat.sysstat_fields import Fields, MalformedError
from gpureport.importers.logs.host.tick_totals import CORE_COUNT
from gpureport.importers.protocol.reject_reasons import BEFORE_HEADER, CUT_LAST_LINE, NO_TIME, WRONG_CELLS

_EPOCH = re.compile(r"[1-4]\d{9}", re.ASCII)
_PROCESS = 2
"""Columns that say which process a row is about."""
_SAR = {"%system", "kbmemfree", "bread/s", "runq-sz", "DEV", "IFACE", "proc/s", "pgpgin/s", "cswch/s", "INTR", "%sys"}
_RESTART = re.compile(r"RESTART")
_MACHINE = re.compile(r"\((\d{1,5}) CPU\)$", re.ASCII)
"""How many cores the machine has, at the end of a banner."""


def banner(line: str) -> str | None:
    """Return the date of the line sysstat's programs begin with, None where the line is another one."""
    cells = line.split()
    if len(cells) < 4 or not cells[2].startswith("(") or not line.endswith("CPU)"):  # noqa: PLR2004 - system, release, host, date
        return None
    return next((cell for cell in cells[3:] if find_dates(cell)), None)


def headings(line: str) -> tuple[str, ...] | None:
    """Return the names of the columns of a heading, its time left out; None where the line is another one."""
    cells = line.split()
    if cells[:1] == ["#"]:
        return tuple(cells[2:]) or None
    rest = cells[_times(cells) :] if cells else []
    if len(rest) == len(cells) or len(rest) < 2 or any(parse_number(cell) is not None for cell in rest):  # noqa: PLR2004 - one name may be a message
        return None
    return tuple(rest)


def _times(cells: list[str]) -> int:
    """Return how many of the first cells are a time."""
    if parse_time_of_day(cells[0]) is None:
        return int(bool(_EPOCH.fullmatch(cells[0])))
    return 2 if len(cells) > 1 and cells[1].upper() in {"AM", "PM"} else 1


class SysstatTables(LineForm):
    """A log of tables whose headings name their columns."""

    def __init__(self, around: tuple[int, int] | None = None) -> None:
        """Start; `around` is as for all host logs."""
        super().__init__(around)
        self._fields: Fields | None = None
        self._core_count = 0
        self._untold: dict[str, None] = {}

    def _end(self) -> None:
        super()._end()
        self._readings.note_unused_tables(self._untold)

    def _take(self, fields: Fields, stamp: int, number: int, cells: list[str], line: str) -> None:
        block = self._blocks.at(fields.names, stamp, number)
        try:
            fields.take(cells, block)
            if self._core_count and "%idle" in fields.names:
                block.values[CORE_COUNT] = float(self._core_count)
        except MalformedError as error:
            block.lines -= 1
            self._readings.lost(number, str(error), line)


class SysstatText(SysstatTables):
    """Reads a log of such tables; its zone is UTC where its times are seconds since 1970."""

    held_back = 1
    _epoch: bool | None = None

    def _blank_line(self) -> None:
        self._blocks.close()

    def _line(self, number: int, line: str, *, cut: bool) -> None:
        cells = line.split()
        names = headings(line)
        if cut and names is None:
            self._readings.lost(number, CUT_LAST_LINE, line)
        elif (date := banner(line)) is not None:
            self._blocks.close()
            self._clock.date(date)
            self._fields = None
            self._core_count = int(machine[1]) if (machine := _MACHINE.search(line)) else 0
            self._readings.lost(number, "", line, LineKind.HEADER)
        elif names is not None:
            self._heading(number, line, cells, names)
        elif _times(cells):
            self._row(number, line, cells)
        elif cells[0].endswith(":") or cells[1:2] == [":"]:
            # the means over the whole log
            self._readings.lost(number, "", line, LineKind.NOISE)
        else:
            self._readings.lost(number, WRONG_CELLS, line)

    def _heading(self, number: int, line: str, cells: list[str], names: tuple[str, ...]) -> None:
        if _RESTART.search(line):
            self._readings.lost(number, "", line, LineKind.EVENT)
            return
        self._blocks.close()
        self._fields = Fields.from_names(names)
        if not self._fields.known:
            self._untold[names[2] if names[-1] == "Command" and len(names) > _PROCESS else names[0]] = None
        self._readings.lost(number, "", line, LineKind.HEADER)
        start = None if cells[0] == "#" else self._since_midnight(cells)
        if start is not None:
            # the time the first row counts from: midnight may lie between
            self._clock.at(start, self._fields.names)

    @staticmethod
    def _since_midnight(cells: list[str]) -> int | None:
        return parse_time_of_day(cells[0], cells[1] if _times(cells) > 1 else "")

    def _row(self, number: int, line: str, cells: list[str]) -> None:
        rest, fields = cells[_times(cells) :], self._fields
        if _RESTART.search(line):
            self._blocks.close()
            self._readings.lost(number, "", line, LineKind.EVENT)
        elif fields is None:
            self._readings.lost(number, BEFORE_HEADER, line)
        elif not fields.known and rest:
            self._readings.more()
        elif len(rest) != len(fields.names) and not (fields.names[-1] == "Command" and len(rest) > len(fields.names)):
            self._readings.lost(number, WRONG_CELLS, line)
        elif (stamp := self._stamp(cells, fields)) is None:
            self._readings.lost(number, NO_TIME, line)
        else:
            self._take(fields, stamp, number, rest, line)

    def _stamp(self, cells: list[str], fields: Fields) -> int | None:
        """Return the time of a row, None where it has none or one of another kind than the rows before."""
        epoch = bool(_EPOCH.fullmatch(cells[0]))
        if self._epoch is None:
            self._epoch, self.zone = epoch, "UTC" if epoch else None
        if epoch != self._epoch:
            return None
        if epoch:
            return int(cells[0]) * 1_000_000
        since_midnight = self._since_midnight(cells)
        return None if since_midnight is None else self._clock.at(since_midnight, fields.names)


class MpstatText(SysstatText):
    """The table of `mpstat`: a line for all cores and, with `-P ALL`, one for each."""

    name: ClassVar[str] = "mpstat"

    @staticmethod
    def identify(lines: list[str]) -> bool:
        """Return whether any of the first lines is the heading of `mpstat`: its `%irq` stands before `%steal`."""
        found = (headings(line) for line in lines)
        return any(names and {"CPU", "%irq", "%idle"} <= {*names[:6], names[-1]} for names in found)


class Pidstat(SysstatText):
    """Tables of `pidstat`, one after the other or, with `-h`, all on a line."""

    name: ClassVar[str] = "pidstat"

    @staticmethod
    def identify(lines: list[str]) -> bool:
        """Return whether any of the first lines is a heading of `pidstat`."""
        found = (headings(line) for line in lines)
        return any(names and {"PID", "TGID"} & set(names) and names[-1] == "Command" for names in found)


class SarText(SysstatText):
    """Tables of `sar`: every table for the whole time, then the next one, or all of them a time."""

    name: ClassVar[str] = "sar"
    held_back = sys.maxsize

    @staticmethod
    def identify(lines: list[str]) -> bool:
        """Return whether any of the first lines is a heading of `sar`."""
        return any(
            "PID" not in names and set(names) & _SAR and "%irq" not in names[:6]
            for line in lines
            if (names := headings(line))
        )

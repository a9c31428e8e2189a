"""The tables `sar`, `mpstat` and `pidstat` print: a banner with the date, headings, and rows that begin with a time."""

import re
from collections.abc import Iterable, Iterator

from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.delimited.row_sections import LineKind
from gpureport.importers.logs.host.day_clock import DayClock, find_dates, parse_time_of_day
from gpureport.importers.logs.host.host_rows import HostRows
from gpureport.importers.logs.host.printed_numbers import parse_number
from gpureport.importers.logs.host.sysstat.sysstat_fields import Fields, MalformedError
from gpureport.importers.logs.host.text_lines import number_lines
from gpureport.importers.logs.host.tick_totals import TickTotalsBuilder
from gpureport.importers.protocol.reject_reasons import BEFORE_HEADER, CUT_LAST_LINE, NO_TIME, WRONG_CELLS
from gpureport.importers.text.text_log import Chunk

_EPOCH = re.compile(r"[1-4]\d{9}", re.ASCII)
_PROCESS = 2
"""Columns that say which process a row is about."""
_RESTART = re.compile(r"RESTART")


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


class SysstatText:
    """Reads a log of such tables.

    Attributes:
        zone: UTC where its times are seconds since 1970, None where they are local.
    """

    def __init__(self, around: tuple[int, int] | None, *, in_turn: bool) -> None:
        """Start without a date.

        Args:
            around: first and last local time of the log this one lies beside.
            in_turn: whether all tables of a time come before those of the next one; else rows are held to the end.
        """
        self.zone: str | None = None
        self._in_turn = in_turn
        self._clock = DayClock(around)
        self._readings = HostRows()
        self._blocks = TickTotalsBuilder(self._readings)
        self._fields: Fields | None = None
        self._epoch: bool | None = None
        self._untold: dict[str, None] = {}

    def chunks(self, log: Iterable[Piece]) -> Iterator[Chunk]:
        """Yield what the log holds."""
        for piece in log:
            for number, line, cut in number_lines(piece):
                self._line(number, line, cut=cut)
            yield self._readings.chunk(keep=1) if self._in_turn else self._readings.counted()
        self._blocks.end()
        self._readings.note_unused_tables(self._untold)
        if self._clock.note:
            self._readings.notes[self._clock.note] = None
        yield self._readings.chunk()

    def _line(self, number: int, line: str, *, cut: bool) -> None:
        cells = line.split()
        names = headings(line) if cells else None
        if not cells:
            self._blocks.close()
        elif cut and names is None:
            self._readings.lost(number, CUT_LAST_LINE, line)
        elif (date := banner(line)) is not None:
            self._blocks.close()
            self._clock.date(date)
            self._fields = None
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

    def _take(self, fields: Fields, stamp: int, number: int, rest: list[str], line: str) -> None:
        block = self._blocks.at(fields.names, stamp, number)
        try:
            fields.take(rest, block)
        except MalformedError as error:
            block.lines -= 1
            self._readings.lost(number, str(error), line)

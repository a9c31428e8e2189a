"""Reads what `sadf -d` prints: semicolons, a heading a table, and stamps in UTC unless asked for otherwise."""

import re
import sys
from typing import ClassVar

from gpureport.importers.delimited.row_sections import LineKind
from gpureport.importers.logs.host.sysstat.sysstat_fields import Fields
from gpureport.importers.logs.host.sysstat.sysstat_text import SysstatTables
from gpureport.importers.protocol.reject_reasons import (
    BEFORE_HEADER,
    CUT_LAST_LINE,
    MALFORMED,
    OTHER_MACHINE,
    WRONG_CELLS,
)
from gpureport.importers.values.timestamps import Moment, parse_timestamp

_HEADING = re.compile(r"#\s*hostname;interval;timestamp;(.+)")
_KEYS = 3
"""Cells before the values: machine, interval, stamp."""


class SadfCsv(SysstatTables):
    """Tables of `sadf -d`."""

    name: ClassVar[str] = "sadf -d"
    held_back = sys.maxsize
    _machine: str | None = None
    _stated: bool | None = None
    _text = ""
    _stamp: Moment | None = None

    @staticmethod
    def identify(lines: list[str]) -> bool:
        """Return whether any of the first lines is a heading of `sadf -d`."""
        return any(_HEADING.match(line) for line in lines)

    def _line(self, number: int, line: str, *, cut: bool) -> None:
        heading = _HEADING.match(line)
        cells = line.split(";")
        if cut and heading is None:
            self._readings.lost(number, CUT_LAST_LINE, line)
        elif heading is not None:
            self._blocks.close()
            # with -h, groups that recur are marked
            self._fields = Fields.from_names([name.removesuffix("[...]") for name in heading[1].split(";")])
            if not self._fields.known:
                self._untold[self._fields.names[0]] = None
            self._readings.lost(number, "", line, LineKind.HEADER)
        elif len(cells) > _KEYS and cells[1] == "-1":
            # a restart of the machine, or a comment
            self._blocks.close()
            self._readings.lost(number, "", line, LineKind.EVENT)
        else:
            self._row(number, line, cells)

    def _row(self, number: int, line: str, cells: list[str]) -> None:
        fields = self._fields
        if fields is None:
            self._readings.lost(number, BEFORE_HEADER, line)
        elif not fields.known and len(cells) > _KEYS:
            self._readings.more()
        elif len(cells) != len(fields.names) + _KEYS:
            self._readings.lost(number, WRONG_CELLS, line)
        elif (self._machine or cells[0]) != cells[0]:
            self._readings.lost(number, OTHER_MACHINE, line)
        elif (at := self._at(cells[2])) is None:
            self._readings.lost(number, f"{MALFORMED} timestamp", line)
        else:
            self._machine = cells[0]
            self._take(fields, at, number, cells[_KEYS:], line)

    def _at(self, text: str) -> int | None:
        """Return the time a stamp states, None where it is none or of another kind than those before."""
        if text != self._text:
            self._text, self._stamp = text, parse_timestamp(text)
        if self._stamp is None:
            return None
        if self._stated is None:
            self._stated, self.zone = self._stamp.utc, "UTC" if self._stamp.utc else None
        return self._stamp.micros if self._stamp.utc == self._stated else None

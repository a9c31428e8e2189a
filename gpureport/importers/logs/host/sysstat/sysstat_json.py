"""The JSON that `sadf -j` and `mpstat -o JSON` share: one object a time, its activities by name."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.delimited.row_sections import LineKind
from gpureport.importers.logs.host.host_rows import HostRows
from gpureport.importers.logs.host.sysstat.json_objects import Found, Objects
from gpureport.importers.logs.host.sysstat.sysstat_fields import (
    MalformedError,
    take_cpu,
    take_disk,
    take_memory,
    take_one_disk,
)
from gpureport.importers.logs.host.tick_totals import TickTotals, TickTotalsBuilder
from gpureport.importers.protocol.reject_reasons import CUT_LAST_LINE, MALFORMED, NO_TIME
from gpureport.importers.text.text_log import Chunk

_KIB, _SECTOR = 1024, 512
_MOST = 2.0**51
"""KiB beyond any machine's."""
_HELD = 20_000
"""Rows, and lines that are none, above which they are handed on."""
_KEY = re.compile(r'"[^"]+"\s*:')


class SysstatJson:
    """Reads such a log, given what places an object in time."""

    def __init__(self, at: Callable[[object], int | None], between: Callable[[str], None]) -> None:
        """Start.

        Args:
            at: returns the moment of an object's `timestamp`, None where it has none.
            between: sees the text that stands between objects.
        """
        self._at = at
        self._see = between
        self.readings = HostRows()
        self._blocks = TickTotalsBuilder(self.readings)

    def chunks(self, log: Iterable[Piece]) -> Iterator[Chunk]:
        """Yield what the log holds, but for the last row; the caller takes the rest when it has its notes."""
        for piece_found in Objects().parse(log):
            if piece_found.content is None:
                self._between(piece_found)
            else:
                self._object(piece_found, piece_found.content)
            if self.readings.pending > _HELD:
                yield self.readings.chunk(keep=1)

    def _between(self, found: Found) -> None:
        if not found.cut:
            self._see(found.text)
        for place, line in enumerate(found.text.split("\n")):
            if not line.strip(" \t\r,"):
                continue
            kind = LineKind.REJECTED if found.cut else _kind(line)
            self.readings.lost(found.number + place, CUT_LAST_LINE if found.cut else "", line, kind)

    def _object(self, found: Found, content: Mapping[str, Any]) -> None:
        stamp = self._at(content.get("timestamp"))
        if stamp is None:
            self._rejected(found, NO_TIME)
            return
        block = self._blocks.at("", stamp, found.number)
        block.lines += found.lines - 1
        try:
            take(content, block)
        except MalformedError as error:
            block.lines -= found.lines
            self._rejected(found, str(error))
        self._blocks.close()

    def _rejected(self, found: Found, reason: str) -> None:
        for place in range(found.lines):
            self.readings.lost(found.number + place, reason, "")


def _kind(line: str) -> LineKind:
    if '"boot"' in line or '"com"' in line:
        return LineKind.EVENT
    return LineKind.HEADER if _KEY.search(line) else LineKind.NOISE


def take(content: Mapping[str, Any], block: TickTotals) -> None:
    """Take what an object says of its time.

    Raises:
        MalformedError: when an activity does not hold what it should.
    """
    for name in ("cpu-load", "cpu-load-all"):
        for core in _list(content, name):
            waiting = _number(core, "iowait") / 100 if "iowait" in core else None
            take_cpu(block, str(core.get("cpu")), _number(core, "idle") / 100, waiting)
    if "memfree" in (memory := _part(content, "memory")):
        parts = {name: _number(memory, name) * _KIB for name in ("memfree", "memused", "buffers", "cached")}
        slab = _number(memory, "slab") * _KIB if "slab" in memory else None
        take_memory(block, parts, _number(memory, "memused-percent") / 100, slab)
    if io := _part(content, "io"):
        read, written = _part(io, "io-reads"), _part(io, "io-writes")
        take_disk(block, _number(read, "bread") * _SECTOR, _number(written, "bwrtn") * _SECTOR)
    if queue := _part(content, "queue"):
        block.values["host_load_average"] = _number(queue, "ldavg-1")
    for disk in _list(content, "disk"):
        kib = "rkB" in disk
        moved = [_number(disk, name) for name in (("rkB", "wkB") if kib else ("rd_sec", "wr_sec"))]
        unit = _KIB if kib else _SECTOR
        take_one_disk(block, str(disk.get("disk-device")), moved[0] * unit, moved[1] * unit)


def _part(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = content.get(name, {})
    if not isinstance(part, dict):
        raise MalformedError(f"{MALFORMED} {name}")
    return part


def _list(content: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    parts = content.get(name, [])
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise MalformedError(f"{MALFORMED} {name}")
    return parts


def _number(part: Mapping[str, Any], name: str) -> float:
    value = part.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MOST:
        raise MalformedError(f"{MALFORMED} {name}")
    return float(value)

"""The JSON that `sadf -j` and `mpstat -o JSON` share: one object a time, its activities by name."""

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.delimited.row_sections import LineKind
from gpureport.importers.logs.host.day_clock import parse_time_of_day
from gpureport.importers.logs.host.host_form import HostForm
from gpureport.importers.logs.host.sysstat.json_objects import Found, Objects
from gpureport.importers.logs.host.sysstat.sysstat_fields import (
    MalformedError,
    take_cpu,
    take_disk,
    take_memory,
    take_one_disk,
)
from gpureport.importers.logs.host.tick_totals import TickTotals
from gpureport.importers.protocol.reject_reasons import CUT_LAST_LINE, MALFORMED, NO_TIME
from gpureport.importers.text.text_log import Chunk
from gpureport.importers.values.timestamps import parse_timestamp

_KIB, _SECTOR = 1024, 512
_MOST = 2.0**51
"""KiB beyond any machine's."""
_HELD = 20_000
"""Rows, and lines that are none, above which they are handed on."""
_DATE = re.compile(r'"date"\s*:\s*"([^"]*)"')
_KEY = re.compile(r'"[^"]+"\s*:')


class SysstatJson(HostForm):
    """Reads such a log."""

    def chunks(self, log: Iterable[Piece]) -> Iterator[Chunk]:
        """Yield what the log holds."""
        for found in Objects().parse(log):
            if found.content is None:
                self._between(found)
            else:
                self._object(found, found.content)
            if self._readings.pending > _HELD:
                yield self._readings.chunk(keep=1)
        self._end()
        yield self._readings.chunk()

    @abstractmethod
    def _at(self, said: object) -> int | None:
        """Return the time that an object states, in microseconds; None where it states none."""

    def _see(self, text: str) -> None:
        """Take the text between two objects; only that of `mpstat` says when."""

    def _between(self, found: Found) -> None:
        if not found.cut:
            self._see(found.text)
        for place, line in enumerate(found.text.split("\n")):
            if not line.strip(" \t\r,"):
                continue
            kind = LineKind.REJECTED if found.cut else _kind(line)
            self._readings.lost(found.number + place, CUT_LAST_LINE if found.cut else "", line, kind)

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
            self._readings.lost(found.number + place, reason, "")


class SadfJson(SysstatJson):
    """JSON of `sadf -j`; its stamps say whether they are UTC."""

    name: ClassVar[str] = "sadf -j"
    _stated: bool | None = None

    @staticmethod
    def identify(lines: list[str]) -> bool:
        """Return whether the first lines are those of `sadf -j`."""
        text = " ".join(lines)
        return '"sysstat"' in text and '"file-date"' in text

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


class MpstatJson(SysstatJson):
    """JSON of `mpstat`: times of day below a date."""

    name: ClassVar[str] = "mpstat -o JSON"

    @staticmethod
    def identify(lines: list[str]) -> bool:
        """Return whether the first lines are those of `mpstat -o JSON`."""
        text = " ".join(lines)
        return '"sysstat"' in text and '"date"' in text and '"file-date"' not in text

    def _see(self, text: str) -> None:
        if match := _DATE.search(text):
            self._clock.date(match[1])

    def _at(self, said: object) -> int | None:
        time, _, half = said.partition(" ") if isinstance(said, str) else ("", "", "")
        since_midnight = parse_time_of_day(time, half.strip())
        return None if since_midnight is None else self._clock.at(since_midnight)


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

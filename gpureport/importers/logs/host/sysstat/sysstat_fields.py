"""Columns of sysstat's tables, by the names `sar`, `sadf`, `mpstat` and `pidstat` share, to metrics."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gpureport.importers.logs.host.printed_numbers import parse_number, parse_percent, parse_size
from gpureport.importers.logs.host.tick_totals import CORES, DISKS, PROCESSES, TickTotals
from gpureport.importers.protocol.reject_reasons import MALFORMED

_ALL = {"all", "-1"}
_SECTOR = 512
"""Bytes of a block in `sar -b` and of a sector in older `sar -d`."""
_STACKED = re.compile(r"(?:dm-|md|loop|ram|zram|sr)\d|dev(?:1|7|9|11)-\d")
"""Disks that are made of others, or of memory."""
_ROUNDING = 0.006
"""A percentage of two decimals is off by half of the last one."""
_PARTS = ("%usr", "%system", "%guest")
_DIVIDED = 1.5
"""Parts beyond this multiple of the whole say that it was divided by two cores or more (pragmatic)."""


class MalformedError(ValueError):
    """A cell holds no value of its column; the text is the reason the line is rejected for."""


@dataclass(frozen=True, slots=True)
class Fields:
    """The columns of one table.

    Attributes:
        names: their names.
        readers: what reads their metrics.
    """

    names: tuple[str, ...]
    readers: "tuple[Callable[[_Row, TickTotals], None], ...]" = field(compare=False)

    @property
    def known(self) -> bool:
        """Whether any of them is a metric."""
        return bool(self.readers)

    @classmethod
    def from_names(cls, names: Sequence[str]) -> "Fields":
        """Return the columns of these names."""
        here = set(names)
        return cls(tuple(names), tuple(reader for needed, reader in _READERS if needed <= here))

    def take(self, cells: Sequence[str], block: TickTotals) -> None:
        """Take a row of the table.

        Raises:
            MalformedError: when a cell that is needed holds no value.
        """
        row = _Row(dict(zip(self.names, cells, strict=False)))
        for reader in self.readers:
            reader(row, block)


@dataclass(frozen=True, slots=True)
class _Row:
    """A row by the names of its columns."""

    cells: dict[str, str]

    def figure(self, name: str) -> float:
        return self._read(name, parse_number(self.cells[name]))

    def ratio(self, name: str) -> float:
        return self._read(name, parse_percent(self.cells[name]))

    def bytes(self, name: str) -> float:
        return self._read(name, parse_size(self.cells[name]))

    @staticmethod
    def _read(name: str, value: float | None) -> float:
        if value is None or value < 0:
            raise MalformedError(f"{MALFORMED} {name}")
        return value


def _cpu(row: _Row, block: TickTotals) -> None:
    waiting = row.ratio("%iowait") if "%iowait" in row.cells else None
    take_cpu(block, row.cells["CPU"], row.ratio("%idle"), waiting)


def take_cpu(block: TickTotals, core: str, idle: float, waiting: float | None) -> None:
    """Take a line of one core, or of `all`; a core that waits for a disk is not busy, one that is stolen from is.

    Raises:
        MalformedError: when the shares are none.
    """
    busy = 1 - idle - (waiting or 0)
    if busy < -_ROUNDING or (core not in _ALL and not core.isdigit()):
        raise MalformedError(f"{MALFORMED} %idle")
    busy = max(busy, 0.0)
    if core in _ALL:
        block.values["cpu_utilization_ratio"] = busy
        if waiting is not None:
            block.values["cpu_iowait_ratio"] = waiting
    else:
        block.count(CORES)
        block.greatest("cpu_busiest_core_ratio", busy, CORES)


def _memory(row: _Row, block: TickTotals) -> None:
    parts = {name: row.bytes(f"kb{name}") for name in ("memfree", "memused", "buffers", "cached")}
    slab = row.bytes("kbslab") if "kbslab" in row.cells else None
    take_memory(block, parts, row.ratio("%memused"), slab)


def take_memory(block: TickTotals, parts: dict[str, float], used_ratio: float, slab: float | None) -> None:
    """Take what is in use, in bytes; older sysstat counts the page cache to it: there, used and free make the total.

    Args:
        block: what is said of the time.
        parts: `memfree`, `memused`, `buffers`, `cached`.
        used_ratio: share in use, as printed.
        slab: memory the kernel keeps for its own, None when not printed.
    """
    used, cache = parts["memused"], parts["buffers"] + parts["cached"]
    total = used + parts["memfree"]
    if total > 0 and abs(used / total - used_ratio) <= _ROUNDING / 100 and cache > total / 100:
        used = max(used - cache, 0.0)
    elif slab is not None:
        total += cache + slab
    else:
        block.values["host_memory_used_bytes"] = used
        block.values["host_memory_used_ratio"] = used_ratio
        return
    block.values |= {"host_memory_used_bytes": used, "host_memory_total_bytes": total}
    block.values["host_memory_used_ratio"] = used / total if total else 0.0


def _blocks(row: _Row, block: TickTotals) -> None:
    take_disk(block, row.figure("bread/s") * _SECTOR, row.figure("bwrtn/s") * _SECTOR)


def take_disk(block: TickTotals, read: float, written: float) -> None:
    """Take what all disks together moved in a second, in bytes."""
    block.values["host_disk_read_bytes_per_second"] = read
    block.values["host_disk_write_bytes_per_second"] = written


def _disk(row: _Row, block: TickTotals) -> None:
    take_one_disk(block, row.cells["DEV"], row.bytes("rkB/s"), row.bytes("wkB/s"))


def _old_disk(row: _Row, block: TickTotals) -> None:
    take_one_disk(block, row.cells["DEV"], row.figure("rd_sec/s") * _SECTOR, row.figure("wr_sec/s") * _SECTOR)


def take_one_disk(block: TickTotals, name: str, read: float, written: float) -> None:
    """Take what one disk moved in a second, in bytes; what is made of other disks is not counted again."""
    block.count(DISKS)
    if not _STACKED.match(name):
        block.added("host_disk_read_bytes_per_second", read, DISKS)
        block.added("host_disk_write_bytes_per_second", written, DISKS)


def _load(row: _Row, block: TickTotals) -> None:
    block.values["host_load_average"] = row.figure("ldavg-1")


def _process_cpu(row: _Row, block: TickTotals) -> None:
    if row.cells.get("TGID") != "-":
        block.count(PROCESSES)
        block.greatest("process_cpu_cores", _cores(row), PROCESSES)


def _cores(row: _Row) -> float:
    """Return how many cores a process kept busy; `pidstat -I` divides the whole by those of the machine, no part."""
    whole = row.ratio("%CPU")
    parts = sum(row.ratio(name) for name in _PARTS if name in row.cells)
    return parts if parts > _DIVIDED * whole and parts > whole + _ROUNDING else whole


def _process_memory(row: _Row, block: TickTotals) -> None:
    if row.cells.get("TGID") != "-":
        if "%CPU" not in row.cells:
            block.count(PROCESSES)
        block.greatest("process_memory_used_bytes", row.bytes("RSS"), PROCESSES)


_READERS = (
    (frozenset({"CPU", "%idle"}), _cpu),
    (frozenset({"kbmemfree", "kbmemused", "%memused", "kbbuffers", "kbcached"}), _memory),
    (frozenset({"bread/s", "bwrtn/s"}), _blocks),
    (frozenset({"DEV", "rkB/s", "wkB/s"}), _disk),
    (frozenset({"DEV", "rd_sec/s", "wr_sec/s"}), _old_disk),
    (frozenset({"ldavg-1"}), _load),
    (frozenset({"Command", "%CPU"}), _process_cpu),
    (frozenset({"Command", "RSS"}), _process_memory),
)
"""Columns that a table must have for a metric to be read from it."""

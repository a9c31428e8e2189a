"""Totals of a machine from lines of cores, disks and processes at one time."""

from collections.abc import Hashable
from dataclasses import dataclass, field

from gpureport.importers.logs.host.host_rows import HostRows, TableReading

CORES, DISKS, PROCESSES = "cores", "disks", "processes"
"""What a table can list at one time."""
CUT_SHORT = "the log ends among its lines"
SELECTED = "no line of all cores beside them, so some may be missing"
_ALL_CORES = "cpu_utilization_ratio"
"""What the line of all cores says."""
CORE_COUNT = "cpu_logical_cores"


@dataclass(slots=True)
class TickTotals:
    """What the lines so far say of one time.

    Attributes:
        table: the table.
        stamp: the time, in microseconds.
        number: first of the lines.
        lines: how many they are.
        values: metrics in base units that are whole with one line.
        spare: metrics that count where nothing better is known.
        listed: metrics made from all lines of a list, by what is listed.
        counts: lines of each list.
    """

    table: Hashable
    stamp: int
    number: int
    lines: int = 0
    values: dict[str, float] = field(default_factory=dict)
    spare: dict[str, float] = field(default_factory=dict)
    listed: dict[str, dict[str, float]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def greatest(self, name: str, value: float, of: str) -> None:
        """Take a value of which the greatest in a list counts."""
        kept = self.listed.setdefault(of, {})
        kept[name] = max(kept.get(name, value), value)

    def added(self, name: str, value: float, of: str) -> None:
        """Take a value that is added up over a list."""
        kept = self.listed.setdefault(of, {})
        kept[name] = kept.get(name, 0.0) + value

    def count(self, of: str) -> None:
        """Count a line of a list."""
        self.counts[of] = self.counts.get(of, 0) + 1


@dataclass(slots=True)
class TickTotalsBuilder:
    """Blocks one after the other; each becomes part of the readings once it is whole."""

    readings: HostRows
    _open: TickTotals | None = None
    _whole: dict[tuple[Hashable, str], tuple[int, int]] = field(default_factory=dict)

    def at(self, table: Hashable, stamp: int, number: int) -> TickTotals:
        """Return the block of a table at a time, begun where it is not the open one."""
        if self._open is None or (self._open.table, self._open.stamp) != (table, stamp):
            self.close()
            self._open = TickTotals(table, stamp, number)
        self._open.lines += 1
        return self._open

    def close(self) -> None:
        """Take the open block for whole."""
        if self._open is None:
            return
        for of, count in self._open.counts.items():
            least, most = self._whole.get((self._open.table, of), (count, count))
            self._whole[self._open.table, of] = min(least, count), max(most, count)
        self._put(self._open, set(self._open.listed))
        self._open = None

    def end(self) -> None:
        """Take the open block, at which the log ends: a list may lack lines where others had more, or any number."""
        if self._open is None:
            return
        whole = set()
        for of, count in self._open.counts.items():
            least, most = self._whole.get((self._open.table, of), (0, 0))
            if least == most == count:
                whole.add(of)
            else:
                self.readings.lacks(of, CUT_SHORT)
        self._put(self._open, whole)
        self._open = None

    def _put(self, block: TickTotals, whole: set[str]) -> None:
        if not block.lines:
            # every line of it was rejected
            return
        values, spare = dict(block.values), dict(block.spare)
        if CORES in whole and _ALL_CORES not in values:
            # of the cores that -P names nobody knows whether the busiest one is among them
            whole = whole - {CORES}
            self.readings.lacks(CORES, SELECTED)
        if CORES in whole:
            values[CORE_COUNT] = float(block.counts[CORES])
        for of in whole:
            # what a table of all disks says is better than a sum over those listed
            (spare if of == DISKS else values).update(block.listed.get(of, {}))
        self.readings.put(
            TableReading(
                table=block.table,
                stamp=block.stamp,
                number=block.number,
                lines=block.lines,
                values=values,
                spare=spare,
            )
        )

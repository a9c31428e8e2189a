"""What the columns of sysstat, vmstat and top mean, and how the tables of a log become one row a time."""

import re
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from math import nan
from typing import Any

import numpy as np

from gpureport.importers.account import Account
from gpureport.importers.clock import DAY
from gpureport.importers.columns import HOST_ROW, Rows, Values
from gpureport.importers.protocol.reject_reasons import MALFORMED, NO_TIME, WRONG_CELLS

_KIB, _SECTOR = 1024, 512
"""Bytes of a block in `sar -b` and of a sector in older `sar -d`."""
LARGEST = 2.0**62
"""Bytes beyond any machine's, which no column holds."""
LOAD, WAITING, BUSIEST = "cpu_utilization_ratio", "cpu_iowait_ratio", "cpu_busiest_core_ratio"
CORE_COUNT, _USED, _TOTAL = "cpu_logical_cores", "host_memory_used_bytes", "host_memory_total_bytes"
_SHARE, _HELD, _RUNNING = "host_memory_used_ratio", "process_memory_used_bytes", "process_cpu_cores"
_READ, _WRITTEN = "host_disk_read_bytes_per_second", "host_disk_write_bytes_per_second"
_SUMS = {"disks read": _READ, "disks written": _WRITTEN}
"""Sums over the disks of a list; what a table of all disks says is better."""
_LISTS = {"cores": (BUSIEST,), "disks": tuple(_SUMS), "processes": (_RUNNING, _HELD)}
"""What is known only with the last line of a list; its name stands for how many lines there are."""
_FIGURE = re.compile(r"(-?\d{1,18}(?:[.,]\d{1,18})?)([%kKmMgGtT]?)", re.ASCII)
_STACKED = re.compile(r"(?:dm-|md|loop|ram|zram|sr)\d|dev(?:1|7|9|11)-\d")
"""Disks that are made of others, or of memory."""
_ROUNDING = 0.03
"""Shares in whole per cent add up to so much more than the whole."""
_EXACT = 6e-5
"""A percentage of two decimals is off by half of the last one."""
_DIVIDED = 1.5
"""Parts of a process beyond this multiple of the whole say that it was divided by two cores or more (pragmatic)."""
_FALL = 20 * 60_000_000
"""A clock that falls by more was set back, as when summer time ends; by less, lines may have changed places."""
_LISTED = 8
"""Tables without a metric that are named."""

Around = tuple[int, int] | None
"""First and last local time of the log that one lies beside, which dates a log without dates."""
Cells = Mapping[str, Any]
"""A row by the names of its columns: texts, or the numbers of JSON."""
Reader = Callable[[Cells, dict[str, float]], None]
"""Adds what a row says to what others say of its time."""
Moment = tuple[int, bool] | None
"""A time in microseconds, and whether it is UTC."""


def parse_number(text: str) -> float | None:
    """Return a number with a decimal point or comma, None where the text is none; a sign of per cent may follow."""
    match = _FIGURE.fullmatch(text)
    return float(match[1].replace(",", ".")) if match and match[2] in {"", "%"} else None


def parse_size(text: str) -> float | None:
    """Return an amount in bytes, None where the text is none; without a unit it counts KiB."""
    match = _FIGURE.fullmatch(text)
    if match is None or match[2] == "%":
        return None
    value = float(match[1].replace(",", ".")) * float(_KIB ** max(" kmgt".find(match[2].lower()), 1))
    return value if value < LARGEST else None


def _figure(row: Cells, name: str, unit: int = 1) -> float:
    """Return the figure in a cell.

    Raises:
        ValueError: when it holds no value of its column; the text is the reason the line is rejected for.
    """
    value = row[name]
    if isinstance(value, str):
        value = parse_size(value) if unit == _KIB else parse_number(value)
        unit = 1 if unit == _KIB else unit
    if type(value) not in {int, float} or not 0 <= value < LARGEST:
        raise ValueError(f"{MALFORMED} {name}")
    return float(value * unit)


def _cpu(row: Cells, values: dict[str, float]) -> None:
    """Take the load of one core, or of all; a core that waits for a disk is not busy, one that is stolen from is."""
    waiting = _figure(row, "%iowait") / 100 if "%iowait" in row else None
    busy, core = 1 - _figure(row, "%idle") / 100 - (waiting or 0), str(row["CPU"])
    if busy < -_ROUNDING or not (core in {"all", "-1"} or core.isdigit()):
        raise ValueError(f"{MALFORMED} %idle")
    busy = max(busy, 0.0)
    if core.isdigit():
        values[BUSIEST] = max(busy, values.get(BUSIEST, 0.0))
        values["cores"] = values.get("cores", 0) + 1
    else:
        values |= {LOAD: busy} | ({} if waiting is None else {WAITING: waiting})


def _memory(row: Cells, values: dict[str, float]) -> None:
    """Take what is in use; older sysstat counts the page cache to it: there, used and free make the total."""
    free, used, *cached = (_figure(row, f"kb{name}", _KIB) for name in ("memfree", "memused", "buffers", "cached"))
    share, cache, total = _figure(row, "%memused") / 100, sum(cached), used + free
    if total > 0 and abs(used / total - share) <= _EXACT and cache > total / 100:
        used = max(used - cache, 0.0)
    elif "kbslab" in row:
        total += cache + _figure(row, "kbslab", _KIB)
    else:
        values |= {_USED: used, _SHARE: share}
        return
    values |= {_USED: used, _TOTAL: total, _SHARE: used / total if total else 0.0}


def _whole_memory(row: Cells, values: dict[str, float]) -> None:
    total = _figure(row, "total")
    values[_TOTAL] = total
    if "used" in row and total:
        values |= {_USED: _figure(row, "used"), _SHARE: _figure(row, "used") / total}


def _blocks(row: Cells, values: dict[str, float]) -> None:
    names, unit = (("bi", "bo"), _KIB) if "bi" in row else (("bread/s", "bwrtn/s"), _SECTOR)
    values |= {_READ: _figure(row, names[0], unit), _WRITTEN: _figure(row, names[1], unit)}


def _disk(row: Cells, values: dict[str, float]) -> None:
    """Take what one disk moved; what is made of other disks is not counted again."""
    names, unit = (("rkB/s", "wkB/s"), _KIB) if "rkB/s" in row else (("rd_sec/s", "wr_sec/s"), _SECTOR)
    moved = [_figure(row, name, unit) for name in names]
    values["disks"] = values.get("disks", 0) + 1
    if not _STACKED.match(str(row["DEV"])):
        for name, amount in zip(_SUMS, moved, strict=True):
            values[name] = values.get(name, 0.0) + amount


def _process(row: Cells, values: dict[str, float]) -> None:
    """Take the cores and the memory of a process; `pidstat -I` divides the whole by all cores, but no part of it."""
    if row.get("TGID") == "-":
        return
    values["processes"] = values.get("processes", 0) + 1
    if "%CPU" in row:
        whole = _figure(row, "%CPU") / 100
        parts = sum(_figure(row, name) / 100 for name in ("%usr", "%system", "%guest") if name in row)
        divided = parts > _DIVIDED * whole and parts > whole + _EXACT * 100
        values[_RUNNING] = max(parts if divided else whole, values.get(_RUNNING, 0.0))
    if "RSS" in row:
        values[_HELD] = max(_figure(row, "RSS", _KIB), values.get(_HELD, 0.0))


_READERS: dict[str, Reader] = {
    "CPU %idle": _cpu,
    "kbmemfree kbmemused %memused kbbuffers kbcached": _memory,
    "bread/s bwrtn/s": _blocks,
    "bi bo": _blocks,
    "DEV rkB/s wkB/s": _disk,
    "DEV rd_sec/s wr_sec/s": _disk,
    "Command %CPU": _process,
    "Command RSS": _process,
    "ldavg-1": lambda row, values: values.update({"host_load_average": _figure(row, "ldavg-1")}),
    "total": _whole_memory,
    "cores": lambda row, values: values.update({CORE_COUNT: _figure(row, "cores")}),
    "watts": lambda row, values: values.update({"cpu_power_watts": _figure(row, "watts")}),
}
"""Columns that a table must have, and what reads them; the last three names are those of `forms`."""


@lru_cache(1024)
def _find_readers(names: tuple[str, ...]) -> tuple[Reader, ...]:
    """Return what reads the metrics of a table with these columns; nothing where it has none."""
    here = set(names)
    return tuple(dict.fromkeys(reader for needed, reader in _READERS.items() if here.issuperset(needed.split())))


class Machine:
    """The rows of a machine: each table of a log goes through all times once, in order.

    Where the clock of a table falls, as in the night that summer time ends, its times are rows of another pass.
    """

    def __init__(self, account: Account) -> None:
        self._account = account
        self._utc: bool | None = None
        self._open: tuple[Hashable, int, int] | None = None
        """Table, time and first line of the rows that are being taken, and what they say."""
        self._values: dict[str, float] = {}
        self._lengths: dict[Hashable, set[float]] = {}
        self._passes: dict[Hashable, tuple[int, int]] = {}
        """Last time of each table, and how often its clock fell so far."""
        self._places: dict[tuple[int, int], int] = {}
        self._numbers = array("q")
        self._columns: dict[str, array[float]] = {}
        self._lines = 0
        self._passed: dict[str, None] = {}

    def take_table(self, number: int, line: str, time: Moment, names: tuple[str, ...], cells: Sequence[str]) -> None:
        """Take a line of a table by the names of its columns."""
        of_process = names[-1] == "Command"
        if cells and not _find_readers(names):
            self._lines += 1
            # two columns name the process
            self._passed[names[2 * of_process] if len(names) > 2 else names[0]] = None  # noqa: PLR2004 - as said
        elif len(cells) != len(names) and not (of_process and len(cells) > len(names)):
            self._account.reject(WRONG_CELLS if time else NO_TIME, number, line)
        else:
            self.take(number, line, time, [dict(zip(names, cells, strict=False))], names)

    def take(self, number: int, line: str, time: Moment, rows: Iterable[Cells], table: Hashable = "") -> None:
        """Take rows that speak of one time, from a line or some: all of them, or none where one is malformed."""
        lines = line.count("\n") + 1
        if time is None or time[1] != (time[1] if self._utc is None else self._utc):
            self._account.reject(NO_TIME, number, line, rows=lines)
            return
        goes_on = self._open is not None and self._open[:2] == (table, time[0])
        values = dict(self._values) if goes_on else {}
        try:
            for row in rows:
                for reader in _find_readers(tuple(row)):
                    reader(row, values)
        except ValueError as error:
            self._account.reject(str(error), number, line, rows=lines)
            return
        if not goes_on:
            self.close()
            self._open = table, time[0], number
        self._utc, self._values = time[1], values
        self._lines += lines

    def close(self, *, cut: bool = False) -> None:
        """End the lines of a table at a time; a list that the log ends in says nothing unless it is as long as all."""
        if self._open is None:
            return
        (table, at, number), values = self._open, self._values
        self._open, self._values = None, {}
        for kind in _LISTS.keys() & values.keys():
            length = values.pop(kind)
            lengths = self._lengths.setdefault((table, kind), set())
            if cut and lengths != {length}:
                reason = "the log ends among its lines"
            elif kind == "cores" and LOAD not in values:
                # of the cores that -P names nobody knows whether the busiest one is among them
                reason = "no line of all cores beside them, so some may be missing"
            else:
                reason = ""
                values |= {CORE_COUNT: length} if kind == "cores" else {}
            if reason:
                self._account.absent[kind, reason] += 1
                values = {name: value for name, value in values.items() if name not in _LISTS[kind]}
            lengths.add(length)
        last, passes = self._passes.get(table, (at, 0))
        passes += at < last - _FALL
        self._passes[table] = at, passes
        if (passes, at) not in self._places:
            self._numbers.append(number)
        place = self._places.setdefault((passes, at), len(self._places))
        for name, value in values.items():
            column = self._columns.setdefault(name, array("d"))
            column.extend([nan] * (place + 1 - len(column)))
            column[place] = value

    def rows(self) -> Iterator[Rows]:
        """Yield the rows, once no line is left."""
        self.close(cut=True)
        if passed := list(self._passed)[:_LISTED]:
            self._account.note(
                f"Tables that hold no metric were passed over; their columns begin with {', '.join(passed)}."
            )
        count = len(self._places)
        self._account.continued += self._lines - count
        passes, times = np.array([*self._places], dtype=np.int64).reshape(-1, 2).T
        # a table may hold times that those before it lack
        order = np.lexsort((times, passes))
        found = {name: np.append(column, [nan] * (count - len(column))) for name, column in self._columns.items()}
        for listed, name in _SUMS.items():
            if listed in found:
                spare = found.pop(listed)
                found[name] = np.where(np.isnan(known := found.get(name, spare)), spare, known)
        data: dict[str, Values] = {name: values[order] for name, values in found.items()}
        # lines that rise, each once
        numbers = np.maximum.accumulate(np.sort(self._numbers) - np.arange(count)) + np.arange(count)
        yield Rows(numbers, times[order], {HOST_ROW: np.ones(count), **data}, "UTC" if self._utc else None)


_BACK = 2 * 3_600_000_000
"""A time of day that falls by more has passed midnight."""


def find_dates(text: str) -> list[int]:
    """Return the days a date may mean, as their first moments; the more usual reading first."""
    sign = next((sign for sign in "-./" if text.count(sign) == 2), "")  # noqa: PLR2004 - year, month and day
    forms = ("%Y{0}%m{0}%d", *(("%m{0}%d{0}%Y", "%m{0}%d{0}%y") if sign == "/" else ()), "%d{0}%m{0}%Y", "%d{0}%m{0}%y")
    found = []
    for form in forms if sign else ():
        with suppress(ValueError):
            found.append(datetime.strptime(text, form.format(sign)).replace(tzinfo=UTC))
    return list(dict.fromkeys(int(day.timestamp()) * 1_000_000 for day in found if day.year >= 1970))  # noqa: PLR2004 - no earlier stamp is kept


class DayClock:
    """Turns times of day into moments: a date may stand elsewhere in the log or be missing, and midnight may pass.

    Each table of a log has a time of its own: `sar` prints one table for the whole day, then the next one.
    """

    def __init__(self, account: Account, around: Around) -> None:
        """Start without a date."""
        self._account, self._around = account, around
        self._day: int | None = None
        self._last: dict[Hashable, int] = {}

    def date(self, text: str) -> None:
        """Take the date a log states."""
        days = find_dates(text)
        near = [day for day in days if self._around and self._around[0] - DAY <= day <= self._around[1]]
        if days:
            self._day, self._last = near[0] if len(near) == 1 else days[0], {}
        if len(days) > 1 and len(near) != 1:
            self._account.note(f"The date {text} is taken for {_name(days[0])}, the month first.")

    def at(self, since_midnight: int | None, table: Hashable = None) -> Moment:
        """Return the moment of a time of day in a table, None where no date is known."""
        if since_midnight is None:
            return None
        if self._day is None and self._around is not None:
            # the day on which it is nearest to the start of the log
            began = self._around[0]
            self._day = (began - since_midnight + DAY // 2) // DAY * DAY
            placed = f"its times were placed on {_name(self._day)}, where they are nearest to the start of the log."
            self._account.note(f"It writes no date: {placed}")
        if self._day is None:
            return None
        last = self._last.get(table, self._day)
        now = last // DAY * DAY + since_midnight
        self._last[table] = now = now + DAY if now < last - _BACK else now
        return now, False


def _name(day: int) -> str:
    return datetime.fromtimestamp(day / 1e6, UTC).strftime("%Y-%m-%d")

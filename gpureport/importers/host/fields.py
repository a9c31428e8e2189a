"""What the columns of sysstat, vmstat and top mean, and how the tables of a log become one row a time."""

import re
from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from math import nan
from typing import Any

import numpy as np

from gpureport.importers.account import Account
from gpureport.importers.columns import HOST_ROW, Rows, Values
from gpureport.importers.protocol.reject_reasons import MALFORMED, NO_TIME, WRONG_CELLS

KIB, LARGEST = 1024, 2.0**62
"""Bytes beyond any machine's, which no column holds."""
CORES, DISKS, PROCESSES = "cores", "disks", "processes"
"""What a table can list at one time: the busiest core, the bytes of all disks, the largest process are kept."""
CORE_COUNT = "cpu_logical_cores"
_FIGURE = re.compile(r"(-?\d{1,18}(?:[.,]\d{1,18})?)([%kKmMgGtT]?)", re.ASCII)
_SECTOR = 512
"""Bytes of a block in `sar -b` and of a sector in older `sar -d`."""
_STACKED = re.compile(r"(?:dm-|md|loop|ram|zram|sr)\d|dev(?:1|7|9|11)-\d")
"""Disks that are made of others, or of memory."""
_ROUNDING = 0.006
"""A percentage of two decimals is off by half of the last one."""
_DIVIDED = 1.5
"""Parts of a process beyond this multiple of the whole say that it was divided by two cores or more (pragmatic)."""
_LISTED = 8
"""Tables without a metric that are named."""

Around = tuple[int, int] | None
"""First and last local time of the log that one lies beside, which dates a log without dates."""
Cells = Mapping[str, Any]
"""A row by the names of its columns: texts, or the numbers of JSON."""
Said = tuple[str, dict[str, float]]
"""What one line says: what it is one of several of, empty where it speaks of the whole machine; and metrics."""


def plain_lines(lines: Iterable[str], first: int) -> Iterator[tuple[int, str, bool]]:
    """Yield all lines: number, text without blanks at its end, and whether the log ends inside it."""
    for number, line in enumerate(lines, first):
        text = line if line.isascii() else line.encode(errors="replace").decode()
        yield number, text.replace("\0", " ").rstrip(), not line.endswith("\n")


class MalformedError(ValueError):
    """A cell holds no value of its column; the text is the reason the line is rejected for."""


def parse_number(text: str) -> float | None:
    """Return a number with a decimal point or comma, None where the text is none; a sign of per cent may follow."""
    match = _FIGURE.fullmatch(text)
    return float(match[1].replace(",", ".")) if match and match[2] in {"", "%"} else None


def parse_size(text: str) -> float | None:
    """Return an amount in bytes, None where the text is none; without a unit it counts KiB."""
    match = _FIGURE.fullmatch(text)
    if match is None or match[2] == "%":
        return None
    value = float(match[1].replace(",", ".")) * float(KIB ** max(" kmgt".find(match[2].lower()), 1))
    return value if value < LARGEST else None


def _read(cells: Cells, name: str, parse: Callable[[str], float | None] = parse_number) -> float:
    value = cells[name]
    if isinstance(value, str):
        value = parse(value)
    elif parse is parse_size and type(value) in {int, float}:
        value *= KIB
    if type(value) not in {int, float} or not 0 <= value < LARGEST:
        raise MalformedError(f"{MALFORMED} {name}")
    return float(value)


def _cpu(cells: Cells) -> Said:
    """Return the load of one core, or of all; a core that waits for a disk is not busy, one that is stolen from is."""
    waiting = _read(cells, "%iowait") / 100 if "%iowait" in cells else None
    busy, core = 1 - _read(cells, "%idle") / 100 - (waiting or 0), str(cells["CPU"])
    if busy < -_ROUNDING or not (core in {"all", "-1"} or core.isdigit()):
        raise MalformedError(f"{MALFORMED} %idle")
    busy = max(busy, 0.0)
    if core.isdigit():
        return CORES, {"cpu_busiest_core_ratio": busy}
    return "", {"cpu_utilization_ratio": busy} | ({} if waiting is None else {"cpu_iowait_ratio": waiting})


def _memory(cells: Cells) -> Said:
    """Return what is in use; older sysstat counts the page cache to it: there, used and free make the total."""
    free, used, *cached = (
        _read(cells, f"kb{name}", parse_size) for name in ("memfree", "memused", "buffers", "cached")
    )
    share, cache, total = _read(cells, "%memused") / 100, sum(cached), used + free
    if total > 0 and abs(used / total - share) <= _ROUNDING / 100 and cache > total / 100:
        used = max(used - cache, 0.0)
    elif "kbslab" in cells:
        total += cache + _read(cells, "kbslab", parse_size)
    else:
        return "", {"host_memory_used_bytes": used, "host_memory_used_ratio": share}
    values = {"host_memory_used_bytes": used, "host_memory_total_bytes": total}
    return "", values | {"host_memory_used_ratio": used / total if total else 0.0}


def disk(read: float, written: float) -> dict[str, float]:
    """Return what disks moved, in bytes a second."""
    return {"host_disk_read_bytes_per_second": read, "host_disk_write_bytes_per_second": written}


def _blocks(cells: Cells) -> Said:
    return "", disk(_read(cells, "bread/s") * _SECTOR, _read(cells, "bwrtn/s") * _SECTOR)


def _one_disk(cells: Cells) -> Said:
    """Return what one disk moved; what is made of other disks is not counted again."""
    if "rkB/s" in cells:
        moved = disk(_read(cells, "rkB/s", parse_size), _read(cells, "wkB/s", parse_size))
    else:
        moved = disk(_read(cells, "rd_sec/s") * _SECTOR, _read(cells, "wr_sec/s") * _SECTOR)
    return DISKS, {} if _STACKED.match(str(cells["DEV"])) else moved


def _process(cells: Cells) -> Said:
    """Return the cores and the memory of a process; `pidstat -I` divides the whole by all cores, but no part of it."""
    values: dict[str, float] = {}
    if cells.get("TGID") == "-":
        return "", values
    if "%CPU" in cells:
        whole = _read(cells, "%CPU") / 100
        parts = sum(_read(cells, name) / 100 for name in ("%usr", "%system", "%guest") if name in cells)
        divided = parts > _DIVIDED * whole and parts > whole + _ROUNDING
        values["process_cpu_cores"] = parts if divided else whole
    if "RSS" in cells:
        values["process_memory_used_bytes"] = _read(cells, "RSS", parse_size)
    return PROCESSES, values


def _load(cells: Cells) -> Said:
    return "", {"host_load_average": _read(cells, "ldavg-1")}


_READERS = {
    "CPU %idle": _cpu,
    "kbmemfree kbmemused %memused kbbuffers kbcached": _memory,
    "bread/s bwrtn/s": _blocks,
    "DEV rkB/s wkB/s": _one_disk,
    "DEV rd_sec/s wr_sec/s": _one_disk,
    "ldavg-1": _load,
    "Command %CPU": _process,
    "Command RSS": _process,
}
"""Columns that a table must have, and what reads them."""


@lru_cache(1024)
def find_readers(names: tuple[str, ...]) -> tuple[Callable[[Cells], Said], ...]:
    """Return what reads the metrics of a table with these columns; nothing where it has none."""
    here = set(names)
    return tuple(dict.fromkeys(reader for needed, reader in _READERS.items() if here.issuperset(needed.split())))


class Ticks:
    """The rows of a machine: each table of a log goes through all times once, in order.

    A time that one table has twice, as in the night that summer time ends, is two rows.
    """

    def __init__(self, account: Account) -> None:
        self._account = account
        self._open: tuple[Hashable, int, int] | None = None
        self._said: list[Said] = []
        self._lengths: dict[tuple[Hashable, str], set[int]] = {}
        self._met: Counter[tuple[Hashable, int]] = Counter()
        self._places: dict[tuple[int, int], int] = {}
        """Rows by their time, and how often a table had it so far."""
        self._numbers = array("q")
        self._columns: dict[str, array[float]] = {}
        self._spare: dict[str, array[float]] = {}
        """Columns that count where nothing better is known."""
        self._last: tuple[Hashable, int] = ("", 0)
        self._late = False
        self._lines = 0
        self._passed: dict[str, None] = {}

    def take(self, names: tuple[str, ...], at: int | None, number: int, cells: Sequence[str], line: str) -> bool:
        """Take a row of a table by the names of its columns; return whether it is one that says something."""
        readers = find_readers(names)
        of_process = names[-1] == "Command"
        reason = "" if at is not None else NO_TIME
        if cells and not readers:
            self._lines += 1
            self._passed[names[2] if of_process and len(names) > 2 else names[0]] = None  # noqa: PLR2004 - two name the process
            return False
        if len(cells) != len(names) and not (of_process and len(cells) > len(names)):
            reason = WRONG_CELLS
        row = dict(zip(names, cells, strict=False))
        try:
            said = [] if reason else [reader(row) for reader in readers]
        except MalformedError as error:
            reason = str(error)
        if reason or at is None:
            self._account.reject(reason, number, line)
            return False
        self.say(names, at, number, said)
        return True

    def say(self, table: Hashable, at: int, number: int, said: Iterable[Said], lines: int = 1) -> None:
        """Take what some lines of a table say of a time."""
        if self._open is None or self._open[:2] != (table, at):
            self.close()
            self._open = table, at, number
        self._lines += lines
        self._said += said

    def close(self, *, cut: bool = False) -> None:
        """End the lines of a table at a time; a list that the log ends in says nothing unless it is as long as all."""
        if self._open is None:
            return
        (table, at, number), said = self._open, self._said
        self._open, self._said = None, []
        parts, spare = dict[str, list[dict[str, float]]](), dict[str, float]()
        for of, each in said:
            parts.setdefault(of, []).append(each)
        values = {name: value for each in parts.pop("", ()) for name, value in each.items()}
        for of, listed in parts.items():
            lengths = self._lengths.setdefault((table, of), set())
            if cut and lengths != {len(listed)}:
                self._account.absent[of, "the log ends among its lines"] += 1
            elif of == CORES and "cpu_utilization_ratio" not in values:
                # of the cores that -P names nobody knows whether the busiest one is among them
                self._account.absent[CORES, "no line of all cores beside them, so some may be missing"] += 1
            else:
                for name in dict.fromkeys(name for each in listed for name in each):
                    found = [each[name] for each in listed if name in each]
                    # what a table of all disks says is better than a sum over those listed
                    (spare if of == DISKS else values)[name] = sum(found) if of == DISKS else max(found)
                if of == CORES:
                    values[CORE_COUNT] = len(listed)
            lengths.add(len(listed))
        self._met[table, at] += 1
        key = at, self._met[table, at]
        if key not in self._places:
            # a time that the tables before lack
            self._late |= at < self._last[1] and table != self._last[0]
            self._last = table, at
            self._numbers.append(number)
        place = self._places.setdefault(key, len(self._places))
        for columns, said_of in ((self._columns, values), (self._spare, spare)):
            for name, value in said_of.items():
                column = columns.setdefault(name, array("d"))
                column.extend([nan] * (place + 1 - len(column)))
                column[place] = value

    def rows(self, zone: str | None = None) -> Iterator[Rows]:
        """Yield the rows, once no line is left; `zone` is the one that their stamps state."""
        self.close(cut=True)
        if passed := list(self._passed)[:_LISTED]:
            self._account.note(
                f"Tables that hold no metric were passed over; their columns begin with {', '.join(passed)}."
            )
        count = len(self._places)
        self._account.continued += self._lines - count
        times, steps = np.array([at for at, _ in self._places], dtype=np.int64), np.arange(count)
        order = np.argsort(times, kind="stable") if self._late else steps
        data: dict[str, Values] = {HOST_ROW: np.ones(count)}
        for name in self._columns | self._spare:
            held, spare = (
                np.append(each.get(name, ()), [nan] * count)[:count] for each in (self._columns, self._spare)
            )
            data[name] = np.where(np.isnan(held), spare, held)[order]
        # lines that rise, each once
        numbers = np.maximum.accumulate(np.sort(self._numbers) - steps) + steps
        yield Rows(numbers, times[order], data, zone)


DAY = 86_400_000_000
_BACK = 2 * 3_600_000_000
"""A clock that falls by more has passed midnight; one that falls by less was set back, as when summer time ends."""
_TIME = re.compile(r"(\d{1,2}):(\d\d):(\d\d)", re.ASCII)
_NOON = 12


def parse_time_of_day(text: str, half: str = "") -> int | None:
    """Return microseconds since midnight of `16:28:31`, or of `04:28:31` with `AM` or `PM`; None for other texts."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    hour, minute, second = map(int, match.groups())
    if half:
        hour = hour % _NOON + _NOON * (half.upper() == "PM") if 1 <= hour <= _NOON else 24
    if hour > 23 or minute > 59 or second > 60:  # noqa: PLR2004 - the clock, with a leap second
        return None
    return ((hour * 60 + minute) * 60 + second) * 1_000_000


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

    def at(self, since_midnight: int | None, table: Hashable = None) -> int | None:
        """Return the moment of a time of day in a table, None where no date is known."""
        if since_midnight is None:
            return None
        if self._day is None and self._around is not None:
            # the day on which it is nearest to the start of the log
            began, midnight = self._around[0], self._around[0] // DAY * DAY
            days = (midnight - DAY, midnight, midnight + DAY)
            self._day = min(days, key=lambda day: abs(day + since_midnight - began))
            placed = f"its times were placed on {_name(self._day)}, where they are nearest to the start of the log."
            self._account.note(f"It writes no date: {placed}")
        if self._day is None:
            return None
        last = self._last.get(table)
        now = since_midnight + (self._day if last is None else last // DAY * DAY)
        now += DAY if last is not None and now < last - _BACK else 0
        self._last[table] = now
        return now


def _name(day: int) -> str:
    return datetime.fromtimestamp(day / 1e6, UTC).strftime("%Y-%m-%d")

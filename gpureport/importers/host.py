"""Turns host logs into one row per time, and reads CSV files from recorders."""

import re
from array import array
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import groupby, islice
from math import nan
from operator import add, itemgetter
from typing import Any

import numpy as np

from gpureport.columns import FloatArray
from gpureport.importers import headings, tools
from gpureport.importers.account import MALFORMED, NO_TIME, WRONG_CELLS, Account, list_first
from gpureport.importers.clock import DAY
from gpureport.importers.columns import HOST_ROW, TIME, Column, Rows, Texts, decode, without_faults
from gpureport.metrics import BY_NAME
from gpureport.parsing import UNITS

LOAD, WAITING, BUSIEST = "cpu_utilization_ratio", "cpu_iowait_ratio", "cpu_busiest_core_ratio"
CORE_COUNT, _USED, _TOTAL = "cpu_logical_cores", "host_memory_used_bytes", "host_memory_total_bytes"
_SHARE, _HELD, _RUNNING = "host_memory_used_ratio", "process_memory_used_bytes", "process_cpu_cores"
_READ, _WRITTEN = "host_disk_read_bytes_per_second", "host_disk_write_bytes_per_second"
_SUMS = {"read by disks": _READ, "written by disks": _WRITTEN}
"""Sums over a list of disks, used if no table contains the total."""
_LISTS = {"cores": (BUSIEST,), "disks": tuple(_SUMS), "processes": (_RUNNING, _HELD)}
"""Kinds of lists whose lines are counted, and the metrics that require a complete list."""
_MERGE: Mapping[str, Callable[[float, float], float]] = {
    **dict.fromkeys((BUSIEST, _HELD, _RUNNING), max),
    **dict.fromkeys((*_LISTS, *_SUMS), add),
}
"""How to combine several values for one time; for other names, the last value is used."""
_KIB, _SECTOR, _LARGEST = 1024, 512, 2.0**62
"""Bytes per block in vmstat and in `sar -b`, and a value that no metric reaches."""
FIGURE = re.compile(r"(-?\d{1,18}(?:[.,]\d{1,18})?)([%kKmMgGtT]?)", re.ASCII)
_STACKED = re.compile(r"(?:dm-|md|loop|ram|zram|sr)\d|dev(?:1|7|9|11)-\d")
"""Matches disks that use other disks or memory, and optical drives."""
_ROUNDING, _EXACT = 0.03, 6e-5
"""Maximum rounding errors in sums of whole percentages and in shares."""
_FALL, _BACK = 20 * 60_000_000, 2 * 3_600_000_000
"""How far times must jump back to show that a table restarts, or that midnight has passed."""

Around = tuple[int, int] | None
"""First and last local time of the GPU log, used to date host logs without dates."""
Cells = Mapping[str, Any]
Said = tuple[int, str, tools.Stamp, Sequence[Cells] | None, str | tuple[str, ...]]
"""Line number, text (empty at the end of a list), time, rows (None if the number of cells is wrong), and table."""


_FIGURES = {
    **{"bread/s": (_READ, _SECTOR), "bwrtn/s": (_WRITTEN, _SECTOR), "bi": (_READ, _KIB), "bo": (_WRITTEN, _KIB)},
    **{"ldavg-1": ("host_load_average", 1), "machine_cores": (CORE_COUNT, 1), "watts": ("cpu_power_watts", 1)},
}
KNOWN = {*_FIGURES, "%idle", "kbmemused", "rkB/s", "Command", "used"}
"""Every table with a metric has at least one of these columns."""


def _read_row(row: Cells) -> dict[str, float]:
    """Return a row's values. Raises ValueError with the reason to reject the row."""

    def figure(name: str, unit: int = 1) -> float:
        value = row[name]
        if isinstance(value, str):
            match = FIGURE.fullmatch(value)
            suffix = match[2].lower() if match else "?"
            value = float(match[1].replace(",", ".")) if match and suffix in ("kmgt" if unit == _KIB else "%") else None
            unit = _KIB ** (1 + "kmgt".find(suffix)) if unit == _KIB else unit
        if type(value) not in {int, float} or not 0 <= value * unit < _LARGEST:
            raise ValueError(f"{MALFORMED} {name}")
        return float(value * unit)

    found = {target: figure(name, unit) for name, (target, unit) in _FIGURES.items() if name in row}
    if {"CPU", "%idle", "%iowait"} <= row.keys():
        # time spent waiting for a disk is not busy time, whereas stolen time is
        waiting, core = figure("%iowait") / 100, str(row["CPU"])
        busy = 1 - figure("%idle") / 100 - waiting
        if busy < -_ROUNDING or not (core in {"all", "-1"} or core.isdigit()):
            raise ValueError(f"{MALFORMED} %idle")
        busy = max(busy, 0.0)
        found |= {BUSIEST: busy, "cores": 1} if core.isdigit() else {LOAD: busy, WAITING: waiting}
    if {"kbmemfree", "kbmemused", "%memused", "kbbuffers", "kbcached"} <= row.keys():
        free, used, *cached = (figure(f"kb{name}", _KIB) for name in ("memfree", "memused", "buffers", "cached"))
        share, cache, total = figure("%memused") / 100, sum(cached), used + free
        if total > 0 and abs(used / total - share) <= _EXACT and cache > total / 100:
            # older versions of sysstat count the page cache as used memory
            used = max(used - cache, 0.0)
        else:
            total = total + cache + figure("kbslab", _KIB) if "kbslab" in row else 0.0
        found |= {_USED: used, _SHARE: used / total, _TOTAL: total} if total else {_USED: used, _SHARE: share}
    if {"DEV", "rkB/s", "wkB/s"} <= row.keys():
        moved = {"read by disks": figure("rkB/s", _KIB), "written by disks": figure("wkB/s", _KIB)}
        found |= {"disks": 1} | ({} if _STACKED.match(str(row["DEV"])) else moved)
    if "Command" in row and row.keys() & {"%CPU", "RSS"} and row.get("TGID") != "-":
        found |= {"processes": 1.0} | ({_HELD: figure("RSS", _KIB)} if "RSS" in row else {})
        if "%CPU" in row:
            whole = figure("%CPU") / 100
            parts = sum(figure(name) / 100 for name in ("%usr", "%system", "%guest") if name in row)
            # `pidstat -I` divides the sum, but not its parts, by the number of cores
            found[_RUNNING] = parts if parts > 1.5 * whole and parts > whole + _EXACT * 100 else whole
    if {"total", "used"} <= row.keys():
        found |= {_TOTAL: row["total"], _USED: row["used"], _SHARE: row["used"] / row["total"]}
    return found


def host_form(read: Callable[[Iterable[str], int, Account, Around], Iterator[Said]]) -> Callable[..., Iterator[Rows]]:
    return lambda lines, first, account, around: _collect(read(lines, first, account, around), account)


def _collect(said: Iterable[Said], account: Account) -> Iterator[Rows]:
    """Yield one row per time, or two if the clock was set back to that time."""
    places: dict[tuple[int, int], int] = {}
    passes: dict[Hashable, tuple[int, int]] = {}
    columns: dict[str, array[float]] = {}
    numbers, utc, last, taken = array("q"), None, -1, 0
    for number, text, time, rows, table in said:
        height = text.count("\n") + 1 if text else 0
        try:
            found = [pair for row in rows or () for pair in _read_row(row).items()]
        except ValueError as error:
            account.reject(str(error), number, text, rows=height)
            continue
        if not text or (rows and not found):
            # either the list is complete, or the table has no metric
            last, taken = -1, taken + height
            continue
        if rows is None or time is None or time[1] != (time[1] if utc is None else utc):
            account.reject(WRONG_CELLS if rows is None else NO_TIME, number, text, rows=height)
            continue
        utc, taken = time[1], taken + height
        before, falls = passes.get(table, (time[0], 0))
        passes[table] = key = time[0], falls + (time[0] < before - _FALL)
        if key not in places:
            numbers.append(number)
        place = places.setdefault(key, len(places))
        last = place if table else -1
        for name, value in found:
            column = columns.setdefault(name, array("d"))
            column.extend([nan] * (place + 1 - len(column)))
            merge = _MERGE.get(name) if column[place] == column[place] else None
            column[place] = merge(column[place], value) if merge else value
    count = len(places)
    account.continued += taken - count
    data = {name: np.append(column, [nan] * (count - len(column))) for name, column in columns.items()}
    _finish_lists(data, last, account)
    times, falls_of = np.array([*places], dtype=np.int64).reshape(-1, 2).T
    order = np.lexsort((times, falls_of))
    filled = {name: values[order] for name, values in data.items() if not np.isnan(values).all()}
    # line numbers must increase
    rising = np.maximum.accumulate(np.sort(numbers) - np.arange(count)) + np.arange(count)
    yield Rows(rising, times[order], {HOST_ROW: np.ones(count), **filled}, "UTC" if utc else None)


def _finish_lists(data: dict[str, Any], last: int, account: Account) -> None:
    for kind in [kind for kind in _LISTS if kind in data]:
        lengths = data.pop(kind)
        known = ~np.isnan(lengths)
        # if there is no row for all cores, `-P` may have omitted the busiest core
        wrong = known & np.isnan(data.get(LOAD, lengths * nan)) & (kind == "cores")
        if last >= 0 and known[last]:
            known[last] = False
            wrong[last] |= {*lengths[known]} != {lengths[last]}
        account.absent.update({(kind, "the list may lack some"): int(wrong.sum())} if wrong.any() else {})
        if kind == "cores":
            data[CORE_COUNT] = np.where(wrong | np.isnan(lengths), data.get(CORE_COUNT, lengths * nan), lengths)
        for name in data.keys() & {*_LISTS[kind]}:
            data[name][wrong] = nan
    for listed, name in _SUMS.items():
        if (spare := data.pop(listed, None)) is not None:
            data[name] = np.where(np.isnan(data.get(name, spare)), spare, data.get(name, spare))


class DayClock:
    """Adds dates to times of day; midnight is detected for each table separately."""

    def __init__(self, account: Account, around: Around) -> None:
        self._account, self._around = account, around
        self._day: int | None = None
        self._last: dict[Hashable, int] = {}

    def date(self, text: str) -> None:
        """Set the date. If the text is ambiguous, use the date that fits the GPU log, or else the first."""
        forms = ("%Y-%m-%d", *("%m-%d-%Y", "%m-%d-%y") * ("/" in text), "%d-%m-%Y", "%d-%m-%y", "%b-%d-%Y")
        dates = [tools.parse_with(re.sub("[./]", "-", text), form) for form in forms]
        found = list(dict.fromkeys(date[0] for date in dates if date))
        near = [day for day in found if self._around and self._around[0] - DAY <= day <= self._around[1]]
        if found:
            self._day, self._last = near[0] if len(near) == 1 else found[0], {}
        if len(found) > 1 and len(near) != 1:
            self._account.note(f"The date {text} is read as {_name_day(found[0])}, with the month first.")

    def at(self, since_midnight: int | None, table: Hashable = None) -> tools.Stamp:
        if since_midnight is not None and self._day is None and self._around:
            self._day = (self._around[0] - since_midnight + DAY // 2) // DAY * DAY
            placed = f"its times were placed on {_name_day(self._day)}, the date nearest to the start of the log."
            self._account.note(f"It contains no date, so {placed}")
        if since_midnight is None or self._day is None:
            return None
        last = self._last.get(table, self._day)
        now = last // DAY * DAY + since_midnight
        self._last[table] = now = now + DAY if now < last - _BACK else now
        return now, False


def _name_day(day: int) -> str:
    return datetime.fromtimestamp(day / 1e6, UTC).strftime("%Y-%m-%d")


_GPU = re.compile(r"gpu|vram|nvidia|cuda|utilization\.|power\.|clocks\.|temperature\.|pstate|fan\.speed", re.IGNORECASE)
_OWN_MEMORY = re.compile(r"ram|host|sys|virtual", re.IGNORECASE)
_LOADS = {LOAD, WAITING, "host_load_average", BUSIEST, *headings.CORE_LOADS}
_MOST, _BARE = 1.01, "?"
_LONGEST, _MANY, _LISTED = 64, 10_000, 10


def find_table(header: Sequence[str]) -> tuple[list[int], Column, dict[int, Column], list[str]] | None:
    """Return the positions and column of the time, metrics by position, and other headings, if any.

    In a table with GPU columns, a `memory` column refers to GPU memory.
    """
    # a line outside tables may repeat a heading a million times
    names = [name.removeprefix("\ufeff").strip('"') for name in header]
    distinct = [name for name in dict.fromkeys(names) if len(name) <= _LONGEST]
    gpus = set(filter(_GPU.search, distinct))
    times = {name.lower(): names.index(name) for name in reversed(distinct) if headings.is_time_heading(name)}
    found: dict[str, Column] = {}
    for name in distinct:
        said = None if name in gpus else headings.recognise_column(name, headings.HOST_COLUMNS)
        if said and not (gpus and said.target.startswith("host_memory") and not _OWN_MEMORY.search(name)):
            share, core = said.target.endswith("_ratio"), said.target == headings.CORE
            bare = (share or said.target in headings.CORE_LOADS) and "cores" not in headings.heading_words(name)
            scale = UNITS[said.unit].to_base(1) if said.unit else 0.01 if bare else 1.0
            read = partial(_read_cell, scale=scale, most=_MOST if share or core else _LARGEST)
            target = f"{headings.CORE} {name}" if core else said.target
            stated = said.unit if said.unit or not bare else _BARE
            found.setdefault(target, Column(target=target, source=name, read=read, stated=stated))
    if BUSIEST in found:
        found = {target: each for target, each in found.items() if not target.startswith(headings.CORE)}
    if not times or _LOADS.isdisjoint(target.partition(" ")[0] for target in found):
        return None
    kept = {names.index(each.source): each for each in found.values()}
    stamps = [times["date"], times["time"]] if {"date", "time"} <= times.keys() else [min(times.values())]
    time = names[stamps[-1]]
    others = [name for at, name in enumerate(names) if name and at not in {*stamps, *kept}]
    return stamps, Column(target=TIME, source=time, heading=time), kept, others


def _read_cell(text: str, scale: float, most: float) -> float | None:
    value = headings.parse_number(text.replace(",", ".").rstrip("% "))
    if value is None:
        return nan if headings.absence_word(text) or text == "NA" else None
    return value * scale if 0 <= value * scale <= most else nan


def read_csv(lines: Iterable[str], first: int, account: Account, around: object) -> Iterator[Rows]:
    found = tools.table_rows(lines, first, account, find_table, "")
    for (places, time, kept, others), same in groupby(found, itemgetter(1)):
        if others:
            account.note(f"These columns were not kept: {list_first(others, _LISTED)}.")
        while part := list(islice(same, _MANY)):
            numbers, _, rows = zip(*part, strict=True)
            cells = list(zip(*rows, strict=True))
            stamps = list(map(" ".join, zip(*(cells[place] for place in places), strict=True)))
            texts = [stamps, *(cells[place] for place in kept)]
            sound, faulty = without_faults(*decode([time, *kept.values()], texts, np.array(numbers)))
            for place, reason in faulty:
                account.reject(reason, numbers[place], ",".join(rows[place]))
            yield _finish_rows(kept.values(), sound, account)


def _finish_rows(kept: Collection[Column], rows: Rows, account: Account) -> Rows:
    found: dict[Column, FloatArray] = {}
    for column in kept:
        values, why = rows.data.pop(column.target), rows.reasons.get(column.source)
        found[column] = values if not isinstance(values, Texts) else np.array([*values.texts, nan])[values.codes]
        impossible = int((np.isnan(found[column]) & (why is None or why.codes < 0)).sum())
        account.absent.update({(column.source, tools.NO_VALUE): impossible} if impossible else {})
    bare = [column for column in found if column.stated == _BARE]
    shares = np.concatenate([[0.0], *(100 * found[column] for column in bare)])
    if not any(each.stated == "%" for each in found) and np.nanmax(shares) <= 1 and (shares % 1 > 0).any():
        names = ", ".join(sorted(column.source for column in bare))
        account.note(
            f"The log does not show whether {names} is a share or a percentage, so it is not kept. Name it cpu_percent."
        )
        found = {column: values for column, values in found.items() if column not in bare}
    for column, numbers in found.items():
        target = BUSIEST if column.target.startswith(headings.CORE) else column.target
        rows.data[target] = np.fmax(np.asarray(rows.data.get(target, numbers)), numbers)
    cores = {int(re.findall(r"\d+", each.source)[0]) for each in kept if each.target not in BY_NAME}
    if len(cores) > 1 and min(cores) <= 1 and max(cores) - min(cores) == len(cores) - 1:
        rows.data.setdefault(CORE_COUNT, np.full(len(rows), float(len(cores))))
    rows.data[HOST_ROW] = np.ones(len(rows))
    return rows

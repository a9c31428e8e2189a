"""Reads a CSV that a recorder of one's own wrote: times of any kind, headings as people name them, a column a core."""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from gpureport.columns import FloatArray, read_codes, strings_to_arrow
from gpureport.importers.account import Account
from gpureport.importers.columns import HOST_ROW, Rows, Texts, Values, absence, extra_name, make_column, read_times
from gpureport.importers.headings import (
    CORE,
    CORE_LOADS,
    DECIMAL_WORDS,
    HOST_COLUMNS,
    heading_words,
    is_time_heading,
    recognise_column,
)
from gpureport.importers.host.fields import (
    CORE_COUNT,
    LARGEST,
    Around,
    DayClock,
    parse_number,
    parse_time_of_day,
    plain_lines,
)
from gpureport.importers.protocol.reject_reasons import CUT_LAST_LINE, MALFORMED, WRONG_CELLS
from gpureport.importers.tables import Layout, make_layout, scan, without_faults
from gpureport.metrics import BY_NAME
from gpureport.units import UNITS

_GPU = re.compile(r"gpu|vram|nvidia|cuda|utilization\.|power\.|clocks\.|temperature\.|pstate|fan\.speed", re.IGNORECASE)
_OWN_MEMORY = re.compile(r"ram|host|sys|virtual", re.IGNORECASE)
_BUSIEST = "cpu_busiest_core_ratio"
_LOADS = {"cpu_utilization_ratio", _BUSIEST, "cpu_iowait_ratio", "host_load_average", *(CORE_LOADS - {CORE})}
_RECORDER = {"cpu_percent", "cpu_max_core_percent", "iowait_percent", "cpu_count", "ram_used_mib", "ram_total_mib"}
"""Columns of the recorder that the documentation shows; beside them and metrics by name, others are kept as text."""
_NUMBER = re.compile(r"[-+]?(?:\d{1,18}\.?\d{0,18}|\.\d{1,18})(?:[eE][-+]?\d{1,2})?\s*%?", re.ASCII)
_MOST = 1.01
"""A share that is rounded may exceed 1 by this much."""
_LONGEST, _LISTED = 64, 8
"""Characters of a heading that is looked at; columns that are named in a note."""
_TOGETHER = 10_000
"""Rows that are read at once; the first ones show what a share without a unit counts in."""
Cells = Any
"""A column of texts as an Arrow dictionary array."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    """A column that is kept; `core` where it is one of several cores, `assumed` what its unit was taken for.

    `unclear` is a share whose heading does not say of what: 93 may be 93 % or 0.93 may be.
    """

    heading: str
    place: int
    metric: str
    scale: float = 1.0
    core: bool = False
    unclear: bool = False
    assumed: str = ""


@dataclass(frozen=True, slots=True)
class _Layout:
    """The columns of a CSV: headings, places of the time, whether it says UTC, what is kept, places kept as text."""

    header: str
    delimiter: str
    names: list[str]
    times: tuple[int, ...]
    utc: bool
    fields: list[_Field]
    extras: tuple[int, ...]
    table: Layout

    def split(self, line: str) -> list[str] | None:
        """Return the cells of a row, None where they are not as many as the columns."""
        cells = line.split(self.delimiter)
        if '"' in line:
            with suppress(csv.Error):
                cells = next(csv.reader([line], delimiter=self.delimiter), [])
        cells = cells[:-1] if len(cells) == len(self.names) + 1 and not cells[-1].strip() else cells
        return cells if len(cells) == len(self.names) else None


def find_layout(header: str) -> _Layout | None:
    """Return the columns a header declares, None where it names no time or no load of a processor."""
    delimiter = next((each for each in ",;\t" if each in header), ",")
    names = [name.strip().strip('"').removeprefix("\ufeff") for name in header.strip().split(delimiter)]
    times = [place for place, name in enumerate(names) if len(name) <= _LONGEST and is_time_heading(name)]
    fields = _find_fields(names)
    if not times or not _LOADS & {each.metric for each in fields}:
        return None
    plain = [names[place].lower() for place in times]
    pair = (plain.index("date"), plain.index("time")) if {"date", "time"} <= set(plain) else (0,)
    utc = "utc" in heading_words(names[times[0]])
    known = {each.heading for each in fields}
    own = known <= _RECORDER | set(BY_NAME) and names[times[0]] == "timestamp"
    extras = [n for n, name in enumerate(names) if own and name and n not in times and name not in known]
    table = make_layout([make_column("", name) for name in names], delimiter=delimiter)
    return _Layout(
        header.strip(), delimiter, names, tuple(times[place] for place in pair), utc, fields, tuple(extras), table
    )


def _find_fields(names: Sequence[str]) -> list[_Field]:
    """Return the first column of each metric, and every core where no column states the busiest one.

    Beside columns of GPUs memory is theirs unless its heading says otherwise.
    """
    found: dict[str, _Field] = {}
    # a line of no table may repeat a heading a million times
    distinct = [name for name in dict.fromkeys(names) if len(name) <= _LONGEST]
    gpus = set(filter(_GPU.search, distinct))
    known = {name: recognise_column(name, HOST_COLUMNS) for name in distinct if name not in gpus}
    for place, name in enumerate(names):
        column = known.get(name)
        if column is None or (gpus and column.target.startswith("host_memory") and not _OWN_MEMORY.search(name)):
            continue
        core, metric = column.target == CORE, column.target
        each = _Field(heading=name, place=place, metric=_BUSIEST if core else metric, core=core)
        if column.unit:
            assumed = column.unit if column.unit_word in DECIMAL_WORDS else ""
            each = replace(each, scale=UNITS[column.unit].to_base(1), assumed=assumed)
        elif (metric in CORE_LOADS or metric.endswith("_ratio")) and "cores" not in heading_words(name):
            each = replace(each, scale=0.01, unclear=True)
        found.setdefault(f"{CORE} {place}" if core else metric, each)
    return [each for each in found.values() if each.metric in BY_NAME and not (each.core and _BUSIEST in found)]


def _count_cores(fields: Sequence[_Field]) -> int | None:
    """Return how many cores have a column, None where their numbers do not run from 0 or 1 on without a gap."""
    numbers = sorted(int(re.findall(r"\d+", each.heading, re.ASCII)[0]) for each in fields if each.core)
    first = numbers[0] if len(numbers) > 1 else -1
    return len(numbers) if first in {0, 1} and numbers == list(range(first, first + len(numbers))) else None


def read_recorder_csv(lines: Iterable[str], first: int, account: Account, around: Around = None) -> Iterator[Rows]:
    """Yield the rows of such a CSV; its first line names a time and the load of a processor."""
    numbered = (each for each in plain_lines(lines, first) if each[1])
    layout, clock, begun = find_layout(next(numbered, (0, ""))[1]), DayClock(account, around), False
    account.headers += 1
    while layout and (block := list(islice(numbered, _TOGETHER))):
        rows: list[tuple[int, str]] = []
        for number, line, cut in block:
            if line == layout.header:
                account.headers += 1
            elif cut:
                account.reject(CUT_LAST_LINE, number, line)
            else:
                rows.append((number, line))
        rows, columns = _split(layout, rows, account)
        if rows and not begun:
            layout, begun = _settle(layout, columns, account), True
        if rows:
            yield _decode(layout, rows, columns, account, clock)


def _split(layout: _Layout, rows: list[tuple[int, str]], account: Account) -> tuple[list[tuple[int, str]], list[Cells]]:
    """Return the lines that are rows, and their columns; lines with another number of cells are rejected."""
    text = "\n".join(line for _, line in rows)
    if '"' not in text:
        found, odd = scan(text.encode(), layout.table)
        if not odd:
            return rows, found
    cells = [(row, each) for row in rows if (each := layout.split(row[1])) is not None]
    kept = {number for (number, _), _ in cells}
    for number, line in rows:
        if number not in kept:
            account.reject(WRONG_CELLS, number, line)
    columns = zip(*(each for _, each in cells), strict=True)
    return [row for row, _ in cells], [strings_to_arrow(list(column)).dictionary_encode() for column in columns]


def _settle(layout: _Layout, columns: Sequence[Cells], account: Account) -> _Layout:
    """Return the columns without those of which the rows do not tell either whether they count per cent.

    What one column of shares counts in, the others do too.
    """
    shares = [each for each in layout.fields if each.metric.endswith("_ratio")]
    unclear = {each.heading for each in shares if each.unclear and _is_unclear(columns[each.place])}
    if any(each.heading not in unclear and each.scale < 1 for each in shares):
        unclear = set()
    used = {*layout.times, *layout.extras, *(each.place for each in layout.fields)}
    others = [name for place, name in enumerate(layout.names) if place not in used]
    if others:
        account.note(f"Columns of the host log that are not kept: {', '.join(others[:_LISTED])}.")
    if assumed := [f"{each.heading} for {each.assumed}" for each in layout.fields if each.assumed]:
        account.note(f"Units are powers of 1024: {', '.join(assumed[:_LISTED])}.")
    if unclear:
        names = ", ".join(sorted(unclear)[:_LISTED])
        account.note(
            f"Nothing tells whether {names} is a share or per cent: call it cpu_percent or cpu_ratio. It is not kept."
        )
    return replace(layout, fields=[each for each in layout.fields if each.heading not in unclear])


def _is_unclear(cells: Cells) -> bool:
    """Return whether values are decimals and none exceeds 1."""
    values = [value for cell in cells.dictionary.to_pylist() if (value := parse_number(cell.strip())) is not None]
    return bool(values) and max(values) <= 1 and any(value % 1 for value in values)


def _decode(
    layout: _Layout,
    rows: Sequence[tuple[int, str]],
    columns: Sequence[Cells],
    account: Account,
    clock: DayClock,
) -> Rows:
    """Return rows, of which each has a line, by their columns; of several cores the busiest counts."""
    stamps = [columns[place] for place in layout.times]
    pairs = () if len(stamps) == 1 else zip(*(each.to_pylist() for each in stamps), strict=True)
    times, good, zone = read_times(list(map(" ".join, pairs)) or stamps[0])
    if not good.any():
        found = [clock.at(parse_time_of_day(text.strip().partition(".")[0])) for text in stamps[-1].to_pylist()]
        good = np.array([time is not None for time in found], dtype=np.bool_)
        times = np.array([time or 0 for time in found], dtype=np.int64)
    faults = {f"{MALFORMED} {layout.names[layout.times[-1]]}": ~good}
    data: dict[str, Values] = {HOST_ROW: np.ones(len(rows))}
    loads: dict[str, FloatArray] = {}
    reasons: dict[str, Texts] = {}
    for each in layout.fields:
        codes = read_codes(columns[each.place].indices).astype(np.int64)
        read = [_read(each, text.strip()) for text in columns[each.place].dictionary.to_pylist()]
        values = np.array([value for value, _ in read], dtype=np.float64)[codes]
        loads[each.metric] = np.fmax(loads.get(each.metric, values), values)
        reasons[each.heading] = Texts.of(why for _, why in read)[codes]
        faults[f"{MALFORMED} {each.heading}"] = np.isnan(values) & (reasons[each.heading].codes < 0)
    data |= loads
    for place in layout.extras:
        data[extra_name(layout.names[place])] = Texts.of(cell.strip() or None for cell in columns[place].to_pylist())
    if (count := _count_cores(layout.fields)) is not None:
        data.setdefault(CORE_COUNT, np.full(len(rows), float(count)))
    lines = np.array([number for number, _ in rows], dtype=np.int64)
    zone = "UTC" if zone or layout.utc else None
    kept, faulty = without_faults(Rows(lines, times, data, zone, reasons), faults)
    for place, reason in faulty:
        account.reject(reason, *rows[place])
    return kept


def _read(column: _Field, text: str) -> tuple[float, str | None]:
    """Return the value of a cell, or NaN and why there is none; without a reason the row is no row."""
    number = text.replace(",", ".")
    if _NUMBER.fullmatch(number) is None:
        return np.nan, "nan" if text in {"None", "NaN", "null", "NA"} else absence(text)
    value, share = float(number.rstrip("% ")) * column.scale, column.metric.endswith("_ratio")
    if value < 0 or (share and value > _MOST) or value >= LARGEST:
        return np.nan, "negative" if value < 0 else "above 100%" if share else "beyond any machine"
    return value, None

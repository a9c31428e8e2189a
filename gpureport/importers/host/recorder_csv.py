"""Reads a CSV that a recorder of one's own wrote: times of any kind, headings as people name them, a column a core."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np

from gpureport.importers.account import Account
from gpureport.importers.columns import HOST_ROW, Column, Rows, Values, decode, make_column, read_times
from gpureport.importers.headings import (
    CORE,
    CORE_LOADS,
    DECIMAL_WORDS,
    HOST_COLUMNS,
    ColumnName,
    heading_words,
    is_time_heading,
    recognise_column,
)
from gpureport.importers.host.fields import BUSIEST, CORE_COUNT, LARGEST, Around, DayClock
from gpureport.importers.printed import parse_time_of_day, whole_lines
from gpureport.importers.protocol.reject_reasons import MALFORMED, WRONG_CELLS
from gpureport.importers.tables import Layout, make_layout, scan, without_faults
from gpureport.parsing import UNITS

_GPU = re.compile(r"gpu|vram|nvidia|cuda|utilization\.|power\.|clocks\.|temperature\.|pstate|fan\.speed", re.IGNORECASE)
_OWN_MEMORY = re.compile(r"ram|host|sys|virtual", re.IGNORECASE)
_LOADS = {"cpu_utilization_ratio", BUSIEST, "cpu_iowait_ratio", "host_load_average", *(CORE_LOADS - {CORE})}
_NONE = frozenset({"None", "null", "NA"})
_MOST = 1.01
"""A share that is rounded may exceed 1 by this much."""
_LONGEST, _LISTED = 64, 8
"""Characters of a heading that is looked at; columns that are named in a note."""
_TOGETHER = 10_000
"""Rows that are read at once; the first ones show what a share without a unit counts in."""
Cells = Any
"""A column of texts as an Arrow dictionary array."""


class _Field(NamedTuple):
    """A column that is kept, and its place; `core` numbers one of several cores, `assumed` is its unit.

    `unclear` is a share whose heading does not say of what: 93 may be 93 % or 0.93 may be.
    """

    column: Column
    place: int
    core: int | None
    unclear: bool
    assumed: str


class _Table(NamedTuple):
    """The columns of a CSV: its header, their names, places of the time, whether that says UTC, and what is kept."""

    header: str
    names: list[str]
    times: tuple[int, ...]
    utc: bool
    fields: list[_Field]
    layout: Layout


def find_layout(header: str) -> _Table | None:
    """Return the columns a header declares, None where it names no time or no load of a processor."""
    delimiter = next((each for each in ",;\t" if each in header), ",")
    names = [name.strip().strip('"').removeprefix("\ufeff") for name in header.strip().split(delimiter)]
    times = [place for place, name in enumerate(names) if len(name) <= _LONGEST and is_time_heading(name)]
    fields = _find_fields(names)
    if not times or not _LOADS & {each.column.target for each in fields}:
        return None
    plain = [names[place].lower() for place in times]
    pair = ("date", "time") if {"date", "time"} <= set(plain) else plain[:1]
    layout = make_layout([make_column("", name) for name in names], delimiter=delimiter)
    utc = "utc" in heading_words(names[times[0]])
    return _Table(header.strip(), names, tuple(times[plain.index(each)] for each in pair), utc, fields, layout)


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
        said = known.get(name)
        theirs = gpus and said and said.target.startswith("host_memory") and not _OWN_MEMORY.search(name)
        if said is None or theirs:
            continue
        key = f"{CORE} {place}" if said.target == CORE else said.target
        found.setdefault(key, _field(name, place, said))
    return [each for key, each in found.items() if each.core is None or BUSIEST not in found]


def _field(name: str, place: int, said: ColumnName) -> _Field:
    core = int(re.findall(r"\d+", name, re.ASCII)[0]) if said.target == CORE else None
    metric = BUSIEST if core is not None else said.target
    share = said.target in CORE_LOADS or metric.endswith("_ratio")
    unclear = share and not said.unit and "cores" not in heading_words(name)
    scale = UNITS[said.unit].to_base(1) if said.unit else 0.01 if unclear else 1.0
    column = Column(
        target=metric,
        source=name,
        stated=said.unit,
        read=partial(_read, scale=scale, most=_MOST if metric.endswith("_ratio") else inf),
    )
    return _Field(column, place, core, unclear, said.unit if said.unit_word in DECIMAL_WORDS else "")


def _read(text: str, *, scale: float, most: float) -> float | None:
    """Return the value of a cell, NaN for what no machine has, None where it is no number."""
    try:
        value = float(text.replace(",", ".").rstrip("% ")) * scale
    except ValueError:
        return nan if text in _NONE else None
    return value if 0 <= value <= most and value < LARGEST else nan


def read_recorder_csv(lines: Iterable[str], first: int, account: Account, around: Around = None) -> Iterator[Rows]:
    """Yield the rows of such a CSV; its first line names a time and the load of a processor."""
    numbered = (each for each in whole_lines(lines, first, account) if each[1])
    table, clock = find_layout(next(numbered, (0, ""))[1]), DayClock(account, around)
    settled = False
    account.headers += 1
    while table and (block := list(islice(numbered, _TOGETHER))):
        rows = [each for each in block if each[1] != table.header]
        account.headers += len(block) - len(rows)
        columns, odd = scan("\n".join(line for _, line in rows).encode(), table.layout)
        for place in odd:
            account.reject(WRONG_CELLS, *rows[place])
        left = set(odd)
        rows = [each for place, each in enumerate(rows) if place not in left]
        if rows:
            table = table if settled else _settle(table, columns, account)
            settled = True
            yield _decode(table, rows, columns, account, clock)


def _settle(table: _Table, columns: Sequence[Cells], account: Account) -> _Table:
    """Return the columns without those of which the rows do not show either whether they count per cent.

    What one column of shares counts in, the others do too.
    """
    shares = [each for each in table.fields if each.column.target.endswith("_ratio")]
    unclear = [each for each in shares if each.unclear and _is_unclear(each.column, columns[each.place])]
    if len(unclear) < sum(each.unclear or each.column.stated == "%" for each in shares):
        unclear = []
    used = {*table.times, *(each.place for each in table.fields)}
    others = [name for place, name in enumerate(table.names) if place not in used]
    if others:
        account.note(f"Columns of the host log that are not kept: {', '.join(others[:_LISTED])}.")
    if assumed := [f"{each.column.source} for {each.assumed}" for each in table.fields if each.assumed]:
        account.note(f"Units are powers of 1024: {', '.join(assumed[:_LISTED])}.")
    if unclear:
        names = ", ".join(sorted(each.column.source for each in unclear)[:_LISTED])
        account.note(
            f"Nothing tells whether {names} is a share or per cent: call it cpu_percent or cpu_ratio. It is not kept."
        )
    return table._replace(fields=[each for each in table.fields if each not in unclear])


def _is_unclear(column: Column, cells: Cells) -> bool:
    """Return whether values are decimals and none exceeds 1."""
    values = [100 * (column.read(cell.strip()) or 0.0) for cell in cells.dictionary.to_pylist()]
    return max(values, default=0) <= 1 and any(value % 1 for value in values)


def _decode(
    table: _Table, lines: Sequence[tuple[int, str]], columns: Sequence[Cells], account: Account, clock: DayClock
) -> Rows:
    """Return rows, of which each has a line, by their columns; of several cores the busiest counts."""
    stamps = [columns[place] for place in table.times]
    pairs = [] if len(stamps) == 1 else zip(*(each.to_pylist() for each in stamps), strict=True)
    times, good, zone = read_times(list(map(" ".join, pairs)) or stamps[0])
    if not good.any():
        of_day = (parse_time_of_day(text.strip().partition(".")[0]) for text in stamps[-1].to_pylist())
        moments = [clock.at(each) for each in of_day]
        good = np.array([moment is not None for moment in moments], dtype=np.bool_)
        times = np.array([moment[0] if moment else 0 for moment in moments], dtype=np.int64)
    numbers = np.array([number for number, _ in lines], dtype=np.int64)
    faults = {f"{MALFORMED} {table.names[table.times[-1]]}": ~good}
    data: dict[str, Values] = {HOST_ROW: np.ones(len(lines))}
    rows = Rows(numbers, times, data, "UTC" if zone or table.utc else None)
    for each in table.fields:
        read, wrong = decode([each.column], [columns[each.place]], numbers)
        values = np.asarray(read.data[each.column.target])
        data[each.column.target] = np.fmax(np.asarray(data.get(each.column.target, values)), values)
        rows.reasons |= read.reasons
        faults |= wrong
    cores = sorted(each.core for each in table.fields if each.core is not None)
    if len(cores) > 1 and cores[0] in {0, 1} and cores == list(range(cores[0], cores[0] + len(cores))):
        data.setdefault(CORE_COUNT, np.full(len(lines), float(len(cores))))
    kept, faulty = without_faults(rows, faults)
    for place, reason in faulty:
        account.reject(reason, *lines[place])
    return kept

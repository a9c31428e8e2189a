"""Logs of the GPUs' machine: output of tools (`host_forms`), or a CSV of one's own recorder."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby, islice
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.errors import CodedProblem
from gpureport.importers import headings, tools
from gpureport.importers.account import Account, list_first
from gpureport.importers.clock import read_times
from gpureport.importers.columns import HOST_ROW, Rows, without_faults
from gpureport.importers.host_forms import FORMS
from gpureport.importers.protocol.reject_reasons import MALFORMED
from gpureport.parsing import UNITS

_HINT = "record what is read, with a date and a time: sar -u -r -b -P ALL 1, mpstat, pidstat, vmstat -t, or a CSV"

# a CSV of a recorder: headings as people name them, a column a core

_GPU = re.compile(r"gpu|vram|nvidia|cuda|utilization\.|power\.|clocks\.|temperature\.|pstate|fan\.speed", re.IGNORECASE)
_OWN_MEMORY = re.compile(r"ram|host|sys|virtual", re.IGNORECASE)
_BUSIEST = "cpu_busiest_core_ratio"
_LOADS = {"cpu_utilization_ratio", "cpu_iowait_ratio", "host_load_average", _BUSIEST, *headings.CORE_LOADS}
_MOST, _LARGEST = 1.01, 2.0**62
"""A share that is rounded may exceed 1 by so much; bytes beyond any machine's."""
_LONGEST, _TOGETHER, _LISTED = 64, 10_000, 10
"""Characters of a heading, rows that are read at once, and columns that a note names."""


class _Column(NamedTuple):
    """A kept column; `bare` is a share without a stated unit: 93 is 93 %, 0.93 may be too."""

    name: str
    target: str
    scale: float
    most: float
    bare: bool


class _Table(NamedTuple):
    """What a header declares: places of the time and of kept columns; names of the time and of the rest."""

    stamps: list[int]
    kept: dict[int, _Column]
    time: str
    others: list[str]


def _find_table(header: Sequence[str]) -> _Table | None:
    """Return the columns a header declares, None where it names no time or no processor load.

    The first column of each metric counts, and every core without a column of the busiest. Beside GPU columns,
    memory is theirs unless its heading says otherwise.
    """
    # a line of no table may repeat a heading a million times
    names = [name.removeprefix("\ufeff").strip('"') for name in header]
    distinct = [name for name in dict.fromkeys(names) if len(name) <= _LONGEST]
    gpus = set(filter(_GPU.search, distinct))
    times = {name.lower(): names.index(name) for name in reversed(distinct) if headings.is_time_heading(name)}
    found: dict[tuple[str, str], _Column] = {}
    for name in distinct:
        said = None if name in gpus else headings.recognise_column(name, headings.HOST_COLUMNS)
        if said and not (gpus and said.target.startswith("host_memory") and not _OWN_MEMORY.search(name)):
            share, core = said.target.endswith("_ratio"), said.target == headings.CORE
            bare = (share or said.target in headings.CORE_LOADS) and "cores" not in headings.heading_words(name)
            scale = UNITS[said.unit].to_base(1) if said.unit else 0.01 if bare else 1.0
            most = _MOST if share or core else _LARGEST
            column = _Column(name, said.target, scale, most, bare and not said.unit)
            found.setdefault((said.target, name * core), column)
    if not times or not _LOADS & {target for target, _ in found}:
        return None
    if (_BUSIEST, "") in found:
        found = {key: column for key, column in found.items() if key[0] != headings.CORE}
    stamps = [times["date"], times["time"]] if {"date", "time"} <= times.keys() else [min(times.values())]
    kept = {names.index(column.name): column for column in found.values()}
    others = [name for place, name in enumerate(names) if name and place not in {*stamps, *kept}]
    return _Table(stamps, kept, names[stamps[-1]], others)


@lru_cache(4096)
def _read(text: str, scale: float, most: float) -> float | None:
    """Return a cell's value, NaN for what no machine has, None for no number."""
    try:
        value = float(text.replace(",", ".").rstrip("% ")) * scale
    except ValueError:
        return math.nan if headings.absence_word(text) or text == "NA" else None
    return value if 0 <= value <= most else math.nan


def _begins_table(text: str) -> bool:
    lines = tools.first_lines(text, 1)
    return any(";interval;timestamp;" not in line and _find_table(tools.split_cells(line, "")) for line in lines)


def read_csv(lines: Iterable[str], first: int, account: Account, around: object) -> Iterator[Rows]:
    """Yield the rows of such a CSV; headers may recur, also with other columns."""
    del around
    found = tools.table_rows(lines, first, account, _find_table, "")
    for table, same in groupby(found, itemgetter(1)):
        if table.others:
            account.note(f"Columns that are not kept: {list_first(table.others, _LISTED)}.")
        while part := list(islice(same, _TOGETHER)):
            numbers, _, cells = zip(*part, strict=True)
            kept, faulty = without_faults(*_decode(table, np.array(numbers), list(zip(*cells, strict=True)), account))
            for place, reason in faulty:
                account.reject(reason, numbers[place], ",".join(cells[place]))
            yield kept


def _decode(
    table: _Table, numbers: IntArray, cells: Sequence[Sequence[str]], account: Account
) -> tuple[Rows, dict[str, BoolArray]]:
    """Return rows and their faults; of several cores the busiest counts."""
    times, good, zone = read_times(list(map(" ".join, zip(*(cells[place] for place in table.stamps), strict=True))))
    utc = zone or "utc" in headings.heading_words(table.time)
    rows = Rows(numbers, times, {HOST_ROW: np.ones(len(numbers))}, "UTC" if utc else None)
    faults, found = {f"{MALFORMED} {table.time}": ~good}, dict[_Column, FloatArray]()
    for place, column in table.kept.items():
        read = [_read(text, column.scale, column.most) for text in cells[place]]
        faults[f"{MALFORMED} {column.name}"] = np.array([value is None for value in read])
        found[column] = np.array(read, dtype=np.float64)
        for text, value in zip(cells[place], read, strict=True):
            if value is not None and math.isnan(value):
                account.absent[column.name, headings.describe_absence(text)] += 1
    bare = [column for column in found if column.bare]
    shares = np.concatenate([[0.0], *(100 * found[column] for column in bare)])
    is_stated = any(column.scale == UNITS["%"].to_base(1) and not column.bare for column in found)
    if not is_stated and np.nanmax(shares) <= 1 and (shares % 1 > 0).any():
        names = ", ".join(sorted(column.name for column in bare))
        account.note(f"Nothing tells whether {names} is a share or per cent, so it is not kept: say cpu_percent.")
        found = {column: values for column, values in found.items() if not column.bare}
    for column, values in found.items():
        target = _BUSIEST if column.target == headings.CORE else column.target
        rows.data[target] = np.fmax(np.asarray(rows.data.get(target, values)), values)
    cores = {int(re.findall(r"\d+", each.name)[0]) for each in table.kept.values() if each.target == headings.CORE}
    if len(cores) > 1 and min(cores) <= 1 and max(cores) - min(cores) == len(cores) - 1:
        rows.data.setdefault("cpu_logical_cores", np.full(len(numbers), float(len(cores))))
    return rows, faults


def _explain(account: Account) -> CodedProblem:
    """Return why no row is left, and what to do."""
    reasons = ", ".join(f"{n} {reason}" for reason, (n, _) in account.rejected.items()) or "no metric"
    return f"none of its {account.lines} lines holds a value of a machine ({reasons})", _HINT, "no_usable_row"


HOST = tools.ToolLog(
    kind="host",
    title="host log",
    recognised_by=(
        "The first lines of sar, sadf, mpstat, pidstat, vmstat, top or AMDuProf, or a CSV with a time "
        "and the load of a CPU."
    ),
    sample="cpu_bound/host.csv",
    forms=(("a CSV", _begins_table, read_csv), *FORMS),
    explain=_explain,
)

"""Logs of the machine the GPUs sit in: what tools print (`host_forms`), or a CSV that a recorder of one's own wrote."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from math import nan
from typing import Any, ClassVar

import numpy as np

from gpureport.columns import BoolArray, IntArray
from gpureport.errors import CodedProblem, SourceError
from gpureport.importers import headings
from gpureport.importers.account import Account, whole_lines
from gpureport.importers.clock import read_times
from gpureport.importers.columns import (
    HOST_ROW,
    Column,
    Layout,
    Rows,
    decode,
    make_column,
    make_layout,
    scan,
    without_faults,
)
from gpureport.importers.extraction import Extraction
from gpureport.importers.protocol.importer import HEAD_BYTES, ReadOptions
from gpureport.importers.protocol.reject_reasons import MALFORMED, WRONG_CELLS
from gpureport.importers.source_text import RawFile, head_text
from gpureport.importers.source_text import head as text_head
from gpureport.parsing import UNITS

_HINT = "record what is read, with a date and a time: sar -u -r -b -P ALL 1, mpstat, pidstat, vmstat -t, or a CSV"
_FIRST_LINES = 100
"""Lines that are looked at; `top` and a shell may print some before."""


class HostLog:
    """The importer of host logs."""

    kind: ClassVar[str] = "host"
    title: ClassVar[str] = "host log"
    recognised_by: ClassVar[str] = (
        "The first lines of sar, sadf, mpstat, pidstat, vmstat, top or AMDuProf, or a CSV with a time "
        "and the load of a CPU."
    )
    sample: ClassVar[str] = "cpu_bound/host.csv"

    def identify(self, head: bytes) -> bool:
        """Return whether the first lines are those of any form."""
        return _find_form(head) is not None

    def extract(self, file: RawFile, options: ReadOptions) -> Extraction:
        """Begin to read a host log.

        Raises:
            SourceError: when it is of no known form.
        """
        form = _find_form(text_head(file.again(), HEAD_BYTES))
        if form is None:
            raise SourceError(str(file.path), "not a known host log", _HINT, code="not_a_host_log")
        read = partial(form[1], around=options.around)
        return Extraction(file, ReadOptions(tz=options.tz), read, name=form[0], explain=_explain)


def _find_form(head: bytes) -> tuple[str, Callable[..., Iterator[Rows]]] | None:
    """Return what a person calls the form of a log, and what reads it; None for any other text."""
    lines = [line.rstrip("\r") for line in head_text(head).split("\n", _FIRST_LINES)[:_FIRST_LINES] if line.strip()]
    if not lines or (";interval;timestamp;" not in lines[0] and _find_table(lines[0])):
        return ("a CSV", _read_csv) if lines else None
    from gpureport.importers.host_forms import find_form  # noqa: PLC0415 - most host logs are a CSV

    return find_form(lines)


def _explain(account: Account) -> CodedProblem:
    """Return why no row is left, and what to do."""
    reasons = ", ".join(f"{n} {reason}" for reason, (n, _) in account.rejected.items()) or "no metric"
    return f"none of its {account.lines} lines holds a value of a machine ({reasons})", _HINT, "no_usable_row"


# a CSV of a recorder: headings as people name them, a column a core

_GPU = re.compile(r"gpu|vram|nvidia|cuda|utilization\.|power\.|clocks\.|temperature\.|pstate|fan\.speed", re.IGNORECASE)
_OWN_MEMORY = re.compile(r"ram|host|sys|virtual", re.IGNORECASE)
_BUSIEST = "cpu_busiest_core_ratio"
_LOADS = {"cpu_utilization_ratio", "cpu_iowait_ratio", "host_load_average", _BUSIEST, *headings.CORE_LOADS}
_MOST, _LARGEST = 1.01, 2.0**62
"""A share that is rounded may exceed 1 by so much; bytes beyond any machine's."""
_LONGEST, _TOGETHER = 64, 10_000
"""Characters of a heading, and rows that are read at once."""
_BARE = "%?"
"""Unit of a share whose heading says none: 93 may be 93 %, or 0.93 may be."""
Table = tuple[Layout, list[int], dict[int, Column]]
"""All columns of a CSV, the places of its time, and what is kept by its place."""


def _find_table(header: str) -> Table | None:
    """Return the columns that a header declares, None where it names no time or no load of a processor.

    The first column of each metric counts, and every core where no column states the busiest one. Beside columns of
    GPUs memory is theirs unless its heading says otherwise.
    """
    delimiter = next((each for each in ",;\t" if each in header), ",")
    names = [name.strip().strip('"').removeprefix("\ufeff") for name in header.strip().split(delimiter)]
    # a line of no table may repeat a heading a million times
    distinct = [name for name in dict.fromkeys(names) if len(name) <= _LONGEST]
    gpus = set(filter(_GPU.search, distinct))
    times = {name.lower(): names.index(name) for name in reversed(distinct) if headings.is_time_heading(name)}
    kept: dict[tuple[str, str], tuple[int, Column]] = {}
    for name in distinct:
        said = None if name in gpus else headings.recognise_column(name, headings.HOST_COLUMNS)
        if said and not (gpus and said.target.startswith("host_memory") and not _OWN_MEMORY.search(name)):
            share, core = said.target.endswith("_ratio"), said.target == headings.CORE
            bare = (share or said.target in headings.CORE_LOADS) and "cores" not in headings.heading_words(name)
            scale = UNITS[said.unit].to_base(1) if said.unit else 0.01 if bare else 1.0
            read = partial(_read, scale=scale, most=_MOST if share or core else _LARGEST)
            column = Column(target=said.target, source=name, read=read, stated=said.unit or _BARE * bare)
            kept.setdefault((said.target, name * core), (names.index(name), column))
    if not times or not _LOADS & {target for target, _ in kept}:
        return None
    if (_BUSIEST, "") in kept:
        kept = {key: column for key, column in kept.items() if key[0] != headings.CORE}
    stamps = [times["date"], times["time"]] if {"date", "time"} <= times.keys() else [min(times.values())]
    layout = make_layout([make_column("", name) for name in names], delimiter=delimiter, header=header.strip())
    return layout, stamps, dict(kept.values())


def _read(text: str, *, scale: float, most: float) -> float | None:
    """Return the value of a cell, NaN for what no machine has, None where it is no number."""
    try:
        value = float(text.replace(",", ".").rstrip("% ")) * scale
    except ValueError:
        return nan if text in {"None", "null", "NA"} else None
    return value if 0 <= value <= most else nan


def _read_csv(lines: Iterable[str], first: int, account: Account, around: object) -> Iterator[Rows]:
    """Yield the rows of such a CSV; its first line is the header."""
    del around
    numbered: Iterator[tuple[int, str]] = (each for each in whole_lines(lines, first, account) if each[1])
    table = _find_table(next(numbered, (0, ""))[1])
    account.headers += 1
    while table and (block := list(islice(numbered, _TOGETHER))):
        changes = (
            (place, other)
            for place, (_, line) in enumerate(block)
            if line[:1].isalpha() and line != table[0].header and (other := _find_table(line))
        )
        end, following = next(changes, (len(block), table))
        if end < len(block):
            account.headers += 1
            numbered, block = chain(block[end + 1 :], numbered), block[:end]
        rows = [each for each in block if each[1] != table[0].header]
        account.headers += len(block) - len(rows)
        cells, odd = scan("\n".join(line for _, line in rows).encode(), table[0])
        for place in odd:
            account.reject(WRONG_CELLS, *rows[place])
        left = set(odd)
        rows = [each for place, each in enumerate(rows) if place not in left]
        if rows:
            kept, faulty = without_faults(*_decode(table, np.array([number for number, _ in rows]), cells, account))
            for place, reason in faulty:
                account.reject(reason, *rows[place])
            yield kept
        table = following


def _decode(
    table: Table, numbers: IntArray, cells: Sequence[Any], account: Account
) -> tuple[Rows, dict[str, BoolArray]]:
    """Return rows and their faults; of several cores the busiest counts."""
    layout, (*date, time), kept = table
    stamps = map(" ".join, zip(*(cells[place].to_pylist() for place in table[1]), strict=True))
    times, good, zone = read_times(list(stamps) if date else cells[time])
    faults = {f"{MALFORMED} {layout.columns[time].source}": ~good}
    utc = zone or "utc" in headings.heading_words(layout.columns[time].source)
    rows = Rows(numbers, times, {HOST_ROW: np.ones(len(numbers))}, "UTC" if utc else None)
    found = {}
    for place, column in kept.items():
        read, wrong = decode([replace(column, target=_BUSIEST)], [cells[place]], numbers)
        found[place] = np.asarray(read.data[_BUSIEST])
        gone, why = np.isnan(found[place]), read.reasons.get(column.source)
        gone &= True if why is None else why.codes < 0
        if gone.any():
            account.absent[column.source, "no value it can have"] += int(gone.sum())
        rows.reasons |= read.reasons
        faults |= wrong
    bare = [place for place, column in kept.items() if column.stated == _BARE]
    shares = np.concatenate([[0.0], *(100 * found[place] for place in bare)])
    if not any(column.stated == "%" for column in kept.values()) and np.nanmax(shares) <= 1 and (shares % 1 > 0).any():
        names = ", ".join(sorted(kept[place].source for place in bare))
        account.note(f"Nothing tells whether {names} is a share or per cent, so it is not kept: say cpu_percent.")
        found = {place: values for place, values in found.items() if place not in bare}
    for place, values in found.items():
        target = _BUSIEST if kept[place].target == headings.CORE else kept[place].target
        rows.data[target] = np.fmax(np.asarray(rows.data.get(target, values)), values)
    cores = [int(re.findall(r"\d+", each.source)[0]) for each in kept.values() if each.target == headings.CORE]
    if len(cores) > 1 and min(cores) <= 1 and max(cores) - min(cores) == len({*cores}) - 1:
        rows.data.setdefault("cpu_logical_cores", np.full(len(numbers), float(len(cores))))
    return rows, faults

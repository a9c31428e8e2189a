"""The columns of a CSV that a recorder of one's own wrote."""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gpureport.importers.logs.host.printed_numbers import parse_number
from gpureport.importers.logs.host.recorder_csv.host_columns import TIME, HostColumn, interpret_heading
from gpureport.importers.values.column_names import CORE
from gpureport.metrics import BY_NAME

_GPU = re.compile(r"gpu|vram|nvidia|cuda|utilization\.|power\.|clocks\.|temperature\.|pstate|fan\.speed", re.IGNORECASE)
_DIGITS = re.compile(r"\d+", re.ASCII)
_OWN_MEMORY = re.compile(r"ram|host|sys|virtual", re.IGNORECASE)
_BUSIEST = "cpu_busiest_core_ratio"
_LOADS = {
    "cpu_utilization_ratio",
    _BUSIEST,
    "cpu_iowait_ratio",
    "host_load_average",
    "process_cpu_cores",
    "job_cpu_cores",
}
_LONGEST, _LISTED = 64, 8
"""Characters of a heading that is looked at; columns that are named in a note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A column that is kept.

    Attributes:
        heading: its heading.
        place: its place in a row.
        metric: the metric.
        scale: what a number is multiplied with.
        core: whether it is one of several cores.
        open: whether its heading does not say if it counts per cent.
    """

    heading: str
    place: int
    metric: str
    scale: float
    core: bool = False
    open: bool = False

    @property
    def share(self) -> bool:
        """Whether it is a share of a whole."""
        return self.metric.endswith("_ratio")


@dataclass(frozen=True, slots=True, kw_only=True)
class WideLayout:
    """The columns.

    Attributes:
        header: the line that names them.
        delimiter: character between cells.
        names: the headings.
        times: places of the columns that make the time: one, or a date and a time.
        utc: whether the heading says that times are UTC.
        fields: columns that are kept.
        notes: what a reader must know of them.
    """

    header: str
    delimiter: str
    names: tuple[str, ...]
    times: tuple[int, ...]
    utc: bool
    fields: tuple[Field, ...]
    notes: tuple[str, ...] = field(default=())

    @classmethod
    def from_header(cls, delimiter: str, names: Sequence[str]) -> "WideLayout | None":
        """Return the columns a header declares, None where it names no time or no load of a processor."""
        names = [name.strip().strip('"').removeprefix("\ufeff") for name in names]
        found = _meanings(names)
        times = [place for place, each in enumerate(found) if each is not None and each.metric == TIME]
        fields = _fields(names, found)
        if not times or not _LOADS & {each.metric for each in fields}:
            return None
        plain = [names[place].lower() for place in times]
        pair = (plain.index("date"), plain.index("time")) if {"date", "time"} <= set(plain) else (0,)
        first = found[times[0]]
        return cls(
            header=delimiter.join(names),
            delimiter=delimiter,
            names=tuple(names),
            times=tuple(times[place] for place in pair),
            utc=first is not None and first.utc,
            fields=fields,
            notes=tuple(_notes(names, times, fields, found)),
        )

    @property
    def time(self) -> str:
        """The heading of the time."""
        return self.names[self.times[-1]]

    def cells(self, line: str) -> list[str] | None:
        """Return the cells of a row, None where they are not as many as the columns."""
        try:
            found = next(csv.reader([line], delimiter=self.delimiter), [])
        except csv.Error:
            return None
        if len(found) == len(self.names) + 1 and not found[-1].strip():
            found.pop()
        return found if len(found) == len(self.names) else None

    def time_text(self, cells: Sequence[str]) -> str:
        """Return the text of a row's time."""
        return " ".join(cells[place].strip() for place in self.times)

    @property
    def core_count(self) -> int | None:
        """How many cores have a column, None where their numbers do not run from 0 or 1 on without a gap."""
        numbers = sorted(
            int(found[0]) for each in self.fields if each.core and (found := _DIGITS.findall(each.heading))
        )
        first = numbers[0] if len(numbers) > 1 else -1
        return len(numbers) if first in {0, 1} and numbers == list(range(first, first + len(numbers))) else None

    def without_unclear_shares(self, rows: Sequence[Sequence[str]]) -> "WideLayout":
        """Return the columns without those of which the rows do not tell either whether they count per cent.

        What one column of shares counts in, the others do too.
        """
        shares = [each for each in self.fields if each.share]
        unclear = {each.heading for each in shares if each.open and _unclear(each, rows)}
        if not unclear or any(each.heading not in unclear and each.scale < 1 for each in shares):
            return self
        names = ", ".join(sorted(unclear)[:_LISTED])
        note = (
            f"Nothing tells whether {names} is a share or per cent: call it cpu_percent or cpu_ratio. It is not kept."
        )
        kept = tuple(each for each in self.fields if each.heading not in unclear)
        return replace(self, fields=kept, notes=(*self.notes, note))


def _meanings(names: Sequence[str]) -> list[HostColumn | None]:
    """Return what each column of the host holds; beside columns of GPUs memory is theirs unless its heading says so."""
    # a line of no table may repeat a heading a million times
    distinct = dict.fromkeys(names)
    gpus = {name for name in distinct if _GPU.search(name)}
    known = {name: interpret_heading(name) for name in distinct if len(name) <= _LONGEST and name not in gpus}
    if gpus:
        known = {
            name: found
            for name, found in known.items()
            if found is None or not found.metric.startswith("host_memory") or _OWN_MEMORY.search(name)
        }
    return [known.get(name) for name in names]


def _fields(names: Sequence[str], found: Sequence[HostColumn | None]) -> tuple[Field, ...]:
    """Return the columns that are kept: the first one of each metric, and every core."""
    fields: list[Field] = []
    taken: set[str] = set()
    for place, (name, each) in enumerate(zip(names, found, strict=True)):
        if each is None or each.metric == TIME or each.metric in taken:
            continue
        core = each.metric == CORE
        if not core:
            taken.add(each.metric)
        metric = _BUSIEST if core else each.metric
        fields.append(Field(heading=name, place=place, metric=metric, scale=each.scale, core=core, open=each.share))
    if _BUSIEST in taken:
        fields = [each for each in fields if not each.core]
    return tuple(each for each in fields if each.metric in BY_NAME)


def _notes(
    names: Sequence[str], times: Sequence[int], fields: Sequence[Field], found: Sequence[HostColumn | None]
) -> list[str]:
    kept = {each.place for each in fields} | set(times)
    others = [name for place, name in enumerate(names) if place not in kept]
    notes = []
    if others:
        notes.append(f"Columns of the host log that are not kept: {', '.join(others[:_LISTED])}.")
    taken = [
        f"{names[place]} for {each.assumed}" for place, each in enumerate(found) if each is not None and each.assumed
    ]
    if taken:
        notes.append(f"Units are powers of 1024: {', '.join(taken[:_LISTED])}.")
    return notes


def _unclear(each: Field, rows: Sequence[Sequence[str]]) -> bool:
    """Return whether values are decimals and none exceeds 1."""
    values = [value for row in rows if (value := parse_number(row[each.place].strip())) is not None]
    return bool(values) and max(values) <= 1 and any(value % 1 for value in values)

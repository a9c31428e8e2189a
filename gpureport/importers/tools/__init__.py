"""Logs of other tools than nvidia-smi: a module each, in which a function yields the rows of a form.

Here is what they share: an importer of several forms, rows of tables, JSON documents, numbers of cells, and rows of
several devices on one line.
"""

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import wraps
from itertools import groupby
from typing import Any, TypeVar

from gpureport.errors import SourceError
from gpureport.importers.account import Account
from gpureport.importers.columns import ATTRIBUTES, HOST_ROW, TIME, Rows, extra_name, parse_time, rows_from_records
from gpureport.importers.extraction import Extraction
from gpureport.importers.extraction import Form as Read
from gpureport.importers.protocol.importer import HEAD_BYTES, ReadOptions
from gpureport.importers.protocol.reject_reasons import BEFORE_HEADER, CUT_LAST_LINE, WRONG_CELLS
from gpureport.importers.quantities import convert_to_base, describe_absence, parse_finite, parse_quantity
from gpureport.importers.source_file import RawFile
from gpureport.importers.source_text import damage, head_text
from gpureport.importers.source_text import head as text_head
from gpureport.limits import LONGEST_LINE
from gpureport.parsing import UNITS, replace_half_characters

Record = dict[str, Any]
Meaning = tuple[str, str]
"""Metric or attribute of a GPU, and the unit that numbers without one count in."""
When = tuple[int, bool] | None
"""A time in microseconds, and whether it is UTC, as `parse_time` finds it."""
Form = tuple[str, Callable[[str], bool], Read]
"""What a person calls a form, what tells the beginning of a log of it, and what reads it."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ToolLog:
    """The importer of the logs of a tool, which come in one or several forms; see `DescribedSource`.

    Attributes:
        longest: bytes of a line at most, by the name of a form whose lines are longer than others.
    """

    kind: str
    title: str
    recognised_by: str
    sample: str
    forms: tuple[Form, ...]
    longest: Mapping[str, int] = field(default_factory=dict)

    def identify(self, head: bytes) -> bool:
        """Return whether a log of any of its forms begins."""
        text = head_text(head)
        return any(tells(text) for _, tells, _ in self.forms)

    def extract(self, file: RawFile, options: ReadOptions) -> Extraction:
        """Begin to read a log.

        Raises:
            SourceError: when it is of none of the forms, though a person says so.
        """
        text = head_text(text_head(file.again(), HEAD_BYTES))
        found = next(((name, read) for name, tells, read in self.forms if tells(text)), None)
        if found is None:
            names = ", ".join(name for name, *_ in self.forms)
            hint = "leave out --source-kind, or give another one"
            raise SourceError(str(file.path), f"its beginning is none of {names}", hint, code="not_of_this_kind")
        name, read = found
        return Extraction(file, options, read, name=name, longest=self.longest.get(name, LONGEST_LINE))


FEW = 20
"""Lines that say anything among which a heading or a header is looked for."""
_LONGEST = 2**20
_BEGIN = re.compile(r"[^\s,]")


def text_lines(lines: Iterable[str], first: int, account: Account) -> Iterator[tuple[int, str, bool]]:
    """Yield the lines that are not empty: number, text, and whether the log ends inside; damaged ones are rejected."""
    for number, line in enumerate(lines, first):
        if line and not line.isspace():
            if fault := damage(line):
                account.reject(fault, number, line)
            else:
                yield number, line.rstrip("\r\n"), not line.endswith("\n")


def table_rows(
    lines: Iterable[str], first: int, account: Account, find: Callable[[list[str]], T | None], delimiter: str = ","
) -> Iterator[tuple[int, T, list[str]]]:
    """Yield the rows with as many cells as the header above them: number, what `find` made of the header, cells."""
    layout: T | None = None
    width = 0
    for number, text, cut in text_lines(lines, first, account):
        row = split_cells(text, delimiter)
        # nothing behind a last delimiter is no cell
        header = row[:-1] if len(row) > 1 and not row[-1] else row
        found = None if layout is not None and text[:1].isdigit() else find(header)
        if found is not None:
            layout, width = found, len(header)
            account.headers += 1
        elif layout is None:
            account.reject(BEFORE_HEADER, number, text)
        elif cut or (len(row) != width and len(header) != width) or len(row) > width + 1:
            account.reject(CUT_LAST_LINE if cut else WRONG_CELLS, number, text)
        else:
            yield number, layout, row[:width]


def split_cells(text: str, delimiter: str = ",") -> list[str]:
    """Return the cells of a line, blanks around them left out; none where its quotes are damaged."""
    if '"' not in text:
        return [cell.strip() for cell in text.split(delimiter)]
    try:
        rows = list(csv.reader([text[:_LONGEST]], delimiter=delimiter, skipinitialspace=True, strict=True))
    except csv.Error:
        return []
    return [cell.strip() for row in rows for cell in row]


def first_rows(text: str) -> list[list[str]]:
    """Return the cells of the first lines of a text that are not empty."""
    return [split_cells(line) for line in [line for line in text.splitlines() if line.strip()][:FEW]]


def has_header(find: Callable[[list[str]], object | None], text: str) -> bool:
    """Return whether a header is among the first lines of a text, of which `find` returns what it says."""
    return any(find(row) is not None for row in first_rows(text))


def parse_documents(text: str) -> list[Any] | None:
    """Return the JSON documents of a text one after the other, None when it is not made of such."""
    text, at = replace_half_characters(text), 0
    decoder, found = json.JSONDecoder(), list[Any]()
    while match := _BEGIN.search(text, at):
        try:
            content, at = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            # nested too deeply, or a number of thousands of digits
            return None
        found.append(content)
    return found


_QUANTITY = re.compile(
    r"([+-]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*(%|°?[A-Za-z]+(?:/s)?)?",
    re.ASCII,
)
_SPELLINGS = {"celsius": "C", "watt": "W", "watts": "W", "mb": "MB", "mib": "MiB", "gb": "GiB", "GB": "GiB", "w": "W"}
"""Units in other spellings; GB are those of a card, of 1024³ bytes, as MB are."""


def parse_cell(cell: object, unit: str, metric: str) -> float | int | None:
    """Return what a cell says of a metric in its base unit, None when it is no value of it; its own unit wins."""
    if not isinstance(cell, str):
        return parse_quantity(cell, unit, metric)
    match = _QUANTITY.fullmatch(cell.strip())
    if match is None:
        return None
    written = match[2] or unit
    written = _SPELLINGS.get(written, _SPELLINGS.get(written.lower(), written))
    number = parse_finite(match[1].replace(",", ""))
    fits = written in UNITS and UNITS[written].base == UNITS[unit].base
    return convert_to_base(number, written, metric) if fits and number is not None else None


def take_number(record: Record, account: Account, source: str, cell: object, meaning: Meaning) -> None:
    """Put a number of a cell into a record in the base unit, or count it as absent under the name the log gives it."""
    value = parse_cell(cell, meaning[1], meaning[0])
    if value is None:
        account.absent[source, describe_absence(cell)] += 1
    else:
        record[meaning[0]] = value


def take_cells(
    record: Record, account: Account, cells: Iterable[tuple[str, Any]], meanings: Mapping[str, Meaning]
) -> Record:
    """Put what cells say into a record: metrics, attributes, and others as text; return the record."""
    for name, cell in cells:
        target, unit = meanings.get(name, ("", ""))
        if target in ATTRIBUTES:
            record |= {target: cell} if cell and isinstance(cell, str) else {}
        elif target:
            take_number(record, account, name, cell, (target, unit))
        elif isinstance(cell, str | int | float) and cell != "" and name:
            record[extra_name(name)] = str(cell)
    return record


def describe_cores(loads: Sequence[float]) -> Record:
    """Return what the load of each core says of the machine."""
    mean = sum(loads) / len(loads)
    return {"cpu_utilization_ratio": mean, "cpu_busiest_core_ratio": max(loads), "cpu_logical_cores": len(loads)}


def parse_stamp(text: str) -> When:
    """Return the time a text states; a zone may stand behind a blank."""
    return parse_time(re.sub(r" ?(?:(?:UTC|GMT)|([+-]\d\d:?\d\d))$", lambda zone: zone[1] or "Z", text.strip()))


def parse_with(text: str, pattern: str) -> When:
    """Return the time a text states in a pattern of `strptime`."""
    try:
        return parse_time(datetime.strptime(text, pattern).isoformat())
    except (ValueError, OverflowError):
        return None


def split_devices(number: int, when: When, devices: Mapping[int | None, Record]) -> Iterator[Record]:
    """Yield what a line says of several devices, by the index of each GPU; None stands for the machine."""
    for gpu, record in devices.items():
        name = {HOST_ROW: True} if gpu is None else {"index": str(gpu)}
        yield {"line": number, **say_when(when), **name, **record}


def say_when(when: When) -> Record:
    """Return the time of a record, with the zone that it states."""
    return {TIME: None} if when is None else {TIME: when[0], "zone": "UTC" if when[1] else None}


def form(records: Callable[..., Iterator[Record]]) -> Callable[..., Iterator[Rows]]:
    """Make a form of what yields records: further ones of a line get the next numbers; `zone` is that of a time."""

    @wraps(records)
    def read(lines: Iterable[str], first: int, account: Account, **more: Any) -> Iterator[Rows]:
        found = _number(records(lines, first, account, **more))
        for zone, part in groupby(found, lambda record: record.pop("zone", None)):
            yield from rows_from_records(part, zone)

    return read


def _number(records: Iterable[Record]) -> Iterator[Record]:
    last = 0
    for record in records:
        last = record["line"] = max(last + 1, record["line"])
        yield record

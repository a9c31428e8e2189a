"""Logs of other tools than nvidia-smi: a module each, in which a function yields the rows of a form.

Here is what they share: numbers of cells, rows of several devices on one line, cells in quotes and JSON documents.
"""

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from itertools import groupby
from typing import Any

from gpureport.importers.account import Account
from gpureport.importers.columns import HOST_ROW, TIME, Rows, parse_time, rows_from_records
from gpureport.importers.quantities import describe_absence, parse_quantity
from gpureport.importers.source_text import damage
from gpureport.json_text import replace_half_characters

Record = dict[str, Any]
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


def take_number(record: Record, account: Account, source: str, cell: object, meaning: tuple[str, str]) -> None:
    """Put a number of a cell into a record in the base unit, or count it as absent.

    Args:
        record: what a row says.
        account: counts a cell that holds no value of its metric.
        source: name that the log gives the column.
        cell: text or number.
        meaning: metric, and the unit the cell counts in.
    """
    target, unit = meaning
    value = parse_quantity(cell, unit, target)
    if value is None:
        account.absent[source, describe_absence(cell)] += 1
    else:
        record[target] = value


def parse_stamp(text: str) -> tuple[int, bool] | None:
    """Return the time a text states, in microseconds, and whether it is UTC; a zone may stand behind a blank."""
    return parse_time(re.sub(r" ?(?:(?:UTC|GMT)|([+-]\d\d:?\d\d))$", lambda zone: zone[1] or "Z", text.strip()))


def split_devices(number: int, when: tuple[int, bool] | None, devices: Mapping[int | None, Record]) -> Iterator[Record]:
    """Yield what a line says of several devices, by the index of each GPU; None stands for the machine."""
    for gpu, record in devices.items():
        name = {HOST_ROW: True} if gpu is None else {"index": str(gpu)}
        yield {"line": number, **say_when(when), **name, **record}


def say_when(when: tuple[int, bool] | None) -> Record:
    """Return the time of a record, with the zone that it states; `when` is what `parse_time` found."""
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


def split_cells(text: str, delimiter: str = ",") -> list[str]:
    """Return the cells of a line, blanks around them left out; none where its quotes are damaged."""
    if '"' not in text:
        return [cell.strip() for cell in text.split(delimiter)]
    try:
        rows = list(csv.reader([text[:_LONGEST]], delimiter=delimiter, skipinitialspace=True, strict=True))
    except csv.Error:
        return []
    return [cell.strip() for row in rows for cell in row]


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

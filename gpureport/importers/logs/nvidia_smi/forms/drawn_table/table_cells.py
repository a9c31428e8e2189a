"""The cells of the table of GPUs: each holds several fields."""

import re
from dataclasses import dataclass
from functools import lru_cache

from gpureport.importers.logs.nvidia_smi.query import fields
from gpureport.importers.values.cells import Absent, Column, Value, absent

_WORDS = r"N/A|ERR!|On|Off"
_WIDEST = 200
"""A cell that is wider is none."""
SHORTENED = "shortened"
"""Why a name that ends in dots is no model: several models begin with it."""

Meaning = Value | Absent | None
"""What a cell holds of a field; None where it is not what the field holds."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cell:
    """What one cell holds.

    Attributes:
        names: query fields in the order of the groups of the pattern.
        pattern: what the cell looks like.
    """

    names: tuple[str, ...]
    pattern: re.Pattern[str]


_BUS = r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]"
_BLANK = Cell(names=(), pattern=re.compile(r".*"))
_CELLS = (
    (
        Cell(names=("index", "name"), pattern=re.compile(rf" *(\d+) +(\S.*?) +(?:{_WORDS}|WDDM|TCC|MCDM) *", re.ASCII)),
        Cell(names=("pci.bus_id",), pattern=re.compile(rf" *({_BUS}|N/A|ERR!) +(?:{_WORDS}) *")),
        Cell(names=("ecc.errors.uncorrected.volatile.total",), pattern=re.compile(r" *(\S+) *")),
    ),
    (
        Cell(
            names=("fan.speed", "temperature.gpu", "pstate", "power.draw", "enforced.power.limit"),
            pattern=re.compile(r" *(\S+) +(\S+) +(\S+) +(N/A|[^\s/]+) */ *(\S+) *"),
        ),
        Cell(
            names=("memory.used", "memory.total"),
            # MIG and integrated GPUs show one text in place of both
            pattern=re.compile(r" *(?:N/A|Not Supported|(N/A|[^\s/]+) */ *(\S+)) *"),
        ),
        Cell(names=("utilization.gpu",), pattern=re.compile(r" *(\S+) +\S.*")),
    ),
    (_BLANK, _BLANK, Cell(names=("mig.mode.current",), pattern=re.compile(r" *(\S*) *"))),
)
"""Cells of the two or three lines of a GPU."""


def cells(line: bytes) -> list[bytes]:
    """Return what stands between the bars of a line."""
    return line.split(b"|")[1:-1]


def read_line(place: int, line: bytes) -> dict[str, Meaning]:
    """Return what a line of the table of GPUs says, by query field.

    Args:
        place: which of the lines of a GPU it is, from 0.
        line: the line, with four bars.
    """
    found: dict[str, Meaning] = {}
    for cell, text in zip(_CELLS[place], cells(line), strict=True):
        meanings = _read(cell, text) if len(text) <= _WIDEST else (None,) * len(cell.names)
        found.update(zip(cell.names, meanings, strict=True))
    return found


@lru_cache(100_000)
def _read(cell: Cell, text: bytes) -> tuple[Meaning, ...]:
    match = cell.pattern.fullmatch(text.decode(errors="replace"))
    if match is None:
        return (None,) * len(cell.names)
    whole = match[0].strip()
    return tuple(
        Absent(whole) if part is None else _meaning(name, part)
        for name, part in zip(cell.names, match.groups(), strict=True)
    )


def _meaning(name: str, text: str) -> Meaning:
    if name == "name" and text.endswith("..."):
        return Absent(SHORTENED)
    if name == "ecc.errors.uncorrected.volatile.total" and text in {"Off", "On"}:
        # a board shows its ECC mode in place of a number where it counts no errors: Off, or On with MIG
        return Absent(text)
    return absent(text) or _READERS[name](text)


def _column(name: str) -> Column:
    column = fields.parse_query_field(name)
    if column is None:
        raise AssertionError(name)
    return column


_COLUMNS = {name: _column(name) for line in _CELLS for cell in line for name in cell.names}
# a name of the driver's that it would not write is a name all the same
_READERS = {name: column.read for name, column in _COLUMNS.items()} | {"name": str}
TARGETS = {name: column.target for name, column in _COLUMNS.items()}
"""Metric or attribute of each query field."""

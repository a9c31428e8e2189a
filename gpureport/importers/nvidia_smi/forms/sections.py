"""Sections of `nvidia-smi -q`, one a GPU, to rows: read from text and from XML alike."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from gpureport.importers.chunks import Record
from gpureport.importers.delimited.cells import Absent, Column, Value, absent
from gpureport.importers.delimited.parts import LineKind, OddLine
from gpureport.importers.nvidia_smi import fields
from gpureport.importers.nvidia_smi.forms.query_paths import PART_KINDS, PARTS, column
from gpureport.importers.reasons import MALFORMED, NO_READING
from gpureport.metrics import BY_NAME

MINOR = "minor_number"
"""Path of the number of a GPU's device file."""
_DIGITS = 4
_REMEMBERED = 100_000
_LONGEST = 200
"""Characters of a value at most."""
_EXTRAS = 32
"""Values without a metric that are kept at most."""
_WORDS = re.compile(r"[A-Za-z][A-Za-z/' .-]{1,79}")
"""An error of the driver in the place of a value: words without a number."""
NUMBERED = (
    "GPUs are numbered by their minor numbers, as the log shows only some of those that are attached; nvidia-smi may "
    "number them otherwise."
)
KEPT = (
    "Of each section of nvidia-smi -q what is measured is kept; modes, versions, thresholds and lists of processes are "
    "not."
)


def small(text: str) -> int | None:
    """Return a number from 0 to 9999, None for another text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else None


@dataclass(slots=True, kw_only=True)
class Section:
    """What a log says of one GPU at one time.

    Attributes:
        number: the line it begins in.
        bus_id: the GPU.
        text: that line.
        cells: texts by path, of the paths that are kept.
        minor: number of its device file, empty where it is not said.
        flaw: why it cannot be used, empty where it can.
    """

    number: int
    bus_id: str
    text: str
    cells: dict[str, str] = field(default_factory=dict)
    minor: str = ""
    flaw: str = ""

    def take(self, path: str, text: str) -> bool:
        """Take a cell that is kept; return whether nothing else stood in its place before."""
        if path == MINOR:
            number = small(text)
            self.minor = "" if number is None else str(number)
            return True
        return self.cells.setdefault(path, text) == text


@dataclass(slots=True, kw_only=True)
class Document:
    """What `nvidia-smi -q` writes at one time.

    Attributes:
        time: its time as written, in microseconds; None where it has none.
        driver: version of the driver.
        attached: how many GPUs the machine has, None where it is not said.
        sections: its GPUs.
        head: its lines above and below them.
    """

    time: int | None = None
    driver: str | None = None
    attached: int | None = None
    sections: list[Section] = field(default_factory=list)
    head: list[OddLine] = field(default_factory=list)


INSTANT = (
    "The log holds no average power: gpu_power_watts is the instant reading, which is what nvidia-smi calls power.draw "
    "on GPUs older than Ampere."
)
_POWER, _INSTANT = "gpu_power_watts", "gpu_power_instant_watts"


class _Unknown:
    """Stands for a path that was not met yet."""


_UNKNOWN = _Unknown()


class _Spoilt(Exception):  # noqa: N818 - it never leaves the module
    """A cell is not what its column holds."""


class Sections:
    """Turns documents into rows.

    Attributes:
        absent: cells without a value so far, by query field and reason.
        silent: columns of which a cell has no value.
        averaged: whether power is an average over a second.
        notes: what a reader must know.
    """

    def __init__(self) -> None:
        """Start with nothing read."""
        self.absent: Counter[tuple[str, str]] = Counter()
        self.silent: dict[str, None] = {}
        self.averaged = False
        self.notes: dict[str, None] = {}
        self._columns: dict[str, Column | None] = {}
        self._extras: set[str] = set()
        self._known: dict[tuple[str, str], Value | Absent | None] = {}
        self._indices: dict[str, str] = {}

    def kept(self, path: str) -> bool:
        """Return whether the value at a path is kept."""
        found = self._columns.get(path, _UNKNOWN)
        return (self._column(path) if isinstance(found, _Unknown) else found) is not None

    def _column(self, path: str) -> Column | None:
        """Return how the value at a path is read; None where it is not kept: damage may make up ever new names."""
        if path not in self._columns:
            if len(self._columns) > _REMEMBERED:
                self._columns.clear()
            found = column(path)
            if found is not None and found.target not in BY_NAME and found.target.startswith("extra_"):
                self._extras |= {found.target} if len(self._extras) < _EXTRAS else set()
                found = found if found.target in self._extras else None
            self._columns[path] = found
        return self._columns[path]

    def read(self, document: Document) -> tuple[list[Record], list[OddLine]]:
        """Return the rows of a document, and the sections that are none."""
        records, odd = [], []
        self._number(document)
        for section in document.sections:
            absent: Counter[tuple[str, str]] = Counter()
            try:
                values = self._values(section.cells, absent)
            except _Spoilt as spoilt:
                values, section.flaw = {}, section.flaw or f"{MALFORMED} {spoilt}"
            if section.flaw or not self._measures(section.cells):
                odd.append(OddLine(section.number, LineKind.REJECTED, section.flaw or NO_READING, section.text))
                continue
            self.absent.update(absent)
            values |= self._names(document, section)
            records.append(Record(number=section.number, time=document.time, values=values))
        if records:
            self.notes[KEPT] = None
        return records, odd

    def _measures(self, cells: Mapping[str, str]) -> bool:
        """Return whether any cell is one of a metric, with a value or without."""
        return any((found := self._column(path)) is not None and found.target in BY_NAME for path in cells)

    def _values(self, cells: Mapping[str, str], absent: Counter[tuple[str, str]]) -> dict[str, Value]:
        """Return the values of cells by metric or attribute."""
        found: dict[str, Value] = {}
        parts: dict[str, dict[str, Value | Absent]] = {}
        for path, text in cells.items():
            known = self._column(path)
            assert known is not None  # noqa: S101 - sections hold cells that are kept
            value = self._cell(path, text, known)
            if path in PARTS:
                parts.setdefault(known.source, {})[path] = value
            elif isinstance(value, Absent):
                absent[known.source, value.reason] += 1
                self.silent[known.target] = None
            elif known.target not in found or known.source in fields.PREFERRED:
                self.averaged = self.averaged or known.source == "power.draw.average"
                found[known.target] = value
        if absent["power.draw.average", "N/A"] and _INSTANT in found and not (self.averaged or _POWER in found):
            found[_POWER] = found[_INSTANT]
            self.notes[INSTANT] = None
        return found | self._added(parts, absent)

    def _added(
        self, parts: Mapping[str, Mapping[str, Value | Absent]], absent: Counter[tuple[str, str]]
    ) -> dict[str, Value]:
        """Return the sums of fields that are written in parts; none where a part has no value, or a kind is missing."""
        found: dict[str, Value] = {}
        for source, values in parts.items():
            target = fields.target(source) or source
            missing = next((value for value in values.values() if isinstance(value, Absent)), None)
            kinds = {path.rpartition("/")[2].partition("_")[0] for path in values}
            if missing is not None:
                absent[source, missing.reason] += 1
                self.silent[target] = None
            elif kinds == PART_KINDS:
                found[target] = sum(int(value) for value in values.values() if not isinstance(value, Absent))
        return found

    def _cell(self, path: str, text: str, known: Column) -> Value | Absent:
        if len(text) > _LONGEST:
            raise _Spoilt(known.source)
        key = (path, text)
        if key not in self._known:
            if len(self._known) > _REMEMBERED:
                self._known.clear()
            self._known[key] = _read(known, text)
        value = self._known[key]
        if value is None:
            raise _Spoilt(known.source)
        return value

    def _names(self, document: Document, section: Section) -> dict[str, Value]:
        """Return what tells the GPU apart besides what its section says."""
        names = {"bus_id": section.bus_id, "index": self._indices.get(section.bus_id), "driver": document.driver}
        return {name: text for name, text in names.items() if text}

    def _number(self, document: Document) -> None:
        """Give GPUs that are new their index: their place, where all are listed, else the minor number."""
        new = [section for section in document.sections if section.bus_id not in self._indices]
        if not new:
            return
        buses = [section.bus_id for section in document.sections]
        whole = len(set(buses)) == len(buses) == document.attached
        taken = set(self._indices.values())
        for section in new:
            index = str(buses.index(section.bus_id)) if whole else section.minor
            if index and index not in taken:
                self._indices[section.bus_id] = index
                taken.add(index)
                if not whole:
                    self.notes[NUMBERED] = None


def _read(known: Column, text: str) -> Value | Absent | None:
    """Return what a text holds; None where it is not what its column holds."""
    why = absent(text)
    if why is not None:
        return why
    value = known.read(text.removesuffix("x") if known.target.startswith("pcie_link_width") else text)
    return Absent(text) if value is None and _WORDS.fullmatch(text) else value

"""`nvidia-smi dmon`, as text or CSV: a row a GPU and tick under a pair of headings that is written again and again."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from gpureport.columns import BoolArray, IntArray
from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.delimited.layout import Layout
from gpureport.importers.delimited.parsing import TableReader
from gpureport.importers.delimited.row_sections import LineKind, Section
from gpureport.importers.devices.column_values import Values, columns_by_target
from gpureport.importers.logs.nvidia_smi.forms.monitors import day_clock, dmon_columns
from gpureport.importers.logs.nvidia_smi.forms.monitors.aligned_columns import CUT, AlignedLines, Odd
from gpureport.importers.logs.nvidia_smi.forms.monitors.dmon_columns import CLOCK, DAY, INSTANCE
from gpureport.importers.protocol.reject_reasons import (
    BEFORE_HEADER,
    CUT_LAST_LINE,
    MALFORMED,
    MIG_INSTANCE,
    WRONG_CELLS,
)
from gpureport.importers.text.text_log import Chunk

_HEADINGS = re.compile(r"(?:date[\s,]+)?(?:time[\s,]+)?gpu[\s,]+\S.*", re.IGNORECASE | re.DOTALL)
_UNITS = re.compile(r"(?:yyyymmdd[\s,]+)?(?:hh:mm:ss[\s,]+)?idx\b.*", re.IGNORECASE | re.DOTALL)
# Python before 3.11.5 goes on behind a comma that no number follows (gh-106052)
_BARE = re.compile(r"\s*\d{8}[ ,] *\d\d:\d\d:\d\d((?: *, *(?:\d++|-))++)(?<=[\d-])\s*")
"""A row of `--format csv,noheader -o DT`."""
_MOST_COLUMNS = 500
"""Headings in a line at most, as in a header of `--query-gpu`."""
_DAY_ONLY = "dmon -o D writes the day alone, which is no time of a row."
_MIG = "Rows of MIG instances are left out: what an instance does is no figure of its GPU."


@dataclass(frozen=True, slots=True)
class _Heading:
    """The headings in force: as they stand in the log, and what they declare."""

    names: bytes = b""
    units: bytes = b""
    layout: Layout | None = None


@dataclass(frozen=True, slots=True)
class _Run:
    begin: int
    end: int
    layout: Layout | None


class Dmon:
    """Reads `nvidia-smi dmon`."""

    name: ClassVar[str] = "nvidia-smi dmon"
    zone: str | None = None
    averaged: bool = False

    def __init__(self) -> None:
        self._tables = TableReader()
        self._heading = self._before = _Heading()
        self._clock = day_clock.DayClock()

    @staticmethod
    def opens(line: str) -> bool:
        """Return whether a line is a heading of dmon, its units, or a row of a CSV that has neither."""
        return bool(_names(line) or _measured(line)) or _assumed(line) is not None

    def chunks(self, log: Iterable[Piece]) -> Iterator[Chunk]:
        """Yield of each piece the lines that are no rows, then a chunk for each stretch under the same headings."""
        for lines in map(AlignedLines.from_piece, log):
            odd = Odd(lines)
            rows = [chunk for run in list(self._runs(lines, odd)) for chunk in self._rows(lines, run, odd)]
            yield odd.chunk((CUT,) if lines.cut else ())
            yield from rows

    def _runs(self, lines: AlignedLines, odd: Odd) -> Iterator[_Run]:
        begin = 0
        for place in lines.marked.tolist():
            if lines.damaged[place]:
                odd.add(place, LineKind.REJECTED, lines.damage(place))
                continue
            text, before = lines.line(place), self._heading.layout
            declares = self._declares(text, odd)
            if declares or text.startswith(b"#"):
                odd.add(place, LineKind.HEADER if declares else LineKind.NOISE)
            if self._heading.layout is not before:
                if begin < place:
                    yield _Run(begin, place, before)
                begin = place + 1
        if begin < len(lines):
            self._assume(lines, begin, odd)
            yield _Run(begin, len(lines), self._heading.layout)

    def _declares(self, text: bytes, odd: Odd) -> bool:
        """Return whether a line is one of headings or units; what it declares is in force from now on."""
        heading = self._heading
        if text in {heading.names, heading.units}:
            return True
        written = text.decode(errors="replace")
        names, units = _names(written), _units(written)
        if names:
            self._before, self._heading = heading, _Heading(text, b"", dmon_columns.declared(names))
        elif units and heading.names:
            self._heading = self._with_units(heading, text, units)
        elif measured := _measured(written):
            self._heading = _Heading(units=text, layout=dmon_columns.declared(measured, units))
            named = " ".join(name for name in measured if name not in {"Date", "Time"})
            odd.note(f"dmon wrote units and no names (noheader); its columns are taken for {named}.")
        return bool(names or units)

    def _with_units(self, heading: _Heading, text: bytes, units: tuple[str, ...]) -> _Heading:
        """Return headings with their units; those before where there are not as many of these, so that one is torn."""
        names = _names(heading.names.decode(errors="replace"))
        if len(names) == len(units):
            return _Heading(heading.names, text, dmon_columns.declared(names, units))
        return heading if self._before.layout is None else self._before

    def _assume(self, lines: AlignedLines, begin: int, odd: Odd) -> None:
        """Take the columns of a CSV without headings, where its first row tells them."""
        first = next((place for place in range(begin, len(lines)) if lines.cells[place]), None)
        if self._heading.layout is None and first is not None:
            names = _assumed(lines.line(first).decode(errors="replace"))
            if names is not None:
                self._heading = _Heading(layout=dmon_columns.declared(("Date", "Time", *names)))
                odd.note(f"dmon wrote no header; its columns are taken for {' '.join(names)}.")

    def _rows(self, lines: AlignedLines, run: _Run, odd: Odd) -> Iterator[Chunk]:
        places = run.begin + np.flatnonzero(lines.cells[run.begin : run.end] > 0)
        places = places[~odd.taken[places]]
        wanted = -1 if run.layout is None else len(run.layout.columns)
        fits = (lines.cells[places] == wanted) & ~lines.damaged[places]
        for place in places[~fits].tolist():
            odd.add(place, LineKind.REJECTED, _why(lines, place, run.layout))
        places = places[fits]
        if run.layout is None or not len(places):
            return
        read = self._tables.read(lines.block(places), run.layout, lines.piece.first_line + places)
        if read is None:
            msg = "lines with the right number of cells must parse"
            raise AssertionError(msg)
        section, faults = read
        bad = np.zeros(len(places), dtype=np.bool_)
        for reason, wrong in (faults | _unusable(section)).items():
            for place in places[wrong & ~bad].tolist():
                odd.add(place, LineKind.REJECTED, reason)
            bad |= wrong
            odd.note(*[_MIG] if reason == MIG_INSTANCE and wrong.any() else [])
        if not bad.all():
            yield self._chunk(section.select(~bad) if bad.any() else section, odd)

    def _chunk(self, section: Section, odd: Odd) -> Chunk:
        data = columns_by_target(section)
        every = np.ones(len(section.numbers), dtype=np.bool_)
        return Chunk(
            numbers=section.numbers,
            times=self._times(section, data, odd),
            data={name: values for name, values in data.items() if name not in _NO_SERIES},
            lines=len(section.numbers),
            absent={
                (section.layout.columns[position].source, reason): cells
                for position, decoded in section.columns.items()
                for reason, cells in decoded.absences(every).items()
                if section.layout.columns[position].source.lower() not in INSTANCE
            },
        )

    def _times(self, section: Section, data: dict[str, Values], odd: Odd) -> IntArray | None:
        """Return the times of rows, None where dmon wrote none."""
        if section.layout.stamp is not None:
            return section.times
        if CLOCK in data:
            odd.note(day_clock.NOTE)
            return self._clock.times(data[CLOCK].data)
        odd.note(*[_DAY_ONLY] if DAY in data else [])
        return None


_NO_SERIES = frozenset({CLOCK, DAY, *(f"extra_{name}" for name in INSTANCE)})


def _split(text: str) -> list[str]:
    return text.replace(",", " ").split()


@lru_cache(256)
def _names(line: str) -> tuple[str, ...]:
    """Return the headings in a line, none where it is no line of dmon's headings."""
    text = line.lstrip()
    signed, text = text.startswith("#"), text.lstrip("#, \t")
    if not _HEADINGS.fullmatch(text):
        return ()
    names = tuple(_split(text))
    if len(names) > _MOST_COLUMNS:
        return ()
    rest = [name.lower() for name in names if name.lower() not in {"date", "time", "gpu", *INSTANCE}]
    told = sum(map(dmon_columns.known, rest))
    return names if "pid" not in rest and told and (signed or 1 < told == len(rest)) else ()


@lru_cache(256)
def _units(line: str) -> tuple[str, ...]:
    """Return the units in a line, none where it is no line of dmon's units."""
    text = line.lstrip("#, \t")
    return tuple(_split(text)) if _UNITS.fullmatch(text) else ()


@lru_cache(256)
def _measured(line: str) -> tuple[str, ...]:
    """Return the headings that a line of units stands for, none where it does not tell them."""
    units = _units(line) if line.lstrip().startswith("#") else ()
    stamp = ("Date", "Time")[: units.index("Idx")] if "Idx" in units[:3] else ()
    if units[: len(stamp)] != ("YYYYMMDD", "HH:MM:SS")[: len(stamp)]:
        return ()
    names = dmon_columns.measured_in(units[len(stamp) + 1 :])
    return (*stamp, "gpu", *names) if names else ()


def _assumed(line: str) -> tuple[str, ...] | None:
    """Return the headings of a row of CSV that has none, None where its cells do not tell."""
    match = _BARE.fullmatch(line)
    cells = match[1].count(",") if match else 0
    return {len(names): names for names in (dmon_columns.DEFAULT, dmon_columns.ALL)}.get(cells)


def _unusable(section: Section) -> dict[str, BoolArray]:
    """Return the rows that name no GPU or a part of one, by why."""
    found: dict[str, BoolArray] = {}
    for position, column in enumerate(section.layout.columns):
        if column.source.lower() in INSTANCE:
            found[MIG_INSTANCE] = found.get(MIG_INSTANCE, np.False_) | section.columns[position].valid()
        elif column.target in {"index", CLOCK}:
            found[f"{MALFORMED} {column.source}"] = ~section.columns[position].valid()
    return found


def _why(lines: AlignedLines, place: int, layout: Layout | None) -> str:
    if lines.damaged[place]:
        return lines.damage(place)
    if layout is None:
        return BEFORE_HEADER
    return CUT_LAST_LINE if lines.cut and place == len(lines) - 1 else WRONG_CELLS

"""The lines of a piece that is not clean, told apart: rows, headers, messages, and what is damaged.

Lines that look like rows stay together and are parsed at once; only the others are looked at one by one. A run of
NUL bytes breaks a line in two, and what is left on either side is believed only where it must be whole.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from gpureport.columns import IntArray
from gpureport.importers.delimited.cells import CUT_CELL
from gpureport.importers.delimited.layout import Layout
from gpureport.importers.delimited.line_table import LineTable, is_text
from gpureport.importers.delimited.parts import Dialect, LineKind, OddLine, Parsed, Section
from gpureport.importers.delimited.pieces import Piece
from gpureport.importers.delimited.stamps import STAMP
from gpureport.importers.delimited.tables import TableReader
from gpureport.importers.reasons import BEFORE_HEADER, CUT_LAST_LINE, NOT_TEXT, NUL_BYTES, TORN, WRONG_CELLS

_COMPLETE = re.compile(r".*(?:%|MiB|W|MHz|\]|Active|abled|N/A)|0x[0-9A-Fa-f]{16}")
"""Cells that cannot be the beginning of a longer one."""
_BLANK = b"\r\t "
_LONGEST = 4096
"""A line longer than this does not end in a header."""
_TRIED = 8
"""Places in a line at which a header may begin that are looked at, those at its end."""


@dataclass(frozen=True, slots=True)
class _Fragment:
    """A line, or what is left of one on one side of damage.

    Attributes:
        number: its line.
        text: what it says.
        unreadable: why it is no text; empty when it is.
        cut_start: what its beginning was lost to; empty when it was not.
        cut_end: what its end was lost to; empty when it was not.
    """

    number: int
    text: str
    unreadable: str = ""
    cut_start: str = ""
    cut_end: str = ""


@dataclass(slots=True)
class _Rows:
    """Rows of one layout, in the order of the log."""

    data: list[bytes] = field(default_factory=list)
    numbers: list[IntArray] = field(default_factory=list)

    def add(self, data: bytes, numbers: IntArray) -> None:
        """Take rows."""
        self.data.append(data)
        self.numbers.append(numbers)


@dataclass(slots=True)
class _Collected:
    """The rows of a piece by their layout.

    Attributes:
        layout: layout in force.
        rows: the rows of each.
        runs: layout and last line of each run of rows between two headers that change the layout.
    """

    layout: Layout | None
    rows: dict[Layout, _Rows] = field(default_factory=dict)
    runs: list[tuple[Layout, int]] = field(default_factory=list)

    def add(self, data: bytes, numbers: IntArray) -> None:
        """Take rows of the layout in force."""
        if self.layout is None:
            msg = "rows have a layout"
            raise AssertionError(msg)
        self.rows.setdefault(self.layout, _Rows()).add(data, numbers)
        last = int(numbers[-1])
        if self.runs and self.runs[-1][0] == self.layout:
            self.runs[-1] = self.layout, last
        else:
            self.runs.append((self.layout, last))


class Lines:
    """Parses a piece with regard to each of its lines."""

    def __init__(self, dialect: Dialect, tables: TableReader) -> None:
        """Start without lines."""
        self._dialect = dialect
        self._tables = tables
        self._odd: list[OddLine] = []
        self._lines = 0
        self._looked_at: dict[Layout | None, IntArray] = {}

    def parse(self, piece: Piece, layout: Layout | None) -> Parsed:
        """Return what the piece holds, given the layout in force before it."""
        table, rows = LineTable.of(piece), _Collected(layout)
        line = 0
        while line < len(table):
            line = self._until_header(table, line, rows)
        sections = tuple(self._read(rows))
        odd = tuple(sorted(self._odd, key=lambda line: line.number))
        return Parsed(layout=rows.layout, sections=sections, odd=odd, lines=self._lines, cut=table.cut)

    def _until_header(self, table: LineTable, begin: int, rows: _Collected) -> int:
        """Sort lines until a header changes the layout; return the line after it."""
        layout = rows.layout
        if layout not in self._looked_at:
            self._looked_at[layout] = table.odd(layout)
        odd = self._looked_at[layout]
        for place in odd[np.searchsorted(odd, begin) :]:
            self._take(table, begin, int(place), rows)
            begin = int(place) + 1
            last = table.cut and begin == len(table)
            for fragment in _fragments(table.raw(begin - 1), table.first + begin - 1, last=last):
                self._sort(fragment, rows)
            if rows.layout != layout:
                return begin
        self._take(table, begin, len(table), rows)
        return len(table)

    def _take(self, table: LineTable, begin: int, end: int, rows: _Collected) -> None:
        """Take lines that look like rows as they are."""
        if begin < end:
            rows.add(table.block(begin, end), table.numbers(begin, end))
            self._lines += end - begin

    def _sort(self, fragment: _Fragment, rows: _Collected) -> None:
        """Put one line, or what is left of it, where it belongs."""
        self._lines += 1
        header = self._header(fragment, rows.layout)
        if header is not None:
            rows.layout = header
            self._odd.append(OddLine(fragment.number, LineKind.HEADER, "", fragment.text))
            return
        begins = self._header_behind(fragment, rows.layout)
        if begins:
            self._sort(replace(fragment, text=fragment.text[:begins], cut_end=TORN), rows)
            self._sort(replace(fragment, text=fragment.text[begins:]), rows)
            self._lines -= 1
            return
        row = None if fragment.unreadable or rows.layout is None else _row(fragment, rows.layout)
        if row is not None:
            rows.add(*_one(row, fragment.number))
            return
        whole = _torn_off(fragment, rows.layout)
        if whole is not None:
            self._lines += 1
            rows.add(*_one(whole, fragment.number))
        delimiter = rows.layout.delimiter if rows.layout else ","
        self._reject(fragment, TORN if whole else _why(fragment, rows.layout), delimiter)

    def _header(self, fragment: _Fragment, layout: Layout | None) -> Layout | None:
        """Return the layout a line declares, None when it is no header that is whole and can be believed."""
        if fragment.unreadable or fragment.cut_start or fragment.cut_end in {NUL_BYTES, TORN}:
            return None
        header = self._dialect.header(fragment.text.strip())
        return header if header is not None and header.replaces(layout) else None

    def _header_behind(self, fragment: _Fragment, layout: Layout | None) -> int:
        """Return where a header begins behind something else, 0 where none does.

        A log that was killed inside a line and appended to has its next header there.
        """
        text = fragment.text
        if fragment.unreadable or len(text) > _LONGEST:
            return 0
        words = ["timestamp", *([layout.header.split(layout.delimiter)[0]] if layout and layout.header else [])]
        places = {match.start() for word in words for match in re.finditer(re.escape(word), text)} - {0}
        nearest = sorted(places)[-_TRIED:]
        return next((at for at in nearest if self._header(replace(fragment, text=text[at:]), layout)), 0)

    def _reject(self, fragment: _Fragment, reason: str, delimiter: str = ",") -> None:
        kind = LineKind.REJECTED if fragment.unreadable else self._dialect.classify(fragment.text.strip())
        cells = fragment.text.count(delimiter) + 1 if reason == WRONG_CELLS else 0
        self._odd.append(OddLine(fragment.number, kind, reason, fragment.text, cells))

    def _read(self, rows: _Collected) -> Iterator[Section]:
        """Yield the rows in the order of the log, each layout parsed at once."""
        read = {layout: self._table(layout, found) for layout, found in rows.rows.items()}
        if len(read) == 1:
            yield from (section for section in read.values() if len(section.times))
            return
        done = dict.fromkeys(read, 0)
        for layout, last in rows.runs:
            section, start = read[layout], done[layout]
            done[layout] = end = int(np.searchsorted(section.numbers, last, side="right"))
            if start < end:
                yield section.select(slice(start, end))

    def _table(self, layout: Layout, rows: _Rows) -> Section:
        """Read the rows of a layout; those with a cell that is not what its column holds are rejected."""
        data, numbers = b"".join(rows.data), np.concatenate(rows.numbers)
        found = self._tables.read(data, layout, numbers)
        if found is None:
            msg = "lines with the right number of cells must parse"
            raise AssertionError(msg)
        section, faults = found
        bad = np.zeros(len(numbers), dtype=np.bool_)
        for reason, wrong in faults.items():
            self._reject_rows(data, numbers, np.flatnonzero(wrong & ~bad), reason)
            bad |= wrong
        return section.select(~bad) if bad.any() else section

    def _reject_rows(self, data: bytes, numbers: IntArray, places: IntArray, reason: str) -> None:
        texts = data.split(b"\n") if len(places) else []
        for place in places.tolist():
            self._reject(_Fragment(int(numbers[place]), texts[place].decode(errors="replace").strip("\r")), reason)


def _one(text: str, number: int) -> tuple[bytes, IntArray]:
    """Return one row as bytes, and its line."""
    return text.encode() + b"\n", np.array([number], dtype=np.int64)


def _fragments(raw: bytes, number: int, *, last: bool) -> list[_Fragment]:
    """Return a line, or its parts between runs of NUL bytes; none where it is blank."""
    parts = raw.split(b"\0")
    found = []
    for place, part in enumerate(parts):
        if part.strip(_BLANK):
            text = part.decode(errors="replace").strip("\r\ufeff")
            cut_end = NUL_BYTES if place < len(parts) - 1 else CUT_LAST_LINE if last else ""
            found.append(
                _Fragment(number, text, "" if is_text(part) else NOT_TEXT, NUL_BYTES if place else "", cut_end)
            )
    return found


def _row(fragment: _Fragment, layout: Layout) -> str | None:
    """Return a line as a row of the layout, None when it is none.

    Cells before the time stamp that the header does not name are left out. The last cell of a line that was cut,
    and the first of one whose beginning is lost, are marked as cut unless they must be whole.
    """
    cells = fragment.text.split(layout.delimiter)
    surplus = len(cells) - len(layout.columns)
    if surplus > 0 and layout.stamp is not None and not _is_stamp(cells[layout.stamp]):
        cells = cells[surplus:] if _is_stamp(cells[layout.stamp + surplus]) else cells
    if len(cells) == len(layout.columns) + 1 and not cells[-1].strip():
        # a delimiter behind the last cell
        cells.pop()
    if len(cells) != len(layout.columns):
        return None
    if fragment.cut_end and not _COMPLETE.fullmatch(cells[-1].strip()):
        cells[-1] = CUT_CELL
    if fragment.cut_start and layout.stamp != 0:
        cells[0] = CUT_CELL
    return layout.delimiter.join(cells)


def _is_stamp(cell: str) -> bool:
    return STAMP.fullmatch(cell.strip()) is not None


def _torn_off(fragment: _Fragment, layout: Layout | None) -> str | None:
    """Return the whole row at the end of a line that begins with a part of another, None when there is none."""
    if layout is None or layout.stamp != 0 or fragment.unreadable or fragment.cut_end:
        return None
    starts = [match.start() for match in STAMP.finditer(fragment.text) if match.start()]
    return next((row for start in starts if (row := _row(_Fragment(0, fragment.text[start:]), layout))), None)


def _why(fragment: _Fragment, layout: Layout | None) -> str:
    damage = fragment.unreadable or fragment.cut_start
    if damage or layout is None:
        return damage or BEFORE_HEADER
    return fragment.cut_end or WRONG_CELLS

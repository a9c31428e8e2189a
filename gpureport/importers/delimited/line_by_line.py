"""Sorts the lines of a piece that is not clean into rows, headers, messages and damage.

Lines that look like rows are parsed together; only the others are examined one by one. A run of NUL bytes breaks a
line in two, and either part counts only where it must be whole.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gpureport.columns import BoolArray, IntArray
from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.delimited.layout import STAMP, Layout
from gpureport.importers.delimited.line_table import LineTable
from gpureport.importers.delimited.row_fragments import (
    Fragment,
    cells_before_stamp,
    complete_row,
    rejection_reason,
    row_behind_torn_part,
    split_fragments,
)
from gpureport.importers.delimited.row_sections import Dialect, LineKind, NonDataLine, ParsedPiece, Section
from gpureport.importers.delimited.rows_by_layout import RowsByLayout
from gpureport.importers.protocol.reject_reasons import MALFORMED, NUL_BYTES, TORN, WRONG_CELLS

_LONGEST = 4096
"""A line longer than this does not end in a header."""
_TRIED = 8
"""How many places in a line, counted from its end, are tried as the beginning of a header."""
_SHORT, _KNOWN = 64, 10_000
"""Longest line that is remembered, and how many: a line that is no row usually comes again."""


ReadRows = Callable[[bytes, Layout, IntArray], tuple[Section, dict[str, BoolArray]] | None]
_Known = NonDataLine | str
"""What a line is: a line that is no row, or the text of a row."""


class LineByLineParser:
    """Parses a piece with regard to each of its lines."""

    def __init__(self, dialect: Dialect, read: ReadRows) -> None:
        """Start without lines; `read` reads rows of one layout, and tells which faults they have."""
        self._dialect = dialect
        self._read = read
        self._other_lines: list[NonDataLine] = []
        self._lines = 0
        self._unnamed_cells: Counter[str] = Counter()
        self._non_rows: dict[Layout | None, list[int]] = {}
        self._begins = _header_start_pattern(None)

    def parse(self, piece: Piece, layout: Layout | None) -> ParsedPiece:
        """Return what the piece holds, given the layout in force before it."""
        table, rows = LineTable.from_piece(piece), RowsByLayout(layout)
        line = 0
        while line < len(table):
            line = self._until_header(table, line, rows)
        sections = tuple(rows.sections(self._table))
        other_lines = tuple(sorted(self._other_lines, key=lambda line: line.number))
        return ParsedPiece(
            layout=rows.layout,
            sections=sections,
            other_lines=other_lines,
            lines=self._lines,
            cut=table.cut,
            unnamed_cells=self._unnamed_cells,
        )

    def _until_header(self, table: LineTable, begin: int, rows: RowsByLayout) -> int:
        """Sort lines until a header changes the layout; return the line after it."""
        layout = rows.layout
        if layout not in self._non_rows:
            self._non_rows[layout] = table.find_non_rows(layout).tolist()
        self._begins = _header_start_pattern(layout)
        non_rows = self._non_rows[layout]
        known: dict[bytes, _Known] = {}
        for at in range(bisect_left(non_rows, begin), len(non_rows)):
            place = non_rows[at]
            self._take(table, begin, place, rows)
            begin = place + 1
            raw, number = table.raw(place), table.first + place
            last = table.cut and begin == len(table)
            again = known.get(raw) if not last else None
            if again is not None:
                self._repeat(again, number, rows)
                continue
            found = self._look(raw, number, rows, last=last)
            if rows.layout != layout:
                return begin
            if found is not None and not last and len(raw) <= _SHORT and len(known) < _KNOWN:
                known[raw] = found
        self._take(table, begin, len(table), rows)
        return len(table)

    def _take(self, table: LineTable, begin: int, end: int, rows: RowsByLayout) -> None:
        """Take lines that look like rows as they are."""
        if begin < end:
            rows.add(table.block(begin, end), table.numbers(begin, end))
            self._lines += end - begin

    def _repeat(self, known: _Known, number: int, rows: RowsByLayout) -> None:
        """Take a line that equals an earlier one below the same header."""
        self._lines += 1
        if isinstance(known, str):
            rows.add_one(known, number)
        else:
            self._other_lines.append(NonDataLine(number, known.kind, known.reason, known.text, known.cells))

    def _look(self, raw: bytes, number: int, rows: RowsByLayout, *, last: bool) -> _Known | None:
        """Examine one line; return what it is if an equal line would be the same."""
        parts = split_fragments(raw, number, last=last)
        found = [self._sort(part, rows) for part in parts]
        return found[0] if len(found) == 1 and b"\0" not in raw else None

    def _sort(self, fragment: Fragment, rows: RowsByLayout) -> _Known | None:
        """Sort one line, or what is left of it; return what it is when it is one thing."""
        self._lines += 1
        layout = rows.layout
        header = self._header(fragment, layout)
        if header is not None:
            rows.layout = header
            self._other_lines.append(NonDataLine(fragment.number, LineKind.HEADER, "", fragment.text))
            return None
        begins = self._header_behind(fragment, layout)
        if begins:
            self._sort(replace(fragment, text=fragment.text[:begins], cut_end=TORN), rows)
            self._sort(replace(fragment, text=fragment.text[begins:]), rows)
            self._lines -= 1
            return None
        if fragment.unreadable or layout is None:
            return self._reject(fragment, rejection_reason(fragment, layout))
        whole = complete_row(fragment, layout)
        if whole is not None:
            before = cells_before_stamp(fragment, layout)
            if before:
                self._unnamed_cells[before] += 1
            rows.add_one(whole, fragment.number)
            return None if before else whole
        rest = row_behind_torn_part(fragment, layout)
        if rest is None:
            return self._reject(fragment, rejection_reason(fragment, layout), layout.delimiter)
        rows.add_one(rest, fragment.number)
        self._tear_off(fragment)
        return None

    def _header(self, fragment: Fragment, layout: Layout | None) -> Layout | None:
        """Return the layout a line declares, None when it is no header that is whole and can be believed."""
        if fragment.unreadable or fragment.cut_start or fragment.cut_end in {NUL_BYTES, TORN}:
            return None
        header = self._dialect.header(fragment.text.strip())
        return header if header is not None and header.replaces(layout) else None

    def _header_behind(self, fragment: Fragment, layout: Layout | None) -> int:
        """Return where a header begins behind something else, 0 where none does.

        A log that was killed inside a line and appended to has its next header there.
        """
        text = fragment.text
        if fragment.unreadable or not 1 < len(text) <= _LONGEST:
            return 0
        places = [match.start() for match in self._begins.finditer(text) if match.start()][-_TRIED:]
        return next((at for at in places if self._header(replace(fragment, text=text[at:]), layout)), 0)

    def _reject(self, fragment: Fragment, reason: str, delimiter: str = ",") -> NonDataLine:
        kind = LineKind.REJECTED if fragment.unreadable else self._dialect.classify(fragment.text.strip())
        cells = fragment.text.count(delimiter) + 1 if reason == WRONG_CELLS else 0
        self._other_lines.append(NonDataLine(fragment.number, kind, reason, fragment.text, cells))
        return self._other_lines[-1]

    def _tear_off(self, fragment: Fragment) -> None:
        """Take the part of another line that stands before a row; a message of the driver counts as a line."""
        message = self._dialect.classify(fragment.text.strip()) is LineKind.EVENT
        self._lines += message
        kind = LineKind.EVENT if message else LineKind.TORN_OFF
        self._other_lines.append(NonDataLine(fragment.number, kind, TORN, fragment.text))

    def _table(self, data: bytes, layout: Layout, numbers: IntArray) -> Section:
        """Read the rows of a layout; those with a cell that is not what its column holds are rejected."""
        found = self._read(data, layout, numbers)
        if found is None:
            msg = "lines with the right number of cells must parse"
            raise AssertionError(msg)
        section, faults = found
        if (untorn := self._without_torn_stamps(data, layout, numbers, faults)) != data:
            return self._table(untorn, layout, numbers)
        bad = np.zeros(len(numbers), dtype=np.bool_)
        for reason, wrong in faults.items():
            self._reject_rows(data, numbers, np.flatnonzero(wrong & ~bad), reason)
            bad |= wrong
        return section.select(~bad) if bad.any() else section

    def _without_torn_stamps(
        self, data: bytes, layout: Layout, numbers: IntArray, faults: dict[str, BoolArray]
    ) -> bytes:
        """Return rows without the parts of stamps that others were torn onto."""
        stamp = "" if layout.stamp is None else f"{MALFORMED} {layout.columns[layout.stamp].source}"
        if stamp not in faults:
            return data
        texts = data.split(b"\n")
        for place in np.flatnonzero(faults[stamp]).tolist():
            fragment = Fragment(int(numbers[place]), texts[place].decode(errors="replace").strip("\r"))
            if (rest := row_behind_torn_part(fragment, layout)) is not None:
                texts[place] = rest.encode()
                self._tear_off(fragment)
        return b"\n".join(texts)

    def _reject_rows(self, data: bytes, numbers: IntArray, places: IntArray, reason: str) -> None:
        texts = data.split(b"\n") if len(places) else []
        for place in places.tolist():
            self._reject(Fragment(int(numbers[place]), texts[place].decode(errors="replace").strip("\r")), reason)


def _header_start_pattern(layout: Layout | None) -> "re.Pattern[str]":
    """Return what finds where a header may begin: as the one in force does, or with the time stamp."""
    first = layout.header.split(layout.delimiter)[0] if layout and layout.header else STAMP
    return re.compile("|".join(map(re.escape, {STAMP, first})))

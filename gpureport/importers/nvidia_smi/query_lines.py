"""The lines of CSV of `nvidia-smi --query-gpu` to rows: a block at once where it is clean, else line by line.

What damage left is looked at closely: rows behind a torn part, parts of a line on both sides of NUL bytes, a header at
the end of a row, and a last line that is cut.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpureport.columns import BoolArray, IntArray, read_codes
from gpureport.importers.account import NOISE, Account, is_driver_message
from gpureport.importers.columns import CUT, TIME, Column, Rows, decode
from gpureport.importers.nvidia_smi.drawn_tables import parse_printed_time
from gpureport.importers.nvidia_smi.headers import replaces
from gpureport.importers.protocol.reject_reasons import (
    BEFORE_HEADER,
    CUT_LAST_LINE,
    MALFORMED,
    NOT_TEXT,
    NUL_BYTES,
    TORN,
    WRONG_CELLS,
)
from gpureport.importers.source_text import Piece
from gpureport.importers.tables import Layout, scan, without_faults

STAMP = re.compile(r"(?:\d{4}([/-])\d\d\1\d\d[ T]|\d{8}[ T])\d\d:\d\d:\d\d(?:[.,]\d{1,6})?")
"""A stamp as nvidia-smi writes it, found anywhere in a line."""
_COMPLETE = re.compile(r".*(?:%|MiB|W|MHz|\]|Active|abled|N/A)|0x[0-9A-Fa-f]{16}")
"""Cells that cannot be the beginning of a longer one."""
CUT_NOTE = "The log has no newline at its end, so its last line may be cut."
_MOST_RUNS = 16
"""Runs of NUL bytes in a line with something worth looking at between them: damage leaves one or two."""
_LONGEST, _TRIED = 4096, 8
"""A line longer than this does not end in a header; and places in a line that are tried as the beginning of one."""
_FEW_BARE, _PLENTY = 3, 20
"""Cells that alone lack a unit at most, and the rows that show it (pragmatic)."""
_RUN = 3
"""Rows in a row that lack the unit of all others, up to which they are no rows of a log without stamps (pragmatic)."""
Header = Callable[[str], Layout | None]
"""Returns the columns that a line declares, None for any other line."""


@dataclass(slots=True)
class Fragment:
    """A line, or what is left of one on one side of damage; not frozen, as that costs more than reading it.

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


def split_fragments(raw: bytes, number: int, *, last: bool) -> list[Fragment]:
    """Return a line, or its parts between runs of NUL bytes where these are few; none where it is blank."""
    parts = raw.split(b"\0")
    if len(parts) > _MOST_RUNS:
        text = b"".join(parts).decode(errors="replace").strip("\r\ufeff")
        return [Fragment(number, text, NUL_BYTES)] if text.strip() else []
    found = []
    for place, part in enumerate(parts):
        text = part.decode(errors="replace").strip("\r\ufeff")
        if text.strip("\r\t "):
            cut_end = NUL_BYTES if place < len(parts) - 1 else CUT_LAST_LINE if last else ""
            unreadable = NOT_TEXT if "\ufffd" in text else ""
            found.append(Fragment(number, text, unreadable, NUL_BYTES if place else "", cut_end))
    return found


def _is_stamp(cell: str) -> bool:
    return STAMP.fullmatch(cell.strip()) is not None


def complete_row(fragment: Fragment, layout: Layout) -> tuple[list[str], str] | None:
    """Return the cells of a line that is a row, and those before its time stamp that no heading names; None for no row.

    The last cell of a line that was cut, and the first of one whose beginning is lost, are marked as cut unless they
    must be whole.
    """
    cells, width, stamp, before = fragment.text.split(layout.delimiter), len(layout.columns), layout.stamp, ""
    surplus = len(cells) - width
    if surplus > 0 and stamp is not None and not _is_stamp(cells[stamp]) and _is_stamp(cells[stamp + surplus]):
        before, cells = layout.delimiter.join(cells[:surplus]).strip(), cells[surplus:]
    if len(cells) == width + 1 and not cells[-1].strip():
        # a delimiter behind the last cell
        cells.pop()
    if len(cells) != width:
        return None
    if fragment.cut_end and not _COMPLETE.fullmatch(cells[-1].strip()):
        cells[-1] = f"[{CUT}]"
    if fragment.cut_start and stamp != 0:
        cells[0] = f"[{CUT}]"
    return cells, before


def row_behind_torn_part(fragment: Fragment, layout: Layout) -> list[str] | None:
    """Return the whole row at the end of a line that begins with a part of another, None when there is none."""
    width = len(layout.columns)
    if layout.stamp != 0 or fragment.cut_end or fragment.text.count(layout.delimiter) < width - 1:
        return None
    # a row begins within as many cells from the end as it has, one more for a delimiter behind its last
    ahead = fragment.text.rsplit(layout.delimiter, width + 1)
    begin = len(ahead[0]) + 1 if len(ahead) > width + 1 else 1
    starts = (match.start() for match in STAMP.finditer(fragment.text, begin))
    rows = (complete_row(Fragment(0, fragment.text[start:]), layout) for start in starts)
    return next((row[0] for row in rows if row), None)


@dataclass(slots=True)
class QueryLines:
    """The lines of one log.

    Attributes:
        header: what recognises a header.
        account: counts the lines that are no rows.
        layout: layout in force, None before the first header.
        damaged: numbers of lines that were rows and are rejected.
        misaligned: columns of the header and cells of the row, of lines rejected for that.
        unnamed: what stands before the time stamps of rows without a heading.
        dates: lines that hold a date and nothing else, and their times.
        torn: lines of which a part was left out.
        ended: whether the last block was read.
    """

    header: Header
    account: Account
    layout: Layout | None = None
    damaged: list[int] = field(default_factory=list)
    misaligned: Counter[tuple[int, int]] = field(default_factory=Counter)
    unnamed: Counter[str] = field(default_factory=Counter)
    torn: list[int] = field(default_factory=list)
    dates: list[tuple[int, int]] = field(default_factory=list)
    ended: bool = False
    _rows: list[tuple[Layout, list[bytes], list[int]]] = field(default_factory=list)

    def read(self, piece: Piece, scanned: "tuple[Layout, Scan] | None" = None) -> Iterator[tuple[Layout, Rows]]:
        """Yield the rows of a block, each stretch with its layout.

        Args:
            piece: the block.
            scanned: its cells, where they were parsed ahead for a layout.
        """
        self.ended = piece.last
        found = self._clean(piece, scanned)
        if found is None:
            yield from self._line_by_line(piece)
        else:
            yield found

    def _clean(self, piece: Piece, scanned: "tuple[Layout, Scan] | None") -> tuple[Layout, Rows] | None:
        """Return the rows of a block that has no other line but a header at its beginning, None for any other."""
        data, first, layout = piece.data, piece.first_line, self.layout
        end = data.find(b"\n") + 1
        declared = self.header(data[:end].decode(errors="replace").strip()) if data[:1].isalpha() else None
        if declared is not None:
            if not replaces(declared, layout):
                return None
            layout, data, first, scanned = declared, data[end:], first + 1, None
        blank = layout is not None and len(layout.columns) == 1 and b"\n\n" in data
        if layout is None or not data.endswith(b"\n") or b"\0" in data or blank or not is_text(data):
            return None
        cells, odd = scanned[1] if scanned and scanned[0] is layout else scan(data, layout)
        if odd:
            return None
        rows, faults = decode_rows(layout, cells, np.arange(first, first + len(cells[0]), dtype=np.int64))
        if faults:
            return None
        self.account.headers += declared is not None
        self.layout = layout
        return layout, rows

    def _line_by_line(self, piece: Piece) -> Iterator[tuple[Layout, Rows]]:
        """Yield the rows of a block whose lines are looked at where they do not look like rows."""
        cut = piece.last and bool(piece.data) and not piece.data.endswith(b"\n")
        lines = piece.data.split(b"\n")
        lines = lines if cut else lines[:-1]
        self.account.note(*[CUT_NOTE] if cut else [])
        begin, self._rows = 0, []
        odd: dict[Layout | None, list[int]] = {}
        while begin < len(lines):
            layout = self.layout
            if layout not in odd:
                odd[layout] = _odd_lines(piece.data, len(lines), layout, cut=cut)
            start = begin
            for place in (each for each in odd[layout] if each >= start):
                self._take(lines[begin:place], piece.first_line + begin)
                begin = place + 1
                for part in split_fragments(lines[place], piece.first_line + place, last=cut and begin == len(lines)):
                    self._sort(part)
                if self.layout is not layout:
                    break
            else:
                self._take(lines[begin:], piece.first_line + begin)
                begin = len(lines)
        yield from self._parse()

    def _take(self, lines: Sequence[bytes], first: int, *, numbers: Sequence[int] = ()) -> None:
        """Take lines that are rows of the layout in force."""
        if not lines or self.layout is None:
            return
        if not self._rows or self._rows[-1][0] is not self.layout:
            self._rows.append((self.layout, [], []))
        self._rows[-1][1].extend(lines)
        self._rows[-1][2].extend(numbers or range(first, first + len(lines)))

    def _sort(self, fragment: Fragment) -> None:
        """Sort one line, or what is left of it."""
        layout = self.layout
        header = self._header(fragment)
        if header is not None:
            self.layout = layout if layout == header else header
            self.account.headers += 1
            return
        if begins := self._header_behind(fragment):
            self._sort(replace(fragment, text=fragment.text[:begins], cut_end=TORN))
            self._sort(replace(fragment, text=fragment.text[begins:]))
            return
        if fragment.unreadable or layout is None:
            self._reject(fragment, fragment.unreadable or fragment.cut_start or BEFORE_HEADER)
            return
        whole = complete_row(fragment, layout)
        if whole is not None:
            self.unnamed.update([whole[1]] if whole[1] else [])
            self._take([layout.delimiter.join(whole[0]).encode()], fragment.number)
        elif (rest := row_behind_torn_part(fragment, layout)) is not None:
            self._tear_off(fragment)
            self._take([layout.delimiter.join(rest).encode()], fragment.number)
        else:
            self._reject(fragment, fragment.cut_start or fragment.cut_end or WRONG_CELLS)

    def _header(self, fragment: Fragment) -> Layout | None:
        """Return the layout a line declares, None when it is no header that is whole and can be believed."""
        if fragment.unreadable or fragment.cut_start or fragment.cut_end in {NUL_BYTES, TORN}:
            return None
        header = self.header(fragment.text.strip())
        return header if header is not None and replaces(header, self.layout) else None

    def _header_behind(self, fragment: Fragment) -> int:
        """Return where a header begins behind something else, 0 where none does.

        A log that was killed inside a line and appended to has its next header there.
        """
        text = fragment.text
        if fragment.unreadable or not 1 < len(text) <= _LONGEST:
            return 0
        names = {
            TIME,
            self.layout.header.split(self.layout.delimiter)[0] if self.layout and self.layout.header else TIME,
        }
        begins = re.compile("|".join(map(re.escape, names)))
        places = [match.start() for match in begins.finditer(text) if match.start()][-_TRIED:]
        return next((at for at in places if self._header(replace(fragment, text=text[at:]))), 0)

    def _reject(self, fragment: Fragment, reason: str) -> None:
        text, layout = fragment.text.strip(), self.layout
        if fragment.unreadable:
            self.account.reject(reason, fragment.number, text)
        else:
            self.account.sort_out(fragment.number, text, reason)
            if NOISE.fullmatch(text) and (time := parse_printed_time(text)) is not None:
                self.dates.append((fragment.number, time[0]))
            if is_driver_message(text) or NOISE.fullmatch(text):
                return
        if layout is not None:
            if reason == WRONG_CELLS:
                self.misaligned[len(layout.columns), fragment.text.count(layout.delimiter) + 1] += 1
            self._note_damaged(fragment, layout)

    def _tear_off(self, fragment: Fragment) -> None:
        """Take the part of another line that stands before a row; a message of the driver counts as a line."""
        if is_driver_message(fragment.text.strip()):
            self.account.message(fragment.number, fragment.text)
        else:
            self.torn.append(fragment.number)
            if self.layout is not None:
                self._note_damaged(fragment, self.layout)

    def _note_damaged(self, fragment: Fragment, layout: Layout) -> None:
        """Keep that a line was a row: a number or a time stamp stands where its column has one, beside other cells."""
        cells = fragment.text.split(layout.delimiter)
        if len(cells) > 1 and any(_fits(cell.strip(), each) for cell, each in zip(cells, layout.columns, strict=False)):
            self.damaged.append(fragment.number)

    def _parse(self) -> Iterator[tuple[Layout, Rows]]:
        """Yield the rows that were taken, in the order of the log, after parsing those of each layout at once."""
        taken, self._rows = self._rows, []
        parsed: dict[Layout, Rows] = {}
        for layout in dict.fromkeys(layout for layout, *_ in taken):
            lines = [line for each, some, _ in taken if each == layout for line in some]
            numbers = [number for each, _, some in taken if each == layout for number in some]
            parsed[layout] = self._rows_of(layout, lines, numbers)
        for layout, _, numbers in taken:
            rows = parsed[layout]
            if len(parsed) > 1:
                rows = rows.select(np.flatnonzero((rows.lines >= numbers[0]) & (rows.lines <= numbers[-1])))
            if len(rows):
                yield layout, rows

    def _rows_of(self, layout: Layout, lines: list[bytes], numbers: list[int]) -> Rows:
        """Return lines as rows; those with a cell that is not what its column holds are rejected."""
        cells, odd = scan(b"\n".join([*lines, b""]), layout)
        if odd:
            msg = "lines with the right number of cells must parse"
            raise AssertionError(msg)
        rows, faults = decode_rows(layout, cells, np.array(numbers, dtype=np.int64))
        stamp = "" if layout.stamp is None else f"{MALFORMED} {layout.columns[layout.stamp].source}"
        if stamp in faults:
            mended = False
            for place in np.flatnonzero(faults[stamp]).tolist():
                fragment = Fragment(numbers[place], lines[place].decode(errors="replace").strip("\r"))
                if (rest := row_behind_torn_part(fragment, layout)) is not None:
                    lines[place], mended = layout.delimiter.join(rest).encode(), True
                    self._tear_off(fragment)
            if mended:
                return self._rows_of(layout, lines, numbers)
        rows, found = without_faults(rows, faults)
        for place, reason in sorted(found):
            self._reject(Fragment(numbers[place], lines[place].decode(errors="replace").strip("\r")), reason)
        return rows

    def notes(self) -> Iterator[str]:
        """Yield what a reader must know of lines of which a part was left out."""
        from gpureport.redaction import redact_start  # noqa: PLC0415 - most logs need none

        if self.torn:
            several = f"{len(self.torn)} torn lines (the first is line {min(self.torn)}) end"
            torn = several if len(self.torn) > 1 else f"Line {self.torn[0]} is torn and ends"
            yield f"{torn} in a whole row: the row is kept, what stands before it is left out."
        if self.unnamed:
            rows = self.unnamed.total()
            texts = [redact_start(text, 60) for text, _ in self.unnamed.most_common(3)]
            holds = f"{rows} rows hold" if rows > 1 else "1 row holds"
            yield f"{holds} cells before the time stamp that have no heading ({'; '.join(texts)}): they are left out."


Scan = tuple[list["pa.Array[Any]"], list[int]]


def _fits(cell: str, column: Column) -> bool:
    """Return whether a cell is what its column holds, where that is not any text."""
    return _is_stamp(cell) if column.target == TIME else column.unit != "" and column.read(cell) is not None


def _odd_lines(data: bytes, count: int, layout: Layout | None, *, cut: bool) -> list[int]:
    """Return the lines of a block that do not look like rows of the layout."""
    if layout is None:
        return list(range(count))
    text = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    ends = np.append(ends, len(data)) if cut else ends
    starts = np.append(0, ends[:-1] + 1)
    first = np.where(ends > starts, text[np.minimum(starts, len(text) - 1)], 0)
    letter = ((first | 0x20) >= ord("a")) & ((first | 0x20) <= ord("z"))
    odd = (_count(text == ord(layout.delimiter), starts, ends) != len(layout.columns) - 1) | (ends - starts <= 1)
    odd |= letter | (first > 127) | (first == 0)  # noqa: PLR2004 - ASCII
    if len(layout.columns) == 1:
        odd |= (first < ord("0")) | (first > ord("9"))
    if b"\0" in data:
        odd |= _count(text == 0, starts, ends) > 0
    if not is_text(data):
        odd |= _count(text > 127, starts, ends) > 0  # noqa: PLR2004 - ASCII
    for header in re.finditer(TIME.encode(), data):
        # what stands in headers and in no row: a line with it may end in a header
        odd[np.searchsorted(ends, header.start())] = True
    odd[-1] |= cut
    return [int(place) for place in np.flatnonzero(odd)]


def is_text(data: bytes) -> bool:
    """Return whether bytes are UTF-8."""
    try:
        return data.isascii() or bool(data.decode())
    except UnicodeDecodeError:
        return False


def _count(marks: BoolArray, starts: IntArray, ends: IntArray) -> IntArray:
    """Return how many marked bytes each line holds."""
    places = np.flatnonzero(marks)
    counted: IntArray = np.searchsorted(places, ends) - np.searchsorted(places, starts)
    return counted


def decode_rows(layout: Layout, cells: Sequence[Any], numbers: IntArray) -> tuple[Rows, dict[str, BoolArray]]:
    """Return lines as rows, and for each fault the rows that have it: cells that lack a unit are some as well."""
    rows, faults = decode(layout.columns, cells, numbers)
    torn = _without_unit(layout.columns[-1], cells[-1])
    if torn is not None and 0 < torn.sum() <= _FEW_BARE and len(torn) >= _PLENTY:
        # a line torn inside its last cell
        alone = torn.copy()
        alone[1:] &= ~torn[:-1]
        alone[:-1] &= ~torn[1:]
        faults |= {TORN: alone} if alone.any() else {}
    if layout.stamp is None:
        for column, texts in zip(layout.columns, cells, strict=True):
            bare = _without_unit(column, texts)
            if bare is None or 2 * bare.sum() > len(bare):
                continue
            # numbers that a job prints have none; a log may go on with `nounits`, but not for some rows only
            for start, end in pairwise([0, *(np.flatnonzero(np.diff(bare)) + 1).tolist(), len(bare)]):
                bare[start:end] &= end - start <= _RUN
            name = f"{MALFORMED} {column.source}"
            faults |= {name: faults.get(name, np.False_) | bare} if bare.any() else {}
    return rows, faults


def _without_unit(column: Column, cells: Any) -> BoolArray | None:
    """Return where a number has no unit of its own in a column in which others have; None where all are alike."""
    if not column.unit:
        return None
    texts = pc.utf8_rtrim_whitespace(cells.dictionary)
    ends_bare = pc.match_substring_regex(texts, r"[0-9]$")
    count = pc.sum(ends_bare).as_py() or 0
    if not count or count == len(texts):
        return None
    bare = np.array(ends_bare.to_pylist(), dtype=np.bool_)
    numbers = bare | np.array(pc.match_substring_regex(texts, r"^\s*[+-]?[0-9]").to_pylist(), dtype=np.bool_)
    codes = read_codes(cells.indices)
    return None if bare[numbers].all() else bare[codes]

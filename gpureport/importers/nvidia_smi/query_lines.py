"""The lines of CSV of `nvidia-smi --query-gpu` to rows: a block at once where it is clean, else line by line.

What damage left is looked at closely: rows behind a torn part, parts of a line on both sides of NUL bytes, a header at
the end of a row, and a last line that is cut.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpureport.columns import BoolArray, IntArray, integers, read_codes
from gpureport.importers.account import NOISE, Account, is_driver_message
from gpureport.importers.columns import CUT, NAMES, TIME, Column, Layout, Rows, Texts, decode, scan, without_faults
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

_STAMP = r"(?:\d{4}([/-])\d\d\1\d\d[ T]|\d{8}[ T])\d\d:\d\d:\d\d(?:[.,]\d{1,6})?"
_ENDS_IN_STAMP = re.compile(rf"{_STAMP}\s*$")
_COMPLETE = re.compile(r".*(?:%|MiB|W|MHz|\]|Active|abled|N/A)|0x[0-9A-Fa-f]{16}")
"""Cells that cannot be the beginning of a longer one."""
CUT_NOTE = "The log has no newline at its end, so its last line may be cut."
_ODD = ("\0", "\ufffd", TIME)
"""What no sound row holds: NUL bytes, what is no UTF-8, and what a header begins with."""
_MOST_RUNS = 16
"""Runs of NUL bytes in a line with something worth looking at between them: damage leaves one or two."""
_LONGEST = 4096
"""A line longer than this does not end in a header."""
_NEAR, _SHARE = 3, 0.1
"""Rows on both sides, and so many in a row, and share of the rows that may lack a unit by damage (pragmatic)."""
Scan = tuple[list["pa.Array[Any]"], list[int]]


def complete_row(line: str, layout: Layout, before: str = "", after: str = "") -> tuple[list[str], str] | None:
    """Return the cells of the row that a line ends in, and what stands before it; None where it ends in no row.

    Args:
        line: a line, or a part of one.
        layout: columns of the row.
        before: what the beginning of the line was lost to, empty where it was not.
        after: what its end was lost to. The last cell is marked as cut unless it must be whole.
    """
    cells, width = line.split(layout.delimiter), len(layout.columns)
    if len(cells) == width + 1 and not cells[-1].strip():
        # a delimiter behind the last cell
        cells.pop()
    if len(cells) < width:
        return None
    torn, cells = "".join(each + layout.delimiter for each in cells[:-width]), cells[-width:]
    stamp = _ENDS_IN_STAMP.search(cells[0]) if layout.stamp == 0 else None
    if stamp is not None:
        torn, cells[0] = torn + cells[0][: stamp.start()], stamp[0]
    elif torn or before:
        return None
    if after and not _COMPLETE.fullmatch(cells[-1].strip()):
        if layout.columns[-1].target in NAMES:
            return None
        cells[-1] = f"[{CUT}]"
    return cells, torn.strip()


@dataclass(slots=True)
class QueryLines:
    """The lines of one log.

    Attributes:
        header: returns the columns that a line declares, None for any other line.
        layout: layout in force, None before the first header.
        damaged: lines of which a row, or what seems to be one, is left out.
        torn: lines of which a part was left out.
        dates: lines of dates among rows without a stamp.
        ended: whether the last block was read.
    """

    header: Callable[[str], Layout | None]
    account: Account
    layout: Layout | None = None
    damaged: list[int] = field(default_factory=list)
    torn: list[int] = field(default_factory=list)
    dates: dict[int, str] = field(default_factory=dict)
    ended: bool = False
    _rows: list[tuple[Layout | None, list[str], list[int]]] = field(default_factory=list)

    def read(self, piece: Piece, scanned: "tuple[Layout, Scan] | None" = None) -> Iterator[tuple[Layout, Rows]]:
        """Yield the rows of a block, each stretch with its layout; `scanned`: its cells, parsed ahead for a layout."""
        self.ended = piece.last
        rows = self._clean(piece, scanned[1]) if scanned is not None and scanned[0] is self.layout else None
        if rows is not None and self.layout is not None:
            yield self.layout, rows
            return
        self._rows = [(self.layout, [], [])]
        self._sort_lines(piece)
        for layout, lines, numbers in self._rows:
            if layout is not None and lines:
                yield layout, self._rows_of(layout, lines, numbers)

    def _clean(self, piece: Piece, scanned: Scan) -> Rows | None:
        """Return the rows of a block that holds nothing but rows of the layout in force, None for any other."""
        columns, (cells, odd) = self.layout.columns if self.layout is not None else (), scanned
        blank = len(columns) == 1 and b"\n\n" in piece.data
        if odd or blank or b"\0" in piece.data or not piece.data.endswith(b"\n"):
            return None
        first = piece.first_line
        rows, faults = _decode(columns, cells, np.arange(first, first + len(cells[0]), dtype=np.int64))
        return None if faults else rows

    def _sort_lines(self, piece: Piece) -> None:
        """Take the lines of a block that look like rows, and look at each other one."""
        text = piece.data.decode(errors="replace")
        *whole, rest = text.split("\n")
        self.account.note(*[CUT_NOTE] if rest else [])
        odd = [each for each in _ODD if each in text]
        layout, lines, numbers = self._rows[-1]
        for number, line in enumerate(whole, piece.first_line):
            same = layout is not None and line.count(layout.delimiter) == len(layout.columns) - 1
            if same and line[:1].isdigit() and not (odd and any(each in line for each in odd)):
                lines.append(line)
                numbers.append(number)
            else:
                self._sort_parts(number, line, "")
                layout, lines, numbers = self._rows[-1]
        self._sort_parts(piece.first_line + len(whole), rest, CUT_LAST_LINE)

    def _sort_parts(self, number: int, line: str, cut: str) -> None:
        """Sort the parts of a line between NUL bytes, where these are few; `cut` says what its end was lost to."""
        if line.count("\0") > _MOST_RUNS:
            self.account.reject(NUL_BYTES, number, line.replace("\0", ""))
            return
        parts = [part.strip("\r\ufeff") for part in line.split("\0")]
        for place, part in enumerate(parts):
            if part.strip():
                self._sort(part, number, NUL_BYTES if place else "", NUL_BYTES if place < len(parts) - 1 else cut)

    def _sort(self, text: str, number: int, before: str, after: str) -> None:
        """Sort a line, or what is left of it; `before` and `after` say what its beginning and end were lost to."""
        layout = self.layout
        if not before and after in {"", CUT_LAST_LINE} and (header := self._header(text)) is not None:
            self.account.headers += 1
            if header != layout:
                self.layout = header
                self._rows.append((header, [], []))
            return
        # a log that was killed inside a line and appended to has its next header behind that
        heading = layout.header.partition(layout.delimiter)[0] if layout is not None else ""
        for at in (text.rfind(name, 1) for name in (heading, TIME) if name and len(text) <= _LONGEST and not after):
            if at > 0 and self._header(text[at:]) is not None:
                self._sort(text[:at], number, before, TORN)
                self._sort(text[at:], number, "", "")
                return
        unreadable = NOT_TEXT if "\ufffd" in text else ""
        found = complete_row(text, layout, before, after) if layout is not None and not unreadable else None
        if layout is None or found is None:
            missing = BEFORE_HEADER if layout is None else after or WRONG_CELLS
            self._reject(number, text, unreadable or before or missing)
            return
        if found[1]:
            self._tear_off(number, found[1])
        self._rows[-1][1].append(layout.delimiter.join(found[0]))
        self._rows[-1][2].append(number)

    def _header(self, text: str) -> Layout | None:
        """Return the layout a line declares, None when it is no header that can be believed."""
        header = self.header(text.strip()) if "\ufffd" not in text else None
        return header if header is not None and replaces(header, self.layout) else None

    def _reject(self, number: int, text: str, reason: str) -> None:
        text = text.strip()
        if reason in {NOT_TEXT, NUL_BYTES} and not is_driver_message(text):
            self.account.reject(reason, number, text)
        else:
            self.account.sort_out(number, text, reason)
        if NOISE.fullmatch(text) and (self.layout is None or self.layout.stamp is None):
            self.dates[number] = text
        elif text[:1].isdigit() and "," in text:
            # it has a place in its tick
            self.damaged.append(number)

    def _tear_off(self, number: int, text: str) -> None:
        """Take the part of another line that stands before a row; a message of the driver counts as a line."""
        if is_driver_message(text):
            self.account.message(number, text)
        else:
            self.torn.append(number)
            self.damaged.append(number)

    def _rows_of(self, layout: Layout, lines: list[str], numbers: list[int]) -> Rows:
        """Return lines as rows; those with a cell that is not what its column holds are rejected."""
        rows, faults = _decode(layout.columns, scan("\n".join([*lines, ""]).encode(), layout)[0], np.array(numbers))
        mended = False
        for place in np.flatnonzero(faults.get(f"{MALFORMED} {TIME}", [])).tolist():
            found = complete_row(lines[place], layout)
            if found is not None and found[1]:
                lines[place], mended = layout.delimiter.join(found[0]), True
                self._tear_off(numbers[place], found[1])
        if mended:
            return self._rows_of(layout, lines, numbers)
        rows, wrong = without_faults(rows, faults)
        for place, reason in sorted(wrong):
            self._reject(numbers[place], lines[place], reason)
        return rows

    def note_torn(self) -> None:
        """Note that parts of lines were left out."""
        if self.torn:
            lines = f"{len(self.torn)} torn lines (the first is line {min(self.torn)}) end"
            lines = lines if len(self.torn) > 1 else f"Line {self.torn[0]} is torn and ends"
            self.account.note(f"{lines} in a whole row: the row is kept, what stands before it is left out.")


def _decode(columns: Sequence[Column], cells: Sequence[Any], lines: IntArray) -> tuple[Rows, dict[str, BoolArray]]:
    """Return rows and their faults; a number without the unit that others have is one, where few lack theirs."""
    rows, faults = decode(columns, cells, lines)
    looked_at = slice(-1 if any(column.target == TIME for column in columns) else 0, None)
    for texts in [each for column, each in zip(columns[looked_at], cells[looked_at], strict=True) if column.unit]:
        bare = integers(pc.match_substring_regex(texts.dictionary, r"[0-9]\s*$")) == 1
        if bare.any() and not bare.all():
            codes, alike = read_codes(texts.indices), pc.match_substring_regex(texts.dictionary, "[0-9] ?[%A-Za-z]")
            torn = bare[codes]
            if torn.sum() <= _SHARE * integers(alike)[codes].sum():
                # a log may go on without units
                torn &= np.convolve(torn, np.ones(2 * _NEAR + 1), "same") <= _NEAR
                faults[TORN] = faults.get(TORN, np.False_) | torn
    return rows, {reason: wrong for reason, wrong in faults.items() if wrong.any()}


def names_gpus(rows: Rows) -> bool:
    """Return whether a column names the GPU of any row; a model names none."""
    columns = (rows.data.get(name) for name in NAMES if name != "model")
    return any(isinstance(column, Texts) and bool((column.codes >= 0).any()) for column in columns)


def is_text(data: bytes) -> bool:
    """Return whether bytes are UTF-8."""
    try:
        return data.isascii() or bool(data.decode())
    except UnicodeDecodeError:
        return False

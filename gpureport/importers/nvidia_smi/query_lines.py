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

from gpureport.columns import BoolArray, IntArray, read_codes
from gpureport.importers.account import NOISE, Account, is_driver_message
from gpureport.importers.columns import CUT, NAMES, TIME, Column, Rows, Texts, decode
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
_FEW, _PLENTY = 3, 20
"""Rows of a block that alone lack a unit, at most, and rows that show it (pragmatic)."""
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
        account: counts the lines that are no rows.
        layout: layout in force, None before the first header.
        damaged: numbers of lines that were rows and are rejected.
        torn: lines of which a part was left out, and that part.
        dates: lines of dates among rows without a stamp.
        ended: whether the last block was read.
    """

    header: Callable[[str], Layout | None]
    account: Account
    layout: Layout | None = None
    damaged: list[int] = field(default_factory=list)
    torn: dict[int, str] = field(default_factory=dict)
    dates: dict[int, str] = field(default_factory=dict)
    ended: bool = False
    _rows: list[tuple[Layout | None, list[str], list[int]]] = field(default_factory=list)

    def read(self, piece: Piece, scanned: "tuple[Layout, Scan] | None" = None) -> Iterator[tuple[Layout, Rows]]:
        """Yield the rows of a block, each stretch with its layout.

        Args:
            piece: the block.
            scanned: its cells, where they were parsed ahead for a layout.
        """
        self.ended = piece.last
        found = self._clean(piece, scanned)
        if found is not None:
            yield found
            return
        self._rows = [(self.layout, [], [])]
        self._sort_lines(piece)
        for layout, lines, numbers in self._rows:
            if layout is not None and lines:
                yield layout, self._rows_of(layout, lines, numbers)

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
            self._reject(
                number, text, unreadable or before or (BEFORE_HEADER if layout is None else after or WRONG_CELLS)
            )
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
        if reason in {NOT_TEXT, NUL_BYTES} and not is_driver_message(text):
            self.account.reject(reason, number, text)
        else:
            self.account.sort_out(number, text, reason)
            if (self.layout is None or self.layout.stamp is None) and NOISE.fullmatch(text.strip()):
                self.dates[number] = text
        self._note_damaged(number, text)

    def _tear_off(self, number: int, text: str) -> None:
        """Take the part of another line that stands before a row; a message of the driver counts as a line."""
        if is_driver_message(text):
            self.account.message(number, text)
        else:
            self.torn[number] = text
            self._note_damaged(number, text)

    def _note_damaged(self, number: int, text: str) -> None:
        """Keep that a line was a row, which has a place in its tick: it holds a cell that its column can hold."""
        text, layout = text.strip(), self.layout
        if layout is None or layout.delimiter not in text or is_driver_message(text) or NOISE.fullmatch(text):
            return
        pairs = zip(text.split(layout.delimiter), layout.columns, strict=False)
        if any(_fits(cell.strip(), column) for cell, column in pairs):
            self.damaged.append(number)

    def _rows_of(self, layout: Layout, lines: list[str], numbers: list[int]) -> Rows:
        """Return lines as rows; those with a cell that is not what its column holds are rejected."""
        cells, odd = scan("\n".join([*lines, ""]).encode(), layout)
        if odd:
            msg = "lines with the right number of cells must parse"
            raise AssertionError(msg)
        rows, faults = decode_rows(layout, cells, np.array(numbers, dtype=np.int64))
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
        from gpureport.redaction import redact_start  # noqa: PLC0415 - most logs need none

        if self.torn:
            number, text = min(self.torn.items())
            said = f" ({redact_start(text, 60)!r})" if text else ""
            lines = f"{len(self.torn)} torn lines (the first is line {number}) end"
            lines = lines if len(self.torn) > 1 else f"Line {number} is torn and ends"
            self.account.note(f"{lines} in a whole row: the row is kept, what stands before it{said} is left out.")


def names_gpus(rows: Rows) -> bool:
    """Return whether a column names the GPU of any row; a model names none."""
    columns = (rows.data.get(name) for name in NAMES if name != "model")
    return any(isinstance(column, Texts) and bool((column.codes >= 0).any()) for column in columns)


def _fits(cell: str, column: Column) -> bool:
    """Return whether a cell is what its column holds, where that is not any text."""
    if column.target == TIME:
        return re.fullmatch(_STAMP, cell) is not None
    return column.unit != "" and column.read(cell) is not None


def is_text(data: bytes) -> bool:
    """Return whether bytes are UTF-8."""
    try:
        return data.isascii() or bool(data.decode())
    except UnicodeDecodeError:
        return False


def decode_rows(layout: Layout, cells: Sequence[Any], numbers: IntArray) -> tuple[Rows, dict[str, BoolArray]]:
    """Return lines as rows, and for each fault the rows that have it: a few cells that lack the unit of all others too.

    Those are torn, or numbers that a job printed; a log that goes on with `nounits` has more of them.
    """
    rows, faults = decode(layout.columns, cells, numbers)
    for column, texts in zip(layout.columns, cells, strict=True):
        bare = _find_bare(texts) if column.unit and len(numbers) > _PLENTY else None
        if bare is not None and 0 < bare.sum() <= _FEW:
            name = f"{MALFORMED} {column.source}"
            faults[name] = faults.get(name, np.False_) | bare
    return rows, faults


def _find_bare(cells: Any) -> BoolArray | None:
    """Return where a cell ends in a digit in a column in which others end in a unit; None where all are alike."""
    texts = pc.utf8_rtrim_whitespace(cells.dictionary)
    number = r"^\s*[+-]?[0-9][0-9.,]*"
    bare, united = (pc.match_substring_regex(texts, number + end) for end in ("$", r"\s*[^0-9.,\s]"))
    if not (pc.any(bare).as_py() and pc.any(united).as_py()):
        return None
    # pandas is not to be imported for it
    return np.array(bare.to_pylist(), dtype=np.bool_)[read_codes(cells.indices)]

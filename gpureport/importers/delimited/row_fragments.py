"""A line that does not look like a row, or its part on one side of damage, and the row that it may hold."""

import re
from dataclasses import dataclass

from gpureport.importers.delimited.layout import Layout
from gpureport.importers.protocol.reject_reasons import BEFORE_HEADER, CUT_LAST_LINE, NOT_TEXT, NUL_BYTES, WRONG_CELLS
from gpureport.importers.values.cells import CUT_CELL
from gpureport.importers.values.stamps import STAMP

_COMPLETE = re.compile(r".*(?:%|MiB|W|MHz|\]|Active|abled|N/A)|0x[0-9A-Fa-f]{16}")
"""Cells that cannot be the beginning of a longer one."""
_BLANK = b"\r\t "
_MOST_RUNS = 16
"""Runs of NUL bytes in a line with something worth looking at between them: damage leaves one or two."""


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
    """Return a line, or its parts between runs of NUL bytes where these are few; none where it is blank.

    Args:
        raw: the line.
        number: its number.
        last: whether the log ends inside it.
    """
    parts = raw.split(b"\0")
    if len(parts) > _MOST_RUNS:
        text = b"".join(parts).decode(errors="replace").strip("\r\ufeff")
        return [Fragment(number, text, NUL_BYTES)] if text.strip() else []
    found = []
    for place, part in enumerate(parts):
        if part.strip(_BLANK):
            text, unreadable = _decode_part(part)
            cut_end = NUL_BYTES if place < len(parts) - 1 else CUT_LAST_LINE if last else ""
            found.append(Fragment(number, text, unreadable, NUL_BYTES if place else "", cut_end))
    return found


def _decode_part(part: bytes) -> tuple[str, str]:
    """Return bytes as text, and why they are not valid text, empty when they are."""
    try:
        return part.decode().strip("\r\ufeff"), ""
    except UnicodeDecodeError:
        return part.decode(errors="replace").strip("\r\ufeff"), NOT_TEXT


def complete_row(fragment: Fragment, layout: Layout) -> str | None:
    """Return a line as a row of the layout, None when it is none.

    Cells before the time stamp that the header does not name are left out. The last cell of a line that was cut,
    and the first of one whose beginning is lost, are marked as cut unless they must be whole.
    """
    surplus = fragment.text.count(layout.delimiter) + 1 - len(layout.columns)
    if surplus < 0:
        return None
    cells = fragment.text.split(layout.delimiter)
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


def cells_before_stamp(fragment: Fragment, layout: Layout) -> str:
    """Return the cells before the time stamp of a row that `row` leaves out, empty where there are none."""
    surplus = fragment.text.count(layout.delimiter) + 1 - len(layout.columns)
    cells = fragment.text.split(layout.delimiter)
    if surplus <= 0 or layout.stamp is None or _is_stamp(cells[layout.stamp]):
        return ""
    return layout.delimiter.join(cells[:surplus]).strip() if _is_stamp(cells[layout.stamp + surplus]) else ""


def _is_stamp(cell: str) -> bool:
    return STAMP.fullmatch(cell.strip()) is not None


def row_behind_torn_part(fragment: Fragment, layout: Layout) -> str | None:
    """Return the whole row at the end of a line that begins with a part of another, None when there is none."""
    if layout.stamp != 0 or fragment.cut_end or fragment.text.count(layout.delimiter) < len(layout.columns) - 1:
        return None
    # a row begins within as many cells from the end as it has, one more for a delimiter behind its last
    ahead = fragment.text.rsplit(layout.delimiter, len(layout.columns) + 1)
    begin = len(ahead[0]) + 1 if len(ahead) > len(layout.columns) + 1 else 1
    starts = (match.start() for match in STAMP.finditer(fragment.text, begin))
    return next(
        (found for start in starts if (found := complete_row(Fragment(0, fragment.text[start:]), layout))), None
    )


def rejection_reason(fragment: Fragment, layout: Layout | None) -> str:
    """Return why a line is no row."""
    damage = fragment.unreadable or fragment.cut_start
    if damage or layout is None:
        return damage or BEFORE_HEADER
    return fragment.cut_end or WRONG_CELLS

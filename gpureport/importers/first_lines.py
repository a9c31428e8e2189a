"""What the first lines of a file tell of it: less of a long text to recognise a log by, and a prefix before every line.

Lines that say the same are no other evidence however often they come.
"""

import re

import numpy as np

from gpureport.columns import IntArray
from gpureport.importers.protocol.importer import HEAD_BYTES

MOST_LINES = 300_000
"""Lines of a text that are searched at most: no log of 4 MiB has as many, a file of line ends has."""
_FEW_LINES = 20_000
"""Lines that take no time worth saving."""
_OF_A_KIND = 100
"""Lines of one kind that are kept, far more than any importer looks at to tell what rows are."""
_KINDS = 30_000
"""Kinds of lines that are kept: a log names what it is among the first of them."""
_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)


def thinned(data: bytes) -> bytes:
    """Return a text with the beginnings of the first lines of each kind; those that differ in digits alone are of one.

    A few hundred bytes of a compressed file may stand for millions of lines or of cells, and what a log is stands in
    few of them, near their beginning.
    """
    ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == ord("\n"))
    longest = np.diff(ends, prepend=-1, append=len(data)).max() - 1
    if len(ends) <= _FEW_LINES and longest <= HEAD_BYTES:
        return data
    if len(ends) > MOST_LINES:
        data = data[: ends[MOST_LINES]]
    lines = data.split(b"\n")
    if len(ends) > _FEW_LINES:
        numbers: dict[bytes, int] = {}
        kinds = [numbers.setdefault(kind, len(numbers)) for kind in data.translate(_DIGITS).split(b"\n")]
        lines = [lines[row] for row in _first(np.array(kinds, dtype=np.int64)).tolist()]
    return b"\n".join([line[:HEAD_BYTES] for line in lines])


def _first(kinds: IntArray) -> IntArray:
    """Return the rows that are among the first of their kind, of the first kinds; kinds are numbered as they come."""
    order = np.argsort(kinds, kind="stable")
    first = np.searchsorted(kinds[order], kinds[order])
    wanted = (np.arange(len(kinds)) - first < _OF_A_KIND) & (kinds[order] < _KINDS)
    return np.sort(order[wanted])


_HEADER = re.compile(r"(\S.{0,79}?[^,;\s]\s+)timestamp, ?[a-z]")
"""The first columns of a query after a prefix; a prefix is short, ends in a blank, and is no column."""

HINT = "take that away (of several tasks keep one), such as with sed -E 's/^.*(timestamp,|20[0-9]{2}\\/)/\\1/'"


def find_line_prefix(line: str) -> str:
    """Return the prefix before the columns of a query in the first line of a log, empty where there is none."""
    found = _HEADER.match(line.lstrip("\ufeff"))
    return found[1] if found else ""

"""What the first lines of a file tell of it: less of a long text to recognise a log by, and a prefix before every line.

Lines that say the same are no other evidence however often they come.
"""

import re
from collections import Counter

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
    lines = data.split(b"\n", MOST_LINES)[:MOST_LINES]
    if len(lines) <= _FEW_LINES and max(map(len, lines)) <= HEAD_BYTES:
        return data
    if len(lines) > _FEW_LINES:
        seen = Counter[bytes]()
        kinds = data.translate(_DIGITS).split(b"\n", MOST_LINES)
        whole, lines = lines, []
        for line, kind in zip(whole, kinds, strict=False):
            seen[kind] += 1
            if seen[kind] <= _OF_A_KIND and len(seen) <= _KINDS:
                lines.append(line)
    return b"\n".join([line[:HEAD_BYTES] for line in lines])


_HEADER = re.compile(r"(\S.{0,79}?[^,;\s]\s+)timestamp, ?[a-z]")
"""The first columns of a query after a prefix; a prefix is short, ends in a blank, and is no column."""

HINT = "take that away (of several tasks keep one), such as with sed -E 's/^.*(timestamp,|20[0-9]{2}\\/)/\\1/'"


def find_line_prefix(line: str) -> str:
    """Return the prefix before the columns of a query in the first line of a log, empty where there is none."""
    found = _HEADER.match(line.lstrip("\ufeff"))
    return found[1] if found else ""

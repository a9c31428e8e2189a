"""Whether a text is an nvidia-smi query log that lacks its header."""

import re
from collections import Counter
from collections.abc import Sequence

from gpureport.importers.delimited.cells import absent
from gpureport.importers.nvidia_smi.guessing import grammar
from gpureport.importers.nvidia_smi.lines import QueryGpuDialect

_STAMP = re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}")
"""The stamp as nvidia-smi writes it; other tools write dashes, or no milliseconds."""
_OTHER_STAMP = re.compile(r"\d{4}[/-]\d\d[/-]\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?")
_QUANTITY = re.compile(r"\d+(?:\.\d+)? (?:%|MiB|W|MHz|us)")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
_WORDS = {"Active", "Not Active", "Enabled", "Disabled", "Default", "None", "Yes", "No"}
_OWN = (grammar.UUID, grammar.BUS, grammar.MASK, grammar.STATE, grammar.MODEL)
_FEWEST, _SHARE = 2, 0.5
"""Rows there must be, and their share of the lines that say anything."""


def headerless(lines: Sequence[str]) -> bool:
    """Return whether the first lines of a text are rows of an nvidia-smi query log without a header.

    The rows have one number of cells, hold nothing that nvidia-smi does not write, and hold what only it writes.
    A header in words nvidia-smi does not use makes them rows of something else.

    Args:
        lines: the first lines; the last of them may be cut.
    """
    said = [line.strip() for line in lines]
    said = [line for line in said if line and not _silent(line)]
    cells = [tuple(cell.strip() for cell in line.split(",")) for line in said]
    rows = [row for row in cells if _row(row)]
    if len(rows) < _FEWEST:
        return False
    width, count = Counter(map(len, rows)).most_common(1)[0]
    first = next(place for place, row in enumerate(cells) if len(row) == width and _row(row))
    headed = any(len(row) > 1 for row in cells[:first])
    return count >= _FEWEST and count >= _SHARE * len(cells) and not headed


def _silent(line: str) -> bool:
    """Return whether a line says nothing about the columns: noise between rows, or a message of the driver."""
    return QueryGpuDialect().classify(line) != "rejected"


def _row(row: tuple[str, ...]) -> bool:
    """Return whether cells are all what nvidia-smi writes, and some of them what only it writes."""
    if len(row) < 2:  # noqa: PLR2004 - a table
        return False
    # a line of no table may repeat a cell a million times
    cells = Counter(row)
    if not all(map(_known, cells)):
        return False
    own = sum(count for cell, count in cells.items() if _QUANTITY.fullmatch(cell) or cell.startswith("["))
    own += 2 * sum(count for cell, count in cells.items() if any(form.fullmatch(cell) for form in _OWN[:3]))
    own += sum(count for cell, count in cells.items() if any(form.fullmatch(cell) for form in _OWN[3:]))
    stamped = any(_OTHER_STAMP.fullmatch(cell) for cell in cells)
    # one quantity with a unit may be of any table, two or one beside a stamp are not
    return any(_STAMP.fullmatch(cell) for cell in cells) or own + stamped > 1


def _known(cell: str) -> bool:
    forms = (_NUMBER, _QUANTITY, _OTHER_STAMP, *_OWN)
    return absent(cell) is not None or cell in _WORDS or any(form.fullmatch(cell) for form in forms) or _version(cell)


def _version(cell: str) -> bool:
    """Return whether a cell is a version or an id, of which nvidia-smi has many kinds: digits, letters and dots."""
    return cell.isascii() and cell[:1].isalnum() and cell.replace(".", "").isalnum() and any(map(str.isdigit, cell))

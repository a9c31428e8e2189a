"""Rows of an nvidia-smi query log that lack their header: how they are recognised, and what to type for them."""

import re
from collections import Counter
from collections.abc import Sequence

from gpureport.importers.delimited.layout import split_header as split
from gpureport.importers.logs.nvidia_smi.query.non_data_lines import QueryGpuDialect
from gpureport.importers.note_text import format_columns_option
from gpureport.importers.values.cells import absent

_STAMP = re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}")
"""The stamp as nvidia-smi writes it; other tools write dashes, or no milliseconds."""
_OTHER_STAMP = re.compile(r"\d{4}[/-]\d\d[/-]\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?")
_QUANTITY = re.compile(r"\d+(?:\.\d+)? (%|MiB|W|MHz|us)")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
_WORDS = {"Active", "Not Active", "Enabled", "Disabled", "Default", "None", "Yes", "No"}
_HEX = r"[0-9A-Fa-f]"
_UUID = re.compile(rf"(?:GPU|MIG)-{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}")
_BUS = re.compile(rf"(?:{_HEX}{{4}})?{_HEX}{{4}}:{_HEX}{{2}}:{_HEX}{{2}}\.{_HEX}")
_MASK = re.compile(rf"0x{_HEX}{{16}}")
_STATE = re.compile(r"P(?:1[0-5]|[0-9])")
_MODEL = re.compile(r"(?:NVIDIA|Tesla|GeForce|Quadro|TITAN|GRID)[ -][A-Za-z0-9][\w .()/+-]*")
_ONLY_NVIDIA, _ALSO_NVIDIA = (_UUID, _BUS, _MASK), (_STATE, _MODEL)
"""Forms of cells that nvidia-smi alone writes, and that others write as well."""
_FEWEST, _SHARE = 2, 0.5
"""Rows there must be, and their share of the lines that say anything."""


def is_headerless(lines: Sequence[str]) -> bool:
    """Return whether the first lines of a text are rows of an nvidia-smi query log without a header.

    The rows have one number of cells, hold nothing that nvidia-smi does not write, and hold what only it writes.
    A header in words nvidia-smi does not use makes them rows of something else.

    Args:
        lines: the first lines; the last of them may be cut.
    """
    stripped = [line.strip() for line in lines]
    cells = [tuple(cell.strip() for cell in line.split(",")) for line in stripped if line and not _is_silent(line)]
    rows = [row for row in cells if _is_row(row)]
    if len(rows) < _FEWEST:
        return False
    width, count = Counter(map(len, rows)).most_common(1)[0]
    first = next(place for place, row in enumerate(cells) if len(row) == width and _is_row(row))
    headed = any(len(row) > 1 for row in cells[:first])
    return count >= _FEWEST and count >= _SHARE * len(cells) and not headed


def suggest_columns(lines: Sequence[str]) -> str:
    """Return the `--columns` to type for rows without a header: a name for each cell."""
    widths = Counter(len(cells) for _, cells in map(split, lines) if len(cells) > 1)
    width = widths.most_common(1)[0][0] if widths else 1
    return format_columns_option([f"column_{place + 1}" for place in range(width)])


def _is_silent(line: str) -> bool:
    """Return whether a line says nothing about the columns: noise between rows, or a message of the driver."""
    return QueryGpuDialect().classify(line) != "rejected"


def _is_row(row: tuple[str, ...]) -> bool:
    """Return whether cells are all what nvidia-smi writes, and some of them what only it writes."""
    if len(row) < 2:  # noqa: PLR2004 - a table
        return False
    # a line of no table may repeat a cell a million times
    cells = Counter(row)
    if not all(map(_is_known, cells)):
        return False
    own = sum(count for cell, count in cells.items() if _QUANTITY.fullmatch(cell) or cell.startswith("["))
    own += 2 * sum(count for cell, count in cells.items() if any(form.fullmatch(cell) for form in _ONLY_NVIDIA))
    own += sum(count for cell, count in cells.items() if any(form.fullmatch(cell) for form in _ALSO_NVIDIA))
    stamped = any(_OTHER_STAMP.fullmatch(cell) for cell in cells)
    # one quantity with a unit may be of any table, two or one beside a stamp are not
    return any(_STAMP.fullmatch(cell) for cell in cells) or own + stamped > 1


def _is_known(cell: str) -> bool:
    forms = (_NUMBER, _QUANTITY, _OTHER_STAMP, *_ONLY_NVIDIA, *_ALSO_NVIDIA)
    return (
        absent(cell) is not None or cell in _WORDS or any(form.fullmatch(cell) for form in forms) or _is_version(cell)
    )


def _is_version(cell: str) -> bool:
    """Return whether a cell is a version or an id, of which nvidia-smi has many kinds: digits, letters and dots."""
    return cell.isascii() and cell[:1].isalnum() and cell.replace(".", "").isalnum() and any(map(str.isdigit, cell))

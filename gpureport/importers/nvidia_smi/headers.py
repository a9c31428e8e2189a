"""Headers of CSV of `nvidia-smi --query-gpu`, and rows that lack theirs."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from gpureport.importers.account import NOISE, is_driver_message
from gpureport.importers.columns import TIME, Column, Layout, make_column, make_layout
from gpureport.importers.headings import is_time_heading
from gpureport.importers.nvidia_smi.fields import (
    PREFERRED,
    is_gpu_heading,
    is_known,
    is_metric,
    is_of_gpu,
    parse_query_field,
    read_heading,
)

_MOST = 500
"""Columns of a header at most: nvidia-smi knows 241 fields, and a script may add its own."""
_HEADING = r"[\w.]++[ _]*+(?:\[[^\]\n]*+\]|[\[(]?[\w%°]*+[\])]?)"
"""What every heading looks like: a word, and perhaps a unit."""
_TITLE = re.compile(rf"[^\S\n]*+(?=[^\W\d_]){_HEADING}(?: *+[,;\t] *+(?:{_HEADING})?)*+[^\S\n]*+")
"""What every header looks like; it rules out most other lines at a tenth of the cost."""
_TITLES = re.compile(rf"^{_TITLE.pattern}$", re.MULTILINE)
_WORDS = {
    "uuid": re.compile(r"(?:GPU|MIG)-[\w*/-]{4,120}", re.ASCII),
    "bus_id": re.compile(r"[0-9A-Fa-fx*]{2,8}:[0-9A-Fa-fx*]{2}:[0-9A-Fa-fx*]{2}\.[0-9A-Fa-fx*]"),
    "model": re.compile(r"[A-Za-z][\w()/+*-]*(?:[ .][\w()/+*-]+){0,9}", re.ASCII),
}
"""How the driver names a GPU, digits that people black out included."""
_ROW = re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d+)?, ")
_NO_ROW = re.compile(r"\n[^0-9]")


def split_header(line: str) -> tuple[str, list[str]]:
    """Return the delimiter of a header line, one of `,`, `;` and a tabulator, and its cells.

    A cell after a trailing delimiter has no heading and is named after its position.
    """
    delimiter = next((each for each in (",", ";", "\t") if each in line), ",")
    found = [cell.strip() for cell in line.split(delimiter)]
    return delimiter, found if found[-1] or len(found) == 1 else [*found[:-1], f"column_{len(found)}"]


@lru_cache(1024)
def declare(line: str, texts: frozenset[str] = frozenset()) -> Layout | None:
    """Return the columns a header declares: all cells are field names, at least one of them a known one.

    Headings that people write themselves count in a table that is plainly about GPUs, and fills a metric. Where no
    column is called `timestamp`, the first that is called a time is the time. Columns under `texts` stay as they are.
    """
    if not line[:1].isalpha() or not _TITLE.fullmatch(line):
        return None
    delimiter, headings = split_header(line)
    if len(headings) > _MOST or 2 * len(set(headings)) < len(headings):
        return None
    columns = _columns(headings, "," if delimiter == ";" else ".")
    if columns is None:
        return None
    kept = [make_column("", each) if each in texts else column for each, column in zip(headings, columns, strict=True)]
    time = next((place for place, each in enumerate(headings) if is_time_heading(each)), None)
    if time is not None and all(column.target != TIME for column in kept) and any(map(is_metric, kept)):
        kept[time] = make_column(TIME, TIME, heading=headings[time], translated=True)
    return arrange(kept, delimiter, line)


def arrange(columns: Sequence[Column], delimiter: str = ",", header: str = "") -> Layout:
    """Return the layout of columns of nvidia-smi; without a time stamp, names must be what the driver writes.

    What a job prints looks like such a row sooner.
    """

    def in_words(column: Column, words: re.Pattern[str]) -> Column:
        return replace(column, read=lambda text: text if words.fullmatch(text) else None, known={})

    if not any(column.target == TIME for column in columns):
        columns = [in_words(each, _WORDS[each.target]) if each.target in _WORDS else each for each in columns]
    return make_layout(columns, PREFERRED, delimiter, header)


def _columns(headings: Sequence[str], decimal: str) -> list[Column] | None:
    own = [each for heading in headings if (each := parse_query_field(heading, decimal)) is not None]
    whole = len(own) == len(headings)
    if len(headings) == 1 or (whole and all(map(is_known, own))):
        # any single word is a heading
        return own if whole and is_known(own[0]) else None
    if any(map(is_gpu_heading, headings)) or any(map(is_of_gpu, own)):
        written = [each for heading in headings if (each := read_heading(heading, decimal)) is not None]
        if len(written) == len(headings) and any(map(is_metric, written)):
            return written
    return own if whole and any(is_known(each) and each.target != TIME for each in own) else None


def replaces(layout: Layout, other: Layout | None) -> bool:
    """Return whether a header that declares a layout below another one is believed.

    A word that happens to be a heading, and what is left of a torn header, are not: they name no time where rows had
    one, a single column where there were more, or a column twice.
    """
    if other is None or layout == other:
        return True
    names = [column.source for column in layout.columns]
    alone = len(names) == 1 < len(other.columns)
    return not alone and len(set(names)) == len(names) and (layout.stamp is not None or other.stamp is None)


def holds_metric(layout: Layout) -> bool:
    """Return whether a column is a series of a GPU."""
    return any(map(is_metric, layout.columns))


def is_of_gpus(layout: Layout) -> bool:
    """Return whether a header names a GPU metric, or a time and a column that only GPU logs have."""
    return holds_metric(layout) or (layout.stamp is not None and any(map(is_of_gpu, layout.columns)))


def opens_query(line: str) -> bool:
    """Return whether a line is such a header; the name of a field alone may as well be an item of a list."""
    layout = declare(line.strip())
    return layout is not None and (len(layout.columns) > 1 or layout.columns[0].stated != "") and is_of_gpus(layout)


def find_headers(text: str) -> Iterator[tuple[int, Layout]]:
    """Yield where the headers of a text of whole lines begin, and what they declare."""
    for match in _TITLES.finditer(text):
        header = declare(match[0].strip())
        if header is not None:
            yield match.start(), header


def is_plain(text: str) -> bool:
    """Return whether a text is a header whose first field is `timestamp`, and lines below that begin with a digit.

    No other form has such a header, and a line that begins with a digit opens a block below a heading at most, where
    here a row with its stamp stands.
    """
    header, _, rows = text.partition("\n")
    if not header.startswith("timestamp, ") or _ROW.match(rows) is None or _NO_ROW.search(rows):
        return False
    columns = declare(header.strip())
    return columns is not None and "pid" not in header and holds_metric(columns)


_OWN = re.compile(
    r"\d+(?:\.\d+)? (?:%|MiB|W|MHz|us)|\[.+\]|0x[0-9A-F]{16}|(?:GPU|MIG)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|(?:[0-9A-F]{4})?[0-9A-F]{4}:[0-9A-F]{2}:[0-9A-F]{2}\.[0-9A-F]|(?:NVIDIA|Tesla|GeForce|Quadro) [\w ./()-]+"
    r"|\d{4}[/-]\d\d[/-]\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?",
    re.IGNORECASE,
)
"""Cells that hardly anything but nvidia-smi writes, two of them, or one stamp of this form."""
_PLAIN = re.compile(
    r"-?\d+(?:\.\d+)?|N/A|(?:Not )?Active|Enabled|Disabled|Default|None|Yes|No|(?=\w*\d)[\w.]+", re.ASCII
)
"""Numbers, words and versions that it writes as well."""


def is_headerless(lines: Sequence[str]) -> bool:
    """Return whether the first lines of a text are rows of an nvidia-smi query log without a header.

    Half of them at least, and the first of several cells, hold nothing that nvidia-smi does not write, and what hardly
    anything else does. A header in words nvidia-smi does not use makes them rows of something else.
    """
    rows = [line.split(",") for line in lines if not (is_driver_message(line) or NOISE.fullmatch(line))]
    first = next((row for row in rows if len(row) > 1), None)
    return first is not None and _is_own(first) and 2 * sum(map(_is_own, rows)) >= len(rows)


def _is_own(row: Sequence[str]) -> bool:
    # a line of no table may repeat a cell a million times
    cells = Counter(cell.strip() for cell in row)
    own = sum(count for cell, count in cells.items() if _OWN.fullmatch(cell))
    stamped = any(_ROW.fullmatch(f"{cell}, ") and "." in cell for cell in cells)
    known = all(_OWN.fullmatch(cell) or _PLAIN.fullmatch(cell) for cell in cells)
    return known and len(row) > 1 and (own > 1 or stamped)

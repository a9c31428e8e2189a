"""Headers of CSV of `nvidia-smi --query-gpu`, and rows that lack theirs."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from gpureport.importers.account import NOISE, is_driver_message
from gpureport.importers.columns import TIME, Column, absence, make_column
from gpureport.importers.nvidia_smi.fields import (
    PREFERRED,
    is_gpu_heading,
    is_known,
    is_metric,
    is_of_gpu,
    parse_query_field,
    read_heading,
)
from gpureport.importers.tables import Layout, make_layout

_MOST = 500
"""Columns of a header at most: nvidia-smi knows 241 fields, and a script may add its own."""
_HEADING = r"[\w.]++[ _]*+(?:\[[^\]\n]*+\]|[\[(]?[\w%°]*+[\])]?)"
"""What every heading looks like: a word, and perhaps a unit."""
_TITLE = re.compile(rf"[^\S\n]*+(?=[^\W\d_]){_HEADING}(?: *+[,;\t] *+(?:{_HEADING})?)*+[^\S\n]*+")
"""What every header looks like; it rules out most other lines at a tenth of the cost."""
_TITLES = re.compile(rf"^{_TITLE.pattern}$", re.MULTILINE)
_STAMP = r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d+)?, "
_NO_ROW = re.compile(r"\n[^0-9]")
_FORMS = {
    "uuid": re.compile(r"(?:GPU|MIG)-[\w*/-]{4,120}", re.ASCII),
    "bus_id": re.compile(r"[0-9A-Fa-fx*]{2,8}:[0-9A-Fa-fx*]{2}:[0-9A-Fa-fx*]{2}\.[0-9A-Fa-fx*]"),
    "serial": re.compile(r"[\w*-]{4,40}", re.ASCII),
    "model": re.compile(r"[A-Za-z][\w()/+*-]*(?:[ .][\w()/+*-]+){0,9}", re.ASCII),
    "driver": re.compile(r"\d+(?:\.\d+){1,3}"),
}
"""How the driver writes what it says of a GPU in words, digits that people black out included."""
_LONGEST = 96
"""Letters of the name of a GPU at most (NVML_DEVICE_NAME_V2_BUFFER_SIZE)."""


def split_header(line: str) -> tuple[str, list[str]]:
    """Return the delimiter of a header line, and its cells; one of `,`, `;` and a tabulator.

    A cell after a trailing delimiter has no heading and is named after its position.
    """
    delimiter = next((each for each in (",", ";", "\t") if each in line), ",")
    found = [cell.strip() for cell in line.split(delimiter)]
    return delimiter, found if found[-1] or len(found) == 1 else [*found[:-1], f"column_{len(found)}"]


@lru_cache(1024)
def declare(line: str, texts: frozenset[str] = frozenset(), time: str = "") -> Layout | None:
    """Return the columns a header declares: all cells are field names, at least one of them a known one.

    Headings that people write themselves count in a table that is plainly about GPUs, and fills a metric.

    Args:
        line: a line.
        texts: headings whose columns are kept as they are written.
        time: heading of the column that holds the time, where nvidia-smi does not call it so.
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
    if time in headings:
        kept[headings.index(time)] = make_column(TIME, TIME, heading=time, translated=True)
    return arrange(kept, delimiter, line)


def _columns(headings: Sequence[str], decimal: str) -> list[Column] | None:
    own = _read(headings, lambda heading: parse_query_field(heading, decimal))
    if len(headings) == 1:
        # any word is a heading
        return own if own is not None and is_known(own[0]) else None
    if own is not None and all(map(is_known, own)):
        return own
    named = [each for heading in headings if (each := parse_query_field(heading)) is not None]
    telling = any(map(is_gpu_heading, headings)) or any(map(is_of_gpu, named))
    written = _read(headings, lambda heading: read_heading(heading, decimal)) if telling else None
    if written is not None and any(map(is_metric, written)):
        return written
    return own if own is not None and any(is_known(each) and each.target != TIME for each in own) else None


def _read(headings: Sequence[str], read: Callable[[str], Column | None]) -> list[Column] | None:
    """Return a column for each heading, None when one is no heading."""
    found = [each for heading in headings if (each := read(heading)) is not None]
    return found if len(found) == len(headings) else None


def arrange(columns: Sequence[Column], delimiter: str = ",", header: str = "") -> Layout:
    """Return the layout of columns of nvidia-smi; without a time stamp, words must be what the driver writes."""
    found = make_layout(columns, PREFERRED, delimiter, header)
    if found.stamp is not None:
        return found
    return make_layout([_in_drivers_words(each) for each in found.columns], PREFERRED, delimiter, header)


def _in_drivers_words(column: Column) -> Column:
    form = _FORMS.get(column.target)
    if form is None:
        return column

    def read(text: str) -> str | None:
        return text if len(text) <= _LONGEST and form.fullmatch(text) else None

    return Column(target=column.target, source=column.source, read=read, heading=column.heading)


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


def find_headers(text: str, start: int = 0) -> Iterator[tuple[int, Layout]]:
    """Yield where the headers of a text of whole lines begin, from some place on, and what they declare."""
    for match in _TITLES.finditer(text, start):
        header = declare(match[0].strip())
        if header is not None:
            yield match.start(), header


def is_plain(text: str) -> bool:
    """Return whether a text is a header whose first field is `timestamp`, and lines below that begin with a digit.

    No other form has such a header, and a line that begins with a digit opens a block below a heading at most, where
    here a row with its stamp stands.
    """
    header, _, rows = text.partition("\n")
    if not header.startswith("timestamp, ") or re.match(_STAMP, rows) is None or _NO_ROW.search(rows):
        return False
    columns = declare(header.strip())
    return columns is not None and "pid" not in header and holds_metric(columns)


_QUANTITY = re.compile(r"\d+(?:\.\d+)? (%|MiB|W|MHz|us)")
_HEX = r"[0-9A-Fa-f]"
_UUID = re.compile(rf"(?:GPU|MIG)-{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}")
_BUS = re.compile(rf"(?:{_HEX}{{4}})?{_HEX}{{4}}:{_HEX}{{2}}:{_HEX}{{2}}\.{_HEX}")
_ONLY_NVIDIA = re.compile(rf"{_UUID.pattern}|{_BUS.pattern}|0x{_HEX}{{16}}")
_ALSO_NVIDIA = re.compile(r"P(?:1[0-5]|[0-9])|(?:NVIDIA|Tesla|GeForce|Quadro|TITAN|GRID)[ -][A-Za-z0-9][\w .()/+-]*")
"""Cells that nvidia-smi alone writes, and such as others write as well."""
_DRIVER_STAMP = re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}")
_OTHER_STAMP = re.compile(r"\d{4}[/-]\d\d[/-]\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?")
_PLAIN = re.compile(
    r"[+-]?\d+(?:\.\d+)?|Active|Not Active|Enabled|Disabled|Default|None|Yes|No|(?=\w*\d)[A-Za-z0-9][\w.]*"
)
"""Numbers, words and versions that it writes."""
_FEWEST, _SHARE = 2, 0.5
"""Rows there must be, and their share of the lines that say anything."""


def is_headerless(lines: Sequence[str]) -> bool:
    """Return whether the first lines of a text are rows of an nvidia-smi query log without a header.

    The rows have one number of cells, hold nothing that nvidia-smi does not write, and hold what only it writes.
    A header in words nvidia-smi does not use makes them rows of something else.
    """
    said = [line.strip() for line in lines if line.strip()]
    said = [line for line in said if not (is_driver_message(line) or NOISE.fullmatch(line))]
    cells = [tuple(cell.strip() for cell in line.split(",")) for line in said]
    rows = [row for row in cells if _is_row(row)]
    # one row tells where its stamp is one that only nvidia-smi writes
    if len(rows) < _FEWEST and not any(_DRIVER_STAMP.fullmatch(cell) for row in rows for cell in row):
        return False
    width, count = Counter(map(len, rows)).most_common(1)[0]
    first = next(place for place, row in enumerate(cells) if len(row) == width and _is_row(row))
    return count >= _SHARE * len(cells) and not any(len(row) > 1 for row in cells[:first])


def _is_row(row: Sequence[str]) -> bool:
    """Return whether cells are all what nvidia-smi writes, and some of them what only it writes."""
    # a line of no table may repeat a cell a million times
    cells = Counter(row)
    known = (_QUANTITY, _OTHER_STAMP, _ONLY_NVIDIA, _ALSO_NVIDIA, _PLAIN)
    if len(row) < 2 or not all(absence(c) is not None or any(form.fullmatch(c) for form in known) for c in cells):  # noqa: PLR2004
        return False
    own = sum(count for cell, count in cells.items() if _QUANTITY.fullmatch(cell) or cell.startswith("["))
    own += 2 * sum(count for cell, count in cells.items() if _ONLY_NVIDIA.fullmatch(cell))
    own += sum(count for cell, count in cells.items() if _ALSO_NVIDIA.fullmatch(cell))
    stamped = any(_OTHER_STAMP.fullmatch(cell) for cell in cells)
    # one quantity with a unit may be of any table, two or one beside a stamp are not
    return any(_DRIVER_STAMP.fullmatch(cell) for cell in cells) or own + stamped > 1

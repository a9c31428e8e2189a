"""The lines of an nvidia-smi query log that are no rows: headers, driver messages, and noise."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from gpureport.importers.delimited.layout import Layout, make_layout, split_header
from gpureport.importers.delimited.row_sections import LineKind
from gpureport.importers.devices.column_values import CLOCK_EVENTS
from gpureport.importers.logs.nvidia_smi.query import fields
from gpureport.importers.logs.nvidia_smi.query.headings import is_gpu_heading, read_heading
from gpureport.importers.logs.nvidia_smi.query.timeless import require_driver_words
from gpureport.importers.values.cells import Column, extra_name
from gpureport.metrics import BY_NAME

_EVENTS = (
    "No devices were found",
    "Unable to determine the device handle",
    "Unable to determine the number of GPUs",
    "NVIDIA-SMI has failed",
    "NVIDIA-SMI couldn't find",
    "Failed to initialize NVML",
    "NVML library version",
    "Problem with GPU",
    "GPU is lost",
    "Failed to create log file",
)
"""How the messages begin that the nvidia-smi program writes between rows (strings of its 535 and 550 binaries)."""
XID = "NVRM: Xid ("
"""Part of each kernel log line about an Xid error; recorders copy such lines between the rows."""
_EXTRA = extra_name("")
_MOST = 500
"""Columns of a header at most: nvidia-smi knows 241 fields, and a script may add its own."""
_HEADING = r"[\w.]++[ _]*+(?:\[[^\]\n]*+\]|[\[(]?[\w%°]*+[\])]?)"
"""What every heading looks like: a word, and perhaps a unit."""
_TITLE = re.compile(rf"[^\S\n]*+(?=[^\W\d_]){_HEADING}(?: *+[,;\t] *+(?:{_HEADING})?)*+[^\S\n]*+")
"""What every header looks like; it rules out most other lines at a tenth of the cost."""
_TITLES = re.compile(rf"^{_TITLE.pattern}$", re.MULTILINE)
_OTHERS = 10_000
"""How many lines without a header are remembered; they usually come again."""
_CLOCK = r"\d\d:\d\d:\d\d"
_DATE = rf"[A-Z][a-z]{{2}} (?:[A-Z][a-z]{{2}} +\d{{1,2}} {_CLOCK}|\d{{1,2}} [A-Z][a-z]{{2}} \d{{4}} {_CLOCK})"
_NOISE = re.compile(
    rf"[-=+*#_ ]{{3,}}|#TYPE [\w.+]+|\d{{4}}[-/]\d\d[-/]\d\d[ T]{_CLOCK}(?:\.\d+)?"
    rf"|{_DATE}(?: [AP]M)?(?: [A-Z]{{2,5}}| [+-]\d{{2,4}})?(?: \d{{4}})?"
)
"""Rulers and dates, among them those of `date`: `Mon Apr 20 03:14:15 PM UTC 2026`, `Mon 20 Apr 2026 15:14:15 CEST`."""
_STAMP = rb"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d+)?, "
_ROW = re.compile(_STAMP)
_NO_ROW = re.compile(rb"\n[^0-9]")
_STAMPED_ROWS = re.compile(rb"(?:%b[^\n;]*+\n)++[^\n;]*+" % _STAMP)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryGpuDialect:
    """Lines of `nvidia-smi --query-gpu=… --format=csv`.

    Attributes:
        fractions: headings whose values may be fractions or per cent; their columns stay text.
        grouped: whether dots part the thousands of numbers.
        instead: columns in place of those of a header that names another number of them.
        absolute: whether time stamps are counts since 1970 or name their offset.
    """

    fractions: frozenset[str] = frozenset()
    grouped: bool = False
    instead: Layout | None = None
    absolute: bool = False

    def header(self, line: str) -> Layout | None:
        """Return the columns a header declares: all cells are field names, at least one of them a known one."""
        if not line[:1].isalpha() or not _TITLE.fullmatch(line):
            return None
        delimiter, headings = split_header(line)
        if len(headings) > _MOST or 2 * len(set(headings)) < len(headings):
            return None
        columns = _read_header(headings)
        if columns is None:
            return None
        if self.instead is not None and len(columns) != len(self.instead.columns):
            return self.instead
        if self.fractions:
            columns = [
                _text_column(heading) if heading in self.fractions else each
                for heading, each in zip(headings, columns, strict=True)
            ]
        found = replace(arrange_columns(columns, delimiter, line), absolute=self.absolute)
        return found.grouped() if self.grouped else found

    def classify(self, line: str) -> LineKind:
        """Return whether a line that is no row is a driver message, noise, or simply rejected."""
        if line.startswith(_EVENTS) or XID in line:
            return LineKind.EVENT
        return LineKind.NOISE if _NOISE.fullmatch(line) else LineKind.REJECTED


def arrange_columns(columns: Sequence[Column], delimiter: str = ",", header: str = "") -> Layout:
    """Return the layout of columns of nvidia-smi; without a time stamp, words must be what the driver writes."""
    found = make_layout(columns, fields.PREFERRED, delimiter, header)
    return found if found.stamp is not None else require_driver_words(found)


def is_plain(text: bytes) -> bool:
    """Return whether a text is a header whose first field is `timestamp`, and lines below that begin with a digit.

    No other form has such a header, and a line that begins with a digit opens a block below a heading at most, where
    here a row with its stamp stands.
    """
    header, _, rows = text.partition(b"\n")
    if not header.startswith(b"timestamp, ") or _ROW.match(rows) is None or _NO_ROW.search(rows):
        return False
    columns = QueryGpuDialect().header(header.decode(errors="replace").strip())
    return columns is not None and b"pid" not in header and columns.holds(fields.METRICS)


def is_unambiguous(text: bytes) -> bool:
    """Return whether the beginning of a log leaves nothing open: one header, then rows with nvidia-smi's stamps.

    The header must say the unit of every share: without one, it may be a fraction or in per cent.
    """
    header, _, rows = text.partition(b"\n")
    if not header.startswith(b"timestamp, ") or not _STAMPED_ROWS.fullmatch(rows):
        return False
    columns = QueryGpuDialect().header(header.decode(errors="replace").strip())
    return columns is not None and not any(map(fields.is_share_without_unit, columns.columns))


def find_headers(text: str, dialect: QueryGpuDialect, start: int = 0) -> Iterator[tuple[int, Layout]]:
    """Yield where the headers of a text begin, and what they declare.

    Args:
        text: whole lines.
        dialect: what its lines are.
        start: where the first line to look at begins.
    """
    others: set[str] = set()
    for match in _TITLES.finditer(text, start):
        line = match[0].strip()
        header = None if line in others else dialect.header(line)
        if header is not None:
            yield match.start(), header
        elif len(others) < _OTHERS:
            others.add(line)


def _read_header(headings: Sequence[str]) -> list[Column] | None:
    """Return the columns of a header, None when the cells are not headings.

    Headings that people write themselves count in a table that is plainly about GPUs, and fills a metric.
    """
    if len(headings) == 1 and not fields.has_own_column(headings[0]):
        # any word is a heading
        return None
    own = _read_headings(headings, fields.parse_query_field)
    if own is not None and not any(each.target.startswith(_EXTRA) for each in own):
        return own if any(map(fields.is_known_column, own)) else None
    named = [each for heading in headings if (each := fields.parse_query_field(heading)) is not None]
    telling = any(map(is_gpu_heading, headings)) or any(map(fields.is_gpu_column, named))
    written = _read_headings(headings, read_heading) if telling and len(headings) > 1 else None
    if written is not None and any(each.target in BY_NAME or each.target == CLOCK_EVENTS for each in written):
        return written
    return own if own is not None and any(map(fields.is_known_column, own)) else None


def _read_headings(headings: Sequence[str], read: Callable[[str], Column | None]) -> list[Column] | None:
    """Return a column for each heading, None when one is no heading."""
    found = [each for heading in headings if (each := read(heading)) is not None]
    return found if len(found) == len(headings) else None


def _text_column(heading: str) -> Column:
    """Return a column that is kept as it is written."""
    return Column(target=extra_name(heading), source=heading, dtype="str", read=str)

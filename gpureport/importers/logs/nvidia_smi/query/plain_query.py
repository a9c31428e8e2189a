"""Whether a log begins as a CSV of queries and nothing else, told without loading the forms it might hold besides."""

import re

from gpureport.importers.logs.nvidia_smi.query import fields
from gpureport.importers.logs.nvidia_smi.query.non_data_lines import QueryGpuDialect

_ROW = re.compile(rb"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d+)?, ")
_NO_ROW = re.compile(rb"\n[^0-9]")


def is_plain(text: bytes) -> bool:
    """Return whether a text is a header whose first field is `timestamp`, and lines below that begin with a digit.

    No other form has such a header, and a line that begins with a digit opens a block below a heading at most, where
    here a row with its stamp stands.
    """
    header, _, rows = text.partition(b"\n")
    if not header.startswith(b"timestamp, ") or _ROW.match(rows) is None or _NO_ROW.search(rows):
        return False
    layout = QueryGpuDialect().header(header.decode(errors="replace").strip())
    return layout is not None and b"pid" not in header and layout.holds(fields.METRICS)

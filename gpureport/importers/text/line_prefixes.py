"""Detects a prefix that another program put before every line: `srun --label`, a logging library, kubectl."""

import re

_HEADER = re.compile(r"(\S.{0,79}?[^,;\s]\s+)timestamp, ?[a-z]")
"""The first columns of a query after a prefix; a prefix is short, ends in a blank, and is no column."""

HINT = "take that away (of several tasks keep one), such as with sed -E 's/^.*(timestamp,|20[0-9]{2}\\/)/\\1/'"


def find_line_prefix(line: str) -> str:
    """Return the prefix before the columns of a query in the first line of a log, empty where there is none."""
    found = _HEADER.match(line.lstrip("\ufeff"))
    return found[1] if found else ""

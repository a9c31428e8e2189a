"""Counts and lists in the notes and errors of importers."""

import shlex
from collections.abc import Sequence


def format_count(count: int, noun: str) -> str:
    """Return a count with its noun: `1 row`, `1,200 rows`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def list_first(names: Sequence[str], most: int) -> str:
    """Return at most so many names, and how many more there are: `a, b, c and 2 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def format_columns_option(names: Sequence[str]) -> str:
    """Return the option to type for rows without a header, with a stand-in for each cell."""
    return f"name its columns: --columns {shlex.quote(','.join(names))}, with the fields of --query-gpu in their place"

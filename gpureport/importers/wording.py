"""Counts and lists in the notes and errors of importers."""

from collections.abc import Sequence


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: `1 row`, `1,200 rows`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def first(names: Sequence[str], most: int) -> str:
    """Return at most so many names, and how many more there are: `a, b, c and 2 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more

"""Counts in the notes and errors of importers."""


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: `1 row`, `1,200 rows`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"

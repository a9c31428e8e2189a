"""Names of `tests.support.logs`, for the rooms that still take them from here."""

from tests.support.logs import Line, interleaved, raced

__all__ = ["Line", "interleaved", "raced"]

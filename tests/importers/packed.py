"""Names of `tests.support.logs`, for the rooms that still take them from here."""

from tests.support.logs import COMPRESSED, PACKED, zstd

__all__ = ["COMPRESSED", "PACKED", "zstd"]

"""Names of `source_file`, for what is read the former way."""

from gpureport.importers.source_file import archive_kind, decompressed_blocks

__all__ = ["archive_kind", "decompressed_blocks"]

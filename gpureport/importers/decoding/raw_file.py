"""Names of `source_file`, for what is read the former way."""

from gpureport.importers.source_file import BLOCK, FileState, RawFile, raise_source_errors

__all__ = ["BLOCK", "FileState", "RawFile", "raise_source_errors"]

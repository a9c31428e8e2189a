"""Tables with headings that only their writer knows, read as a map says."""

from gpureport.importers.logs.mapped.table import Mapped

__all__ = ["Mapped"]

"""Tables with headings that only their writer knows, read as a map says."""

from gpureport.importers.mapped.table import Mapped

__all__ = ["Mapped"]

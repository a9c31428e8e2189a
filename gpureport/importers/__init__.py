"""Sources to recordings: the one place that runs importers."""

from gpureport.importers.base import Labels, Placement
from gpureport.importers.reading import IMPORTER_VERSION, Reading
from gpureport.importers.sources import BESIDE, IMPORTERS, find, together, unrecognised

__all__ = [
    "BESIDE",
    "IMPORTERS",
    "IMPORTER_VERSION",
    "Labels",
    "Placement",
    "Reading",
    "find",
    "together",
    "unrecognised",
]

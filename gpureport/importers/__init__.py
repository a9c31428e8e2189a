"""Sources to recordings: the one place that runs importers."""

from gpureport.importers.attachments import joined
from gpureport.importers.base import Labels, Placement
from gpureport.importers.cut import CutReading, Window, cut
from gpureport.importers.reading import IMPORTER_VERSION, Reading
from gpureport.importers.sources import (
    BESIDE,
    IMPORTERS,
    LOCATORS,
    TRACKERS,
    find,
    together,
    tracker,
    training_logs,
    unrecognised,
)
from gpureport.importers.tracked import Selection, readable
from gpureport.importers.tracked_reading import TrackedReading

__all__ = [
    "BESIDE",
    "IMPORTERS",
    "IMPORTER_VERSION",
    "LOCATORS",
    "TRACKERS",
    "CutReading",
    "Labels",
    "Placement",
    "Reading",
    "Selection",
    "TrackedReading",
    "Window",
    "cut",
    "find",
    "joined",
    "readable",
    "together",
    "tracker",
    "training_logs",
    "unrecognised",
]

"""Sources to recordings: the one place that runs importers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpureport.importers.merging.run_names import told_apart
from gpureport.importers.protocol.importer import Labels, ReadOptions
from gpureport.importers.reading.recognition import BESIDE, IMPORTERS, LOCATORS, TRACKERS, names_run, tracker
from gpureport.importers.reading.run_reading import IMPORTER_VERSION, Reading, call_apart
from gpureport.importers.reading.sources import find, together, training_logs, training_logs_in_folder, unrecognised
from gpureport.importers.reading.time_window import CutReading, Window, cut

if TYPE_CHECKING:
    from gpureport.importers.protocol.tracker import Selection, readable
    from gpureport.importers.reading.attachments import joined
    from gpureport.importers.reading.tracked_reading import TrackedReading

__all__ = [
    "BESIDE",
    "IMPORTERS",
    "IMPORTER_VERSION",
    "LOCATORS",
    "TRACKERS",
    "CutReading",
    "Labels",
    "ReadOptions",
    "Reading",
    "Selection",
    "TrackedReading",
    "Window",
    "call_apart",
    "cut",
    "find",
    "joined",
    "names_run",
    "readable",
    "together",
    "told_apart",
    "tracker",
    "training_logs",
    "training_logs_in_folder",
    "unrecognised",
]

_OF_TRACKERS = {
    "joined": "reading.attachments",
    "Selection": "protocol.tracker",
    "TrackedReading": "reading.tracked_reading",
    "readable": "protocol.tracker",
}
"""What only runs of trackers need, and the module it is in: loaded when it is asked for."""


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a class or a function
    if name not in _OF_TRACKERS:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{_OF_TRACKERS[name]}"), name)

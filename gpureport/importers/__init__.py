"""Sources to recordings: the one place that runs importers.

Names are loaded when they are asked for, since reading needs NumPy and Arrow, and the command line's help does not.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpureport.importers.merging.run_names import make_names_distinct
    from gpureport.importers.protocol.importer import Labels, ReadOptions
    from gpureport.importers.protocol.registry import HOST_IMPORTERS, IMPORTERS, LOCATORS, TRACKERS
    from gpureport.importers.protocol.tracker import Selection, readable
    from gpureport.importers.reading.attachments import joined
    from gpureport.importers.reading.folders import (
        list_unrecognised_files,
        together,
        training_logs,
        training_logs_in_folder,
    )
    from gpureport.importers.reading.run_reading import IMPORTER_VERSION, Reading, call_apart
    from gpureport.importers.reading.sources import find, names_run, tracker
    from gpureport.importers.reading.time_window import CutReading, Window, cut
    from gpureport.importers.reading.tracked_reading import TrackedReading

__all__ = [
    "HOST_IMPORTERS",
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
    "list_unrecognised_files",
    "make_names_distinct",
    "names_run",
    "readable",
    "together",
    "tracker",
    "training_logs",
    "training_logs_in_folder",
]

_HOMES = {
    "merging.run_names": ("make_names_distinct",),
    "protocol.importer": ("Labels", "ReadOptions"),
    "protocol.registry": ("HOST_IMPORTERS", "IMPORTERS", "LOCATORS", "TRACKERS"),
    "protocol.tracker": ("Selection", "readable"),
    "reading.attachments": ("joined",),
    "reading.run_reading": ("IMPORTER_VERSION", "Reading", "call_apart"),
    "reading.folders": ("together", "training_logs", "training_logs_in_folder", "list_unrecognised_files"),
    "reading.sources": ("find", "names_run", "tracker"),
    "reading.time_window": ("CutReading", "Window", "cut"),
    "reading.tracked_reading": ("TrackedReading",),
}
"""Modules and the names that they hold."""


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a class or a function
    home = next((module for module, names in _HOMES.items() if name in names), None)
    if home is None:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{home}"), name)

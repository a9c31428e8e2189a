"""Sources to recordings: the one place that runs importers.

To follow one log, start at `extraction.py`, then `nvidia_smi/query.py`: the road that a clean log takes.

Names are loaded when they are asked for, since reading needs NumPy and Arrow, and the command line's help does not.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpureport.importers.protocol.importer import Labels, ReadOptions
    from gpureport.importers.protocol.registry import HOST_IMPORTERS, IMPORTERS, LOCATORS, TRACKERS
    from gpureport.importers.protocol.tracker import Selection, split_readable
    from gpureport.importers.reading.attachments import join_attached_logs
    from gpureport.importers.reading.folders import (
        find_store,
        find_training_logs,
        identify_training_logs,
        is_readable,
        list_unused_files,
        recognise_companion,
    )
    from gpureport.importers.reading.run_names import lengthen_equal_names, longer_names, make_names_distinct
    from gpureport.importers.reading.run_reading import IMPORTER_VERSION, Reading
    from gpureport.importers.reading.run_sources import assign_training_logs, find_run_logs, find_source_runs
    from gpureport.importers.reading.sources import find_runs, find_tracker, names_run
    from gpureport.importers.reading.time_window import CutReading, Window, cut_recording
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
    "assign_training_logs",
    "cut_recording",
    "find_run_logs",
    "find_runs",
    "find_source_runs",
    "find_store",
    "find_tracker",
    "find_training_logs",
    "identify_training_logs",
    "is_readable",
    "join_attached_logs",
    "lengthen_equal_names",
    "list_unused_files",
    "longer_names",
    "make_names_distinct",
    "names_run",
    "recognise_companion",
    "split_readable",
]

_HOMES = {
    "protocol.importer": ("Labels", "ReadOptions"),
    "protocol.registry": ("HOST_IMPORTERS", "IMPORTERS", "LOCATORS", "TRACKERS"),
    "protocol.tracker": ("Selection", "split_readable"),
    "reading.attachments": ("join_attached_logs",),
    "reading.run_names": ("lengthen_equal_names", "longer_names", "make_names_distinct"),
    "reading.run_reading": ("IMPORTER_VERSION", "Reading"),
    "reading.folders": (
        "find_store",
        "identify_training_logs",
        "find_training_logs",
        "is_readable",
        "list_unused_files",
        "recognise_companion",
    ),
    "reading.run_sources": ("assign_training_logs", "find_run_logs", "find_source_runs"),
    "reading.sources": ("find_runs", "names_run", "find_tracker"),
    "reading.time_window": ("CutReading", "Window", "cut_recording"),
    "reading.tracked_reading": ("TrackedReading",),
}
"""Modules and the names that they hold."""


def __getattr__(name: str) -> Any:
    home = next((module for module, names in _HOMES.items() if name in names), None)
    if home is None:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{home}"), name)

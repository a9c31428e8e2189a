"""Puts a run into the store, unless it is there already."""

from pathlib import PurePath
from typing import TYPE_CHECKING

from gpureport.cli.sources.label_tables import build_labels
from gpureport.errors import DamagedRunError, SettingsError

if TYPE_CHECKING:
    from gpureport.cli.options.source_options import SourceOptions
    from gpureport.importers.time_window import RunReading
    from gpureport.recording import Run
    from gpureport.store.store import Entry, Store

_MENDED = "Stored {} again, since it was damaged"
_SMALL = 16 * 2**20
"""Bytes up to which hashing a log is faster than searching a store of many runs."""


def store_run(store: "Store", reading: "RunReading", *, force: bool) -> tuple["Entry", str]:
    """Store a run unless the store holds it; return it with the begin of a sentence on that.

    A run that the store holds keeps its labels unless the options give others. What a file beside its log says besides
    is added, and with `force` wins.
    """
    from gpureport.importers.reading import IMPORTER_VERSION  # noqa: PLC0415 - loads pyarrow

    # finding the id of a large log means reading all of it, in vain if the store cannot hold the run
    may_be_stored = sum(reading.sizes) <= _SMALL or store.may_hold(reading.sizes)
    try:
        known = store.get(reading.run_id) if may_be_stored else None
    except DamagedRunError:
        return _describe(store.write(reading, IMPORTER_VERSION), _MENDED)
    if known is None:
        return _describe(store.write(reading, IMPORTER_VERSION), "Stored {}")
    stored = reading.file_labels.applied(known.run) if force else reading.file_labels.filled_in(known.run)
    run = reading.labels.applied(stored)
    if not store.intact(known):
        return _describe(store.write(reading, IMPORTER_VERSION, run), _MENDED)
    if force or known.stored.importer_version != IMPORTER_VERSION or _has_grown(known, reading):
        return _describe(store.write(reading, IMPORTER_VERSION, run), "Stored {} again")
    if _is_alike(run, known.run):
        return _describe(known, f"{{}} is stored already{_name_other(known, reading)}")
    return _describe(store.relabel(known, run), "{} is stored already, labels changed")


def relabel_stored_run(store: "Store", name: str, options: "SourceOptions") -> "Entry":
    """Return a run of the store, which keeps the labels that the options give.

    Raises:
        SettingsError: when an option only matters while a log is read.
        StoreError: when there is no such run.
    """
    entry = store.named(name)
    window = options.window
    option = options.reading_option or ("--from, --to" if window.window else "--job" if window.job is not None else "")
    if option:
        what = f"{name} is stored, and the option only matters while a log is read"
        raise SettingsError(option, what, "name its log instead", code="only_while_reading")
    run = build_labels(options.labels).applied(entry.run)
    return entry if _is_alike(run, entry.run) else store.relabel(entry, run)


def _is_alike(run: "Run", stored: "Run") -> bool:
    """Return whether a run is as stored, with its work stated of it alone, or of several, as there."""
    common = [each.work is not None and each.work.is_common for each in (run, stored)]
    return run == stored and common[0] == common[1]


def _describe(entry: "Entry", done: str) -> tuple["Entry", str]:
    """Return a run with what was done with it; `{}` is its name."""
    return entry, done.replace("{}", entry.run.name, 1)


def _name_other(known: "Entry", reading: "RunReading") -> str:
    """Return a note where the store knows the same bytes by another name."""
    name = PurePath(reading.locator).name
    if known.run.tracked or name in {PurePath(each.locator).name for each in known.run.sources}:
        return ""
    return f" ({name} holds the same bytes)"


def _has_grown(known: "Entry", reading: "RunReading") -> bool:
    """Return whether a source, or the training log beside it, has grown since the run was stored.

    A GPU log that has grown is another run. A stored training log stays where none is named.
    """
    return bool({each.sha256 for each in reading.sources} - {each.sha256 for each in known.run.sources})

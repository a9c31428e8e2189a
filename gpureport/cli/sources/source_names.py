"""Whether a word on the command line names a file, a tracker, or a run of the store."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpureport.errors import StoreError
from gpureport.importers import LOCATORS
from gpureport.regular_files import path_exists

if TYPE_CHECKING:
    from gpureport.cli.options.source_options import SourceOptions
    from gpureport.store.run_selection import RunLookup
    from gpureport.store.store import Store

BASELINE = "baseline:"
"""What stands before the name of a baseline where a stored run may have the same name."""


def find_store(options: "SourceOptions") -> "Store":
    """Return the store the options name, else the nearest one."""
    from gpureport.store.store import Store  # noqa: PLC0415 - loads pyarrow

    return Store(options.store) if options.store else Store.find(Path.cwd())


def find_lookup(options: "SourceOptions") -> "RunLookup":
    """Return what finds stored runs by name; a command reads the names once."""
    place = find_store(options)
    context = click.get_current_context(silent=True)
    lookups: dict[str, RunLookup] = context.meta.setdefault(f"{__name__}.lookups", {}) if context else {}
    return lookups.setdefault(str(place.folder), place.lookup())


def is_source(source: str, options: "SourceOptions | None" = None) -> bool:
    """Return whether a word names a file, folder or tracker; other words are for the store.

    Args:
        source: the word.
        options: name the store. A run of it may have the name of a path that does not exist.
    """
    if source == "-" or path_exists(source) or _names_tracker(source):
        return True
    return looks_like_path(source) and not (options and is_stored(source, options))


def is_stored(name: str, options: "SourceOptions") -> bool:
    """Return whether the store holds one run of a name."""
    try:
        return bool(find_lookup(options).find(name))
    except StoreError:
        return False


def _names_tracker(source: str) -> bool:

    from gpureport.importers.sources import names_run  # noqa: PLC0415 - as above

    return source.startswith(LOCATORS) or names_run(source)


def looks_like_path(source: str) -> bool:
    """Return whether a source is written as a path, whether or not it exists."""
    return "/" in source or "\\" in source or Path(source).suffix.lower() in {".csv", ".log", ".txt", ".out"}

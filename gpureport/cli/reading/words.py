"""What a word on the command line names: a file, a tracker, something in a bucket, or a run of the store."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click

from gpureport import record_folder
from gpureport.cli.messages import print_note, show_stage
from gpureport.cli.options import Options
from gpureport.errors import PlaceError, SourceError, StoreError
from gpureport.importers import LOCATORS
from gpureport.importers.sources import names_run
from gpureport.places import RemotePath, is_bucket_url, parse_place
from gpureport.regular_files import path_exists
from gpureport.store.run_selection import RunLookup
from gpureport.store.store import Store

BASELINE = "baseline:"
"""What stands before the name of a baseline where a stored run may have the same name."""


def find_store(options: Options, *, must_exist: bool = False) -> Store:
    """Return the store that a command names, itself or before its second word, else the nearest one."""
    folder, context = options.store, click.get_current_context(silent=True)
    while folder is None and context is not None:
        folder, context = context.params.get("store"), context.parent
    if folder is None:
        return Store.find(Path.cwd())
    if must_exist and not folder.is_dir():
        raise StoreError(str(folder), "no such store", "check the path, or ingest into it first", code="no_such_store")
    return Store(folder)


def find_lookup(options: Options) -> RunLookup:
    """Return what finds stored runs by name; a command reads the names once."""
    place = find_store(options)
    context = click.get_current_context(silent=True)
    lookups: dict[str, RunLookup] = context.meta.setdefault(f"{__name__}.lookups", {}) if context else {}
    return lookups.setdefault(str(place.folder), place.lookup())


def is_source(source: str, options: Options) -> bool:
    """Return whether a word names a file, folder or tracker; a stored run may be called like a path that is none."""
    if source == "-" or path_exists(source) or source.startswith(LOCATORS) or names_run(source):
        return True
    return _looks_like_path(source) and not is_stored(source, options)


def is_stored(name: str, options: Options) -> bool:
    """Return whether the store holds one run of a name."""
    with suppress(StoreError):
        return bool(find_lookup(options).find(name))
    return False


def _looks_like_path(source: str) -> bool:
    return "/" in source or "\\" in source or Path(source).suffix.lower() in {".csv", ".log", ".txt", ".out"}


def note_stored_namesake(source: str, options: Options) -> None:
    """Note that a file or folder is read although the store holds a run of its name."""
    if source == "-" or _looks_like_path(source) or not path_exists(source):
        return
    with suppress(StoreError):
        run, kind = find_lookup(options).find(source).run, "folder" if Path(source).is_dir() else "file"
        print_note(f"gpureport: {source}: reading the {kind}, not the stored run of the same name; its id is {run.id}")


def fetch_sources(sources: Sequence[str], *, tolerant: bool = False) -> list[str]:
    """Return sources, each URL of a bucket as the path of a local copy; `tolerant` keeps that of a missing one."""
    found = list(sources)
    for number, source in enumerate(sources):
        try:
            found[number] = _fetch(source)
        except PlaceError as error:
            if not tolerant:
                raise SourceError(error.where, error.what, error.hint, code=error.code) from error
    return found


def _fetch(source: str) -> str:
    """Return the path of the copy of a URL; any other source as it is. `#` may name a run of a store in a bucket."""
    place = parse_place(source) if is_bucket_url(source) else None
    if not isinstance(place, RemotePath):
        return source
    copy = _fetch_watched(place)
    if copy.is_file():
        # what says beside a log which run it is of
        names = {record_folder.RUN_FILE, record_folder.LABEL_FILE, f"{place.name}.json", f"{place.stem}.json"}
        for beside in place.parent.iterdir():
            if beside.name in names - {place.name}:
                _fetch_watched(beside)
    path, _, run = source.rpartition("#")
    if not copy.exists() and is_bucket_url(path) and isinstance(store := parse_place(path), RemotePath):
        return f"{_fetch_watched(store)}#{run}"
    return str(copy)


def _fetch_watched(place: RemotePath) -> Path:
    from gpureport.places.transfer import fetch  # noqa: PLC0415 - only from a bucket

    with show_stage(f"Fetching {place}"):
        return fetch(place)

"""Sources that lie in a bucket, fetched to this machine to be read."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from gpureport import record_folder
from gpureport.cli.messages import progress
from gpureport.errors import PlaceError, SourceError
from gpureport.places import RemotePath, is_bucket_url, parse_place
from gpureport.places.transfer import fetch

if TYPE_CHECKING:
    from pathlib import Path


def fetch_sources(sources: Sequence[str]) -> list[str]:
    """Return sources, with the path of a local copy for each URL of a bucket.

    Raises:
        SourceError: when one cannot be fetched.
    """
    return [_fetch_source(source) for source in sources]


def fetch_readable_sources(sources: Sequence[str]) -> list[str]:
    """Return sources as `fetch_sources` does; the URL stays of one that cannot be fetched."""
    found = list(sources)
    for place, source in enumerate(sources):
        with suppress(SourceError):
            found[place] = _fetch_source(source)
    return found


def _fetch_source(source: str) -> str:
    """Return the path of the copy of a URL; any other source as it is.

    A store in a bucket may be named with `#` and a run of it.
    """
    place = _parse_url(source)
    if place is None:
        return source
    try:
        copy = _fetch_watched(place)
        if copy.is_file():
            _fetch_files_beside(place)
        path, _, run = source.rpartition("#")
        if not copy.exists() and (store := _parse_url(path)) is not None:
            return f"{_fetch_watched(store)}#{run}"
    except PlaceError as error:
        raise SourceError(error.where, error.what, error.hint, code=error.code) from error
    return str(copy)


def _parse_url(source: str) -> RemotePath | None:
    """Return what a source names in a bucket, if it does."""
    if not is_bucket_url(source):
        return None
    place = parse_place(source)
    return place if isinstance(place, RemotePath) else None


def _fetch_files_beside(log: RemotePath) -> None:
    """Fetch what says which run a log is of: the recorder's file, and files of labels."""
    names = {record_folder.RUN_FILE, record_folder.LABEL_FILE, f"{log.name}.json", f"{log.stem}.json"} - {log.name}
    for place in log.parent.iterdir():
        if place.name in names:
            _fetch_watched(place)


def _fetch_watched(place: RemotePath) -> "Path":
    """Fetch a place, and say so on a terminal when that takes long."""
    with progress.show_stage(f"Fetching {place}"):
        return fetch(place)

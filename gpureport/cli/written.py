"""What a command is to write, held against all that it reads before it does anything."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from gpureport.cli import values as read
from gpureport.cli.options import FIELDS
from gpureport.errors import SettingsError
from gpureport.fetched_copies import name_by_url
from gpureport.importers import TRACKERS
from gpureport.places import Place, parse_place
from gpureport.places.written_paths import STORE_PARTS, ReadPath, WrittenPath, refuse_taken_paths

_PAGES = frozenset((".html", ".md", ".pdf", ".png", ".svg"))
"""Endings of what no log has, and is written beside logs again and again."""
_RESULTS = _PAGES | {".json", ".prom", ".txt", ".xml"}
"""The same, with endings that a log may have too: its content tells."""
_WRITERS = {read.output, read.output_folder, read.local_folder, read.export}
_OWN, _HEAD = (b'"schema": "gpureport.', b'"verdict": {'), 4096
"""What JSON that gpureport wrote says at its beginning: its terms look like those of a log further down."""


def refuse_taken(ctx: click.Context) -> None:
    """Refuse to write what a command reads, and what is not its own.

    Raises:
        RenderError: naming the path.
    """
    values = [
        (str(param.name), param.opts[-1], value)
        for param in ctx.command.params
        for value in _list_values(ctx.params.get(str(param.name)))
    ]
    written = [path for name, _, value in values for path in _list_written(name, value)]
    if written:
        refuse_taken_paths(written, [*_list_read(ctx, values)], _holds_data)


def _list_values(value: Any) -> Iterator[Any]:
    if value is not None:
        yield from value if isinstance(value, tuple) else (value,)


def _find_reader(name: str) -> Any:
    return FIELDS[name].metadata.get("read") if name in FIELDS else None


def _list_written(name: str, value: Any) -> Iterator[WrittenPath]:
    """Yield what an option makes a command write."""
    reader = _find_reader(name)
    if reader in _WRITERS:
        yield WrittenPath(
            place=value[1] if reader is read.export else value,
            is_folder=reader in {read.output_folder, read.local_folder},
        )
    if name == "site":
        from gpureport.nightly import site  # noqa: PLC0415 - of one command

        # those who write other files there keep away from the names of the pages
        yield from (WrittenPath(place=value / file) for file in (site.INDEX, site.MARKER))


def _list_read(ctx: click.Context, values: Sequence[tuple[str, str, Any]]) -> Iterator[ReadPath]:
    """Yield what a command reads: its sources, and the file or folder of each option."""
    forced = any(ctx.params.get(name) for name in ("map", "source_kind", "columns"))
    for name, typed, value in values:
        if name == "site":
            from gpureport.nightly import site  # noqa: PLC0415 - of one command

            folders = (value / folder for folder in (site.REPORTS, site.FIGURES))
            yield from (ReadPath(place=each, name=f"the folder of {typed}", is_closed=True) for each in folders)
        elif name == "store":
            parts = (value / part for part in STORE_PARTS)
            yield from (ReadPath(place=part, name="the store of --store", is_closed=True) for part in parts)
        elif name in {"source", "baseline"}:
            yield from _list_source(str(value), _PAGES if forced else _RESULTS)
        elif _find_reader(name) in {read.file, read.fetched}:
            # of the copy of an object that object
            yield ReadPath(place=parse_place(name_by_url(str(value))), name=f"the file of {typed}")
    if ctx.params.get("config") is None:
        yield ReadPath(place=Path("gpureport.toml"), name="the file of --config")


def _list_source(text: str, suffixes: frozenset[str]) -> Iterator[ReadPath]:
    """Yield the file or folder of a source; none of a name or server.

    Args:
        text: as it was typed.
        suffixes: endings of files in the folder that are not read.
    """
    scheme, _, rest = text.partition(":")
    path = rest if scheme in TRACKERS.kinds else text
    for name in {text, path, path.rpartition("#")[0]}:
        try:
            place = parse_place(name.removeprefix("sqlite:///").removeprefix("file://"))
            is_there = bool(name) and (not isinstance(place, Path) or place.exists())
        except (SettingsError, OSError):
            continue
        if is_there:
            yield ReadPath(place=place, name="a source", is_closed=_is_tracker(place), suffixes=suffixes)


def _is_tracker(place: Place) -> bool:
    """Return whether a folder is the store of a tracker."""
    if not isinstance(place, Path) or not place.is_dir():
        return False
    from gpureport.importers.sources import find_tracker  # noqa: PLC0415 - loads pyarrow

    return find_tracker(str(place)) is not None


def _holds_data(path: Path) -> bool:
    """Return whether a file is a log or a database that a command could read.

    What gpureport wrote is none, nor is the summary of a job of GitHub, which is only added to.
    """
    if str(path) == os.environ.get("GITHUB_STEP_SUMMARY"):
        return False
    from gpureport.importers.sources import is_readable  # noqa: PLC0415 - loads pyarrow

    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        what = f"it cannot be read to see whose it is ({error.strerror})"
        raise SettingsError(str(path), what, "name another file, or check its disk", code="cannot_read") from error
    return not any(words in head for words in _OWN) and is_readable(path)

"""Refuses outputs that would overwrite inputs."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click

from gpureport.cli.options import READ, WRITTEN
from gpureport.errors import SettingsError
from gpureport.importers import TRACKERS
from gpureport.places import parse_place
from gpureport.places.written_paths import STORE_PARTS, ReadPath, WrittenPath, refuse_taken_paths
from gpureport.regular_files import name_by_url

_PAGES = frozenset((".html", ".md", ".pdf", ".png", ".svg"))
_RESULTS = _PAGES | {".json", ".prom", ".txt", ".xml"}
_OWN, _HEAD = (b'"schema": "gpureport.', b'"verdict": {', b"\nWHERE THE GPU TIME WENT"), 4096
"""Beginnings of JSON and text that gpureport wrote; the rest may look like a log."""


def refuse_taken(ctx: click.Context) -> None:
    written, read = list[WrittenPath](), list[ReadPath]()
    suffixes = _PAGES if any(ctx.params.get(name) for name in ("map", "source_kind", "columns")) else _RESULTS
    for param in ctx.command.params:
        name, reader, value = str(param.name), getattr(param, "reader", None), ctx.params.get(str(param.name))
        for each in value if isinstance(value, tuple) else [] if value is None else [value]:
            if name in {"source", "baseline"}:
                read += _list_source(str(each), suffixes)
            elif name == "store":
                parts = (each / part for part in STORE_PARTS)
                read += (ReadPath(place=part, name="the store of --store", is_closed=True) for part in parts)
            elif reader in READ:
                # for a local copy of an object, that object
                place = parse_place(name_by_url(str(each)))
                read.append(ReadPath(place=place, name=f"the file of {param.opts[-1]}"))
            elif reader in WRITTEN:
                written.append(WrittenPath(place=each, is_folder=param.metavar == "DIR"))
            if name == "site":
                from gpureport.nightly import site

                written += (WrittenPath(place=each / file) for file in (site.INDEX, site.MARKER))
                folders = (each / folder for folder in (site.REPORTS, site.FIGURES))
                read += (ReadPath(place=folder, name="the folder of --site", is_closed=True) for folder in folders)
    if ctx.params.get("config") is None:
        read.append(ReadPath(place=Path("gpureport.toml"), name="the file of --config"))
    if written:
        refuse_taken_paths(written, read, _holds_data)


def _list_source(text: str, suffixes: frozenset[str]) -> Iterator[ReadPath]:
    scheme, _, rest = text.partition(":")
    path = rest if scheme in TRACKERS.kinds else text
    for name in filter(None, {text, path, path.rpartition("#")[0]}):
        with suppress(SettingsError, OSError):
            place, is_closed = parse_place(name.removeprefix("sqlite:///").removeprefix("file://")), False
            if isinstance(place, Path) and place.is_dir():
                from gpureport.importers.sources import find_tracker

                is_closed = find_tracker(str(place)) is not None
            if not isinstance(place, Path) or place.exists():
                yield ReadPath(place=place, name="a source", is_closed=is_closed, suffixes=suffixes)


def _holds_data(path: Path) -> bool:
    if str(path) == os.environ.get("GITHUB_STEP_SUMMARY"):
        return False
    from gpureport.importers.sources import is_readable

    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        what = f"cannot be read, so it may be a log ({error.strerror})"
        raise SettingsError(str(path), what, "name another file, or check its disk", code="cannot_read") from error
    return not any(words in head for words in _OWN) and is_readable(path)

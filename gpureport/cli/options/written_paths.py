"""Options that name what a command writes, checked against what it reads before it begins."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from gpureport.cli.options.param_type import ParamType
from gpureport.cli.options.place_type import PlaceType
from gpureport.cli.options.usage_errors import refuse
from gpureport.errors import SettingsError
from gpureport.fetched_copies import name_by_url
from gpureport.importers import TRACKERS
from gpureport.places import Place, parse_place
from gpureport.places.written_paths import STORE_PARTS, ReadPath, WrittenPath, refuse_taken_paths

_SETTINGS = "gpureport.toml"
_STORE = "store"
"""The option with a folder that nothing may be written into."""
_SOURCES = {"source", "baseline"}
"""What names logs, trackers or stored runs."""
_PAGES = frozenset((".html", ".md", ".pdf", ".png", ".svg"))
"""Endings of what no log has, and is written beside logs again and again."""
_RESULTS = _PAGES | {".json", ".prom", ".txt", ".xml"}
"""The same, with endings that a log may have too: its content tells."""
_FORCED = ("map", "source_kind", "columns")
"""Options that make a log of what does not look like one."""


_OWN, _HEAD = (b'"schema": "gpureport.', b'"verdict": {'), 4096
"""What JSON that gpureport wrote says at its beginning: its terms look like those of a log further down."""


class OutputType(PlaceType):
    """A file to write, or a folder to put files into, which `WritingCommand` checks."""

    def __init__(
        self, *, local: str = "", is_folder: bool = False, files: Sequence[str] = (), folders: Sequence[str] = ()
    ) -> None:
        """Take what is written.

        Args:
            local: as `PlaceType` takes it.
            is_folder: whether files are put into it.
            files: files that are written into the folder.
            folders: folders in it that no other option may write to.
        """
        super().__init__(local=local)
        self._is_folder, self._files, self.folders = is_folder, files, folders

    def list_written(self, place: Place) -> Iterator[WrittenPath]:
        """Yield what is written."""
        yield WrittenPath(place=place, is_folder=self._is_folder)
        yield from (WrittenPath(place=place / name) for name in self._files)


OUTPUT = OutputType()
"""A file to write, or the URL of one of a bucket."""


class Export(ParamType[tuple[str, Place]]):
    """`FORMAT=FILE`, whose file is to be written."""

    name = "format=file"
    formats = ("openmetrics",)
    gone = ("benchmark-smaller", "benchmark-bigger", "bencher")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Place]:
        """Take format and file apart."""
        if isinstance(value, tuple):
            return value
        form, _, file = str(value).partition("=")
        if form in self.gone:
            msg = f"{form} is gone; take the figures of gpureport analyze --format json, or openmetrics=FILE"
            refuse(msg, param, ctx, code="gone_option")
        if form not in self.formats or not file:
            refuse(
                f"{value!r} is not FORMAT=FILE with one of {', '.join(self.formats)}", param, ctx, code="not_an_export"
            )
        return form, parse_place(file)


class WritingCommand(click.Command):
    """A command that writes files: it refuses to write what it reads, and what is not its own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments, and check every path to write.

        Raises:
            RenderError: naming the path that may not be written.
        """
        rest = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:
            written, read = list(_list_written(ctx)), list(_list_read(ctx))
            refuse_taken_paths(written, read, _holds_data)
        return rest


def _list_values(ctx: click.Context) -> Iterator[tuple[click.Parameter, Any]]:
    """Yield each value of an option or argument that was given."""
    for param in ctx.command.params:
        value = ctx.params.get(str(param.name))
        is_several = param.multiple if isinstance(param, click.Option) else param.nargs != 1
        for each in value or () if is_several else (value,):
            if each is not None:
                yield param, each


def _list_written(ctx: click.Context) -> Iterator[WrittenPath]:
    for param, value in _list_values(ctx):
        if isinstance(param.type, OutputType):
            yield from param.type.list_written(value)
        elif isinstance(param.type, Export):
            yield WrittenPath(place=value[1])


def _list_read(ctx: click.Context) -> Iterator[ReadPath]:
    """Yield what a command reads: its sources, and the file or folder of each option."""
    for param, value in _list_values(ctx):
        if isinstance(param.type, OutputType):
            for name in param.type.folders:
                yield ReadPath(place=value / name, name=f"the folder of {param.opts[-1]}", is_closed=True)
        elif param.name in _SOURCES:
            forced = any(ctx.params.get(name) for name in _FORCED)
            yield from _list_source(str(value), _PAGES if forced else _RESULTS)
        elif isinstance(param.type, click.Path | PlaceType):
            yield from _list_option(param, _parse_copy(value))
    if ctx.params.get("config") is None:
        yield ReadPath(place=Path(_SETTINGS), name="the file of --config")


def _list_option(param: click.Parameter, place: Place) -> Iterator[ReadPath]:
    """Yield what an option makes a command read, also within a store."""
    if param.name == _STORE:
        yield from (ReadPath(place=place / part, name="the store of --store", is_closed=True) for part in STORE_PARTS)
        return
    yield ReadPath(place=place, name=f"the file of {param.opts[-1]}")


def _parse_copy(value: Path | Place) -> Place:
    """Return the place that a value names; of the copy of an object that object."""
    return parse_place(name_by_url(str(value))) if isinstance(value, Path) else value


def _list_source(text: str, suffixes: frozenset[str]) -> Iterator[ReadPath]:
    """Yield the file or folder of a source; none of a name or server.

    Args:
        text: as it was typed.
        suffixes: endings of files in the folder that are not read.
    """
    scheme, _, rest = text.partition(":")
    is_tracked = scheme in TRACKERS.kinds
    for name in {text, rest if is_tracked else text, (rest if is_tracked else text).rpartition("#")[0]}:
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

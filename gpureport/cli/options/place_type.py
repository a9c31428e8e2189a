"""Options that take a path, or the URL of something in a bucket."""

from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from gpureport.cli.options.param_type import ParamType
from gpureport.errors import SettingsError
from gpureport.places import Place, RemotePath, parse_place
from gpureport.places.transfer import fetch


class PlaceType(ParamType[Place]):
    """A path of this machine, or a URL in a bucket. Whoever uses it says what is wrong."""

    name = "path"

    def __init__(self, *, local: str = "") -> None:
        """Take why only a path of this machine will do; empty where a bucket does too."""
        self._local = local

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Place:
        """Return the place.

        Raises:
            SettingsError: when it is a URL of an unknown scheme, or must be a path of this machine.
        """
        del param, ctx
        place: Place = parse_place(value) if isinstance(value, str) else value
        if self._local and isinstance(place, RemotePath):
            raise SettingsError(str(place), self._local, "name a folder here", code="only_local")
        return place

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Offer files."""
        del ctx, param
        return [CompletionItem(incomplete, type="file")]


PLACE = PlaceType()
"""A path, or a URL of a bucket."""


class FetchedFileType(PlaceType):
    """A file to read; one of a bucket is fetched, and its copy handed over."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path of the file, or of its copy.

        Raises:
            PlaceError: when it cannot be fetched.
            SettingsError: when it is a URL of an unknown scheme.
        """
        place = super().convert(value, param, ctx)
        if isinstance(place, Path):
            return place
        # while the shell completes a word nothing is fetched
        return Path(str(place)) if ctx and ctx.resilient_parsing else fetch(place)


FETCHED_FILE = FetchedFileType()
"""A path, or a URL of a bucket whose object is fetched."""

"""How much is said beside the answer: what `-q` and `-v` mean to every command."""

from collections.abc import Iterable
from enum import IntEnum

import click

from gpureport.cli.text import printable


class Verbosity(IntEnum):
    """What goes to standard error: errors alone, what was done, or also what became of every line read."""

    QUIET = -1
    NORMAL = 0
    VERBOSE = 1


FLAGS = {
    "-q": Verbosity.QUIET,
    "--quiet": Verbosity.QUIET,
    "-v": Verbosity.VERBOSE,
    "--verbose": Verbosity.VERBOSE,
}
"""The flags, taken off the arguments wherever they stand."""


def current() -> Verbosity:
    """Return what the person asked for; normal outside of a command."""
    context = click.get_current_context(silent=True)
    level = context.find_root().obj if context else None
    return level if isinstance(level, Verbosity) else Verbosity.NORMAL


def note(text: str) -> None:
    """Say on standard error what was done, unless nothing but errors is wanted."""
    if current() > Verbosity.QUIET:
        click.echo(printable(text), err=True)


def detail(lines: Iterable[str]) -> None:
    """Say on standard error how something was done, where that is wanted; the lines are not made otherwise."""
    if current() >= Verbosity.VERBOSE:
        for line in lines:
            click.echo(printable(line), err=True)

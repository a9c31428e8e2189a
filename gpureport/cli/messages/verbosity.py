"""How much is printed besides the answer: `-q`, `-v` and `--debug`."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

import click

from gpureport.cli.messages.styled_text import make_printable


class Verbosity(IntEnum):
    """What goes to standard error: errors, what was done, or also the lines read."""

    QUIET = -1
    NORMAL = 0
    VERBOSE = 1


FLAGS = {
    "-q": Verbosity.QUIET,
    "--quiet": Verbosity.QUIET,
    "-v": Verbosity.VERBOSE,
    "--verbose": Verbosity.VERBOSE,
}
"""The flags, which may stand anywhere among the arguments."""


@dataclass(slots=True)
class Session:
    """What holds for one call of the program, whichever command it is of.

    Attributes:
        level: how much is printed.
        debug: whether tracebacks are shown.
        failed: whether a run was left out because of a fault.
    """

    level: Verbosity = Verbosity.NORMAL
    debug: bool = False
    failed: bool = False


def current_session() -> Session:
    """Return what holds for this call; what is usual outside of a command."""
    context = click.get_current_context(silent=True)
    known = context.find_root().obj if context else None
    return known if isinstance(known, Session) else Session()


def current_verbosity() -> Verbosity:
    """Return the verbosity of this call; normal outside of a command."""
    return current_session().level


def print_note(text: str) -> None:
    """Say on standard error what was done, unless nothing but errors is wanted."""
    if current_verbosity() > Verbosity.QUIET:
        click.echo(make_printable(text), err=True)


def print_details(lines: Iterable[str]) -> None:
    """Say on standard error how something was done; the lines are made only where wanted."""
    if current_verbosity() >= Verbosity.VERBOSE:
        for line in lines:
            click.echo(make_printable(line), err=True)

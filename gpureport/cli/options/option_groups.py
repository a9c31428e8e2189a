"""Groups of options, each declared beside the dataclass of its values."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from gpureport.cli.options.usage_errors import refuse

Command = TypeVar("Command", bound=Callable[..., Any])
Values = TypeVar("Values")

FILE = click.Path(path_type=Path, readable=False)
"""A file or folder; whoever reads it says what is wrong with it."""
NO_OPTION = {"option": False}
"""Metadata of a field that a command fills in itself."""


def add_options(
    command: Command, options: Sequence[Callable[[Any], Any]], argument: str, build: Callable[[dict[str, Any]], object]
) -> Command:
    """Add options to a command, which gets what `build` makes of their values as one argument.

    `build` takes the values of its options out of the dictionary.
    """

    @wraps(command)
    def wrapped(**values: Any) -> Any:
        built = build(values)
        return command(**{argument: built}, **values)

    decorated: Any = wrapped
    for option in reversed(options):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]  # click keeps the kind of what it decorates


def take_values(group: type[Values], values: dict[str, Any]) -> Values:
    """Take the values of a group's options, the fields without `NO_OPTION`, out of a dictionary."""
    names = (each.name for each in fields(group) if each.metadata != NO_OPTION)  # type: ignore[arg-type]  # every group is a dataclass
    return group(**{name: values.pop(name) for name in names})


def refuse_repetition(_: click.Context, param: click.Parameter, values: tuple[Any, ...]) -> Any:
    """Return the value of an option; refuse a second one, which click would let win."""
    if len(values) > 1:
        msg = (
            "this option may be given only once, as it applies to all sources. To use different values, run "
            "`gpureport ingest` for each log, then pass the names of the stored runs"
        )
        refuse(msg, param, None, code="given_twice")
    return values[0] if values else None

"""A command: a function that takes what was named and the options."""

import functools
from collections.abc import Callable
from typing import Any

import click

from gpureport.cli import options as table
from gpureport.cli.options import Options

Body = Callable[..., int | None]


class Command(click.Command):
    """A command that refuses to write what it reads, and what is not its own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments, and check every path to write.

        Raises:
            RenderError: naming the path that may not be written.
        """
        rest = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:
            from gpureport.cli.written import refuse_taken  # noqa: PLC0415 - help needs no paths

            refuse_taken(ctx)
        return rest


def command(
    name: str,
    *arguments: click.Argument,
    group: click.Group | None = None,
    kind: type[Command] = Command,
    **settings: Any,
) -> Callable[[Body], Command]:
    """Make a command of a function that takes the values of its arguments and the options.

    Args:
        name: as it is typed.
        arguments: what is named beside options.
        group: the group that it is a command of.
        kind: the class.
        settings: further ones for click.
    """

    def make(body: Body) -> Command:
        named = [str(each.name) for each in arguments]

        @functools.wraps(body)
        def run(**values: Any) -> int | None:
            return body(*(values.pop(each) for each in named), Options(**values))

        params = [*arguments, *table.build_options(f"{group.name}-{name}" if group else name)]
        made = kind(name, callback=run, params=params, help=body.__doc__, **settings)
        if group:
            group.add_command(made)
        return made

    return make


def command_group(name: str, body: Callable[[Options], int | None], text: str) -> click.Group:
    """Make a command of commands, which does what `body` does where none of them is named."""

    def run(**values: Any) -> int | None:
        is_called = click.get_current_context().invoked_subcommand is not None
        return None if is_called else body(Options(**values))

    return click.Group(name, callback=run, params=table.build_options(name), help=text, invoke_without_command=True)


def sources(*, required: bool = False, metavar: str | None = None) -> click.Argument:
    """Return the argument that names logs, folders, trackers and stored runs."""
    return click.Argument(["source"], nargs=-1, required=required, metavar=metavar, shell_complete=table.complete_files)

"""A command: a function that takes what was named and the options."""

import functools
from collections.abc import Callable
from typing import Any

import click

from gpureport.cli import options as table
from gpureport.cli.messages import current_session
from gpureport.cli.options import Options

Body = Callable[..., int | None]


class Command(click.Command):
    """A command whose `--help` lists the usual options; it refuses to write what it reads, and what is not its own."""

    full_name = ""
    """The name of the command in the table of options."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by section: the usual ones, or all where that is asked for."""
        every = current_session().every_option
        shown = {param.name: record for param in self.params if (record := param.get_help_record(ctx))}
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        hidden = 0
        for name, section, is_usual in table.list_fields(self.full_name):
            hidden += not is_usual
            if is_usual or every:
                sections.setdefault(section, []).append(shown[name])
        asks = self.get_help_option(ctx)
        sections["Options"] += [record] if asks and (record := asks.get_help_record(ctx)) else []
        if hidden:
            sections["Options"].append(("--help-all", f"Show {hidden} more options as well."))
        for section, rows in sections.items():
            with formatter.section(section):
                formatter.write_dl(rows)

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

        full_name = f"{group.name}-{name}" if group else name
        params = [*arguments, *table.build_options(full_name)]
        made = kind(name, callback=run, params=params, help=body.__doc__, **settings)
        made.full_name = full_name
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

"""The commands of the table as click knows them: with their usual options in the help, and loaded when called."""

import shlex
from importlib import import_module
from typing import Any

import click

from gpureport.cli.messages import UsageError, current_session
from gpureport.cli.options import Options, build_options, list_fields
from gpureport.cli.table import COMMANDS
from gpureport.regular_files import path_exists


def run_body(name: str, values: dict[str, Any]) -> int | None:
    """Do what a command does, with the values of its arguments and options."""
    body = getattr(import_module(f"gpureport.cli.commands.{name.split(maxsplit=1)[0]}"), name.replace(" ", "_"))
    named = [values.pop(str(each.name)) for each in COMMANDS[name].arguments]
    code: int | None = body(*named, Options(**values))
    return code


class Command(click.Command):
    """A command whose `--help` lists the usual options; it refuses to write what it reads, and what is not its own."""

    def __init__(self, name: str) -> None:
        entry = COMMANDS[name]
        super().__init__(
            name.rpartition(" ")[2],
            params=[*entry.arguments, *build_options(name)],
            help=entry.text,
            callback=lambda **values: run_body(name, values),
        )
        self._full_name = name
        # an option between the words of a job would be taken for one of ours
        self.allow_interspersed_args = name != "record"

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by section: the usual ones, or all where that is asked for."""
        every = current_session().every_option
        shown = {param.name: record for param in self.params if (record := param.get_help_record(ctx))}
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        hidden = 0
        for name, section, is_usual in list_fields(self._full_name):
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
        """Read the arguments, and check every path to write."""
        typed = list(args)
        rest = super().parse_args(ctx, args)
        if ctx.resilient_parsing:
            return rest
        from gpureport.cli.written import refuse_taken

        refuse_taken(ctx)
        job = ctx.params.get("command") or ()
        if job and typed[-len(job) - 1 : -len(job)] != ["--"]:
            msg = f"put -- before the command to run: gpureport record -- {shlex.join(job)}"
            raise UsageError(msg, code="missing_dashes")
        return rest


class Commands(click.Group):
    """A group of commands, of the program or of one command; without one of them it does what its callback does."""

    prefix = ""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order a newcomer needs them."""
        del ctx
        names = [name.removeprefix(self.prefix) for name in COMMANDS if name.startswith(self.prefix)]
        return [name for name in names if " " not in name]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Build a command."""
        if cmd_name not in self.list_commands(ctx):
            return None
        name = self.prefix + cmd_name
        if all(not each.startswith(f"{name} ") for each in COMMANDS):
            return Command(name)
        group = Commands(
            cmd_name,
            callback=lambda **values: click.get_current_context().invoked_subcommand or run_body(name, values),
            params=build_options(name),
            help=COMMANDS[name].text,
            invoke_without_command=True,
        )
        group.prefix = f"{name} "
        return group

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or suggest the nearest one."""
        names, name = self.list_commands(ctx), args[0]
        if name in names or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        from difflib import get_close_matches

        close = get_close_matches(name, names, n=1)
        meant = f"did you mean {close[0]!r}?" if close else f"commands are {', '.join(names)}"
        if not self.prefix and path_exists(name):
            meant = f"did you mean {shlex.join(['gpureport', 'analyze', *args])}?"
        msg = f"no command {name!r}; {meant}"
        raise UsageError(msg, code="unknown_command")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[self.prefix + name].line) for name in self.list_commands(ctx)])

"""Entry point: runs the command, and turns errors into a one-line message and an exit code."""

import atexit
import gc
import io
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from keyword import iskeyword
from pathlib import Path
from typing import Any, NoReturn

import click

from gpureport import __version__
from gpureport.cli import messages, table
from gpureport.cli.messages import FLAGS, Exit, Verbosity
from gpureport.cli.options import Option, Options, build_options, refuse_taken
from gpureport.errors import InternalError, PlaceError, SourceError, StoreError
from gpureport.redaction import OwnSecrets, redact_text, use_own_secrets
from gpureport.regular_files import path_exists

__all__ = ["COMMANDS", "Commands", "gpureport", "main"]

COMMANDS = {name: each.line for name, each in table.COMMANDS.items() if " " not in name}
_GONE = {
    "--explain": "use gpureport -v ingest, which prints how each column and line was read",
    "--calibrate": "repeat each step three times, or set a baseline of three runs and use gpureport check",
    "--notify": "use --format line",
    "--templates": "set logo, accent, font and footer under [report] in gpureport.toml",
}
_CODES = (
    (click.NoSuchOption, "unknown_option"),
    (click.MissingParameter, "missing_parameter"),
    (click.BadParameter, "not_a_valid_value"),
    (click.BadOptionUsage, "bad_option"),
    (click.FileError, "no_access"),
    (click.ClickException, "usage"),
)


def _run_body(name: str, values: dict[str, Any]) -> int | None:
    first = name.partition(" ")[0]
    # an import may lose a handler's exception
    handler = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    module = import_module(f"gpureport.cli.commands.{table.MODULES.get(first, first)}")
    signal.signal(signal.SIGTERM, handler)
    body = getattr(module, f"{name.replace(' ', '_')}{'_' * iskeyword(name)}")
    named = [values.pop(str(each.name)) for each in table.COMMANDS[name].arguments]
    code: int | None = body(*named, Options(**values))
    return code


class Command(click.Command):
    def __init__(self, name: str) -> None:
        entry = table.COMMANDS[name]
        super().__init__(
            name.rpartition(" ")[2],
            params=[*entry.arguments, *build_options(name)],
            help=entry.help,
            callback=lambda **values: _run_body(name, values),
        )
        # options in a job's command are not for gpureport
        self.allow_interspersed_args = name not in {"record", "try"}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        every = messages.current_session().every_option
        own = [each for each in self.params if isinstance(each, Option)]
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for each in own:
            if (each.is_usual or every) and (record := each.get_help_record(ctx)):
                sections.setdefault(each.section, []).append(record)
        asks = self.get_help_option(ctx)
        sections["Options"] += [record] if asks and (record := asks.get_help_record(ctx)) else []
        if hidden := sum(not each.is_usual for each in own):
            sections["Options"].append(("--help-all", f"Also show {hidden} more options."))
        for section, rows in sections.items():
            with formatter.section(section):
                formatter.write_dl(rows)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        typed = list(args)
        rest = super().parse_args(ctx, args)
        if ctx.resilient_parsing:
            return rest
        refuse_taken(ctx)
        job = ctx.params.get("command") or ()
        if job and typed[-len(job) - 1 : -len(job)] != ["--"]:
            msg = f"put -- before the command to run: gpureport {ctx.info_name} -- {shlex.join(job)}"
            raise messages.UsageError(msg, code="missing_dashes")
        return rest


class Commands(click.Group):
    prefix = ""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        names = [name.removeprefix(self.prefix) for name in table.COMMANDS if name.startswith(self.prefix)]
        return [name for name in names if " " not in name]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        name = self.prefix + cmd_name
        if all(not each.startswith(f"{name} ") for each in table.COMMANDS):
            return Command(name)
        group = Commands(
            cmd_name,
            callback=lambda **values: click.get_current_context().invoked_subcommand or _run_body(name, values),
            params=build_options(name),
            help=table.COMMANDS[name].help,
            invoke_without_command=True,
        )
        group.prefix = f"{name} "
        return group

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names, name = self.list_commands(ctx), args[0]
        if name in names or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        from difflib import get_close_matches

        close = get_close_matches(name, names, n=1)
        meant = f"did you mean {close[0]!r}?" if close else f"the commands are {', '.join(names)}"
        if not self.prefix and path_exists(name):
            meant = f"did you mean {shlex.join(['gpureport', 'analyze', *args])}?"
        raise messages.UsageError(f"unknown command {name!r}; {meant}", code="unknown_command")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, table.COMMANDS[self.prefix + name].line) for name in self.list_commands(ctx)])


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
    epilog="For Tab completion, run the line that gpureport completion prints for your shell.",
)
@click.version_option(__version__, prog_name="gpureport", message="%(prog)s %(version)s")
@click.option("-q", "--quiet", is_flag=True, help="Print only errors and the requested result.")
@click.option("-v", "--verbose", is_flag=True, help="Print to standard error how each line was read.")
@click.option("--debug", is_flag=True, help="Show an error's traceback and code.")
@click.pass_context
def gpureport(ctx: click.Context, /, **_: bool) -> None:
    """Read the GPU logs of a training run and show where the GPU time went, and why.

    Without a command, show what this folder contains and how to begin.

    Exit codes: 0 success; 1 a rule is broken; 2 the command or settings are not valid; 3 a source is missing or
    unreadable (4 for check and nightly); 4 the question cannot be answered; 5 gpureport itself failed on a run.
    """
    # `main` accepts these options in any position
    if ctx.invoked_subcommand is None:
        from gpureport.cli.commands.others import describe_folder

        messages.print_lines(describe_folder(Path()))


def main(args: list[str] | None = None) -> None:
    _prepare()
    arguments = sys.argv[1:] if args is None else args
    # words after -- belong to the recorded job
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    level = next((FLAGS[argument] for argument in reversed(own) if argument in FLAGS), Verbosity.NORMAL)
    session = messages.Session(level=level, debug="--debug" in own, every_option="--help-all" in own)
    rest = ["--help" if each == "--help-all" else each for each in own if each != "--debug" and each not in FLAGS]
    rest += arguments[len(own) :]
    words = [each for each in rest if not each.startswith("-")]
    called = next((name for name in (" ".join(words[:2]), *words[:1]) if name in table.COMMANDS), "")
    try:
        with messages.internal_errors(called or "gpureport"):
            _use_own_secrets(own)
            code = gpureport.main(args=rest, prog_name="gpureport", standalone_mode=False, obj=session) or 0
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except (click.Abort, KeyboardInterrupt):
        messages.print_error("interrupted")
        sys.exit(130)
    except Exception as error:
        _end(error, f"gpureport {called}".strip(), debug=session.debug)
    # an internal error must not hide a broken rule
    sys.exit(Exit.INTERNAL if session.failed and code not in {Exit.BROKEN, Exit.USAGE, Exit.SOURCE} else code)


def _end(error: Exception, called: str, *, debug: bool) -> NoReturn:
    if isinstance(error, OSError):
        what = error.strerror or str(error)
        hint = getattr(error, "hint", "check permissions and free space")
        if not error.filename:
            # keep Python from writing unflushed output again at exit
            sys.stdout = io.StringIO()
        error = SourceError(str(error.filename or "standard output"), what, hint, code="system_refused")
    code, status, message = getattr(error, "code", ""), Exit.USAGE, str(error)
    if isinstance(error, click.ClickException):
        option = getattr(error, "option_name", "")
        context = getattr(error, "ctx", None)
        code, message = code or next(code for kind, code in _CODES if isinstance(error, kind)), error.format_message()
        if isinstance(error, click.NoSuchOption) and option in _GONE:
            code, message = "gone_option", f"{option} was removed; {_GONE[option]}"
        message = f"{message.rstrip('.')} (see '{context.command_path if context else called} --help')"
    elif isinstance(error, InternalError):
        status = Exit.INTERNAL
    elif isinstance(error, SourceError | PlaceError | StoreError):
        status = Exit.SOURCE
    if debug and not isinstance(error, click.ClickException) and code != "too_little_memory":
        import traceback

        trace = error.trace if isinstance(error, InternalError) else redact_text(traceback.format_exc())
        click.echo(trace, err=True, nl=False)
    if debug and code:
        click.echo(f"code: {code}", err=True)
    messages.print_error(message, getattr(error, "aside", ""))
    sys.exit(status)


def _use_own_secrets(arguments: Sequence[str]) -> None:
    use_own_secrets(OwnSecrets())
    if "_GPUREPORT_COMPLETE" in os.environ or not {"-h", "--help", "--help-all", "--version"}.isdisjoint(arguments):
        return
    pairs = [(*each.partition("=")[::2], after) for each, after in zip(arguments, [*arguments[1:], ""], strict=False)]
    named = [value or after for option, value, after in pairs if option == "--config" and (value or after)]
    if named or Path("gpureport.toml").is_file():
        from gpureport.settings import read_own_secrets, read_unchecked
        from gpureport.settings.toml_files import keep_piped

        keep_piped()
        use_own_secrets(read_own_secrets(read_unchecked(Path(named[-1]) if named else None)))


def _prepare() -> None:
    # otherwise a file could receive the descriptor of a closed stream
    for number, flags in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            # leave Python nothing to flush at exit
            raw: Any = io.FileIO(number, "w", closefd=False)
            setattr(sys, name, io.TextIOWrapper(raw, encoding="utf-8", write_through=True))
    gc.set_threshold(50_000)
    atexit.register(gc.freeze)
    # matrices are small, so the cores are more useful for parsing
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # huge pages make ingest 3% slower and take 30 MB
    os.environ.setdefault("MIMALLOC_ALLOW_THP", "0")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # the terminal was closed; nohup ignores this signal
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")

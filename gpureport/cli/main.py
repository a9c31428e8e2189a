"""The program's entry: finds the command, runs it, and turns errors into a line and an exit code."""

import atexit
import gc
import io
import os
import signal
import sys
from importlib import import_module
from typing import Any, NoReturn

import click

from gpureport import __version__
from gpureport.cli.messages import internal_errors
from gpureport.cli.messages.internal_errors import InternalError
from gpureport.cli.messages.styled_text import print_error
from gpureport.cli.messages.verbosity import FLAGS, Session, Verbosity
from gpureport.cli.options.own_secrets_option import use_secrets_of_settings
from gpureport.cli.options.usage_errors import UsageError, describe_error
from gpureport.errors import GpureportError, PlaceError, SourceError, StoreError, describe_shortage
from gpureport.redaction import redact_text
from gpureport.regular_files import UnsafeFileError

COMMANDS = {
    "record": "Record GPUs and machine while a job runs.",
    "report": "Write the report of one or more runs.",
    "analyze": "Say where the GPU time of a run went, and why.",
    "compare": "Compare runs, step by step.",
    "check": "Check runs against rules, as a gate in a pipeline.",
    "nightly": "Keep a history of nights, and write its pages.",
    "fleet": "Say who wastes what over many runs, and which GPU is sick.",
    "ingest": "Read logs into the store and say what was kept.",
    "runs": "List, show, label, export or remove stored runs.",
    "baseline": "Set, list or remove named baselines.",
    "publish": "Put reports and figures where people look.",
    "explain": "Explain a check, a metric, or what to record.",
    "demo": "Analyse the sample logs: a first look.",
    "completion": "Complete commands and options in the shell.",
}
"""Every command with its one line of help; the command itself is in the module of its name."""
_BROKEN, _USAGE, _SOURCE, _HUNG_UP, _INTERRUPTED, _TERMINATED = 1, 2, 3, 129, 130, 143
_RUBBISH = 50_000
"""New objects after which Python collects garbage; its own default is 700."""


class Commands(click.Group):
    """The group of commands, each imported only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order a newcomer needs them."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"gpureport.cli.commands.{cmd_name}"), cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or suggest the nearest one."""
        name = args[0]
        if name in COMMANDS or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        from difflib import get_close_matches  # noqa: PLC0415 - most commands are spelt right

        close = get_close_matches(name, COMMANDS, n=1)
        meant = f"did you mean {close[0]!r}?" if close else f"commands are {', '.join(COMMANDS)}"
        msg = f"no command {name!r}; {meant}"
        raise UsageError(msg, ctx, code="unknown_command")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


_FIRST_COMMANDS = """Record a job:           gpureport record -- COMMAND
Report on this folder:  gpureport report . -o report.html
List stored runs:       gpureport runs
See an example:         gpureport demo
All commands:           gpureport --help"""


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
    epilog="Complete commands with Tab: gpureport completion prints the one line that installs it.",
)
@click.version_option(__version__, prog_name="gpureport", message="%(prog)s %(version)s")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors and the answer asked for.")
@click.option("-v", "--verbose", is_flag=True, help="Print on standard error what became of every line.")
@click.option("--debug", is_flag=True, help="Show the traceback and the code of an error.")
@click.pass_context
def gpureport(ctx: click.Context, *, quiet: bool, verbose: bool, debug: bool) -> None:
    """Read the GPU logs a training run left behind and say where the GPU time went, and why.

    Without a command it says how to begin.

    Exit codes: 0 done; 1 a rule is broken; 2 the command or the settings are wrong; 3 a source is missing or cannot be
    read (check, nightly: 4); 4 the question cannot be answered; 5 gpureport itself failed on a run, which it names.
    """
    # main removes them from the arguments wherever they stand; here they are only documented
    del quiet, verbose, debug
    if ctx.invoked_subcommand is None:
        click.echo(_FIRST_COMMANDS)


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit.

    The codes: 0 done, 1 a gate broken, 2 usage or settings, 3 a source, 4 not assessed, 5 a fault of gpureport.
    """
    _replace_closed_streams()
    arguments = sys.argv[1:] if args is None else args
    # what follows -- belongs to the job that is recorded
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    debug = "--debug" in own
    level = next((FLAGS[argument] for argument in reversed(own) if argument in FLAGS), Verbosity.NORMAL)
    session = Session(level=level, debug=debug)
    rest = [argument for argument in own if argument != "--debug" and argument not in FLAGS]
    rest += arguments[len(own) :]
    _prepare()
    try:
        use_secrets_of_settings(own)
        result: Any = gpureport.main(args=rest, prog_name="gpureport", standalone_mode=False, obj=session)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        path = context.command_path if context else _called(rest)
        fault, message = describe_error(error)
        _say_code(fault, debug=debug)
        _fail(f"{message} (see '{path} --help')", _USAGE)
    except (click.Abort, KeyboardInterrupt):
        _fail("interrupted", _INTERRUPTED)
    except InternalError as error:
        _internal(error, debug=debug)
    except GpureportError as error:
        _trace(debug=debug)
        _say_code(error.code, debug=debug)
        if isinstance(error, SourceError):
            print_error(str(error), error.aside)
            sys.exit(_SOURCE)
        _fail(str(error), _SOURCE if isinstance(error, PlaceError | StoreError) else _USAGE)
    except BrokenPipeError:
        # the reader closed the pipe
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        _trace(debug=debug)
        _say_code("system_refused", debug=debug)
        where = error.filename or "standard output"
        hint = error.hint if isinstance(error, UnsafeFileError) else "check permissions and free space"
        _fail(f"{where}: {error.strerror or error}; {hint}", _SOURCE)
    except Exception as error:
        command = _called(rest).removeprefix("gpureport ")
        if shortage := describe_shortage(error):
            _say_code("too_little_memory", debug=debug)
            _fail(f"{command}: {'; '.join(shortage)}", _SOURCE)
        _internal(InternalError(command, error), debug=debug)
    code = result if isinstance(result, int) else 0
    # a limit that one run breaks stays broken, whatever became of other runs
    sys.exit(internal_errors.EXIT_CODE if session.failed and code not in {_BROKEN, _USAGE, _SOURCE} else code)


def _called(arguments: list[str]) -> str:
    """Return the command that the arguments call, also where an option of it is incomplete."""
    command: click.Command = gpureport
    names = ["gpureport"]
    for argument in arguments:
        found = command.get_command(click.Context(command), argument) if isinstance(command, click.Group) else None
        if found is not None:
            command = found
            names.append(argument)
    return " ".join(names)


def _replace_closed_streams() -> None:
    """Replace closed standard streams, so that no file is opened in their place.

    Reading such an input and writing such an output is the same error as on a closed one; what would be said on a
    closed standard error is lost.
    """
    for number, flags in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)
    if sys.stdout is None:
        sys.stdout = _open_unbuffered(1)
    if sys.stderr is None:
        sys.stderr = _open_unbuffered(2)


def _open_unbuffered(number: int) -> io.TextIOWrapper:
    """Return a stream of a descriptor without anything that Python cannot write at its end."""
    raw: Any = io.FileIO(number, "w", closefd=False)
    return io.TextIOWrapper(raw, encoding="utf-8", write_through=True)


def _prepare() -> None:
    """Handle SIGTERM like Ctrl-C, so that no file is left half-written, and replace what cannot be printed.

    Garbage is collected less often: most objects of a command are modules, which stay, and looking through them again
    and again takes a tenth of a short command.
    """
    gc.set_threshold(_RUBBISH)
    atexit.register(gc.freeze)
    # NumPy multiplies only small matrices here, and parsing needs the cores
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # with huge pages Arrow clears 2 MB at once: 3% of the time of an ingest, and 30 MB of memory
    os.environ.setdefault("MIMALLOC_ALLOW_THP", "0")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))
    # a closed terminal; nohup has the signal ignored
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        signal.signal(signal.SIGHUP, lambda *_: sys.exit(_HUNG_UP))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _trace(*, debug: bool) -> None:
    if debug:
        import traceback  # noqa: PLC0415 - only with --debug

        click.echo(redact_text(traceback.format_exc()), err=True, nl=False)


def _say_code(code: str, *, debug: bool) -> None:
    """Print the code of an error, which stays when its sentence changes, with `--debug`."""
    if debug and code:
        click.echo(f"code: {code}", err=True)


def _internal(error: InternalError, *, debug: bool) -> NoReturn:
    if debug:
        click.echo(error.trace, err=True, nl=False)
    _say_code(error.code, debug=debug)
    _fail(str(error), internal_errors.EXIT_CODE)


def _fail(message: str, code: int) -> NoReturn:
    print_error(message)
    sys.exit(code)

"""The program's entry: finds the command, runs it, and turns errors into a line and an exit code."""

import atexit
import gc
import io
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import click

from gpureport import __version__
from gpureport.cli import table
from gpureport.cli.command import Commands
from gpureport.cli.messages import FLAGS, Exit, Session, Verbosity, make_printable, print_error, print_source_error
from gpureport.errors import GpureportError, InternalError, PlaceError, SourceError, StoreError, describe_shortage
from gpureport.redaction import OwnSecrets, redact_text, use_own_secrets

__all__ = ["COMMANDS", "Commands", "gpureport", "main"]

COMMANDS = {name: each.line for name, each in table.COMMANDS.items() if " " not in name}
"""Every command with its one line of help."""
_GONE = {
    "--explain": "use gpureport -v ingest, which prints what each column and line became",
    "--calibrate": "repeat each step three times, or set a baseline of three runs and use gpureport check",
    "--notify": "use --format line",
    "--templates": "set logo, accent, font and footer in [report] of gpureport.toml",
}
"""Options that went, with what to use instead, refused with a line for a release."""
_CODES: tuple[tuple[type[click.ClickException], str], ...] = (
    (click.NoSuchOption, "unknown_option"),
    (click.MissingParameter, "missing_parameter"),
    (click.BadParameter, "not_a_valid_value"),
    (click.BadOptionUsage, "bad_option"),
    (click.FileError, "no_access"),
    (click.ClickException, "usage"),
)
"""Codes of what click itself finds; of the first class that fits."""
_HUNG_UP, _INTERRUPTED, _TERMINATED = 129, 130, 143
_RUBBISH = 50_000
"""New objects after which Python collects garbage; its own default is 700."""


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
def gpureport(ctx: click.Context, /, **_: bool) -> None:
    """Read the GPU logs a training run left behind and say where the GPU time went, and why.

    Without a command it says what this folder holds, and how to begin.

    Exit codes: 0 done; 1 a rule is broken; 2 the command or the settings are wrong; 3 a source is missing or cannot be
    read (check, nightly: 4); 4 the question cannot be answered; 5 gpureport itself failed on a run, which it names.
    """
    # main removes the options from the arguments wherever they stand; here they are only documented
    if ctx.invoked_subcommand is None:
        from gpureport.cli.overview import describe_folder

        for line in describe_folder(Path()):
            click.echo(make_printable(line))


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit with one of the codes that its help lists."""
    _replace_closed_streams()
    arguments = sys.argv[1:] if args is None else args
    # what follows -- belongs to the job that is recorded
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    level = next((FLAGS[argument] for argument in reversed(own) if argument in FLAGS), Verbosity.NORMAL)
    session = Session(level=level, debug="--debug" in own, every_option="--help-all" in own)
    rest = ["--help" if each == "--help-all" else each for each in own if each != "--debug" and each not in FLAGS]
    rest += arguments[len(own) :]
    _prepare()
    try:
        _use_own_secrets(own)
        result: Any = gpureport.main(args=rest, prog_name="gpureport", standalone_mode=False, obj=session)
    except BrokenPipeError:
        # the reader closed the pipe
        sys.stderr.close()
        sys.exit(0)
    except (click.Abort, KeyboardInterrupt):
        print_error("interrupted")
        sys.exit(_INTERRUPTED)
    except Exception as error:
        _end(error, rest, debug=session.debug)
    code = result if isinstance(result, int) else 0
    # a limit that one run breaks stays broken, whatever became of other runs
    sys.exit(Exit.INTERNAL if session.failed and code not in {Exit.BROKEN, Exit.USAGE, Exit.SOURCE} else code)


def _end(error: Exception, arguments: Sequence[str], *, debug: bool) -> NoReturn:
    shortage, called = describe_shortage(error), _find_called(arguments)
    where = called.removeprefix("gpureport ")
    if shortage and not isinstance(error, GpureportError):
        error = SourceError(where, *shortage, code="too_little_memory")
    elif isinstance(error, OSError):
        what, hint = error.strerror or str(error), getattr(error, "hint", "check permissions and free space")
        error = SourceError(str(error.filename or "standard output"), what, hint, code="system_refused")
    elif not isinstance(error, click.ClickException | GpureportError):
        error = InternalError(where, error)
    code, status, message = _describe(error, called)
    if debug and not isinstance(error, click.ClickException) and not shortage:
        import traceback

        trace = error.trace if isinstance(error, InternalError) else redact_text(traceback.format_exc())
        click.echo(trace, err=True, nl=False)
    if debug and code:
        # it stays when the sentence changes
        click.echo(f"code: {code}", err=True)
    if isinstance(error, SourceError):
        print_source_error(error)
    else:
        print_error(message)
    sys.exit(status)


def _describe(error: Exception, called: str) -> tuple[str, int, str]:
    if isinstance(error, GpureportError):
        is_source = isinstance(error, SourceError | PlaceError | StoreError)
        status = Exit.INTERNAL if isinstance(error, InternalError) else Exit.SOURCE if is_source else Exit.USAGE
        return error.code, status, str(error)
    context, option = getattr(error, "ctx", None), getattr(error, "option_name", "")
    code = getattr(error, "code", "") or next((code for kind, code in _CODES if isinstance(error, kind)), "")
    message = error.format_message().rstrip(".") if isinstance(error, click.ClickException) else ""
    if isinstance(error, click.NoSuchOption) and option in _GONE:
        code, message = "gone_option", f"{option} is gone; {_GONE[option]}"
    return code, Exit.USAGE, f"{message} (see '{context.command_path if context else called} --help')"


def _find_called(arguments: Sequence[str]) -> str:
    """Return the command that the arguments call, also where an option of it is incomplete."""
    command: click.Command = gpureport
    names = ["gpureport"]
    for argument in arguments:
        found = command.get_command(click.Context(command), argument) if isinstance(command, click.Group) else None
        if found is not None:
            command = found
            names.append(argument)
    return " ".join(names)


def _use_own_secrets(arguments: Sequence[str]) -> None:
    """Replace the secrets that `[secrets]` of the settings names, from --config or this folder.

    A command that cannot read them does not begin, as it could show one; help and completions read none. The other
    sections are read, and refused, by the commands that use them.
    """
    use_own_secrets(OwnSecrets())
    if "_GPUREPORT_COMPLETE" in os.environ or not {"-h", "--help", "--help-all", "--version"}.isdisjoint(arguments):
        return
    pairs = [(*each.partition("=")[::2], after) for each, after in zip(arguments, [*arguments[1:], ""], strict=False)]
    named = [value or after for option, value, after in pairs if option == "--config" and (value or after)]
    if named or Path("gpureport.toml").is_file():
        from gpureport.settings import read_unchecked
        from gpureport.settings.settings_file import read_own_secrets
        from gpureport.settings.toml_files import keep_piped

        keep_piped()
        use_own_secrets(read_own_secrets(read_unchecked(Path(named[-1]) if named else None)))


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
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            # nothing is left in it that Python cannot write at its end
            raw: Any = io.FileIO(number, "w", closefd=False)
            setattr(sys, name, io.TextIOWrapper(raw, encoding="utf-8", write_through=True))


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

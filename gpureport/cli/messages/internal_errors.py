"""Bugs of gpureport itself: each is reported on one line with its run, and the other runs go on."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

import gpureport
from gpureport.cli.messages.styled_text import print_error
from gpureport.cli.messages.verbosity import current_session
from gpureport.errors import GpureportError

EXIT_CODE = 5
"""Exit code when gpureport failed on a run, or at what it was to do."""

_EXPECTED = (GpureportError, OSError)
"""Errors that a person can act on, which have messages of their own."""

_LONGEST = 300
"""Characters of an exception's own text that are shown."""
_PACKAGE = Path(gpureport.__file__).parent
_HINT = "this is a bug in gpureport: please report it with the traceback that --debug prints"


class InternalError(GpureportError):
    """A fault of gpureport itself.

    Args:
        where: the log, the run or the command it failed on.
        error: the exception that nobody expected.
    """

    def __init__(self, where: str, error: Exception) -> None:
        """Say the exception in a line, and keep it for its traceback."""
        super().__init__(where, _in_one_line(error), _HINT)
        self._error = error

    @property
    def trace(self) -> str:
        """The traceback of the exception."""
        import traceback  # noqa: PLC0415 - only with --debug

        return "".join(traceback.format_exception(self._error))


def _in_one_line(error: Exception) -> str:
    """Return an exception with the line of gpureport that raised it."""
    import traceback  # noqa: PLC0415 - only when something fails

    frames = [
        each for each in traceback.extract_tb(error.__traceback__) if Path(each.filename).is_relative_to(_PACKAGE)
    ]
    line = f" in {Path(frames[-1].filename).relative_to(_PACKAGE).as_posix()}:{frames[-1].lineno}" if frames else ""
    text = " ".join(str(error).split())
    detail = f": {text[:_LONGEST]}" if text else ""
    return f"internal error ({type(error).__name__}{line}{detail})"


@contextmanager
def internal_errors(where: str) -> Iterator[None]:
    """Turn an exception that nobody expected into an internal error of a log or run; let the others through.

    Raises:
        InternalError: in place of such an exception.
    """
    try:
        yield
    except _EXPECTED:
        raise
    except Exception as error:
        raise InternalError(where, error) from error


def report_internal_error(error: InternalError) -> None:
    """Say on standard error which run is left out, and have the program end with its code."""
    session = current_session()
    session.failed = True
    if session.debug:
        click.echo(error.trace, err=True, nl=False)
    print_error(f"left out: {error}")

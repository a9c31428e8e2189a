"""Bugs of gpureport itself: each is one line with its run, and the other runs go on."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from gpureport.cli.messages.styled_text import print_error
from gpureport.cli.messages.verbosity import current_session
from gpureport.errors import GpureportError, InternalError, SourceError, describe_shortage

EXIT_CODE = 5
"""Exit code when gpureport failed on a run, or at what it was to do."""

__all__ = ["EXIT_CODE", "InternalError", "internal_errors", "report_internal_error"]

_EXPECTED = (GpureportError, OSError)
"""Errors that a person can act on, which have messages of their own."""


@contextmanager
def internal_errors(where: str) -> Iterator[None]:
    """Turn an unexpected exception into an internal error of a log or run.

    Raises:
        InternalError: in place of such an exception.
    """
    try:
        yield
    except _EXPECTED:
        raise
    except Exception as error:
        if shortage := describe_shortage(error):
            raise SourceError(where, *shortage, code="too_little_memory") from error
        raise InternalError(where, error) from error


def report_internal_error(error: InternalError) -> None:
    """Name the run left out on standard error, and have the program end with its code."""
    session = current_session()
    session.failed = True
    if session.debug:
        click.echo(error.trace, err=True, nl=False)
    print_error(f"left out: {error}")

"""Faults of gpureport itself: each is told in one line with the run it failed on, and the other runs are served."""

from dataclasses import dataclass
from pathlib import Path

import click

import gpureport
from gpureport.cli.text import complain
from gpureport.cli.verbosity import session
from gpureport.errors import GpureportError

EXIT_CODE = 5
"""Exit code when gpureport failed on a run, or at what it was to do."""

EXPECTED = (GpureportError, OSError)
"""What a person can act on, and is told by its own message."""

_LONGEST = 300
"""Characters of an exception's own text that are shown."""
_PACKAGE = Path(gpureport.__file__).parent
_HINT = "this is a bug in gpureport: please report it with the traceback that --debug prints"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What gpureport failed on, and how; it can be sent from one process to another.

    Attributes:
        where: the log, the run or the command.
        what: the error in a line.
        trace: its traceback.
    """

    where: str
    what: str
    trace: str

    @property
    def message(self) -> str:
        """The line that says so."""
        return f"{self.where}: {self.what}; {_HINT}"


class InternalError(GpureportError):
    """Nothing of what was asked for could be served, because of a fault of gpureport."""

    def __init__(self, fault: Fault) -> None:
        """Keep the fault, with its traceback for who wants to see it."""
        super().__init__(fault.where, fault.what, _HINT)
        self.fault = fault


def as_fault(where: str, error: Exception) -> Fault:
    """Return an exception that nobody expected as a fault, with the line of gpureport that raised it."""
    import traceback  # noqa: PLC0415 - only when something fails

    frames = [
        each for each in traceback.extract_tb(error.__traceback__) if Path(each.filename).is_relative_to(_PACKAGE)
    ]
    line = f" in {Path(frames[-1].filename).relative_to(_PACKAGE).as_posix()}:{frames[-1].lineno}" if frames else ""
    text = " ".join(str(error).split())
    said = f": {text[:_LONGEST]}" if text else ""
    trace = "".join(traceback.format_exception(error))
    return Fault(where=where, what=f"internal error ({type(error).__name__}{line}{said})", trace=trace)


def report_fault(found: Fault) -> None:
    """Say on standard error which run is left out, and have the program end with its code."""
    asked = session()
    asked.failed = True
    if asked.debug:
        click.echo(found.trace, err=True, nl=False)
    complain(f"left out: {found.message}")

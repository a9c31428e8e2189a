"""What is said beside the answer: errors, notes, how far it is, and runs left out because of a bug."""

import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

import click

from gpureport.errors import GpureportError, InternalError, SourceError, describe_shortage
from gpureport.redaction import redact_text
from gpureport.regular_files import name_by_url

if TYPE_CHECKING:
    from gpureport.importers.time_window import RunReading

_PATIENCE = 1.0
"""Seconds after which something is shown."""
_CLEAR = "\r\x1b[K"
_NAMED = 5
"""Most names that are listed."""


class Exit(IntEnum):
    """Exit codes: a rule is broken, the command or the settings are wrong, a source is, no answer, a fault of ours."""

    BROKEN = 1
    USAGE = 2
    SOURCE = 3
    UNASSESSED = 4
    INTERNAL = 5


class Verbosity(IntEnum):
    """What goes to standard error: errors, what was done, or also the lines read."""

    QUIET = -1
    NORMAL = 0
    VERBOSE = 1


FLAGS = {"-q": Verbosity.QUIET, "--quiet": Verbosity.QUIET, "-v": Verbosity.VERBOSE, "--verbose": Verbosity.VERBOSE}
"""The flags, which may stand anywhere among the arguments."""


@dataclass(slots=True)
class Session:
    """What holds for one call: how much is said, whether help lists all, and whether a bug left a run out."""

    level: Verbosity = Verbosity.NORMAL
    debug: bool = False
    every_option: bool = False
    failed: bool = False


class UsageError(click.UsageError):
    """A command line that cannot be meant, with a code."""

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message, click.get_current_context(silent=True))
        self.code = code


def current_session() -> Session:
    """Return what holds for this call; what is usual outside of a command."""
    context = click.get_current_context(silent=True)
    known = context.find_root().obj if context else None
    return known if isinstance(known, Session) else Session()


def make_printable(text: str) -> str:
    """Return text on one line, without secrets and control characters, with URLs for copies."""
    spaced = (" " if character.isspace() else character for character in redact_text(name_by_url(text)))
    return "".join(character for character in spaced if character.isprintable())


def print_error(message: str) -> None:
    """Say on one line of standard error what is wrong or left out."""
    click.echo(f"gpureport: {make_printable(' '.join(message.split()))}", err=True)


def print_source_error(error: SourceError) -> None:
    """Say which source cannot be read on standard error, and lines to save on standard output."""
    print_error(str(error))
    for line in error.aside.splitlines():
        click.echo(make_printable(line))


def print_note(text: str) -> None:
    """Say on standard error what was done, unless nothing but errors is wanted."""
    if current_session().level > Verbosity.QUIET:
        click.echo(make_printable(text), err=True)


def print_details(lines: Iterable[str]) -> None:
    """Say on standard error how something was done; the lines are made only where wanted."""
    if current_session().level >= Verbosity.VERBOSE:
        for line in lines:
            click.echo(make_printable(line), err=True)


def list_names(names: Iterable[str], most: int = _NAMED) -> str:
    """Return the first names of a list, with a sign that more follow."""
    listed = list(names)
    return ", ".join(listed[:most]) + (", …" if len(listed) > most else "")


def count(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


@contextmanager
def internal_errors(where: str) -> Iterator[None]:
    """Turn an unexpected exception into an internal error of a log or run; let the others through."""
    try:
        yield
    except (GpureportError, OSError):
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


@contextmanager
def show_stage(label: str) -> Iterator[Callable[[str], None]]:
    """Show what is being done on a terminal when it takes over a second; yield what says how far it is."""
    if not _is_watched():
        yield lambda _: None
        return
    is_shown, lock = threading.Event(), threading.Lock()

    def say(text: str) -> None:
        nonlocal label
        with lock:
            if is_shown.is_set() and text != label:
                write(text)
            label = text

    def write(text: str) -> None:
        width = shutil.get_terminal_size((80, 24)).columns - 3
        click.echo(f"{_CLEAR}{make_printable(text)[:width]} …", err=True, nl=False)

    def begin() -> None:
        with lock:
            is_shown.set()
            write(label)

    timer = threading.Timer(_PATIENCE, begin)
    timer.daemon = True
    timer.start()
    try:
        yield say
    finally:
        timer.cancel()
        timer.join()
        if is_shown.is_set():
            click.echo(_CLEAR, err=True, nl=False)


@contextmanager
def show_progress(reading: "RunReading") -> Iterator[None]:
    """Show how many per cent of a run have been read, when that takes over a second on a terminal."""
    label = f"Reading {reading.locator}"
    with show_stage(label) as say:
        if _is_watched():
            whole, done = sum(reading.sizes), 0

            def add(size: int) -> None:
                nonlocal done
                done += size
                say(f"{label}: {min(100 * done // whole, 100)}%" if whole else label)

            reading.watch(add)
        yield


def _is_watched() -> bool:
    return sys.stderr.isatty() and current_session().level >= Verbosity.NORMAL

"""What is said beside the answer: errors, notes, how far it is, and runs left out because of a bug; and the time."""

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import IntEnum
from typing import TYPE_CHECKING

import click

from gpureport.errors import GpureportError, InternalError, SettingsError, SourceError, describe_shortage
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
    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message, click.get_current_context(silent=True))
        self.code = code


def current_session() -> Session:
    context = click.get_current_context(silent=True)
    known = context.find_root().obj if context else None
    return known if isinstance(known, Session) else Session()


def make_printable(text: str) -> str:
    """Return text on one line, without secrets and control characters, with URLs for copies."""
    spaced = (" " if character.isspace() else character for character in redact_text(name_by_url(text)))
    return "".join(character for character in spaced if character.isprintable())


def print_error(message: str) -> None:
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
    listed = list(names)
    return ", ".join(listed[:most]) + (", …" if len(listed) > most else "")


def count(number: int, noun: str) -> str:
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
    said, is_shown, lock = [label], threading.Event(), threading.Lock()

    def write() -> None:
        width = shutil.get_terminal_size((80, 24)).columns - 3
        click.echo(f"{_CLEAR}{make_printable(said[0])[:width]} …", err=True, nl=False)

    def say(text: str) -> None:
        with lock:
            is_new, said[0] = text != said[0], text
            if is_new and is_shown.is_set():
                write()

    def begin() -> None:
        with lock:
            is_shown.set()
            write()

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
        if _is_watched() and (whole := sum(reading.sizes)):
            done = [0]

            def add(size: int) -> None:
                done[0] += size
                say(f"{label}: {min(100 * done[0] // whole, 100)}%")

            reading.watch(add)
        yield


def _is_watched() -> bool:
    return sys.stderr.isatty() and current_session().level >= Verbosity.NORMAL


# --- the time that commands go by, which SOURCE_DATE_EPOCH may set


def now() -> int:
    """Return the time in microseconds since 1970."""
    fixed = _read_fixed()
    return time.time_ns() // 1000 if fixed is None else round(fixed.timestamp()) * 1_000_000


def today() -> date:
    """Return the day it is: that of SOURCE_DATE_EPOCH in UTC, else that of the clock here."""
    return (_read_fixed() or datetime.now()).date()


def _read_fixed() -> datetime | None:
    name = "SOURCE_DATE_EPOCH"
    text = os.environ.get(name)
    try:
        return datetime.fromtimestamp(int(text), UTC) if text else None
    except (ValueError, OverflowError, OSError) as error:
        hint = "set it to the seconds since 1970, or unset it"
        raise SettingsError(name, f"{text!r} is not a number of seconds", hint, code="not_a_number") from error

"""Prints errors, notes and progress, and returns the current time."""

import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum

import click

from gpureport.errors import GpureportError, InternalError, SettingsError, SourceError, describe_shortage
from gpureport.redaction import redact_text
from gpureport.regular_files import name_by_url

_PATIENCE, _CLEAR = 1.0, "\r\x1b[K"
Exit = IntEnum("Exit", "BROKEN USAGE SOURCE UNASSESSED INTERNAL")
"""Exit codes, starting at 1; the last one means an internal error."""
Verbosity = IntEnum("Verbosity", "QUIET NORMAL VERBOSE", start=-1)
FLAGS = {"-q": Verbosity.QUIET, "--quiet": Verbosity.QUIET, "-v": Verbosity.VERBOSE, "--verbose": Verbosity.VERBOSE}


@dataclass(slots=True)
class Session:
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
    return (context and context.find_root().obj) or Session()


def make_printable(text: str) -> str:
    """Return text on one line, without secrets or control characters."""
    spaced = (" " if character.isspace() else character for character in redact_text(name_by_url(text)))
    return "".join(character for character in spaced if character.isprintable())


def print_error(message: str, aside: str = "") -> None:
    click.echo(f"gpureport: {make_printable(' '.join(message.split()))}", err=True)
    print_lines(aside.splitlines())


def print_lines(lines: Iterable[str], *, err: bool = False) -> None:
    for line in lines:
        click.echo(make_printable(line), err=err)


def print_note(*lines: str, least: Verbosity = Verbosity.NORMAL) -> None:
    if current_session().level >= least:
        print_lines(lines, err=True)


def list_names(names: Iterable[str], most: int = 5) -> str:
    listed = list(names)
    return ", ".join(listed[:most]) + (", …" if len(listed) > most else "")


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


@contextmanager
def internal_errors(where: str) -> Iterator[None]:
    try:
        yield
    except (GpureportError, OSError, click.ClickException, click.Abort):
        raise
    except Exception as error:
        if shortage := describe_shortage(error):
            raise SourceError(where, *shortage, code="too_little_memory") from error
        raise InternalError(where, error) from error


def report_internal_error(error: InternalError) -> None:
    session = current_session()
    session.failed = True
    if session.debug:
        click.echo(error.trace, err=True, nl=False)
    print_error(f"left out: {error}")


@contextmanager
def show_stage(label: str) -> Iterator[Callable[[str], None]]:
    """Show progress on a terminal after one second, and yield a function that updates it."""
    if not sys.stderr.isatty() or current_session().level < Verbosity.NORMAL:
        yield lambda _: None
        return
    said, is_shown, lock = [label], threading.Event(), threading.Lock()

    def say(text: str = "") -> None:
        with lock:
            # skip text already shown
            is_due = not text or (is_shown.is_set() and text != said[0])
            said[0] = text or said[0]
            if is_due:
                is_shown.set()
                width = shutil.get_terminal_size((80, 24)).columns - 3
                click.echo(f"{_CLEAR}{make_printable(said[0])[:width]} …", err=True, nl=False)

    timer = threading.Timer(_PATIENCE, say)
    timer.daemon = True
    timer.start()
    try:
        yield say
    finally:
        timer.cancel()
        timer.join()
        if is_shown.is_set():
            click.echo(_CLEAR, err=True, nl=False)


def now() -> datetime:
    """Return the local time or, if SOURCE_DATE_EPOCH is set, that time in UTC."""
    text = os.environ.get(name := "SOURCE_DATE_EPOCH")
    try:
        return datetime.fromtimestamp(int(text), UTC) if text else datetime.now().astimezone()
    except (ValueError, OverflowError, OSError) as error:
        raise SettingsError(name, f"{text!r} is not a time", "give seconds since 1970", code="not_a_number") from error

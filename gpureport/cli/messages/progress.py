"""What a command is at when it takes long, on standard error of a terminal."""

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import click

from gpureport.cli.messages.styled_text import make_printable
from gpureport.cli.messages.verbosity import Verbosity, current_verbosity

if TYPE_CHECKING:
    from gpureport.importers.time_window import RunReading

_PATIENCE = 1.0
"""Seconds after which something is shown."""
_CLEAR = "\r\x1b[K"


@contextmanager
def show_progress(reading: "RunReading") -> Iterator[None]:
    """Show how far a run has been read, when that takes over a second on a terminal."""
    if not _is_watched():
        yield
        return
    with ExitStack() as stack:
        reading.watch(_meter(sum(reading.sizes), make_printable(f"Reading {reading.locator}"), stack))
        yield


def _meter(length: int, label: str, stack: ExitStack) -> Callable[[int], None]:
    """Return a function that counts bytes, and begins a bar after a second."""
    begun, done = time.monotonic(), 0
    update: Callable[[int], None] | None = None

    def seen(size: int) -> None:
        nonlocal done, update
        done += size
        if update is not None:
            update(size)
        elif time.monotonic() - begun > _PATIENCE:
            update = stack.enter_context(click.progressbar(length=length, label=label, file=sys.stderr)).update
            update(done)

    return seen


class Stage:
    """What is being done, as a line shown after a second and replaced by the next."""

    def __init__(self) -> None:
        self._label = ""
        self._is_shown = False
        self._lock = threading.Lock()

    def update(self, label: str) -> None:
        """Say what is done now."""
        with self._lock:
            self._label = make_printable(label)
            if self._is_shown:
                self._write()

    def show(self) -> None:
        """Begin to show it."""
        with self._lock:
            self._is_shown = True
            self._write()

    def clear(self) -> None:
        """Take the line away."""
        with self._lock:
            if self._is_shown:
                click.echo(_CLEAR, err=True, nl=False)
            self._is_shown = False

    def _write(self) -> None:
        width = shutil.get_terminal_size((80, 24)).columns - 3
        click.echo(f"{_CLEAR}{self._label[:width]} …", err=True, nl=False)


@contextmanager
def show_stage(label: str) -> Iterator[Stage]:
    """Show what is being done on a terminal when it takes over a second."""
    stage = Stage()
    stage.update(label)
    if not _is_watched():
        yield stage
        return
    timer = threading.Timer(_PATIENCE, stage.show)
    timer.daemon = True
    timer.start()
    try:
        yield stage
    finally:
        timer.cancel()
        timer.join()
        stage.clear()


def _is_watched() -> bool:
    return sys.stderr.isatty() and current_verbosity() >= Verbosity.NORMAL

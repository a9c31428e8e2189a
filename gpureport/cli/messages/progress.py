"""How far a long read has come, on standard error of a terminal."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import click

from gpureport.cli.messages.styled_text import make_printable
from gpureport.cli.messages.verbosity import Verbosity, current_verbosity

if TYPE_CHECKING:
    from gpureport.importers import CutReading, Reading, TrackedReading

_PATIENCE = 1.0
"""Seconds after which a bar is shown."""


@contextmanager
def show_progress(reading: "Reading | TrackedReading | CutReading") -> Iterator[None]:
    """Show how far a run has been read while it is read, when that takes over a second on a terminal."""
    if not sys.stderr.isatty() or current_verbosity() < Verbosity.NORMAL:
        yield
        return
    with ExitStack() as stack:
        reading.watch(_meter(reading.work, make_printable(f"Reading {reading.locator}"), stack))
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

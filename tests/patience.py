"""An end to what would never end, so that a test fails in seconds where it would hang."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest


class EndlessError(BaseException):
    """Something took too long; no `except Exception` of what is tried may take it for something else."""


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """End the block once it has had so many seconds of the processor; a busy machine takes nothing from them.

    Skips the test where the system has no alarm that counts them.

    Raises:
        EndlessError: when the block was not done by then.
    """
    if not hasattr(signal, "SIGPROF"):
        pytest.skip("the guard needs an alarm that counts time of the processor")

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise EndlessError(f"not done after {seconds:g} s of the processor")

    before = signal.signal(signal.SIGPROF, interrupt)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)

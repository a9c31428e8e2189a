"""Signals as bytes that a loop can wait for, and which of them the job did not get by itself."""

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that ask a program to end."""


class SignalPipe:
    """What a loop waits on to learn of signals."""

    def __init__(self) -> None:
        """Make the pipe; `listening` connects it."""
        self.descriptor, self._write = os.pipe()
        os.set_blocking(self.descriptor, False)
        os.set_blocking(self._write, False)

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Receive ENDING and SIGCHLD; a signal that is ignored stays ignored."""
        # a shell's background job ignores Ctrl-C, and must still end when it is asked to
        wanted = [each for each in ENDING if each == signal.SIGINT or signal.getsignal(each) != signal.SIG_IGN]
        before = {each: signal.signal(each, _do_nothing) for each in (*wanted, signal.SIGCHLD)}
        old = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(old)
            for each, handler in before.items():
                signal.signal(each, handler)
            os.close(self.descriptor)
            os.close(self._write)

    def take_signals(self) -> set[int]:
        """Return the signals that came since the last call."""
        with contextlib.suppress(BlockingIOError):
            return set(os.read(self.descriptor, 4096))
        return set()


def reaches_whole_group(number: int) -> bool:
    """Return whether a signal came from the terminal, for every process in the foreground."""
    if number == signal.SIGTERM:
        return False
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        # a terminal that was closed is gone, and it was the one that told everybody
        return number == signal.SIGHUP and sys.stdin is not None and os.getsid(0) != os.getpid()
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def _do_nothing(number: int, frame: FrameType | None) -> None:
    """Let the signal come through the pipe."""
    del number, frame

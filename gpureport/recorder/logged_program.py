"""A program that prints a line at a time, such as nvidia-smi, copied into a log."""

import contextlib
import ctypes
import os
import pty
import signal
import subprocess
import sys
import termios
import time
import tty
from collections.abc import Sequence

from gpureport.recorder.line_file import LineFile

_CHUNK = 65536
_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 60.0
"""Seconds before a program that ended is started again: so many at first, twice as many each time."""
_PATIENCE = 2.0
"""Seconds that a program has to end once it was asked to."""
_WINDOW = 1000, 1000
"""Lines and columns of its terminal: older dmon leaves out columns that a narrow one has no room for."""
_LONG_SILENCE = 90.0
"""Seconds without a line that are worth a note: more than the longest interval and than the longest pause."""
_PR_SET_PDEATHSIG = 1


class LoggedProgram:
    """Runs a program and copies its lines; starts it again when it ends by itself.

    It prints to a pseudo-terminal: into a pipe nvidia-smi writes blocks of some kilobytes, which are lost when it is
    killed. It has a session of its own, so that Ctrl-C reaches the job alone.

    Attributes:
        name: what a person calls it.
        restarts: how often it was started again.
    """

    def __init__(self, name: str, words: Sequence[str], log: LineFile) -> None:
        self.name = name
        self.restarts = 0
        self.log = log
        self._words = words
        self._pause = _FIRST_PAUSE
        self._next_start = 0.0
        self._last_text = time.monotonic()
        self.descriptor: int | None = None
        self._start()

    def _start(self) -> None:
        ours, theirs = pty.openpty()
        # no line break is to be turned into two characters
        tty.setraw(theirs)
        termios.tcsetwinsize(theirs, _WINDOW)
        try:
            self._process = subprocess.Popen(  # noqa: S603 - nvidia-smi as found on the path
                self._words,
                stdin=subprocess.DEVNULL,
                stdout=theirs,
                stderr=theirs,
                start_new_session=True,
                preexec_fn=_end_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509 - one thread only
            )
        finally:
            os.close(theirs)
        self.descriptor = ours

    def copy_output(self) -> None:
        """Copy what it has printed; call it when `descriptor` can be read."""
        if self.descriptor is None:
            return
        try:
            text = os.read(self.descriptor, _CHUNK)
        except OSError:
            # Linux says so where others say that there is no more
            text = b""
        if text:
            self._last_text = time.monotonic()
            self.log.write(text)
            return
        os.close(self.descriptor)
        self.descriptor = None
        self.log.end_line()
        self._kill()
        self._wait_before_next_start()

    def start_again(self) -> bool:
        """Start it again if it ended some seconds ago; return whether it was started."""
        if self.descriptor is not None or time.monotonic() < self._next_start:
            return False
        try:
            self._start()
        except OSError:
            # a driver being replaced, or no process to be had
            self._wait_before_next_start()
            return False
        self.restarts += 1
        return True

    def describe_silence(self) -> str:
        """Return a sentence on how long it printed nothing; empty where that is short."""
        silent = time.monotonic() - self._last_text
        if self.descriptor is None:
            return f"{self.name} stops {silent:.0f} s before the end: nvidia-smi ended by itself."
        if silent < _LONG_SILENCE:
            return ""
        return f"{self.name} stops {silent:.0f} s before the end: nvidia-smi gave no more rows."

    def stop(self) -> None:
        """Ask it to end, and copy its last lines."""
        if self.descriptor is None:
            return
        # a job of a shell's background hands on that Ctrl-C is ignored
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE)
        self._kill()
        os.set_blocking(self.descriptor, False)
        with contextlib.suppress(OSError):
            while text := os.read(self.descriptor, _CHUNK):
                self.log.write(text)
        os.close(self.descriptor)
        self.descriptor = None

    def _kill(self) -> None:
        self._process.kill()
        # what hangs in a driver cannot be killed, and the job's exit code must not wait for it
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE)

    def _wait_before_next_start(self) -> None:
        self._next_start = time.monotonic() + self._pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)


def _end_with_parent() -> None:
    """Have the kernel end this process when the recorder is killed; see prctl(2)."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)

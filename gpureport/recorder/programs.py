"""A program that prints a line at a time, such as nvidia-smi, copied into a log of whole lines."""

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
from pathlib import Path

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


class LineFile:
    """A log being written, each line at once, so that nothing killed leaves half a line.

    It counts `lines`; `failure` is why writing ended early, such as a full disk, and empty while it goes on.
    """

    def __init__(self, path: Path) -> None:
        self.name, self.failure, self.lines = path.name, "", 0
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
        self._pending = b""

    def write(self, text: bytes) -> None:
        """Add text; what follows the last line break waits for the rest of its line."""
        whole, line_break, self._pending = (self._pending + text).rpartition(b"\n")
        if line_break and not self.failure:
            self._append(whole + line_break)

    def end_line(self) -> None:
        """Forget half a line: the program that wrote it ended."""
        self._pending = b""

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _append(self, text: bytes) -> None:
        before = os.fstat(self._file).st_size
        try:
            written = os.write(self._file, text)
            if written == len(text):
                self.lines += text.count(b"\n")
                return
            # what was not taken says why at the second try
            os.write(self._file, text[written:])
            reason = "the file takes no more"
        except OSError as error:
            reason = error.strerror or "it cannot be written"
        self.failure = f"{self.name} ends early: {reason}."
        taken = text[: max(0, os.fstat(self._file).st_size - before)]
        self.lines += taken.count(b"\n")
        os.ftruncate(self._file, before + taken.rfind(b"\n") + 1)


class LoggedProgram:
    """Runs a program and copies its lines; starts it again when it ends by itself, and counts its `restarts`.

    It prints to a pseudo-terminal: into a pipe nvidia-smi writes blocks of some kilobytes, which are lost when it is
    killed. It has a session of its own, so that Ctrl-C reaches the job alone. `descriptor` is what it prints to, None
    while it does not run.
    """

    def __init__(self, words: Sequence[str], log: LineFile) -> None:
        self.name, self.log, self.restarts = log.name, log, 0
        self._words = words
        self._pause, self._next_start = _FIRST_PAUSE, 0.0
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
        text = b""
        # Linux raises an error where others say that there is no more
        with contextlib.suppress(OSError):
            text = os.read(self.descriptor, _CHUNK)
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
        if self.descriptor is not None and silent < _LONG_SILENCE:
            return ""
        why = "ended by itself" if self.descriptor is None else "gave no more rows"
        return f"{self.name} stops {silent:.0f} s before the end: nvidia-smi {why}."

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

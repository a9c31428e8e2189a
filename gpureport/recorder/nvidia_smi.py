"""Finds out what the installed nvidia-smi can record, and copies its output to logs line by line."""

import contextlib
import ctypes
import os
import pty
import re
import signal
import subprocess
import sys
import termios
import time
import tty
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from gpureport.errors import SourceError
from gpureport.recording_advice import COUNTER_FIELDS, GPU_FIELDS, IDENTITY_FIELDS
from gpureport.regular_files import code_system_error

END_WITH_PARENT = partial(ctypes.CDLL(None).prctl, 1, signal.SIGTERM) if sys.platform == "linux" else None
"""Run in a new process, makes the kernel end it when its parent is killed (PR_SET_PDEATHSIG, see prctl(2))."""
_NAME, _CHECK = "nvidia-smi", "check the driver, or give --host-only"
_INSTALL = "install the driver, or give --host-only"
_SLOW = 20.0
"""Seconds after which nvidia-smi is considered hung. Loading the driver may take several seconds."""
_ALIASES = {"clocks_event_reasons.active": "clocks_throttle_reasons.active"}
"""Field names in drivers older than R530."""
_REFUSED = re.compile(r'Field "([^"]+)" is not a valid field to query')
_QUOTED = re.compile(r'"([a-z][\w.]*)"', re.IGNORECASE)
_GPM = ("--gpm-metrics", "2,3,5,10")
"""Activity and occupancy of multiprocessors, and activity of tensor cores and memory."""
_CHUNK = 65536
_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 60.0
"""First and longest pause, in seconds, before a program that ended is restarted. The pause doubles each time."""
_PATIENCE = 2.0
"""Seconds to wait for a program to end when asked to."""
_WINDOW = 1000, 1000
"""Lines and columns of the terminal. Older versions of dmon omit columns that do not fit."""
_LONG_SILENCE = 90.0
"""Seconds without a line after which a note is added. No interval or pause is this long."""


def build_query_command(interval: float) -> list[str]:
    known = set(_QUOTED.findall(_run([_NAME, "--help-query-gpu"])))
    wanted = [_ALIASES.get(name, name) if name not in known else name for name in (*GPU_FIELDS, *COUNTER_FIELDS)]
    fields, refused, answer = [name for name in wanted if name in known or name in IDENTITY_FIELDS], {""}, ""
    while refused:
        fields = [name for name in fields if name not in refused]
        answer = _run([_NAME, f"--query-gpu={','.join(fields)}", "--format=csv"])
        refused = set(_REFUSED.findall(answer)) & set(fields)
    if not answer.startswith("timestamp,"):
        said = next(filter(None, map(str.strip, answer.splitlines())), "it printed nothing")
        raise SourceError(_NAME, said.rstrip("."), _CHECK, code="driver_failed")
    loop = ["-l", f"{interval:.0f}"] if interval == int(interval) else ["-lms", f"{interval * 1000:.0f}"]
    return [_NAME, f"--query-gpu={','.join(fields)}", "--format=csv", *loop]


def build_dmon_command(interval: float) -> list[str] | None:
    """Return the command that prints PCIe traffic and, if supported, GPU activity, or None without dmon."""
    usage = _run([_NAME, "dmon", "-h"])
    if "dmon" not in usage:
        return None
    counted = _GPM if _GPM[0] in usage else ()
    # dmon takes whole seconds
    return [_NAME, "dmon", "-s", "pt", "-o", "DT", "-d", str(max(1, round(interval))), *counted]


def _run(words: Sequence[str]) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - nvidia-smi as found on the path
            words, stdin=subprocess.DEVNULL, capture_output=True, errors="replace", timeout=_SLOW, check=False
        )
    except FileNotFoundError as error:
        raise SourceError(_NAME, "not found on this machine", _INSTALL, code="no_nvidia_smi") from error
    except subprocess.TimeoutExpired as error:
        what = f"did not respond to {' '.join(words[1:])[:40]} within {_SLOW:.0f} s"
        raise SourceError(_NAME, what, _CHECK, code="no_answer") from error
    except OSError as error:
        code = code_system_error(error, "cannot_run")
        raise SourceError(_NAME, error.strerror or "cannot be run", _INSTALL, code=code) from error
    return done.stdout + done.stderr


# --- its output


class LineFile:
    """A log that is written line by line, so that a killed program leaves no partial line.

    It counts `lines`. `failure` is empty, or explains why writing ended early, such as a full disk.
    """

    def __init__(self, path: Path) -> None:
        self.name, self.failure, self.lines = path.name, "", 0
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
        self.pending = b""

    def write(self, text: bytes) -> None:
        whole, line_break, self.pending = (self.pending + text).rpartition(b"\n")
        if line_break and not self.failure:
            self._append(whole + line_break)

    def _append(self, text: bytes) -> None:
        before = os.fstat(self.file).st_size
        try:
            written = os.write(self.file, text)
            if written == len(text):
                self.lines += text.count(b"\n")
                return
            # writing the rest raises the error
            os.write(self.file, text[written:])
            reason = "the file cannot grow further"
        except OSError as error:
            reason = error.strerror or "it cannot be written"
        self.failure = f"{self.name} ends early: {reason}."
        taken = text[: max(0, os.fstat(self.file).st_size - before)]
        self.lines += taken.count(b"\n")
        os.ftruncate(self.file, before + taken.rfind(b"\n") + 1)


class LoggedProgram:
    """Runs a program and logs its output. If the program ends by itself, it is restarted, and `restarts` increases.

    The program prints to a pseudo-terminal, since nvidia-smi writes to a pipe in blocks of several kilobytes, which are
    lost when it is killed. The program runs in its own session, so that Ctrl-C reaches only the job. `descriptor` is
    our end of the terminal, or None while the program is not running.
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
        # raw mode keeps line breaks as one character
        tty.setraw(theirs)
        termios.tcsetwinsize(theirs, _WINDOW)
        try:
            self._process = subprocess.Popen(  # noqa: S603 - nvidia-smi as found on the path
                self._words,
                stdin=subprocess.DEVNULL,
                stdout=theirs,
                stderr=theirs,
                start_new_session=True,
                preexec_fn=END_WITH_PARENT,  # noqa: PLW1509 - one thread only
            )
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        self.descriptor = ours

    def copy_output(self) -> None:
        if self.descriptor is None:
            return
        text = b""
        # at the end, Linux raises an error, whereas other systems return nothing
        with contextlib.suppress(OSError):
            text = os.read(self.descriptor, _CHUNK)
        if text:
            self._last_text = time.monotonic()
            self.log.write(text)
            return
        os.close(self.descriptor)
        self.descriptor = None
        # the program has ended, so a partial line is dropped
        self.log.pending = b""
        self._kill()
        self._wait_before_next_start()

    def start_again(self) -> None:
        if self.descriptor is None and time.monotonic() >= self._next_start:
            try:
                self._start()
                self.restarts += 1
            except OSError:
                # either the driver is being replaced, or no process can be created
                self._wait_before_next_start()

    def describe_silence(self) -> str:
        silent = time.monotonic() - self._last_text
        if self.descriptor is not None and silent < _LONG_SILENCE:
            return ""
        why = "ended by itself" if self.descriptor is None else "printed no more rows"
        return f"{self.name} stops {silent:.0f} s before the end, because nvidia-smi {why}."

    def stop(self) -> None:
        if self.descriptor is None:
            return
        # SIGTERM is sent, since children of a shell's background job ignore SIGINT
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
        # a process that hangs in the driver cannot be killed, and must not delay the job's exit code
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE)

    def _wait_before_next_start(self) -> None:
        self._next_start = time.monotonic() + self._pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)

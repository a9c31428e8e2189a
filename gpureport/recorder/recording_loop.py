"""The loop of a recording: it copies lines, samples the machine, and passes signals on to the job."""

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence

from gpureport.errors import SettingsError
from gpureport.recorder.host_log import HostLog
from gpureport.recorder.programs import LineFile, LoggedProgram
from gpureport.regular_files import code_system_error

SIGNAL_BASE = 128
"""What shells add to the number of the signal that ended a program."""
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that ask a program to end."""


class RecordingLoop:
    """Waits for lines of programs, for the time of the next sample of the machine, and for signals.

    `stop_signal` is the last signal that asked to end, None while none did; `failure` is why samples of the machine
    are missing, empty when none is.
    """

    def __init__(self, host: HostLog, log: LineFile, programs: Sequence[LoggedProgram], interval: float) -> None:
        self.stop_signal: int | None = None
        self.failure = ""
        self._host, self._log, self._programs, self._interval = host, log, programs, interval
        self._selector = selectors.DefaultSelector()
        self._next_sample = 0.0
        self._signals = -1
        self._job: subprocess.Popen[bytes] | None = None

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Receive lines, signals that ask to end, and SIGCHLD; a signal that is ignored stays ignored."""
        self._signals, write = os.pipe()
        for each in (self._signals, write):
            os.set_blocking(each, False)
        self._selector.register(self._signals, selectors.EVENT_READ)
        for program in self._programs:
            self._register(program)
        # a shell's background job ignores Ctrl-C, and must still end when it is asked to
        wanted = [each for each in _ENDING if each == signal.SIGINT or signal.getsignal(each) != signal.SIG_IGN]
        before = {each: signal.signal(each, lambda *_: None) for each in (*wanted, signal.SIGCHLD)}
        old = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(old)
            for each, handler in before.items():
                signal.signal(each, handler)
            os.close(self._signals)
            os.close(write)

    def start_job(self, command: Sequence[str]) -> None:
        """Start a program as if nobody watched it, or raise a `SettingsError`; signals and samples are its from now."""
        try:
            self._job = subprocess.Popen(command)  # noqa: S603 - what the person typed
        except OSError as error:
            what = error.strerror or "cannot be run"
            what, code = what[:1].lower() + what[1:], code_system_error(error, "cannot_run")
            raise SettingsError(command[0], what, "check the command after --", code=code) from error
        self._host.watch_job(self._job.pid)

    @property
    def exit_code(self) -> int | None:
        """The job's exit code as shells give it; None while it runs."""
        code = self._job.poll() if self._job else None
        return SIGNAL_BASE - code if code is not None and code < 0 else code

    def run(self, seconds: float | None = None, until: Callable[[], bool] = lambda: False) -> None:
        """Run for a time, without end if it is None, or until something has happened."""
        end = float("inf") if seconds is None else time.monotonic() + seconds
        while not until() and time.monotonic() < end:
            self._wait(end)

    def _wait(self, end: float) -> None:
        now = time.monotonic()
        if now >= self._next_sample:
            self._sample_host(now)
        wait = min(self._next_sample, end) - time.monotonic()
        for key, _ in self._selector.select(max(0.0, wait)):
            if isinstance(program := key.data, LoggedProgram):
                program.copy_output()
                if program.descriptor is None:
                    self._selector.unregister(key.fd)
            else:
                self._handle_signals()
        for program in self._programs:
            if program.start_again():
                self._register(program)

    def _sample_host(self, now: float) -> None:
        try:
            sample = self._host.sample()
        except Exception as error:
            self.failure = f"{self._log.name} lacks samples: {type(error).__name__}: {error}."
            sample = None
        if sample is not None:
            self._log.write(f"{sample}\n".encode())
        # late samples are not made up for
        self._next_sample = max(self._next_sample + self._interval, now + self._interval / 2)

    def _register(self, program: LoggedProgram) -> None:
        if program.descriptor is not None:
            self._selector.register(program.descriptor, selectors.EVENT_READ, program)

    def _handle_signals(self) -> None:
        came: set[int] = set()
        with contextlib.suppress(BlockingIOError):
            came = set(os.read(self._signals, 4096)) & set(_ENDING)
        for number in came:
            if self._job is not None and not _reaches_whole_group(number):
                with contextlib.suppress(ProcessLookupError):
                    self._job.send_signal(number)
        self.stop_signal = min(came, default=self.stop_signal)


def _reaches_whole_group(number: int) -> bool:
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

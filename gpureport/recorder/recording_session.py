"""Makes a recording: runs the job, passes signals on, and writes logs and the run file."""

import contextlib
import math
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from gpureport.errors import SettingsError, SourceError
from gpureport.record_folder import DMON_LOG, GPU_LOG, HOST_LOG, LOGS, RUN_FILE, RecordedRun, format_run_file
from gpureport.recorder.host_log import HostLog
from gpureport.recorder.job_params import collect_labels, collect_params
from gpureport.recorder.nvidia_smi import LineFile, LoggedProgram, build_dmon_command, build_query_command
from gpureport.redaction import hide_secrets
from gpureport.regular_files import code_system_error

_SIGNAL_BASE = 128
"""Shells add this to the number of the signal that ended a program."""
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_FIRST_ROWS = 5.0
"""Maximum seconds to wait for the log's first row before starting the job."""
_AFTERWARDS = 1.2
"""Intervals of at least one second to record after the job, so that the logs show its end."""
_HEADER_AND_ROW = 2
_PART = ".part"
"""Suffix of the run file while it is being written."""


class RecordingSession:
    """A recording in progress. `run` is the content of its run file, complete after `record`."""

    def __init__(self, folder: Path, command: Sequence[str], interval: float, *, host_only: bool) -> None:
        """Query the driver's fields and create the folder, without starting anything.

        Without a `command`, a signal ends the recording. `host_only` omits GPUs. Raises SourceError or SettingsError.
        """
        self._folder, self._command, self._interval = folder, command, interval
        if command and shutil.which(command[0]) is None:
            raise SettingsError(command[0], "no such program", "check the command after --", code="no_such_program")
        self._words: dict[str, list[str]] = {}
        self._notes: list[str] = []
        if not host_only:
            self._words[GPU_LOG] = build_query_command(interval)
            try:
                if words := build_dmon_command(interval):
                    self._words[DMON_LOG] = words
            except SourceError as error:
                self._notes.append(f"{DMON_LOG} is missing: {error.what}.")
        params = collect_params(command)
        _make_folder(folder)
        self._begun = time.monotonic()
        self.run = RecordedRun(
            command=hide_secrets(command),
            host=socket.gethostname(),
            timezone=_name_local_zone(),
            started=time.time_ns() // 1000,
            interval=interval,
            params=params,
            tags=collect_labels(os.environ),
        )
        self._write_run_file()
        self._host, self._log = HostLog(has_job=bool(command)), LineFile(folder / HOST_LOG)
        self._programs: list[LoggedProgram] = []
        self._selector = selectors.DefaultSelector()
        self._signals, self._next_sample, self._failure = -1, 0.0, ""
        self._stop_signal: int | None = None
        self._job: subprocess.Popen[bytes] | None = None

    def record(self) -> int:
        """Record until the job ends or a signal arrives, and return the job's exit code, or 0 without a job."""
        self._log.write(f"{self._host.header()}\n".encode())
        self._programs = [LoggedProgram(words, LineFile(self._folder / name)) for name, words in self._words.items()]
        code: int | None = None
        try:
            with self._listening():
                if self._command:
                    code = self._run_job()
                else:
                    self._run(until=lambda: self._stop_signal is not None)
        finally:
            notes, programs = self._notes, self._programs
            notes += filter(None, (self._failure, *(each.describe_silence() for each in programs)))
            for program in programs:
                program.stop()
            for log in (self._log, *(each.log for each in programs)):
                os.close(log.file)
                notes += [log.failure] if log.failure else []
            for each in programs:
                if each.restarts:
                    times = "once" if each.restarts == 1 else f"{each.restarts} times"
                    notes.append(f"nvidia-smi ended while {each.name} was being written, and was restarted {times}.")
            empty = (each.name for each in programs if each.log.lines < _HEADER_AND_ROW and not each.log.failure)
            notes += [f"{name} contains no rows: nvidia-smi printed none." for name in empty]
            # measured by the monotonic clock, since the system clock may have been changed
            ended = self.run.started + round((time.monotonic() - self._begun) * 1e6)
            self.run = replace(self.run, ended=ended, exit_code=code, notes=tuple(notes))
            with contextlib.suppress(OSError):
                self._write_run_file()
        return code or 0

    @contextlib.contextmanager
    def _listening(self) -> Iterator[None]:
        """Receive SIGCHLD and the signals that end a recording, except SIGTERM or SIGHUP if ignored."""
        self._signals, write = os.pipe()
        for each in (self._signals, write):
            os.set_blocking(each, False)
        self._selector.register(self._signals, selectors.EVENT_READ)
        # background jobs of a shell ignore SIGINT, but a recorder must still end on SIGINT
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

    def _run_job(self) -> int:
        """Return the job's exit code as a shell reports it."""
        if self._programs:
            self._run(_FIRST_ROWS, until=lambda: self._programs[0].log.lines >= _HEADER_AND_ROW)
        if self._stop_signal is not None:
            self._notes.append("The job was not started, because a signal ended the recording first.")
            return _SIGNAL_BASE + self._stop_signal
        try:
            self._job = job = subprocess.Popen(self._command)  # noqa: S603 - what the user typed
        except OSError as error:
            what = error.strerror or "cannot be run"
            what, code = what[:1].lower() + what[1:], code_system_error(error, "cannot_run")
            raise SettingsError(self._command[0], what, "check the command after --", code=code) from error
        self._host.watch_job(job.pid)
        self._run(until=lambda: job.poll() is not None)
        self._run(_AFTERWARDS * max(1.0, self._interval))
        return _SIGNAL_BASE - job.returncode if job.returncode < 0 else job.returncode

    def _run(self, seconds: float = math.inf, until: Callable[[], bool] = lambda: False) -> None:
        end = time.monotonic() + seconds
        while not until() and time.monotonic() < end:
            self._wait(end)

    def _wait(self, end: float) -> None:
        now = time.monotonic()
        if now >= self._next_sample:
            try:
                if (sample := self._host.sample()) is not None:
                    self._log.write(f"{sample}\n".encode())
            except Exception as error:
                self._failure = f"{self._log.name} lacks samples: {type(error).__name__}: {error}."
            # a late sample does not delay the next one
            self._next_sample = max(self._next_sample + self._interval, now + self._interval / 2)
        for program in self._programs:
            program.start_again()
            if program.descriptor is not None and program.descriptor not in self._selector.get_map():
                self._selector.register(program.descriptor, selectors.EVENT_READ, program)
        for key, _ in self._selector.select(max(0.0, min(self._next_sample, end) - time.monotonic())):
            if isinstance(program := key.data, LoggedProgram):
                program.copy_output()
                if program.descriptor is None:
                    self._selector.unregister(key.fd)
            else:
                self._handle_signals()

    def _handle_signals(self) -> None:
        came: set[int] = set()
        with contextlib.suppress(BlockingIOError):
            came = set(os.read(self._signals, 4096)) & set(_ENDING)
        for number in came:
            if self._job is not None and not _reaches_whole_group(number):
                with contextlib.suppress(ProcessLookupError):
                    self._job.send_signal(number)
        self._stop_signal = min(came, default=self._stop_signal)

    def _write_run_file(self) -> None:
        path = self._folder / RUN_FILE
        part = path.with_suffix(_PART)
        try:
            part.write_text(format_run_file(self.run), encoding="utf-8")
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


def _reaches_whole_group(number: int) -> bool:
    if number == signal.SIGTERM:
        return False
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        # the terminal was closed, which sent SIGHUP to the whole group
        return number == signal.SIGHUP and sys.stdin is not None and os.getsid(0) != os.getpid()
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def _name_local_zone() -> str:
    named = os.environ.get("TZ", "").removeprefix(":")
    if "/" in named or named == "UTC":
        return named
    linked = "" if named else os.path.realpath("/etc/localtime").partition("zoneinfo/")[2].removeprefix("Etc/")
    return linked or datetime.now().astimezone().isoformat()[-6:]


def _make_folder(folder: Path) -> None:
    """Create the folder. Raises SettingsError if it contains a recording or cannot be created."""
    names = (RUN_FILE, str(Path(RUN_FILE).with_suffix(_PART)), *LOGS)
    # a dangling link counts as an existing file, since writing would follow the link
    taken = next((name for name in names if os.path.lexists(folder / name)), None)
    if taken is not None:
        what = f"it already contains a recording ({taken})"
        raise SettingsError(str(folder), what, "name another folder with -o", code="folder_taken")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what, code = error.strerror or "it cannot be created", code_system_error(error, "cannot_write")
        raise SettingsError(str(folder), what, "name another folder with -o", code=code) from error

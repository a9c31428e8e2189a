"""One recording: the logs, the job between them, and what the run file says of both."""

import contextlib
import os
import shutil
import socket
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from gpureport import record_folder
from gpureport.errors import SettingsError, SourceError
from gpureport.record_folder import RecordedRun, format_run_file
from gpureport.recorder import nvidia_smi
from gpureport.recorder.host_log import HostLog
from gpureport.recorder.job_params import collect_labels, collect_params
from gpureport.recorder.programs import LineFile, LoggedProgram
from gpureport.recorder.recording_loop import SIGNAL_BASE, RecordingLoop
from gpureport.redaction import hide_secrets
from gpureport.regular_files import code_system_error

_FIRST_ROWS = 5.0
"""Seconds that a job waits at most for the first row of its log."""
_AFTERWARDS = 1.2
"""Seconds, or intervals where these are longer, that are recorded after the job, so that its end is in the logs."""
_HEADER_AND_ROW = 2
_PART = ".part"
"""Suffix of the run file while it is written."""
_LOCALTIME = Path("/etc/localtime")
_ZONES = "zoneinfo/"


class RecordingSession:
    """A recording in progress; `run` is what its file says, complete after `record`."""

    def __init__(self, folder: Path, command: Sequence[str], interval: float, *, host_only: bool) -> None:
        """Ask the driver what it knows and make the folder, or raise an error; nothing runs yet.

        Without a `command`, it records until a signal asks to end; `host_only` leaves GPUs out.
        """
        self._folder, self._command, self._interval = folder, command, interval
        if command and shutil.which(command[0]) is None:
            raise SettingsError(command[0], "no such program", "check the command after --", code="no_such_program")
        self._words: dict[str, list[str]] = {}
        self._missing: list[str] = []
        if not host_only:
            program = nvidia_smi.find_nvidia_smi()
            self._words[record_folder.GPU_LOG] = nvidia_smi.build_query_command(program, interval)
            try:
                if words := nvidia_smi.build_dmon_command(program, interval):
                    self._words[record_folder.DMON_LOG] = words
            except SourceError as error:
                self._missing.append(f"{record_folder.DMON_LOG} is missing: {error.what}.")
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

    def record(self) -> int:
        """Record until the job ends, or a signal asks to; return the job's exit code, 0 without a job."""
        host, log = HostLog(has_job=bool(self._command)), LineFile(self._folder / record_folder.HOST_LOG)
        log.write(f"{host.header()}\n".encode())
        programs = [LoggedProgram(words, LineFile(self._folder / name)) for name, words in self._words.items()]
        loop = RecordingLoop(host, log, programs, self._interval)
        code: int | None = None
        try:
            with loop.listening():
                if self._command:
                    code = self._run_job(loop, programs)
                else:
                    loop.run(until=lambda: loop.stop_signal is not None)
        finally:
            self._missing += filter(None, (loop.failure, *(each.describe_silence() for each in programs)))
            for program in programs:
                program.stop()
            for file in (log, *(each.log for each in programs)):
                file.close()
                self._missing += [file.failure] if file.failure else []
            for each in programs:
                if each.restarts:
                    times = "once" if each.restarts == 1 else f"{each.restarts} times"
                    again = f"was written, and was started again {times}"
                    self._missing.append(f"nvidia-smi ended while {each.name} {again}.")
            empty = (each.name for each in programs if each.log.lines < _HEADER_AND_ROW and not each.log.failure)
            self._missing += [f"{name} holds no row: nvidia-smi gave none." for name in empty]
            # the clock may have been set meanwhile
            ended = self.run.started + round((time.monotonic() - self._begun) * 1e6)
            self.run = replace(self.run, ended=ended, exit_code=code, notes=tuple(self._missing))
            with contextlib.suppress(OSError):
                self._write_run_file()
        return code or 0

    def _run_job(self, loop: RecordingLoop, programs: Sequence[LoggedProgram]) -> int:
        if programs:
            loop.run(_FIRST_ROWS, until=lambda: programs[0].log.lines >= _HEADER_AND_ROW)
        if loop.stop_signal is not None:
            self._missing.append("The job was not started: a signal ended the recording first.")
            return SIGNAL_BASE + loop.stop_signal
        loop.start_job(self._command)
        loop.run(until=lambda: loop.exit_code is not None)
        loop.run(_AFTERWARDS * max(1.0, self._interval))
        return loop.exit_code or 0

    def _write_run_file(self) -> None:
        path = self._folder / record_folder.RUN_FILE
        part = path.with_suffix(_PART)
        try:
            part.write_text(format_run_file(self.run), encoding="utf-8")
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


def _name_local_zone() -> str:
    named = os.environ.get("TZ", "").removeprefix(":")
    if "/" in named or named == "UTC":
        return named
    if not named and _LOCALTIME.is_symlink():
        target = str(_LOCALTIME.resolve())
        if _ZONES in target:
            return target.split(_ZONES, 1)[1].removeprefix("Etc/")
    return datetime.now().astimezone().isoformat()[-6:]


def _make_folder(folder: Path) -> None:
    """Make the folder of a recording; one that holds a recording, or cannot be made, is a `SettingsError`."""
    run_file = Path(record_folder.RUN_FILE)
    names = (run_file.name, run_file.with_suffix(_PART).name, *record_folder.LOGS)
    # a link that leads nowhere is taken too: writing would go through it
    taken = next((name for name in names if os.path.lexists(folder / name)), None)
    if taken is not None:
        what = f"it holds a recording already ({taken})"
        raise SettingsError(str(folder), what, "name another folder with -o", code="folder_taken")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what, code = error.strerror or "it cannot be made", code_system_error(error, "cannot_write")
        raise SettingsError(str(folder), what, "name another folder with -o", code=code) from error

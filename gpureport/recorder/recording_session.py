"""One recording: the logs, the job between them, and what the run file says of both."""

import contextlib
import os
import shutil
import socket
import time
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from gpureport import record_folder
from gpureport.errors import SettingsError, SourceError
from gpureport.record_folder import RecordedRun, format_run_file
from gpureport.recorder import nvidia_smi
from gpureport.recorder.host_log import HostLog
from gpureport.recorder.job_params import collect_labels, collect_params
from gpureport.recorder.job_process import SIGNAL_BASE, JobProcess
from gpureport.recorder.line_file import LineFile
from gpureport.recorder.logged_program import LoggedProgram
from gpureport.recorder.recording_loop import RecordingLoop
from gpureport.recorder.signals import SignalPipe
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingPlan:
    """What to record.

    Attributes:
        folder: where the logs go; it is made.
        command: the job; empty to record until a signal asks to end.
        interval: seconds between two samples.
        host_only: whether GPUs are left out.
    """

    folder: Path
    command: tuple[str, ...] = ()
    interval: float = 1.0
    host_only: bool = False


class RecordingSession:
    """A recording in progress.

    Attributes:
        run: what the run file says; complete after `record`.
    """

    def __init__(self, plan: RecordingPlan) -> None:
        """Ask the driver what it knows and make the folder; nothing runs yet.

        Raises:
            SourceError: when GPUs are to be recorded and nvidia-smi is missing or does not answer.
            SettingsError: when the folder holds a recording or cannot be made, or there is no such job.
        """
        self._plan = plan
        if plan.command and shutil.which(plan.command[0]) is None:
            raise SettingsError(
                plan.command[0], "no such program", "check the command after --", code="no_such_program"
            )
        self._words: dict[str, list[str]] = {}
        self._missing: list[str] = []
        if not plan.host_only:
            program = nvidia_smi.find_nvidia_smi()
            fields = nvidia_smi.choose_fields(program)
            self._words[record_folder.GPU_LOG] = nvidia_smi.build_query_command(program, fields, plan.interval)
            self._add_dmon(program)
        params = collect_params(plan.command)
        _make_folder(plan.folder)
        self._files: list[LineFile] = []
        self._begun = time.monotonic()
        self._programs: list[LoggedProgram] = []
        self.run = RecordedRun(
            command=hide_secrets(plan.command),
            host=socket.gethostname(),
            timezone=name_local_zone(),
            started=time.time_ns() // 1000,
            interval=plan.interval,
            params=params,
            tags=collect_labels(os.environ),
        )
        self._write_run_file()

    def _add_dmon(self, program: str) -> None:
        try:
            words = nvidia_smi.build_dmon_command(program, self._plan.interval)
        except SourceError as error:
            self._missing.append(f"{record_folder.DMON_LOG} is missing: {error.what}.")
            return
        if words:
            self._words[record_folder.DMON_LOG] = words

    def record(self) -> int:
        """Record until the job ends, or a signal asks to; return the job's exit code, 0 without a job.

        Raises:
            SettingsError: when the job cannot be started.
        """
        host = HostLog(has_job=bool(self._plan.command))
        log = self._open_log(record_folder.HOST_LOG)
        log.write(f"{host.header()}\n".encode())
        for name, words in self._words.items():
            self._programs.append(LoggedProgram(name, words, self._open_log(name)))
        loop = RecordingLoop(host=host, log=log, programs=self._programs, interval=self._plan.interval)
        code: int | None = None
        signals = SignalPipe()
        try:
            with signals.listening():
                loop.listen(signals)
                code = self._run_job(loop) if self._plan.command else loop.run_until_signal()
        finally:
            self._missing += filter(None, (loop.failure, *(each.describe_silence() for each in self._programs)))
            for program in self._programs:
                program.stop()
            for file in self._files:
                file.close()
            self._finish(code if self._plan.command else None)
        return code

    def _run_job(self, loop: RecordingLoop) -> int:
        if self._programs:
            first = self._programs[0].log
            loop.run(_FIRST_ROWS, until=lambda: first.lines >= _HEADER_AND_ROW)
        if loop.stop_signal is not None:
            self._missing.append("The job was not started: a signal ended the recording first.")
            return SIGNAL_BASE + loop.stop_signal
        job = JobProcess(self._plan.command)
        loop.watch_job(job)
        loop.run(None, until=lambda: job.exit_code is not None)
        loop.run(_AFTERWARDS * max(1.0, self._plan.interval))
        return job.exit_code or 0

    def _open_log(self, name: str) -> LineFile:
        self._files.append(LineFile(self._plan.folder / name))
        return self._files[-1]

    def _finish(self, exit_code: int | None) -> None:
        """Write the run file again, with how the recording ended."""
        failures = [file.failure for file in self._files if file.failure]
        restarts = [
            f"nvidia-smi ended while {program.name} was written, and was started again {_count(program.restarts)}."
            for program in self._programs
            if program.restarts
        ]
        empty = [
            f"{program.name} holds no row: nvidia-smi gave none."
            for program in self._programs
            if program.log.lines < _HEADER_AND_ROW and not program.log.failure
        ]
        notes = (*self._missing, *failures, *restarts, *empty)
        # the clock may have been set meanwhile
        ended = self.run.started + round((time.monotonic() - self._begun) * 1e6)
        self.run = replace(self.run, ended=ended, exit_code=exit_code, notes=notes)
        with contextlib.suppress(OSError):
            self._write_run_file()

    def _write_run_file(self) -> None:
        """Replace the run file whole."""
        path = self._plan.folder / record_folder.RUN_FILE
        part = path.with_suffix(_PART)
        try:
            part.write_text(format_run_file(self.run), encoding="utf-8")
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


def name_local_zone() -> str:
    """Return the zone of local time: an IANA name if the system tells one, else an offset."""
    named = os.environ.get("TZ", "").removeprefix(":")
    if "/" in named or named == "UTC":
        return named
    if not named and _LOCALTIME.is_symlink():
        target = str(_LOCALTIME.resolve())
        if _ZONES in target:
            return target.split(_ZONES, 1)[1].removeprefix("Etc/")
    return datetime.now().astimezone().isoformat()[-6:]


def _make_folder(folder: Path) -> None:
    """Make the folder of a recording.

    Raises:
        SettingsError: when it holds a recording, or cannot be made.
    """
    run_file = Path(record_folder.RUN_FILE)
    logs = (record_folder.GPU_LOG, record_folder.DMON_LOG, record_folder.HOST_LOG)
    names = (run_file.name, run_file.with_suffix(_PART).name, *logs)
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


def _count(times: int) -> str:
    return "once" if times == 1 else f"{times} times"

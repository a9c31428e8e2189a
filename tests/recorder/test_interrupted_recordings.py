"""Recordings that are killed, interrupted, or cannot be written: the job keeps its exit code, and the logs are read."""

import os
import pty
import re
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.recorder.recorded import (
    RECORD,
    WAITING_JOB,
    count_rejected,
    count_rows,
    read_quality,
    read_run_file,
    run_record,
    start_record,
    wait_until,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("stand_in_driver")]
_SLEEP = (sys.executable, "-c", "import time; time.sleep(60)")
_KILLED = "import os, time; time.sleep(1); os.kill(os.getpid(), 9)"
_FAILING = "import sys, time; time.sleep(4); sys.exit(3)"


def _children(pid: int, part: str) -> list[psutil.Process]:
    return [each for each in psutil.Process(pid).children() if any(part in word for word in each.cmdline())]


def _is_running(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


@pytest.fixture
def heeded_hangup() -> Iterator[None]:
    """Let programs be ended by a hangup, which tests run by `nohup` hand on as ignored."""
    inherited = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, inherited)


@pytest.mark.usefixtures("heeded_hangup")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signal_reaches_the_job(tmp_path: Path, number: signal.Signals) -> None:
    recorder = start_record("-o", tmp_path / "rec", "--interval", "0.1", "--", *WAITING_JOB, start_new_session=True)
    assert recorder.stdout is not None
    assert recorder.stdout.readline() == "begun\n"
    recorder.send_signal(number)
    out, _ = recorder.communicate()
    assert (out, recorder.returncode) == (f"signal {number.value}\n", 7)
    assert read_run_file(tmp_path / "rec")["exit_code"] == 7


def _record_on_a_terminal(folder: Path) -> tuple[int, int]:
    """Start a recording in the foreground of a terminal of its own; return its process number and the terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        words = [*RECORD, "-o", str(folder), "--interval", "0.1", "--", *WAITING_JOB]
        os.execv(words[0], words)  # noqa: S606 - a terminal of its own needs a fork
    seen = b""
    while b"begun" not in seen:
        seen += os.read(terminal, 4096)
    return pid, terminal


def test_ctrl_c_reaches_the_job_once(tmp_path: Path) -> None:
    pid, terminal = _record_on_a_terminal(tmp_path / "rec")
    os.write(terminal, b"\x03")
    seen = b""
    try:
        while text := os.read(terminal, 4096):
            seen += text
    except OSError:
        pass
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert seen.count(b"signal 2") == 1
    assert read_run_file(tmp_path / "rec")["notes"] == []


def test_closed_terminal_ends_the_recording(tmp_path: Path) -> None:
    pid, terminal = _record_on_a_terminal(tmp_path / "rec")
    os.close(terminal)
    os.waitpid(pid, 0)
    assert read_run_file(tmp_path / "rec")["exit_code"] is not None
    assert all(path.read_bytes().endswith(b"\n") for path in (tmp_path / "rec").iterdir())
    assert count_rejected(tmp_path / "rec") == 0


def test_killed_recorder_takes_nvidia_smi_along_and_leaves_the_job(tmp_path: Path) -> None:
    folder = tmp_path / "rec"
    recorder = start_record("-o", folder, "--interval", "0.1", "--", *_SLEEP)
    wait_until(lambda: count_rows(folder / "gpu.csv") > 20)
    drivers, (job,) = _children(recorder.pid, "stand_in"), _children(recorder.pid, "time.sleep")
    try:
        recorder.kill()
        # the job holds the pipes still
        recorder.wait()
        assert len(drivers) == 2
        wait_until(lambda: not any(map(_is_running, drivers)))
        assert _is_running(job)
    finally:
        job.kill()
        recorder.communicate()
    run = read_run_file(folder)
    assert (run["ended"], run["exit_code"]) == (None, None)
    assert count_rejected(folder) == 0


def test_killed_nvidia_smi_is_started_again(tmp_path: Path) -> None:
    folder = tmp_path / "rec"
    recorder = start_record("-o", folder, "--interval", "0.1", "--", *_SLEEP)
    wait_until(lambda: count_rows(folder / "gpu.csv") > 20)
    rows = count_rows(folder / "gpu.csv")
    for driver in _children(recorder.pid, "--query-gpu"):
        driver.kill()
    wait_until(lambda: count_rows(folder / "gpu.csv") > rows + 20)
    recorder.terminate()
    _, err = recorder.communicate()
    note = "nvidia-smi ended while gpu.csv was being written, and was restarted once."
    assert read_run_file(folder)["notes"] == [note]
    assert note in err
    assert (folder / "gpu.csv").read_text().count("timestamp, ") == 2
    assert count_rejected(folder) == 0


@pytest.mark.parametrize(
    ("fault", "job", "code"),
    [("", _KILLED, 137), *((f"{fault}:20", _FAILING, 3) for fault in ("half-line", "lost", "hangs", "clock-back"))],
)
def test_whatever_fails_leaves_whole_lines_and_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, job: str, code: int
) -> None:
    """Kill -9 of the job is 137; half a line is left out, and a message of the driver is read as one."""
    folder = tmp_path / "rec"
    if fault:
        monkeypatch.setenv("STAND_IN_FAULT", fault)
        monkeypatch.setenv("STAND_IN_DMON", "absent")
    done = run_record("-o", folder, "--interval", "0.1", "--", sys.executable, "-c", job)
    assert (done.returncode, read_run_file(folder)["exit_code"]) == (code, code)
    assert (folder / "gpu.csv").read_bytes().endswith(b"\n")
    assert count_rejected(folder) == 0
    quality = read_quality(folder)
    assert (sum(each.events for each in quality) > 0) == fault.startswith("lost")
    stepped = {step.device for each in quality for step in each.clock_steps}
    assert stepped == ({"gpu:0", "gpu:1"} if fault.startswith("clock-back") else set())


def test_full_disk_ends_the_log_and_not_the_job(tmp_path: Path) -> None:
    limit = 8000

    def limit_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    command = (sys.executable, "-c", _FAILING)
    done = run_record("-o", tmp_path / "rec", "--interval", "0.1", "--", *command, preexec_fn=limit_files)
    assert done.returncode == 3
    log = (tmp_path / "rec" / "gpu.csv").read_bytes()
    assert len(log) <= limit
    assert log.endswith(b"\n")
    notes = read_run_file(tmp_path / "rec")["notes"]
    assert notes[-1] == "gpu.csv ends early: File too large."
    assert notes[-1] in done.stderr
    assert count_rejected(tmp_path / "rec") == 0


def test_ctrl_c_before_the_first_row_starts_no_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAND_IN_FAULT", "hangs:1")
    monkeypatch.setenv("STAND_IN_DMON", "absent")
    program = tmp_path / "driver" / "nvidia-smi"
    # the header comes, rows do not
    program.write_text(
        program.read_text().replace("exec ", 'case "$*" in *-lms*) STAND_IN_FAULT=hangs:0;; esac; exec ')
    )
    started, folder = tmp_path / "started", tmp_path / "rec"
    recorder = start_record("-o", folder, "--interval", "0.1", "--", "touch", started)
    wait_until(lambda: (folder / "gpu.csv").exists() and bool((folder / "gpu.csv").read_text()))
    recorder.send_signal(signal.SIGTERM)
    _, err = recorder.communicate()
    assert recorder.returncode == 128 + signal.SIGTERM
    assert "The job was not started" in err
    assert not started.exists()


def test_without_a_job_it_runs_until_asked(tmp_path: Path) -> None:
    folder = tmp_path / "rec"
    recorder = start_record("-o", folder, "--interval", "0.1")
    wait_until(lambda: count_rows(folder / "gpu.csv") > 10)
    recorder.send_signal(signal.SIGINT)
    _, err = recorder.communicate()
    assert recorder.returncode == 0
    assert re.search(r"Recorded [\d.]+ m?s", err)
    assert read_run_file(folder)["exit_code"] is None

"""A program whose lines are logged is started again when it ends, and never holds up the end of a recording."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpureport.recorder import logged_program
from gpureport.recorder.line_file import LineFile
from gpureport.recorder.logged_program import LoggedProgram
from tests.recorder.recorded import wait_until


@pytest.fixture
def log(tmp_path: Path) -> Iterator[LineFile]:
    """A log for the program's lines."""
    file = LineFile(tmp_path / "gpu.csv")
    yield file
    file.close()


def _copy_all(program: LoggedProgram) -> None:
    while program.descriptor is not None:
        program.copy_output()


def test_a_program_that_ended_is_started_again(log: LineFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits between two starts, and half a line of the first is not completed by the second."""
    monkeypatch.setattr(logged_program, "_FIRST_PAUSE", 0.2)
    program = LoggedProgram("gpu.csv", [sys.executable, "-c", "print('row\\nhal', end='')"], log)
    _copy_all(program)
    assert not program.start_again()
    wait_until(program.start_again)
    _copy_all(program)
    assert (log.lines, program.restarts) == (2, 1)


def test_a_program_that_cannot_be_started_again_is_tried_later(
    log: LineFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver that is replaced in mid-run is missing for a while."""
    monkeypatch.setattr(logged_program, "_FIRST_PAUSE", 0.0)
    path = tmp_path / "program"
    path.write_text("#!/bin/sh\necho row\n")
    path.chmod(0o755)
    program = LoggedProgram("gpu.csv", [str(path)], log)
    _copy_all(program)
    away = path.rename(tmp_path / "away")
    assert not program.start_again()
    assert program.restarts == 0
    away.rename(path)
    wait_until(program.start_again)
    _copy_all(program)
    assert (log.lines, program.restarts) == (2, 1)


def test_its_terminal_is_wide(log: LineFile, tmp_path: Path) -> None:
    """What prints a table has room for all its columns."""
    script = "import os; print(os.get_terminal_size(1).columns)"
    _copy_all(LoggedProgram("gpu.csv", [sys.executable, "-c", script], log))
    assert (tmp_path / "gpu.csv").read_text() == "1000\n"


def test_a_program_that_does_not_listen_is_killed(log: LineFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """What hangs ends all the same, and its silence is told."""
    monkeypatch.setattr(logged_program, "_PATIENCE", 0.2)
    monkeypatch.setattr(logged_program, "_LONG_SILENCE", 0.0)
    script = "import signal, time; signal.signal(2, signal.SIG_IGN); print('row', flush=True); time.sleep(60)"
    program = LoggedProgram("gpu.csv", [sys.executable, "-c", script], log)
    program.copy_output()
    time.sleep(0.01)
    assert program.describe_silence() == "gpu.csv stops 0 s before the end: nvidia-smi gave no more rows."
    program.stop()
    assert program.descriptor is None
    assert log.lines == 1


def test_a_program_that_ended_just_before_the_end_is_noted(log: LineFile) -> None:
    """Its log is short, also where there was no time to start it again."""
    program = LoggedProgram("gpu.csv", [sys.executable, "-c", "print('row')"], log)
    _copy_all(program)
    assert program.describe_silence() == "gpu.csv stops 0 s before the end: nvidia-smi ended by itself."

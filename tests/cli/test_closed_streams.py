"""Standard streams that are closed or full, and too little memory: one line, a code, no traceback."""

import subprocess
import sys
from pathlib import Path

import pytest

from gpureport.analysis.rules.rule import Context
from gpureport.cli.results import report_output
from gpureport.fleet.running.summary_task import describe_failure
from tests.cli.program import Program
from tests.importers.written_logs import log

_PROGRAM = f"{sys.executable} -m gpureport"


def _run(folder: Path, command: str) -> tuple[int, str]:
    (folder / "x.csv").write_text(log(300))
    done = subprocess.run(
        ["/bin/bash", "-c", command.format(_PROGRAM)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("{} analyze x.csv >&-", 3, "standard output: Bad file descriptor; check permissions and free space"),
        ("{} analyze x.csv 2>&- >/dev/null", 0, ""),
        ("{} analyze - <&-", 3, "-: standard input is closed; give a file, or a pipe"),
        (
            "{} analyze x.csv >/dev/full",
            3,
            "standard output: No space left on device; check permissions and free space",
        ),
    ],
)
def test_a_closed_or_full_stream(tmp_path: Path, command: str, code: int, said: str) -> None:
    """What cannot be written is said where that can be; no file is opened in the place of a closed stream."""
    assert _run(tmp_path, command) == (code, f"gpureport: {said}\n" if said else "")


_SHORTAGES = (
    (MemoryError(), "there is not enough memory for it; give less at a time"),
    (
        ImportError("_typst.so: failed to map segment from shared object"),
        "there is not enough memory for it; give less",
    ),
    (RuntimeError("can't start new thread"), "the system starts no more threads; give it more memory"),
)


@pytest.mark.parametrize("shortage", _SHORTAGES)
@pytest.mark.parametrize("place", ["run", "command"])
def test_too_little_memory_is_said(
    gpureport: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shortage: tuple[Exception, str], place: str
) -> None:
    """It is no bug, be it in the analysis of a run or elsewhere in a command."""
    error, words = shortage

    def failing(*_: object, **__: object) -> None:
        raise error

    where, name = (Context, "gpus") if place == "run" else (report_output, "build_report")
    monkeypatch.setattr(where, name, failing)
    (tmp_path / "x.csv").write_text(log(300))
    outcome = gpureport("analyze", "x.csv")
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (3, "", 1)
    assert outcome.err.startswith(f"gpureport: {'x.csv' if place == 'run' else 'analyze'}: {words}")


def test_a_run_of_a_fleet_without_memory_is_named() -> None:
    """It is no bug there either."""
    for error, words in _SHORTAGES:
        assert describe_failure("run", error).startswith(words)


@pytest.mark.parametrize("option", ["--config", "--map", "--policy"])
@pytest.mark.parametrize("content", ["device", "deep"])
def test_a_file_of_settings_is_bounded(gpureport: Program, tmp_path: Path, option: str, content: str) -> None:
    """A device never ends, and a hundred thousand brackets exhaust the stack."""
    (tmp_path / "x.csv").write_text(log(300))
    (tmp_path / "deep.toml").write_text("a = " + "[" * 100_000)
    given = "/dev/zero" if content == "device" else "deep.toml"
    outcome = gpureport("check" if option == "--policy" else "analyze", "x.csv", option, given)
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert ("a device, not a regular file" if content == "device" else "not TOML") in outcome.err

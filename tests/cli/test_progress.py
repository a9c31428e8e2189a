"""What a person sees on a terminal while a command works."""

import os
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.logs import SAMPLE

pty = pytest.importorskip("pty", reason="pseudo-terminals are a matter of Unix")

_RUN = """
import sys, threading, time
# a clock that goes faster or slower stands for longer or shorter work
clock, timer = time.monotonic, threading.Timer
time.monotonic = lambda: clock() / {patience}
def begin(seconds, show):
    if {patience} < 1:
        # a thread of its own may come after the work has ended
        show()
    return timer(seconds * {patience}, show)
threading.Timer = begin
sys.argv = ["gpureport", *{arguments!r}]
from gpureport.cli import main
main()
"""


def watch(folder: Path, *arguments: str, patience: float = 1e-6) -> tuple[str, str]:
    """Return what a command writes to the terminal on its standard error, and to a pipe on its standard output."""
    ours, theirs = pty.openpty()
    code = _RUN.format(patience=patience, arguments=list(arguments))
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=theirs,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
    )
    os.close(theirs)
    seen = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            part = os.read(ours, 65536)
        except OSError:
            # Linux ends a terminal that nobody writes to with an error
            break
        if not part:
            break
        seen += part
    os.close(ours)
    out, _ = done.communicate()
    assert done.returncode == 0
    return seen.decode(), out.decode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(SAMPLE, tmp_path / "gpu.csv.gz")
    return tmp_path


def test_every_long_stage_is_named_on_a_terminal(folder: Path) -> None:
    seen, out = watch(folder, "report", "gpu.csv.gz", "-o", "a.html")
    for stage in ("Reading gpu.csv.gz", "Analysing", "Writing a.html"):
        assert stage in seen
    assert out == ""


@pytest.mark.slow
def test_a_night_shows_its_stages(folder: Path) -> None:
    seen, _ = watch(folder, "nightly", "gpu.csv.gz", "--site", "site", "--date", "2026-03-14")
    assert "Reading gpu.csv.gz" in seen
    assert "Writing the pages in site" in seen


def test_short_work_shows_nothing(folder: Path) -> None:
    seen, _ = watch(folder, "report", "gpu.csv.gz", "-o", "a.html", patience=3600.0)
    assert "Reading" not in seen
    assert "Analysing" not in seen


@pytest.mark.slow
def test_quiet_shows_nothing(folder: Path) -> None:
    assert watch(folder, "-q", "report", "gpu.csv.gz", "-o", "a.html")[0] == ""

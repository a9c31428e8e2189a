"""Recordings with the stand-in driver, as processes of their own."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gpureport
from gpureport.testing import Quality

RECORD = (sys.executable, "-m", "gpureport", "record")
_PATIENCE = 60.0
_JOB = """
import os, signal, sys, time
def end(number, frame):
    # the handler may interrupt `print`, which then must not be called again
    os.write(1, f"signal {number}\\n".encode())
    sys.exit(7)
for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(each, end)
print("begun", flush=True)
time.sleep(60)
"""
WAITING_JOB = (sys.executable, "-c", _JOB)
"""A job that says which signal it got, and then ends with 7."""


def run_record(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*RECORD, *arguments], capture_output=True, text=True, check=False, timeout=120, **options)


def start_record(*arguments: str | Path, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen([*RECORD, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def wait_until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def count_rows(log: Path) -> int:
    if not log.exists():
        return 0
    return sum(line[:3] == "202" for line in log.read_text().splitlines())


def read_run_file(folder: Path) -> Mapping[str, Any]:
    content: Mapping[str, Any] = json.loads((folder / "run.json").read_text())
    return content


def read_quality(folder: Path) -> list[Quality]:
    """Return the account of the runs of a recording, which must be read and analysed."""
    return [gpureport.analyze(run).run.quality for run in gpureport.read(folder)]


def count_rejected(folder: Path) -> int:
    """Return for how many reasons lines were not understood; a host row without a GPU row is understood."""
    rejected = [each.reason for quality in read_quality(folder) for each in quality.rejected]
    return sum(reason != "no row of the main log at that time" for reason in rejected)

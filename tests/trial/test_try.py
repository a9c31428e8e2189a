"""`gpureport try` with jobs on the CPU whose time depends on the setting."""

import json
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import Program

pytestmark = pytest.mark.slow
_SLEEP = (sys.executable, "-c", "import time; time.sleep({seconds})")
_JOB = """
import os, sys, time
print("x" * 300_000)
match "{kind}":
    case "memory":
        sys.exit("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB")
    case "killed":
        os.kill(os.getpid(), 9)
    case "crash":
        sys.exit(3)
time.sleep(0.2)
"""
_CRASH = (sys.executable, "-c", _JOB)


def _words(sets: str, *more: str, job: tuple[str, ...] = _SLEEP) -> list[str]:
    return ["try", "-o", "trial", "--host-only", "--interval", "0.2", "--set", sets, *more, "--", *job]


def _read(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "trial" / "decision.json").read_text())
    return content


def _list_runs(decision: dict[str, Any]) -> list[tuple[str, int]]:
    return sorted(
        (*run["setting"].values(), run["round"]) for run in decision["runs"] if run["failure"] != "interrupted"
    )


def test_best_setting_is_chosen(gpureport: Program, tmp_path: Path) -> None:
    words = _words("seconds=1.2,0.3,0.6")
    assert gpureport(*words).code == 0
    found = _read(tmp_path)
    assert (found["chosen"], found["reason"], found["ended"]) == ({"seconds": "0.3"}, None, "one_left")
    assert [each["verdict"] for each in found["settings"]] == [None, "better", "better"]
    assert _list_runs(found) == [(seconds, number) for seconds in ("0.3", "0.6", "1.2") for number in (1, 2)]
    assert "<html" in (tmp_path / "trial" / "report.html").read_text()
    # without a missing run, the command only decides
    begun = time.monotonic()
    assert gpureport(*words).code == 0
    assert (_read(tmp_path), time.monotonic() - begun < 5) == (found, True)
    assert gpureport("--debug", *_words("seconds=1.2,0.3")).error == "other_trial"


def test_failures_are_results(gpureport: Program, tmp_path: Path) -> None:
    assert gpureport(*_words("kind=fine,memory,killed,crash", job=_CRASH)).code == 0
    found = _read(tmp_path)
    failures = {each["setting"]["kind"]: each["failure"] for each in found["settings"]}
    assert failures == {"fine": None, "memory": "out_of_memory", "killed": "killed", "crash": "failed"}
    assert (found["chosen"], found["reason"]) == ({"kind": "fine"}, "base_only")
    assert gpureport(*_words("kind=memory,crash", "-o", "failing", job=_CRASH)).code == 1
    assert gpureport("--debug", *_words("kind=a,b", "-o", "bad", job=("no-such {kind}",))).error == "recording_failed"


def test_budget_may_be_raised(gpureport: Program, tmp_path: Path) -> None:
    sets = "seconds=0.3,0.31"
    assert gpureport(*_words(sets, "--budget", "3s", "--repeat", "2")).code == 4
    found = _read(tmp_path)
    assert (found["reason"], found["ended"]) == ("too_few_rounds", "budget")
    assert gpureport(*_words(sets, "--budget", "5m", "--repeat", "2")).code == 4
    assert (_read(tmp_path)["reason"], _read(tmp_path)["ended"]) == ("no_clear_best", "finished")


def test_interrupted_trial_goes_on(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "gpureport", *_words("seconds=2,1", "--repeat", "2")]
    codes = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -signal.SIGKILL}
    for place, number in enumerate([*codes, *codes]):
        started = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE)
        assert started.stderr is not None
        assert started.stderr.readline().startswith(b"Round")
        time.sleep(place * 0.7)
        started.send_signal(number)
        said = started.communicate()[1]
        assert started.returncode == codes[number]
        assert (b"same command" in said) == (number != signal.SIGKILL)
    assert subprocess.run(words, cwd=tmp_path, check=False).returncode == 0
    found = _read(tmp_path)
    assert found["chosen"] == {"seconds": "1"}
    assert _list_runs(found) == [(seconds, number) for seconds in ("1", "2") for number in (1, 2)]
    assert len(list((tmp_path / "trial" / "interrupted").iterdir())) > 2


def test_full_disk_is_no_result(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "gpureport", "--debug"]
    words += _words("kind=fine,also", "--repeat", "2", job=_CRASH)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))

    full = subprocess.run(words, cwd=tmp_path, check=False, preexec_fn=limit, capture_output=True)
    assert (full.returncode, b"code: disk_full" in full.stderr) == (3, True)
    assert subprocess.run(words, cwd=tmp_path, check=False).returncode == 4
    assert [each["failure"] for each in _read(tmp_path)["settings"]] == [None, None]


def test_gpu_time_is_counted(gpureport: Program, tmp_path: Path, stand_in_driver: Path) -> None:
    assert stand_in_driver.is_file()
    sets = [word for word in _words("seconds=3,1", "--repeat", "2") if word != "--host-only"]
    assert gpureport(*sets).code == 0
    assert _read(tmp_path)["gpu_seconds"] > 8

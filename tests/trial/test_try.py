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

from tests.support.program import Program, analysed

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
_STARVED = Path(__file__).parents[2] / "sample_logs/input_starved/1-baseline/nvidia-smi.csv"
_CRASH = (sys.executable, "-c", _JOB)


def _words(sets: str, *more: str, job: tuple[str, ...] = _SLEEP) -> list[str]:
    return ["try", "-o", "trial", "--host-only", "--interval", "0.2", "--set", sets, *more, "--", *job]


def _read(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "trial" / "decision.json").read_text())
    return content


def _list_runs(decision: dict[str, Any]) -> list[tuple[str, int]]:
    whole = [run for run in decision["runs"] if run["failure"] != "interrupted"]
    return sorted((*run["setting"].values(), run["round"]) for run in whole)


def test_best_setting_is_chosen(gpureport: Program, tmp_path: Path) -> None:
    words = _words("seconds=3,1")
    code, found = gpureport(*words).code, _read(tmp_path)
    # a busy machine may leave it unclear whether 1 s is better than 3 s
    assert (found["best"], found["exit_code"], bool(found["chosen"])) == ({"seconds": "1"}, code, code == 0)
    rounds = [run["round"] for run in found["runs"]]
    assert rounds == sorted(rounds)
    assert "<html" in (tmp_path / "trial" / "report.html").read_text()
    # without a missing run, the command only decides
    begun = time.monotonic()
    assert gpureport(*words).code == code
    assert (_read(tmp_path), time.monotonic() - begun < 5) == (found, True)
    assert gpureport("--debug", *_words("seconds=3,2")).error == "other_trial"


def test_failures_are_results(gpureport: Program, tmp_path: Path) -> None:
    assert gpureport(*_words("kind=fine,memory,killed,crash", job=_CRASH)).code == 0
    found = _read(tmp_path)
    failures = {each["setting"]["kind"]: each["failure"] for each in found["settings"]}
    assert failures == {"fine": None, "memory": "out_of_memory", "killed": "killed", "crash": "failed"}
    assert (found["chosen"], found["reason"]) == ({"kind": "fine"}, "base_only")
    assert "kind=memory" in gpureport("analyze", "trial").out
    assert gpureport("compare", "trial").code == 4
    assert gpureport(*_words("kind=memory,crash", "-o", "failing", job=_CRASH)).code == 1
    assert gpureport("--debug", *_words("kind=a,b", "-o", "bad", job=("no-such {kind}",))).error == "recording_failed"


def test_budget_may_be_raised(gpureport: Program, tmp_path: Path) -> None:
    sets = "seconds=0.3,0.31"
    assert gpureport(*_words(sets, "--budget", "3s", "--repeat", "2")).code == 4
    assert (_read(tmp_path)["reason"], _read(tmp_path)["ended"]) == ("too_few_rounds", "budget")
    assert gpureport(*_words(sets, "--budget", "5m", "--repeat", "2")).code == 4
    assert (_read(tmp_path)["reason"], _read(tmp_path)["ended"]) == ("no_clear_best", "finished")


def test_interrupted_trial_goes_on(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "gpureport", *_words("seconds=2,1", "--repeat", "2")]
    codes = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -signal.SIGKILL}
    for place, number in enumerate([*codes, *codes]):
        started = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE)
        assert started.stderr is not None
        # after SIGKILL, the next start may first wait for the run that goes on
        assert any(line.startswith(b"Round") for line in started.stderr)
        time.sleep(place * 0.7)
        started.send_signal(number)
        said = started.communicate()[1]
        assert started.returncode == codes[number]
        assert (b"same command" in said) == (number != signal.SIGKILL)
    assert subprocess.run(words, cwd=tmp_path, check=False).returncode in {0, 4}
    found = _read(tmp_path)
    assert found["best"] == {"seconds": "1"}
    assert _list_runs(found) == [(seconds, number) for seconds in ("1", "2") for number in (1, 2)]
    assert len(list((tmp_path / "trial" / "interrupted").iterdir())) > 2


def test_full_disk_is_no_result(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "gpureport", "--debug", *_words("kind=fine,also", "--repeat", "2", job=_CRASH)]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))

    full = subprocess.run(words, cwd=tmp_path, check=False, preexec_fn=limit, capture_output=True)
    assert (full.returncode, b"code: disk_full" in full.stderr) == (3, True)
    assert subprocess.run(words, cwd=tmp_path, check=False).returncode in {0, 4}
    assert [each["failure"] for each in _read(tmp_path)["settings"]] == [None, None]


@pytest.mark.usefixtures("stand_in_driver")
def test_decision_is_reported(gpureport: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAND_IN_LOG", str(_STARVED))
    job = (sys.executable, "-c", "import sys, time; time.sleep(3 / int(sys.argv[2]))", "--workers", "{w}")
    words = [word for word in _words("w=1,2,x", "--repeat", "2", job=job) if word != "--host-only"]
    code, found = gpureport(*words).code, _read(tmp_path)
    assert (code in {0, 4}, found["best"]) == (True, {"w": "2"})
    assert found["gpu_seconds"] > 8
    made = gpureport("report", "trial", "-o", "page.json", "-o", "page.html", "-o", "page.pdf")
    assert (made.code, "w=x/round-1" in made.err) == (0, True)
    page = json.loads((tmp_path / "page.json").read_text())
    # the comparison would call these runs too short
    assert page["verdict"]["code"] is None
    assert [row["head"]["text"] for row in page["steps"]["rows"]] == ["w=1", "w=2"]
    rows = page["comparison"]["study"][0]["table"]["rows"]
    assert {row["head"]["text"]: [cell["text"] for cell in row["cells"]][:2] for row in rows} == {
        "w=1": ["", "2"],
        "w=2": ["advised", "2"],
        "w=x": ["not advised", "0"],
        "w=4": ["advised", "0"],
    }
    assert gpureport("compare", "trial").code == code
    assert [run["run"]["step"] for run in analysed(gpureport, "trial")] == ["w=1", "w=1", "w=2", "w=2"]
    (tmp_path / "trial" / "decision.json").write_text("{}")
    assert gpureport("--debug", "analyze", "trial").error == "nothing_measured"

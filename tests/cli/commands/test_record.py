"""`gpureport record` as a person calls it: exit codes, words, and the folder."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.recorder.recorded import read_run_file, run_record

_JOB = "import sys; print('out'); print('err', file=sys.stderr); sys.stdin.read(); sys.exit(3)"


@pytest.mark.usefixtures("stand_in_driver")
def test_job_keeps_its_exit_code_and_its_streams(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "rec"
    done = run_record("-o", folder, "--interval", "0.1", "--", sys.executable, "-c", _JOB, input="")
    assert (done.returncode, done.stdout) == (3, "out\n")
    assert done.stderr.splitlines()[0] == "err"
    assert done.stderr.splitlines()[-1] == f"Read it: gpureport report {folder} -o report.html"
    run = read_run_file(folder)
    assert (run["exit_code"], run["notes"], run["interval"]) == (3, [], 0.1)
    assert run["ended"] > run["started"]
    assert sorted(path.name for path in folder.iterdir()) == ["dmon.log", "gpu.csv", "host.csv", "run.json"]
    assert all(path.read_bytes().endswith(b"\n") for path in folder.iterdir())


def test_links_of_a_foreign_folder_are_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    for name, target in (("run.part", "mine"), ("gpu.csv", "nothing"), ("run.json", "nothing")):
        folder = tmp_path / f"folder of {name}"
        folder.mkdir()
        (folder / name).symlink_to(tmp_path / target)
        done = run_record("--host-only", "-o", folder, "--", "true")
        assert (done.returncode, name in done.stderr) == (2, True)
    assert ((tmp_path / "mine").read_text(), (tmp_path / "nothing").exists()) == ("mine", False)


def test_folder_with_a_recording_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    started = tmp_path / "started"
    done = run_record("--host-only", "-o", tmp_path, "--", "touch", started)
    assert done.returncode == 2
    assert "holds a recording already (run.json)" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not started.exists()


def test_without_nvidia_smi_the_job_is_not_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    started = tmp_path / "started"
    done = run_record("-o", tmp_path / "rec", "--", sys.executable, "-c", f"open({str(started)!r}, 'w')")
    assert done.returncode == 3
    assert "nvidia-smi" in done.stderr
    assert "--host-only" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "rec").exists()
    assert not started.exists()


def test_mistyped_job_leaves_no_folder(tmp_path: Path) -> None:
    done = run_record("--host-only", "-o", tmp_path / "rec", "--", "no-such-program-here")
    assert done.returncode == 2
    assert "no-such-program-here: no such program" in done.stderr
    assert not (tmp_path / "rec").exists()


def test_job_without_dashes_is_refused(tmp_path: Path) -> None:
    done = run_record("--host-only", "-o", tmp_path / "rec", "touch", "-o", tmp_path / "x", cwd=tmp_path)
    assert done.returncode == 2
    assert f"put -- before the command to run: gpureport record -- touch -o {tmp_path}/x" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_record_loads_no_heavy_library(tmp_path: Path) -> None:
    script = """
import json, sys
from gpureport.cli.main import main
try:
    main(["record", "--host-only", "-o", sys.argv[1], "--", "true"])
except SystemExit as end:
    assert not end.code, end.code
print(json.dumps([name for name in ("numpy", "pyarrow", "pandas", "scipy", "matplotlib") if name in sys.modules]))
"""

    done = subprocess.run([sys.executable, "-c", script, tmp_path / "rec"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
    assert sorted(path.name for path in (tmp_path / "rec").iterdir()) == ["host.csv", "run.json"]

"""What lies beside a log is joined by every command alike, and a path is told from a run of the store."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.logs import log
from tests.cli.program import Program

SAMPLE = Path(__file__).parents[2] / "sample_logs" / "no_progress"


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """Return the current folder, in which `job` holds a log and what the training loop wrote."""
    folder = tmp_path / "job"
    folder.mkdir()
    for name in ("nvidia-smi.csv.gz", "training.csv"):
        shutil.copy(SAMPLE / name, folder / name)
    return tmp_path


def kinds(text: str) -> list[str]:
    return [finding["kind"] for finding in json.loads(text)["runs"][0]["findings"]]


def test_a_training_log_beside_the_log_is_joined(job: Path, gpureport: Program) -> None:
    done = gpureport("analyze", "job", "--format", "json")
    assert ("no_progress" in kinds(done.out), done.err) == (True, "")
    assert "no_progress" not in kinds(gpureport("analyze", "job/nvidia-smi.csv.gz", "--format", "json").out)
    gpureport("report", "job", "-o", "report.json")
    assert "no_progress" in (job / "report.json").read_text()
    assert gpureport("check", "job", "--fail-on", "no_progress").code == 1
    assert gpureport("ingest", "job", "--name", "stored").code == 0
    assert "no_progress" in kinds(gpureport("analyze", "stored", "--format", "json").out)
    compared = gpureport("compare", "job", "stored", "--format", "json")
    assert "no_progress" in compared.out


def test_a_training_log_that_is_named_wins(job: Path, gpureport: Program) -> None:
    (job / "other.csv").write_text("timestamp,step,val_loss\n2026-07-01T09:00:33,1,2.0\n2026-07-01T09:00:43,2,1.0\n")
    done = gpureport("analyze", "job", "--training", "other.csv", "--format", "json")
    assert "no_progress" not in kinds(done.out)
    sources = [source["locator"] for source in json.loads(done.out)["runs"][0]["run"]["sources"]]
    assert sources == ["job/nvidia-smi.csv.gz", "other.csv"]


def test_training_logs_are_told_by_content(tmp_path: Path, gpureport: Program) -> None:
    for name, text, used in (
        ("metrics.csv", "epoch,step,train_loss\n0,10,1.0\n0,20,0.9\n", True),
        ("state.json", '{"log_history": [{"loss": 1.0, "step": 10}]}', True),
        ("train.jsonl", '{"step": 10, "loss": 1.0}\n{"step": 20, "loss": 0.9}\n', True),
        ("config.json", '{"lr": 0.1, "epochs": 3}', False),
        ("results.csv", "step,place\n1,2\n", False),
        ("notes.txt", "loss 0.5 at step 3\n", False),
    ):
        folder = tmp_path / name.replace(".", "-")
        folder.mkdir()
        (folder / "gpu.csv").write_text(log(60))
        (folder / name).write_text(text)
        done = gpureport("analyze", folder.name, "--format", "json")
        sources = [Path(source["locator"]).name for source in json.loads(done.out)["runs"][0]["run"]["sources"]]
        assert sources == (["gpu.csv", name] if used else ["gpu.csv"])


def test_a_training_log_that_cannot_be_placed_is_left_out(tmp_path: Path, gpureport: Program) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "gpu.csv").write_text(log(60))
    (folder / "training.csv").write_text("timestamp,step,loss\n1773478800,1,2.0\n1773478830,2,1.0\n")
    done = gpureport("analyze", "job", "--format", "json")
    (run,) = json.loads(done.out)["runs"]
    assert [source["locator"] for source in run["run"]["sources"]] == ["job/gpu.csv"]
    assert len([note for note in run["quality"]["notes"] if "job/training.csv" in note]) == 1
    assert gpureport("analyze", "job", "--training", "job/training.csv").code == 3


def test_a_path_with_the_name_of_a_stored_run(job: Path, gpureport: Program) -> None:
    gpureport("ingest", "job", "--name", "elsewhere")
    assert gpureport("analyze", "job").err == ""
    (job / "elsewhere").mkdir()
    (job / "elsewhere" / "gpu.csv").write_text(log(60))
    done = gpureport("analyze", "elsewhere", "--format", "json")
    assert (done.err.startswith("gpureport: elsewhere: "), done.err.count("\n")) == (True, 1)
    assert "no_progress" not in kinds(done.out)
    run = done.err.split()[-1]
    stored = gpureport("analyze", run, "--format", "json")
    assert ("no_progress" in kinds(stored.out), stored.err) == (True, "")
    assert gpureport("analyze", "./elsewhere").err == ""
    assert gpureport("-q", "analyze", "elsewhere").err == ""

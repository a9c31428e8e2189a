r"""JSON may name half a character (`\ud800`), which no file can hold: what it stands in is read and reported."""

import json
from pathlib import Path

import gpureport
from gpureport.testing import Recording
from tests.importers.other_tools import gpustat_log
from tests.importers.trackers.neptune import folders
from tests.importers.trackers.neptune.schedule import Schedule
from tests.importers.written_logs import log

HALF = r"\ud800"


def reported(source: Path, training: Path | None = None) -> Recording:
    """Return a run that was read, and can be reported."""
    (run,) = gpureport.read(source, training=training or ())
    for form in ("json", "md", "html"):
        gpureport.report(run, format=form).encode()
    return run


def test_in_the_name_of_a_gpu(tmp_path: Path) -> None:
    """Of gpustat's JSON."""
    path = tmp_path / "gpustat.json"
    path.write_text(gpustat_log(30).replace("NVIDIA", HALF))
    assert all(
        (device.model or "").startswith("�") for device in reported(path).run.devices if device.index is not None
    )


def test_in_the_name_of_a_training_metric(tmp_path: Path) -> None:
    """Of a log of JSON lines."""
    (tmp_path / "gpu.csv").write_text(log(30))
    lines = [f'{{"step": {step}, "loss": 2.5, "{HALF} loss": 1}}\n' for step in range(3)]
    (tmp_path / "train.jsonl").write_text("".join(lines))
    run = reported(tmp_path / "gpu.csv", tmp_path / "train.jsonl")
    assert "� loss" in run.training.column("name").to_pylist()


def test_in_a_label(tmp_path: Path) -> None:
    """Of a file of labels beside a log."""
    (tmp_path / "gpu.csv").write_text(log(30))
    (tmp_path / "gpu.csv.json").write_text(f'{{"name": "{HALF}", "params": {{"a{HALF}": 1}}}}')
    run = reported(tmp_path / "gpu.csv").run
    assert (run.name, run.params) == ("�", (("a�", "1"),))


def test_in_a_run_of_neptune(tmp_path: Path) -> None:
    """Of an offline folder."""
    operations = folders.operations(Schedule(utilization=[[90.0] * 20]), name="HALF")
    path = folders.write(tmp_path / ".neptune", operations) / "data-1.log"
    path.write_text(path.read_text().replace(json.dumps("HALF"), f'"{HALF}"'))
    assert reported(tmp_path / ".neptune").run.name == "�"

r"""JSON may name half a character (`\ud800`), which no file can hold: what it stands in is read and reported."""

import json
from pathlib import Path

import gpureport
from gpureport.testing import Run
from tests.importers.trackers.neptune import folders
from tests.importers.trackers.neptune.schedule import Schedule
from tests.support.logs import gpustat_log, log, read

HALF = r"\ud800"


def reported(source: Path, training: Path | None = None) -> Run:
    recording = read(source, training=training or ())
    for form in ("json", "md", "html"):
        gpureport.report(recording, format=form).encode()
    assert training is None or "� loss" in recording.training.column("name").to_pylist()
    return recording.run


def test_half_characters_in_every_json(tmp_path: Path) -> None:
    (tmp_path / "gpustat.json").write_text(gpustat_log(30).replace("NVIDIA", HALF))
    assert all((device.model or "").startswith("�") for device in reported(tmp_path / "gpustat.json").gpus)
    (tmp_path / "gpu.csv").write_text(log(30))
    (tmp_path / "gpu.csv.json").write_text(f'{{"name": "{HALF}", "params": {{"a{HALF}": 1}}}}')
    (tmp_path / "train.jsonl").write_text(
        "".join(f'{{"step": {step}, "loss": 2.5, "{HALF} loss": 1}}\n' for step in range(3))
    )
    run = reported(tmp_path / "gpu.csv", tmp_path / "train.jsonl")
    assert (run.name, run.params) == ("�", (("a�", "1"),))
    operations = folders.operations(Schedule(utilization=[[90.0] * 20]), name="HALF")
    path = folders.write(tmp_path / ".neptune", operations) / "data-1.log"
    path.write_text(path.read_text().replace(json.dumps("HALF"), f'"{HALF}"'))
    assert reported(tmp_path / ".neptune").name == "�"

"""`gpureport report` on several steps: repetitions as files, a file of steps, params and tags."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.logs import log
from tests.cli.program import Program

NAMES = ("old-1", "old-2", "new-1", "new-2")
FILES = tuple(f"{name}.csv" for name in NAMES)


@pytest.fixture
def four(tmp_path: Path) -> Path:
    for place, name in enumerate(NAMES):
        (tmp_path / f"{name}.csv").write_text(log(120 + place))
    return tmp_path


def labels(folder: Path) -> list[tuple[str, str]]:
    """Return the steps of the report written, each with how many runs it has."""
    document: Any = json.loads((folder / "report.json").read_text())
    return [(row["head"]["text"], row["head"]["small"]) for row in document["steps"]["rows"]]


def test_repetitions_given_as_files(gpureport: Program, four: Path) -> None:
    steps = [word for step in ("old", "old", "new", "new") for word in ("--step", step)]
    assert gpureport("report", *FILES, *steps, "-o", "report.json").code == 0
    assert labels(four) == [("old", ""), ("new", "")]
    gpureport("report", *FILES, "--step", "same", "-o", "report.json")
    assert json.loads((four / "report.json").read_text())["steps"] is None
    document = json.loads(gpureport("compare", *FILES, *steps, "--format", "json").out)
    assert [len(step["runs"]) for step in document["steps"]] == [2, 2]
    assert document["remaining"]["step"] == "new"
    assert document["remaining"]["runs"] == 2
    assert {"held_gpu_seconds", "unseen_gpu_seconds", "lost_gpu_seconds", "largest"} < set(document["remaining"])


@pytest.mark.usefixtures("four")
def test_a_label_a_source_when_ingesting(gpureport: Program) -> None:
    assert gpureport("ingest", "old-1.csv", "new-1.csv", "--step", "old", "--step", "new").code == 0
    shown = [json.loads(gpureport("runs", "show", name).out)["run"]["step"] for name in ("old-1", "new-1")]
    assert shown == ["old", "new"]


def test_groups_by_kind_of_gpu(gpureport: Program, four: Path) -> None:
    for name in NAMES[1:3]:
        content = (four / f"{name}.csv").read_text()
        (four / f"{name}-h100.csv").write_text(re.sub(r"NVIDIA [^,]*", "NVIDIA H100 80GB HBM3", content))
    sources = (f"{NAMES[1]}.csv", f"{NAMES[1]}-h100.csv", f"{NAMES[2]}-h100.csv")
    outcome = gpureport(
        *("compare", *sources, "--by", "gpu", "--work", "1000:steps"), *("--gpu-hour-price", "2", "--format", "json")
    )
    groups = json.loads(outcome.out)["groups"]
    assert [(group["label"].partition("=")[0], group["runs"]) for group in groups] == [("gpu", 1), ("gpu", 2)]
    assert groups[1]["label"] == "gpu=NVIDIA H100 80GB HBM3"
    assert all(group["cost_per_1000_work"]["value"] > 0 for group in groups)


def test_groups_by_param(gpureport: Program, four: Path) -> None:
    for name in NAMES:
        gpureport("ingest", f"{name}.csv", "--name", name, "--param", f"framework={name[:3]}", "--work", "1000:steps")
    outcome = gpureport("report", *NAMES, "--by", "param:framework", "-o", "report.json", "-o", "report.html")
    assert outcome.code == 0
    assert labels(four) == [("framework=old", ""), ("framework=new", "")]
    document: Any = json.loads((four / "report.json").read_text())
    assert [chart["form"] for chart in document["comparison"]["charts"]] == ["bars", "bars"]
    assert "<h2>Groups by framework</h2>" in (four / "report.html").read_text()


def test_groups_by_kind_of_gpu_and_param(gpureport: Program, four: Path) -> None:
    for place, name in enumerate(NAMES):
        content = (four / f"{name}.csv").read_text()
        model = "NVIDIA H100 80GB HBM3" if place < 2 else "NVIDIA A10"
        (four / f"{name}-gpu.csv").write_text(re.sub(r"NVIDIA [^,]*", model, content))
        given = ("--name", name, "--param", f"precision={('fp32', 'bf16')[place % 2]}", "--work", "1000:steps")
        gpureport("ingest", f"{name}-gpu.csv", *given)
    outcome = gpureport("report", *NAMES, "--by", "gpu,param:precision", "-o", "report.json")
    assert outcome.code == 0
    part: Any = json.loads((four / "report.json").read_text())["comparison"]
    assert part["grouped"] == "gpu and precision"
    assert [chart["title"].partition(": ")[2] for chart in part["charts"]] == [
        "gpu=NVIDIA H100 80GB HBM3",
        "gpu=NVIDIA A10",
    ]
    rows = [[row["label"] for row in chart["rows"]] for chart in part["charts"]]
    assert rows == [["precision=fp32", "precision=bf16"]] * 2
    tables = [section["table"] for section in part["study"] if "table" in section]
    heads = {row["head"]["text"] for table in tables for row in table["rows"]}
    assert heads == {"gpu=NVIDIA A10 against NVIDIA H100 80GB HBM3", "precision=bf16 against fp32"}

"""Work that is stated once for all runs is not that of a recording without an end."""

import json
from pathlib import Path

import pytest

import gpureport as api
from gpureport.testing import Work
from tests.cli.logs import log, record
from tests.cli.program import Program

ALL = {"amount": 10_000.0, "unit": "images"}
STATED = ("--work", "10000:images")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Lay out a recording and one whose recorder was killed after two thirds of it."""
    record(tmp_path / "runs" / "base", log(300), ended=300_000_000)
    record(tmp_path / "runs" / "cut", log(200), ended=None)
    (tmp_path / "steps.toml").write_text(
        '[[step]]\nlabel = "base"\nruns = ["runs/base"]\n[[step]]\nlabel = "cut"\nruns = ["runs/cut"]\n'
    )
    (tmp_path / "repeated.toml").write_text(
        '[[step]]\nlabel = "one"\nruns = ["runs/base"]\nwork = "9:images"\n'
        '[[step]]\nlabel = "two"\nruns = ["runs/base", "runs/cut"]\nwork = "9:images"\n'
    )
    return tmp_path


def work_of(gpureport: Program, *words: str) -> list[object]:
    return [each["run"]["work"] for each in json.loads(gpureport(*words, "--format", "json").out)["runs"]]


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize("sources", [("runs/base", "runs/cut"), ("runs",)], ids=["two", "folder"])
def test_it_takes_none_of_what_is_said_of_all(gpureport: Program, sources: tuple[str, ...]) -> None:
    assert work_of(gpureport, "analyze", *sources, *STATED) == [ALL, None]


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize(("file", "stated"), [("steps.toml", STATED), ("repeated.toml", ())])
def test_nor_of_what_a_file_of_steps_says(gpureport: Program, file: str, stated: tuple[str, ...]) -> None:
    document = json.loads(gpureport("compare", "--steps", file, *stated, "--format", "json").out)
    found = {run["name"]: run["measures"] for step in document["steps"] for run in step["runs"]}
    assert [found[name]["work_rate_hertz"] is None for name in sorted(found)] == [False, True]


@pytest.mark.usefixtures("runs")
def test_what_is_said_of_it_alone_counts(gpureport: Program) -> None:
    own = work_of(gpureport, "analyze", "runs/base", "runs/cut", *STATED, "--work", "6000:images")
    assert own == [ALL, {"amount": 6_000.0, "unit": "images"}]
    assert work_of(gpureport, "analyze", "runs/cut", *STATED) == [ALL]


@pytest.mark.usefixtures("runs")
def test_a_comparison_gives_no_figure_per_unit_of_work(gpureport: Program) -> None:
    document = json.loads(gpureport("compare", "runs/base", "runs/cut", *STATED, "--format", "json").out)
    (warning,) = document["warnings"]
    figures = [each for each in document["deltas"] if each["metric"] in {"work_rate_hertz", "training_rate_hertz"}]
    assert [(each["after"], each["verdict"]) for each in figures] == [(None, "not enough data")] * 2
    assert [each["reason"].startswith("cut ") for each in figures] == [True, True]
    assert warning in " ".join(gpureport("compare", "runs/base", "runs/cut", *STATED).out.split())


@pytest.mark.usefixtures("runs")
def test_stored_runs_are_told_apart_as_well(gpureport: Program) -> None:
    assert gpureport("ingest", "runs", *STATED).code == 0
    assert work_of(gpureport, "analyze", "base", "cut") == [ALL, None]
    assert work_of(gpureport, "analyze", "base", "cut", "--work", "7:images")[1] is None


def test_a_notebook_reads_a_folder_alike(runs: Path) -> None:
    found = api.read(runs / "runs", labels={"work": "10000:images"})
    works = {one.run.name.rpartition("/")[2]: one.run.work for one in found}
    assert works["cut"] is None
    assert works["base"] == Work(amount=10_000, unit="images")

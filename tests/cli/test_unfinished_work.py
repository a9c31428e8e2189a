"""Work that is stated once for all runs is not that of a recording without an end."""

import json
from pathlib import Path

import pytest

from gpureport import api
from gpureport.testing import Work
from tests.cli.logs import log, write_recording
from tests.cli.program import Program

ALL = Work(amount=10_000, unit="images")
STATED = ("--work", "10000:images")
REMEDY = "its work is not known: give one --work for each source, or leave it out."


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Lay out a recording and one whose recorder was killed after two thirds of it."""
    write_recording(tmp_path / "runs" / "base", log(300), ended=300_000_000)
    write_recording(tmp_path / "runs" / "cut", log(200), ended=None)
    (tmp_path / "steps.toml").write_text(
        '[[step]]\nlabel = "base"\nruns = ["runs/base"]\n[[step]]\nlabel = "cut"\nruns = ["runs/cut"]\n'
    )
    (tmp_path / "repeated.toml").write_text(
        '[[step]]\nlabel = "one"\nruns = ["runs/base"]\nwork = "9:images"\n'
        '[[step]]\nlabel = "two"\nruns = ["runs/base", "runs/cut"]\nwork = "9:images"\n'
    )
    return tmp_path


def work_of(gpureport: Program, *words: str) -> list[object]:
    """Return the work of the runs that a command analyses."""
    return [each["run"]["work"] for each in json.loads(gpureport(*words, "--format", "json").out)["runs"]]


@pytest.mark.parametrize("sources", [("runs/base", "runs/cut"), ("runs",)], ids=["two", "folder"])
def test_it_takes_none_of_what_is_said_of_all(gpureport: Program, runs: Path, sources: tuple[str, ...]) -> None:
    assert runs.is_dir()
    assert work_of(gpureport, "analyze", *sources, *STATED) == [{"amount": 10_000.0, "unit": "images"}, None]


@pytest.mark.parametrize(("file", "stated"), [("steps.toml", STATED), ("repeated.toml", ())])
def test_nor_of_what_a_file_of_steps_says(gpureport: Program, runs: Path, file: str, stated: tuple[str, ...]) -> None:
    assert runs.is_dir()
    document = json.loads(gpureport("compare", "--steps", file, *stated, "--format", "json").out)
    found = {run["name"]: run["measures"] for step in document["steps"] for run in step["runs"]}
    assert [found[name]["work_rate_hertz"] is None for name in sorted(found)] == [False, True]


def test_what_is_said_of_it_alone_counts(gpureport: Program, runs: Path) -> None:
    assert runs.is_dir()
    own = work_of(gpureport, "analyze", "runs/base", "runs/cut", *STATED, "--work", "6000:images")
    assert own == [{"amount": 10_000.0, "unit": "images"}, {"amount": 6_000.0, "unit": "images"}]
    assert work_of(gpureport, "analyze", "runs/cut", *STATED) == [{"amount": 10_000.0, "unit": "images"}]


def test_a_comparison_says_what_to_do(gpureport: Program, runs: Path) -> None:
    assert runs.is_dir()
    document = json.loads(gpureport("compare", "runs/base", "runs/cut", *STATED, "--format", "json").out)
    assert [text.endswith(REMEDY) for text in document["warnings"]] == [True]
    figures = [each for each in document["deltas"] if each["metric"] in {"work_rate_hertz", "training_rate_hertz"}]
    assert [(each["after"], each["verdict"]) for each in figures] == [(None, "not enough data")] * 2
    reason = "cut is unfinished, and what work it did was not stated for it alone."
    assert {each["reason"] for each in figures} == {reason}
    assert REMEDY in " ".join(gpureport("compare", "runs/base", "runs/cut", *STATED).out.split())


def test_stored_runs_are_told_apart_as_well(gpureport: Program, runs: Path) -> None:
    assert runs.is_dir()
    assert gpureport("ingest", "runs", *STATED).code == 0
    assert work_of(gpureport, "analyze", "base", "cut") == [{"amount": 10_000.0, "unit": "images"}, None]
    assert work_of(gpureport, "analyze", "base", "cut", "--work", "7:images")[1] is None


def test_a_notebook_reads_a_folder_alike(runs: Path) -> None:
    found = api.read(runs / "runs", labels={"work": "10000:images"})
    assert {one.run.name.rpartition("/")[2]: one.run.work for one in found} == {"base": ALL, "cut": None}

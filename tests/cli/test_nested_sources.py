"""Recordings in folders that a person names: each counts once, and those of one folder are one step."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli import logs
from tests.cli.program import Program

PLACES = ("base", "base/2", "base/3", "8-workers", "8-workers/2", "8-workers/3")


def record(folder: Path, first: int = 0) -> None:
    rows = logs.table(*(logs.row(second) for second in range(first, first + 60)))
    logs.record(folder, rows, started=1, ended=2, zone="UTC")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Record two steps three times; the first run of each lies in the folder of the step itself."""
    for place, name in enumerate(PLACES):
        record(tmp_path / "runs" / name, place * 60)
    return tmp_path


def steps(gpureport: Program, *arguments: str) -> dict[str, int]:
    done = gpureport("compare", *arguments, "--format", "json")
    assert done.out, done.err
    return {step["label"]: len(step["runs"]) for step in json.loads(done.out)["steps"]}


def test_each_folder_of_recordings_is_a_step(gpureport: Program, runs: Path) -> None:
    assert list(steps(gpureport, "runs/base", "runs/8-workers").items()) == [("base", 3), ("8-workers", 3)]
    assert list(steps(gpureport, "runs/8-workers/", "runs/base").items()) == [("8-workers", 3), ("base", 3)]
    gpureport("report", "runs/base", "runs/8-workers", "-o", "out.json")
    assert "2 steps \N{MULTIPLICATION SIGN} 3 runs" in json.loads((runs / "out.json").read_text())["subtitle"]


def test_a_folder_with_one_recording_stands_beside_one_with_several(gpureport: Program, runs: Path) -> None:
    record(runs / "runs" / "pinned", 400)
    assert steps(gpureport, "runs/base", "runs/pinned") == {"base": 3, "pinned": 1}


@pytest.mark.usefixtures("runs")
def test_a_folder_alone_is_no_step(gpureport: Program) -> None:
    assert list(steps(gpureport, "runs/base").values()) == [1, 1, 1]


def test_folders_of_one_name_are_told_apart(gpureport: Program, runs: Path) -> None:
    for place in (1, 2):
        record(runs / "other" / "base" / str(place), place)
    assert steps(gpureport, "runs/base", "other/base") == {"runs/base": 3, "other/base": 2}
    assert steps(gpureport, "runs/base", "other/base", "--anonymise") == {"step_1": 3, "step_2": 2}


def test_a_label_that_was_given_stays(gpureport: Program, runs: Path) -> None:
    assert steps(gpureport, "runs/base", "runs/8-workers", "--step", "a", "--step", "b") == {"a": 3, "b": 3}
    (runs / "runs" / "base" / "2" / "labels.json").write_text('{"step": "second"}')
    assert steps(gpureport, "runs/base", "runs/8-workers") == {"base": 2, "second": 1, "8-workers": 3}


def test_logs_of_other_recorders_are_no_repetitions(gpureport: Program, runs: Path) -> None:
    for name in PLACES:
        (runs / "runs" / name / "run.json").unlink()
    assert len(steps(gpureport, "runs/base", "runs/8-workers")) == len(PLACES)


@pytest.mark.usefixtures("runs")
def test_a_run_below_a_folder_that_is_named_too_counts_once(gpureport: Program) -> None:
    for named in (("runs/base", "runs/base/2"), ("runs/base/2", "runs/base")):
        assert steps(gpureport, *named, "runs/8-workers") == {"base": 2, "base/2": 1, "8-workers": 3}
    done = gpureport("compare", "runs", "runs/base/2", "--by", "folder")
    assert "2 steps \N{MULTIPLICATION SIGN} 3 runs" in done.out
    assert done.err.splitlines()[0] == "gpureport: runs: counted once, as named: runs/base/2"
    listed = json.loads(gpureport("analyze", "runs/base", "runs/base/2/gpu.csv", "--format", "json").out)["runs"]
    assert len(listed) == PLACES.index("8-workers")


@pytest.mark.usefixtures("runs")
def test_a_folder_of_which_nothing_is_left_is_refused(gpureport: Program) -> None:
    done = gpureport("report", "runs/base/2", "runs/base/2/gpu.csv", "-o", "out.json")
    assert done.code == 3
    assert len(done.err.splitlines()) == 1


def test_a_file_of_steps_counts_each_run_once(gpureport: Program, runs: Path) -> None:
    (runs / "steps.toml").write_text(
        '[[step]]\nlabel = "base"\nruns = ["runs/base", "runs/base/2", "runs/base/2"]\n'
        '[[step]]\nlabel = "third"\nruns = ["runs/base/3"]\n'
    )
    assert steps(gpureport, "--steps", "steps.toml") == {"base": 2, "third": 1}
    notes = gpureport("compare", "--steps", "steps.toml").err.splitlines()
    assert [note.split(": ")[1] for note in notes] == ["runs/base", "runs/base/2/gpu.csv"]


def test_a_folder_that_is_named_twice_counts_once(gpureport: Program, runs: Path) -> None:
    for again in ("runs/base/", str(runs / "runs/base"), "runs/8-workers/../base"):
        named = ("runs/base", again, "runs/8-workers")
        assert steps(gpureport, *named) == {"base": 3, "8-workers": 3}
        assert gpureport("compare", *named).err.splitlines()[0] == f"gpureport: {again}: named twice, counted once"
        assert steps(gpureport, *named, "--anonymise") == {"step_1": 3, "step_2": 3}
        # what is said of each source in their order needs all of them
        assert steps(gpureport, *named, "--step", "a", "--step", "a", "--step", "b") == {"a": 3, "b": 3}
        assert steps(gpureport, *named, "--step", "a", "--step", "b", "--step", "c") == {"a": 3, "b": 3, "c": 3}
        works = [word for place in range(3) for word in ("--work", f"{place + 1}:steps")]
        assert steps(gpureport, *named, *works) == {"base": 3, "8-workers": 3}


def test_a_run_may_be_compared_with_itself(gpureport: Program, runs: Path) -> None:
    record(runs / "runs" / "pinned", 400)
    assert len(json.loads(gpureport("compare", "runs/pinned", "runs/pinned/", "--format", "json").out)["steps"]) == 2
    assert len(steps(gpureport, "runs/pinned", "runs/pinned/", "runs/8-workers/2")) == 2


def test_copies_of_a_log_are_runs_of_their_own(gpureport: Program, runs: Path) -> None:
    shutil.copytree(runs / "runs" / "base" / "2", runs / "runs" / "base" / "copy")
    for options in ([], ["--anonymise"]):
        assert list(steps(gpureport, "runs/base", "runs/8-workers", *options).values()) == [4, 3]
    (runs / "steps.toml").write_text(
        '[[step]]\nlabel = "a"\nruns = ["runs/base/2", "runs/base/copy", "runs/base/2/"]\n'
        '[[step]]\nlabel = "b"\nruns = ["runs/8-workers"]\n'
    )
    for options in ([], ["--anonymise"]):
        assert steps(gpureport, "--steps", "steps.toml", *options) == {"a": 2, "b": 3}

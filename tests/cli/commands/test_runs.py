"""`gpureport runs list`, and the stored runs that other commands select."""

import csv
import io
import json
from pathlib import Path

import pytest

from tests.cli.logs import log
from tests.cli.program import Outcome, Program

RUNS = (("old", "ann", "a"), ("new", "ann", "b"), ("other", "bob", "c"))


@pytest.fixture
def filled(gpureport: Program, tmp_path: Path) -> Program:
    """The program, in a folder with a store of three runs of two users, and a fourth without time stamps."""
    for place, (name, user, step) in enumerate(RUNS):
        text = log(40 + place).replace("2026/03/14", f"2026/03/{14 + place}")
        (tmp_path / f"{name}.csv").write_text(text)
        labels = ("--name", name, "--step", step, "--tag", f"user={user}", "--param", f"batch={8 * 2**place}")
        assert gpureport("ingest", f"{name}.csv", *labels).code == 0
    (tmp_path / "bare.csv").write_text("index, utilization.gpu [%]\n" + "0, 50 %\n" * 40)
    assert gpureport("ingest", "bare.csv", "--interval", "1", "--tag", "user=cid").code == 0
    return gpureport


def names(outcome: Outcome) -> list[str]:
    assert outcome.code == 0, outcome.err
    return [run["name"] for run in json.loads(outcome.out)["runs"]]


def test_runs_are_selected(filled: Program) -> None:
    for arguments, expected in (
        ((), ["bare", "old", "new", "other"]),
        (("--tag", "user=ann"), ["old", "new"]),
        (("--tag", "user=ann", "--where", "param:batch>8"), ["new"]),
        (("--since", "2026-03-15"), ["new", "other"]),
        (("--since", "2026-03-15", "--where", "step!=b"), ["other"]),
        (("--where", "gpus>1"), []),
    ):
        outcome = filled("runs", "list", *arguments, "--format", "json")
        assert names(outcome) == expected
        # a run without time stamps is said to be left out
        assert outcome.err.count("\n") == ("--since" in arguments), outcome.err


def test_formats_say_the_same(filled: Program) -> None:
    entries = json.loads(filled("runs", "list", "--format", "json").out)
    assert entries["schema"] == "gpureport.runs/1"
    rows = list(csv.DictReader(io.StringIO(filled("runs", "list", "--format", "csv").out)))
    lines = filled("runs").out.splitlines()
    assert len(lines) == len(rows) == len(entries["runs"]) == 4
    bare, old = entries["runs"][:2]
    assert (bare["started"], bare["tags"], bare["params"]) == (None, {"user": "cid"}, {})
    assert (old["started"], old["duration_seconds"], old["gpus"]) == ("2026-03-14T09:00:00.000", 39.0, 1)
    assert (rows[0]["started"], rows[0]["param:batch"], rows[0]["tag:user"]) == ("", "", "cid")
    assert (rows[1]["started"], rows[1]["param:batch"], rows[1]["step"]) == ("2026-03-14T09:00:00.000", "8", "a")
    for line, entry, row in zip(lines, entries["runs"], rows, strict=True):
        assert line.startswith(entry["id"])
        assert {name: row[name] for name in ("id", "name")} == {name: entry[name] for name in ("id", "name")}


def test_nothing_selected_is_said(filled: Program) -> None:
    assert filled("runs", "list", "--where", "gpus>1").out.endswith(".gpureport matches.\n")
    missing = filled("runs", "list", "--tag", "usr=ann")
    assert (missing.code, missing.out) == (2, "")
    assert "user" in missing.err
    nothing = filled("analyze", "--where", "gpus>1")
    assert (nothing.code, nothing.out) == (3, "")


def test_commands_take_what_is_selected(filled: Program, tmp_path: Path) -> None:
    analysed = filled("analyze", "--where", "tag:user=ann", "--tag", "seen=yes", "--format", "json")
    assert analysed.err == "gpureport: 2 stored runs selected\n"
    runs = [each["run"] for each in json.loads(analysed.out)["runs"]]
    assert [(run["name"], run["tags"]["seen"]) for run in runs] == [("old", "yes"), ("new", "yes")]
    compared = json.loads(filled("compare", "--since", "2026-03-15", "--format", "json").out)
    assert [step["label"] for step in compared["steps"]] == ["b", "c"]
    assert filled("report", "--where", "param:batch<32", "-o", "page.md").code == 0
    assert "a → b" in (tmp_path / "page.md").read_text()


def test_damaged_runs_are_named(filled: Program, tmp_path: Path) -> None:
    path = next((tmp_path / ".gpureport" / "runs").glob("*/run.json"))
    path.write_text("{")
    for arguments in (("runs",), ("analyze", "--where", "gpus=1")):
        assert f"{path.parent.name}: damaged" in filled(*arguments).err

"""Which runs a store lists: by comparisons, by time, and never anything but what the runs say."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.patience import patience
from tests.store.runs import Known, unsign
from tests.support.program import Program
from tests.support.tables import read_table

START = 1_792_821_600_000_000
"""2026-10-24 06:00 UTC."""
RUN = {
    "id": "0123456789abcdef",
    "name": "resnet base",
    "step": "base",
    "started": START,
    "ended": START + 90 * 60_000_000,
    "timezone": "Europe/Berlin",
    "params": {"batch": "64", "optimizer": "adam"},
    "tags": {"user": "ann", "note": "a=b", "empty": ""},
}


@pytest.fixture
def listed(gpureport: Program, store: Path) -> Callable[..., list[dict[str, Any]] | int]:
    """What lists the runs of the store: as JSON has them, or the exit code of an error of one line."""

    def call(*words: str) -> list[dict[str, Any]] | int:
        done = gpureport("runs", "list", *words, "--format", "json", "--store", str(store))
        if done.code:
            assert done.err.count("\n") == 1
            return done.code
        found: list[dict[str, Any]] = json.loads(done.out)["runs"]
        return found

    return call


def test_comparisons_select_runs(before: Known, store: Path, listed: Callable[..., Any]) -> None:
    path = store / "runs" / before.old_id / "run.json"
    devices = [
        {**device, "model": model, "uuid": uuid, "node": "node_1"}
        for device, model, uuid in zip(
            json.loads(path.read_text())["run"]["devices"],
            ("NVIDIA A100", "NVIDIA L4"),
            ("GPU-1", "GPU-2"),
            strict=True,
        )
    ]
    unsign(path, **RUN, devices=devices)
    for option, count, text in read_table(Path(__file__).with_name("comparisons.tsv")):
        with patience(15):
            found = listed(option, text)
        assert (found == 2) if count == "refused" else (len(found) == int(count)), text
    both = ("--where", "gpus>1", "--where", "gpus<4", "--where", "tag:user=ann")
    assert len(listed(*both)) == 1
    with patience(15):
        assert listed("--where", " " * 50_000) == 2


def test_since_counts_from_an_end_that_is_known(before: Known, store: Path, listed: Callable[..., Any]) -> None:
    path = store / "runs" / before.old_id / "run.json"
    unsign(path, **RUN)
    assert len(listed("--since", "9" * 400 + "h")) == 1
    quality = json.loads(path.read_text())["run"]["quality"] | {"synthetic_time": True}
    unsign(path, quality=quality)
    assert listed("--since", "2026-10-24") == []


def put(store: Path, template: Path, number: int, step: str) -> Path:
    path = store / "runs" / f"{number:016x}" / "run.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name("part")
    shutil.copy(template, part)
    unsign(part, id=f"{number:016x}", name=f"run {number}", step=step, started=number * 10**9)
    part.replace(path)
    return path


def test_a_list_says_what_the_runs_say(before: Known, store: Path, listed: Callable[..., Any]) -> None:
    template, runs = store / "runs" / before.old_id / "run.json", store / "runs"
    for number, step in ((500, "bob"), (9, "ann"), (2, "ann"), (1, "ann")):
        put(store, template, number, step)
    (runs / f"{9:016x}" / "run.json").write_text("{")
    # an index of an earlier version, and what is no run
    for name in ("index.parquet", "runs/notes.txt"):
        (store / name).write_text("x")
    (runs / "empty").mkdir()
    (runs / "odd/run.json").mkdir(parents=True)
    shutil.copytree(runs / f"{1:016x}", runs / ".tmp-run-1")
    # a file of the same size, replaced within a tick
    for step in ("ann", "bob", "cid"):
        put(store, template, 1, step)
        known = [("run 1", step), ("run 2", "ann"), ("run 500", "bob"), ("old", "a")]
        assert [(run["name"], run["step"]) for run in listed()] == known

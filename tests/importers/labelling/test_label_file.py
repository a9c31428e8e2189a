"""A file of labels beside a log is known by its form, and no other JSON is taken for one."""

import json
from pathlib import Path
from typing import Any

import pytest

import gpureport
from tests.importers.written_logs import log

LABELS = {"name": "base", "step": 0, "params": {"lr": 0.10, "amp": True, "seed": None}, "tags": {"user": "ada"}}


def read(folder: Path, files: dict[str, Any], **labels: Any) -> gpureport.Recording:  # noqa: ANN401 - any label
    """Return the run of a log with files beside it."""
    (folder / "gpu.csv").write_text(log())
    for name, content in files.items():
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    (found,) = gpureport.read(folder / "gpu.csv", labels=labels)
    return found


@pytest.mark.parametrize("name", ["labels.json", "gpu.json", "gpu.csv.json"])
def test_labels_of_a_log(tmp_path: Path, name: str) -> None:
    """They are its own or those of its folder; what a person says wins; the id is that of the log."""
    plain = read(tmp_path, {}).run
    run = read(tmp_path, {name: LABELS}, tags={"user": "bob"}, step="1").run
    assert (run.name, run.step) == ("base", "1")
    assert dict(run.params) == {"lr": "0.1", "amp": "true"}
    assert dict(run.tags) == {"user": "bob"}
    assert (run.id, run.quality) == (plain.id, plain.quality)


def test_the_nearer_file_wins(tmp_path: Path) -> None:
    """A folder speaks for its logs, and a log for itself."""
    files = {"labels.json": {"tags": {"user": "ada", "project": "x"}}, "gpu.csv.json": {"tags": {"user": "bob"}}}
    assert dict(read(tmp_path, files).run.tags) == {"user": "bob", "project": "x"}


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[1]",
        {},
        {"name": "x", "value": 1},
        {"schema": "gpureport.record/1", "params": {}, "tags": {}},
        {"epoch": 1.0, "global_step": 5, "log_history": []},
        {"hostname": "a", "query_time": "b", "gpus": []},
        {"sysstat": {"hosts": []}},
        {"params": {"optimizer": {"lr": 1}}},
        {"tags": ["a"]},
    ],
)
def test_other_json_is_no_file_of_labels(tmp_path: Path, content: object) -> None:
    """It is left alone, and noted where its name says that it was meant."""
    run = read(tmp_path, {"gpu.json": content}).run
    assert (run.params, run.tags, run.quality.notes) == ((), (), ())
    run = read(tmp_path, {"labels.json": content}).run
    assert (run.params, run.tags) == ((), ())
    assert [note for note in run.quality.notes if "labels.json is not read as labels" in note]

"""The file store's own files: YAML that is flat, and lines of metrics."""

import errno
import os
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.importers.trackers.mlflow.stores import START, TICKS, Made, folder, monitored, run_id
from tests.importers.trackers.tracked import ids, readable, recording, refused, rejected


def _runs(tmp_path: Path, *numbers: int) -> Path:
    return folder(tmp_path / "mlruns", [Made(id=run_id(n), series=monitored(TICKS)) for n in numbers])


def test_lines_of_every_form(tmp_path: Path) -> None:
    inf, nan = float("inf"), None
    for place, (text, points, torn) in enumerate(
        [
            ("5 1.5 0\n6 2e-3 1\n", [(5, 1.5, 0), (6, 0.002, 1)], 0),
            ("5 1.5 7 data set\n", [(5, 1.5, 7)], 0),
            ("5 1.5 7 data abc\n6 2.5 8\n4 0.5\n", [(5, 1.5, 7), (6, 2.5, 8)], 1),
            ("6 inf 1\n5 nan 0\n7 -inf 2\n", [(5, nan, 0), (6, inf, 1), (7, -inf, 2)], 0),
            ("5 1 1\n5 0 1\n5 2 0\n5 0 1\n", [(5, 2, 0), (5, 0, 1), (5, 0, 1), (5, 1, 1)], 0),
            ("5 1.5 0\n6 2.5 1", [(5, 1.5, 0)], 1),
            ("5 1.5 0\nx y z\n6 2.5 0\n\n", [(5, 1.5, 0), (6, 2.5, 0)], 1),
            ("\0\0\0", [], 1),
            ("5 1.5 0\n17952217", [(5, 1.5, 0)], 1),
        ]
    ):
        source = folder(tmp_path / f"{place}", [Made(id=run_id(1), series=monitored(TICKS) | {"loss": []})])
        next(source.rglob("metrics/loss")).write_text(text)
        found = recording(source)
        rows = found.training.to_pylist()
        read = [(round(row["timestamp"].timestamp() * 1000), row["value"], row["step"]) for row in rows]
        assert (read, sum(rows for _, rows in rejected(found))) == (points, torn), text


@pytest.mark.parametrize("name", ["meta.yaml", "mlflow.runName", "batch_size"])
def test_what_one_may_not_read_is_no_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    made = Made(
        id=run_id(1), name="", series=monitored(TICKS), params={"batch_size": "8"}, tags={"mlflow.runName": "r"}
    )
    source, opening = folder(tmp_path / "mlruns", [made]), os.open

    def open_file(path: Path, flags: int) -> int:
        if path.name == name:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opening(path, flags)

    # the tests may be run by one who may read all
    monkeypatch.setattr("gpureport.regular_files.os.open", open_file)
    error = refused(source)
    assert (error.code, error.where.endswith(name)) == ("cannot_read", True)


def _damaged(source: Path, number: int, content: bytes | None) -> None:
    path = next(source.rglob(f"{run_id(number)}/meta.yaml"))
    path.unlink() if content is None else path.write_bytes(content)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\0", b"name: x\n", None], ids=["empty", "binary", "other", "gone"])
def test_one_damaged_run_keeps_no_other_out(gpureport: Program, tmp_path: Path, content: bytes | None) -> None:
    source = _runs(tmp_path, *range(1, 6))
    _damaged(source, 3, content)
    found, (fault,) = readable(source)
    assert len(found) == 4
    assert f"{run_id(3)}/meta.yaml: " in fault
    listed = gpureport("ingest", "--list", str(source))
    assert (listed.code, f"{run_id(3)}/meta.yaml: " in listed.out + listed.err) == (3, True), listed
    for named in (run_id(3), run_id(3)[:8]):
        error = refused(source, runs=named)
        assert (error.code, error.where.endswith(f"{run_id(3)}/meta.yaml")) == ("damaged_run", True)
    assert ids(source, runs=run_id(1)[:8]) == [run_id(1)]
    assert len(readable(source, latest=1)[0]) == 1
    for number in (1, 2, 4, 5):
        _damaged(source, number, content)
    assert refused(source).code == "damaged_run"


@pytest.mark.parametrize("content", [b"", b"name: x\n", None], ids=["empty", "other", "gone"])
def test_a_damaged_experiment_hides_no_run(tmp_path: Path, content: bytes | None) -> None:
    source = _runs(tmp_path, 1)
    meta = next(source.rglob(run_id(1))).parent / "meta.yaml"
    meta.unlink() if content is None else meta.write_bytes(content)
    assert ids(source) == ids(source, experiment=meta.parent.name if content != b"name: x\n" else "x") == [run_id(1)]


def test_deleted_experiments_lie_in_the_trash(tmp_path: Path) -> None:
    made = [Made(id=run_id(1), series=monitored(TICKS)), Made(id=run_id(2), series=monitored(TICKS), experiment="b")]
    source = folder(tmp_path / "mlruns", made)
    (source / ".trash").mkdir()
    number = next(path for path in source.iterdir() if (path / run_id(1)).is_dir())
    text = (number / "meta.yaml").read_text(encoding="utf-8").replace("active", "deleted")
    (number / "meta.yaml").write_text(text, encoding="utf-8")
    number.rename(source / ".trash" / number.name)
    assert ids(source) == [run_id(2)]
    assert recording(source, runs=run_id(1)).run.name == "run"


def test_a_folder_without_experiments_is_not_a_store(tmp_path: Path) -> None:
    (tmp_path / "0").mkdir()
    assert refused(f"mlflow:{tmp_path}").code in {"no_runs", "no_mlflow_store"}
    source = folder(tmp_path / "mlruns", [Made(id=run_id(1), series=monitored(TICKS), start=START)])
    assert refused(f"mlflow:{next(source.iterdir())}").code in {"no_runs", "no_mlflow_store"}

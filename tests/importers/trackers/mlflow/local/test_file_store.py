"""The file store's own files: YAML that is flat, and lines of metrics."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.errors import SourceError
from gpureport.importers import Selection, split_readable
from gpureport.importers.trackers.mlflow import Mlflow
from gpureport.importers.trackers.mlflow.local import meta_yaml, metric_file
from gpureport.importers.trackers.mlflow.local.experiment_folders import is_file_store
from gpureport.importers.trackers.mlflow.local.file_store import FileStore
from gpureport.importers.trackers.mlflow.run_store import MetricSeries, RunLabels
from tests.importers.trackers.mlflow.stores import START, Made, folder, monitored, run_id
from tests.importers.trackers.mlflow.test_mapping import TICKS, read

_TEXT = st.text(st.sampled_from("ab C1:#'\"\\\n\t\r-?&*!|>%@`,[]{}=~ä€\xa0\u0001\U0001f600"), max_size=120)


@given(st.dictionaries(st.sampled_from(["name", "run_name", "user_id", "tag"]), st.one_of(st.none(), _TEXT)))
def test_what_mlflow_writes_is_read(values: dict[str, str | None]) -> None:
    """Any name of a run or an experiment comes back, quoted, folded or escaped."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    text = yaml.dump(values, default_flow_style=False, allow_unicode=True, encoding="utf-8").decode()
    assert meta_yaml.parse_meta(text) == values or values == {}


def test_more_than_flat_is_no_error() -> None:
    """Lists, numbers and lines that are none stay as they are written."""
    text = "status: 3\ntags: []\nodd\n  more\ninputs:\n- one\nend_time: null\n"
    assert meta_yaml.parse_meta(text) == {"status": "3", "tags": "[]", "inputs": None, "end_time": None}


def _read(path: Path, text: str) -> MetricSeries:
    path.write_bytes(text.encode())
    return metric_file.read_metric(path, "loss", path.parent)


@pytest.mark.parametrize(
    ("text", "points", "torn"),
    [
        ("5 1.5 0\n6 2e-3 1\n", [(5, 1.5, 0), (6, 0.002, 1)], 0),
        ("5 1.5\n6 2\n", [(5, 1.5, 0), (6, 2.0, 0)], 0),
        ("5 1.5 7 data set\n", [(5, 1.5, 7)], 0),
        ("5 1.5 7 data abc\n6 2.5 8\n4 0.5\n", [(4, 0.5, 0), (5, 1.5, 7), (6, 2.5, 8)], 0),
        ("6 inf 1\n5 nan 0\n7 -inf 2\n", [(5, None, 0), (6, np.inf, 1), (7, -np.inf, 2)], 0),
        ("5 1 1\n5 0 1\n5 2 0\n5 0 1\n", [(5, 2, 0), (5, 0, 1), (5, 0, 1), (5, 1, 1)], 0),
        ("5 1.5 0\n6 2.5 1", [(5, 1.5, 0)], 1),
        ("5 1.5 0\nx y z\n6 2.5\n\n", [(5, 1.5, 0), (6, 2.5, 0)], 1),
        ("", [], 0),
        ("\0\0\0", [], 1),
    ],
)
def test_lines_of_every_form(text: str, points: list[tuple[int, float | None, int]], torn: int, tmp_path: Path) -> None:
    """With and without step and dataset, out of order, not a number; cut and strange ones are counted."""
    found = _read(tmp_path / "loss", text)
    values = [None if np.isnan(value) else value for value in found.values.tolist()]
    assert list(zip(found.times.tolist(), values, found.steps.tolist(), strict=True)) == points
    assert found.torn == torn


def test_a_torn_line_is_in_the_account(tmp_path: Path) -> None:
    """A process that was killed leaves half a line."""
    source = folder(tmp_path / "mlruns", [Made(id=run_id(1), series=monitored(TICKS))])
    path = next(source.rglob("gpu_0_utilization_percentage"))
    path.write_text(path.read_text(encoding="utf-8") + "17952217", encoding="utf-8")
    quality = read(source).run.quality
    assert [(each.reason, each.rows) for each in quality.rejected] == [("torn line", 1)]
    assert quality.accounted


def _denied(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let no file of a name be read; the tests may be run by one who may read all."""
    opening = os.open

    def open_file(path: Path, flags: int) -> int:
        if path.name == name:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opening(path, flags)

    monkeypatch.setattr("gpureport.regular_files.os.open", open_file)


def _labelled(store: FileStore) -> RunLabels:
    return store.labels(store.runs()[0])


@pytest.mark.parametrize("name", ["meta.yaml", "mlflow.runName", "batch_size"])
def test_what_one_may_not_read_is_no_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A file without permission is named; it is not as if the run, its name or a parameter were not there."""
    made = Made(id=run_id(1), name="", params={"batch_size": "8"}, tags={"mlflow.runName": "r"})
    store = folder(tmp_path / "mlruns", [made])
    _denied(monkeypatch, name)
    assert is_file_store(store)
    with pytest.raises(SourceError, match=rf"{name}: Permission denied; check its permissions, or copy it"):
        _labelled(FileStore(store, ""))


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\0", b"name: x\n"])
@pytest.mark.parametrize("wanted", [None, run_id(2)])
def test_a_damaged_run_is_named(tmp_path: Path, content: bytes, wanted: str | None) -> None:
    """A run that no longer says its id does not vanish from its store, and hides no other one that is asked for."""
    store = folder(tmp_path / "mlruns", [Made(id=run_id(1)), Made(id=run_id(2))])
    next(store.rglob(f"{run_id(2)}/meta.yaml")).write_bytes(content)
    with pytest.raises(SourceError, match=f"{run_id(2)}/meta.yaml: does not say that it is of run {run_id(2)}"):
        _asked(FileStore(store, ""), wanted)
    assert FileStore(store, "").run(run_id(1)) is not None


def _asked(store: FileStore, wanted: str | None) -> None:
    """Raise what keeps a run from being read: the last of all, or that of an id."""
    if wanted is not None:
        store.run(wanted)
    elif (fault := store.runs()[-1].fault) is not None:
        raise fault


def _damaged(source: Path, number: int, content: bytes | None = b"") -> None:
    """Leave a run in a store with a `meta.yaml` that says nothing, or without one."""
    path = next(source.rglob(f"{run_id(number)}/meta.yaml"))
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)


@pytest.mark.parametrize("content", [b"", b"name: x\n", None], ids=["empty", "of another", "missing"])
def test_one_damaged_run_keeps_no_other_out(tmp_path: Path, content: bytes | None) -> None:
    """Of five runs one is damaged: four are read, and the fifth is named with its reason, also in a listing."""
    source = folder(tmp_path / "mlruns", [Made(id=run_id(n), series=monitored(TICKS)) for n in range(1, 6)])
    _damaged(source, 3, content)
    meant = Mlflow().runs(str(source), Selection()).runs
    kept, (fault,) = split_readable(meant)
    assert sorted(run.key for run in kept) == [run_id(number) for number in (1, 2, 4, 5)]
    assert str(fault).startswith(f"{next(source.rglob(run_id(3)))}/meta.yaml: ")
    (broken,) = [each for each in Mlflow().listed(str(source), Selection()) if each.status == "cannot be read"]
    assert (broken.id, str(broken.fault)) == (run_id(3), str(fault))
    newest = Mlflow().runs(str(source), Selection(latest=1)).runs
    assert [str(run.fault) for run in newest] == ["None", str(fault)]


@pytest.mark.parametrize("content", [b"", b"name: x\n", None], ids=["empty", "of another", "missing"])
def test_one_damaged_experiment_keeps_no_other_out(tmp_path: Path, content: bytes | None) -> None:
    """It is named with its reason in place of its runs, also in a listing; asking for one of them is an error."""
    made = [Made(id=run_id(1), series=monitored(TICKS)), Made(id=run_id(2), series=monitored(TICKS), experiment="b")]
    source = folder(tmp_path / "mlruns", made)
    meta = next(source.rglob(run_id(2))).parent / "meta.yaml"
    meta.unlink() if content is None else meta.write_bytes(content)
    kept, (fault,) = split_readable(Mlflow().runs(str(source), Selection()).runs)
    assert [run.key for run in kept] == [run_id(1)]
    assert str(fault).startswith(
        f"{meta}: does not say that it is of experiment {meta.parent.name}, which seems to hold 1 run;"
    )
    assert [each.id for each in Mlflow().listed(str(source), Selection())] == [run_id(1), meta.parent.name]
    with pytest.raises(SourceError, match="which seems to hold 1 run"):
        Mlflow().runs(str(source), Selection(runs=(run_id(2),)))


def test_a_store_whose_only_experiment_is_damaged_is_still_one(tmp_path: Path) -> None:
    """Its runs tell that it is a store, and what is wrong with it is said."""
    source = folder(tmp_path / "mlruns", [Made(id=run_id(1), series=monitored(TICKS))])
    (next(source.rglob(run_id(1))).parent / "meta.yaml").unlink()
    assert is_file_store(source)
    with pytest.raises(SourceError, match="which seems to hold 1 run"):
        split_readable(Mlflow().runs(str(source), Selection()).runs)


@pytest.mark.parametrize("name", [run_id(2), run_id(2)[:8]], ids=["id", "beginning of the id"])
def test_a_damaged_run_that_is_asked_for_is_an_error(tmp_path: Path, name: str) -> None:
    """Named by itself there is nothing else to read; another one that is named says nothing of it."""
    source = folder(tmp_path / "mlruns", [Made(id=run_id(n), series=monitored(TICKS)) for n in (1, 2)])
    _damaged(source, 2)
    with pytest.raises(SourceError, match=f"{run_id(2)}/meta.yaml: does not say"):
        Mlflow().runs(str(source), Selection(runs=(name,)))
    (other,) = Mlflow().runs(str(source), Selection(runs=(run_id(1)[:8],))).runs
    assert other.fault is None


def test_where_no_run_is_left_the_first_reason_is_the_error(tmp_path: Path) -> None:
    """A store of damaged runs alone is not one without runs."""
    source = folder(tmp_path / "mlruns", [Made(id=run_id(n), series=monitored(TICKS)) for n in (1, 2)])
    _damaged(source, 1)
    _damaged(source, 2)
    with pytest.raises(SourceError, match=f"{run_id(1)}/meta.yaml: does not say"):
        split_readable(Mlflow().runs(str(source), Selection()).runs)


def test_deleted_experiments_lie_in_the_trash(tmp_path: Path) -> None:
    """Their runs count as deleted, and are read by id."""
    source = folder(
        tmp_path / "mlruns", [Made(id=run_id(1), series=monitored(TICKS)), Made(id=run_id(2), experiment="b")]
    )
    (source / ".trash").mkdir()
    number = next(path for path in source.iterdir() if (path / run_id(1)).is_dir())
    text = (number / "meta.yaml").read_text(encoding="utf-8").replace("active", "deleted")
    (number / "meta.yaml").write_text(text, encoding="utf-8")
    number.rename(source / ".trash" / number.name)
    assert [run.deleted for run in FileStore(source, "").runs()] == [True, False]
    assert read(source, runs=(run_id(1),)).run.name == "run"


def test_a_folder_without_experiments_is_no_store(tmp_path: Path) -> None:
    """Folders named by a number alone are none, nor is a run's own folder."""
    (tmp_path / "0").mkdir()
    assert not is_file_store(tmp_path)
    source = folder(tmp_path / "mlruns", [Made(id=run_id(1), series=monitored(TICKS), start=START)])
    assert is_file_store(source)
    assert not is_file_store(next(source.iterdir()))

"""The file store's own files: YAML that is flat, and lines of metrics."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.importers.mlflow import meta_yaml, metric_file
from gpureport.importers.mlflow.entities import Series
from gpureport.importers.mlflow.file_store import FileStore, is_store
from tests.importers.mlflow.stores import START, Made, folder, monitored, run_id
from tests.importers.mlflow.test_mapping import TICKS, read

_TEXT = st.text(st.sampled_from("ab C1:#'\"\\\n\t\r-?&*!|>%@`,[]{}=~ä€\xa0\u0001\U0001f600"), max_size=120)


@given(st.dictionaries(st.sampled_from(["name", "run_name", "user_id", "tag"]), st.one_of(st.none(), _TEXT)))
def test_what_mlflow_writes_is_read(values: dict[str, str | None]) -> None:
    """Any name of a run or an experiment comes back, quoted, folded or escaped."""
    yaml = pytest.importorskip("yaml")
    text = yaml.dump(values, default_flow_style=False, allow_unicode=True, encoding="utf-8").decode()
    assert meta_yaml.parsed(text) == values or values == {}


def test_more_than_flat_is_no_error() -> None:
    """Lists, numbers and lines that are none stay as they are written."""
    text = "status: 3\ntags: []\nodd\n  more\ninputs:\n- one\nend_time: null\n"
    assert meta_yaml.parsed(text) == {"status": "3", "tags": "[]", "inputs": None, "end_time": None}


def _read(path: Path, text: str) -> Series:
    path.write_bytes(text.encode())
    return metric_file.read(path, "loss")


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
    assert not is_store(tmp_path)
    source = folder(tmp_path / "mlruns", [Made(id=run_id(1), series=monitored(TICKS), start=START)])
    assert is_store(source)
    assert not is_store(next(source.iterdir()))

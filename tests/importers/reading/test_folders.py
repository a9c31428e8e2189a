"""Which logs and stores a folder holds: what a tracker keeps is none of the logs of a folder."""

from pathlib import Path

import pytest

from gpureport.errors import SourceError
from gpureport.importers import find_runs, find_store
from tests.importers.trackers.mlflow.stores import Made, database, folder, monitored, run_id
from tests.importers.written_logs import log

RUN = Made(id=run_id(1), name="baseline", series=monitored([10_000, 20_000, 30_000]))


def attach(root: Path) -> Path:
    """Put a log among the artifacts of the run of an experiment; return it."""
    path = root / RUN.id / "artifacts/gpureport/nvidia-smi.csv"
    path.parent.mkdir(parents=True)
    path.write_text(log())
    return path


def refused(path: Path) -> str:
    """Return the message a folder is refused with."""
    with pytest.raises(SourceError) as caught:
        find_runs(path)
    return str(caught.value).replace(str(path.parent), "")


def test_a_folder_with_a_store_names_it(tmp_path: Path) -> None:
    """What its runs keep as artifacts is no run of the folder."""
    place = tmp_path / "copy"
    store = folder(place / "mlruns", [RUN])
    attach(next(store.iterdir()))
    assert refused(place) == "/copy: the folder holds a store of MLflow and no log; give /copy/mlruns"
    found = find_store(place)
    assert found is not None
    assert (found.title, found.path) == ("MLflow", store)
    database(tmp_path / "mlflow.db", [RUN])
    assert refused(tmp_path).endswith(f"the folder holds a store of MLflow and no log; give /{tmp_path.name}/mlflow.db")


def test_the_artifacts_of_a_database_are_no_logs(tmp_path: Path) -> None:
    """Unless the folder of one run, or its file, is named."""
    kept = attach(tmp_path / "mlruns/1")
    assert refused(tmp_path / "mlruns") == (
        "/mlruns: MLflow keeps the artifacts of its runs in it; give the database or the server of these runs, "
        "mlflow:STORE"
    )
    assert "no log of a known kind" in refused(tmp_path / "mlruns/1")
    for named in (kept, kept.parent, kept.parents[1]):
        assert [[each.path for each in run] for run in find_runs(named)] == [[kept]]


def test_logs_beside_a_store_are_read(tmp_path: Path) -> None:
    """Without those among its artifacts."""
    attach(next(folder(tmp_path / "mlruns", [RUN]).iterdir()))
    (tmp_path / "gpu.csv").write_text(log())
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/gpu.csv").write_text(log())
    found = sorted(each.path.relative_to(tmp_path).as_posix() for run in find_runs(tmp_path) for each in run)
    assert found == ["gpu.csv", "logs/gpu.csv"]

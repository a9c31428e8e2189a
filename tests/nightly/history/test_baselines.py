"""Named baselines in the store."""

import shutil
from pathlib import Path

import pytest

from gpureport.errors import SettingsError, StoreError
from gpureport.importers import IMPORTER_VERSION
from gpureport.nightly.history import baselines
from gpureport.store import Entry, Store
from tests.importers.written_logs import log
from tests.store.runs import reading


def stored(folder: Path, rows: int) -> tuple[Store, Entry]:
    """Return a store and a run of so many rows in it."""
    path = folder / f"{rows}.csv"
    path.write_text(log(rows))
    store = Store(folder / ".gpureport")
    return store, store.write(reading(path), IMPORTER_VERSION)


def test_a_baseline_outlives_its_run(tmp_path: Path) -> None:
    """A copy is read after the run was removed, with its series."""
    store, entry = stored(tmp_path, 100)
    held = store.read(entry)
    baselines.set_baseline(store, "main", [entry])
    store.remove(entry)
    (found,) = baselines.read_baseline(store, "main")
    assert found.run == entry.run
    assert found.series.equals(held.series)


def test_a_baseline_lives_without_the_store(tmp_path: Path) -> None:
    """The folder `baselines` alone, as checked out of git, is enough."""
    store, entry = stored(tmp_path, 100)
    baselines.set_baseline(store, "main", [entry])
    elsewhere = tmp_path / "elsewhere" / ".gpureport"
    shutil.copytree(store.folder / "baselines", elsewhere / "baselines")
    assert [one.run.id for one in baselines.read_baseline(Store(elsewhere), "main")] == [entry.run.id]


def test_a_baseline_is_replaced_whole(tmp_path: Path) -> None:
    """Of the former runs none is left, and of what was written nothing half."""
    store, first = stored(tmp_path, 100)
    _, second = stored(tmp_path, 200)
    baselines.set_baseline(store, "main", [first])
    baselines.set_baseline(store, "main", [second, first])
    baselines.set_baseline(store, "main", [second])
    assert [(each.name, [run.id for run in each.runs]) for each in baselines.list_baselines(store)] == [
        ("main", [second.run.id])
    ]
    assert [path.name for path in (store.folder / "baselines").iterdir()] == ["main"]


def test_a_damaged_run_is_no_baseline(tmp_path: Path) -> None:
    """A run whose series are damaged is not promoted, and the former baseline stays."""
    store, entry = stored(tmp_path, 100)
    baselines.set_baseline(store, "main", [entry])
    series = entry.folder / "hardware.parquet"
    series.write_bytes(series.read_bytes()[:-8])
    with pytest.raises(StoreError, match="series are damaged or missing"):
        baselines.set_baseline(store, "main", [entry])
    assert len(baselines.read_baseline(store, "main")) == 1


def test_a_damaged_baseline_says_so(tmp_path: Path) -> None:
    """A baseline without its files is an error, not an empty one."""
    store, entry = stored(tmp_path, 100)
    baselines.set_baseline(store, "main", [entry])
    shutil.rmtree(store.folder / "baselines" / "main" / "runs")
    with pytest.raises(StoreError, match=r"damaged: .*main/runs is missing; did git ignore it"):
        baselines.read_baseline(store, "main")
    assert baselines.list_baselines(store) == (baselines.Baseline(name="main", runs=()),)


def test_a_name_that_is_none_names_what_was_meant(tmp_path: Path) -> None:
    """A mistyped name is completed."""
    store, entry = stored(tmp_path, 100)
    baselines.set_baseline(store, "main", [entry])
    with pytest.raises(StoreError, match=r"no such baseline; did you mean 'main'"):
        baselines.read_baseline(store, "mian")


@pytest.mark.parametrize("name", ["", "..", "../out", "a/b", ".hidden", "a b", "x" * 65])
def test_a_name_stays_in_the_folder(tmp_path: Path, name: str) -> None:
    """A name is never a path."""
    store, entry = stored(tmp_path, 20)
    with pytest.raises(SettingsError, match="no name of a baseline"):
        baselines.set_baseline(store, name, [entry])


def test_a_baseline_is_removed(tmp_path: Path) -> None:
    """It is gone, the run stays."""
    store, entry = stored(tmp_path, 100)
    baselines.set_baseline(store, "main", [entry])
    baselines.remove_baseline(store, "main")
    assert baselines.list_baselines(store) == ()
    assert [each.run.id for each in store.entries()] == [entry.run.id]

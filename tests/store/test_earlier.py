"""Stores written by earlier versions are read, labelled and listed beside new ones.

Each folder of `earlier/` is a store as one version wrote it, of the same log, host log and, in the last, training log:
`without_checksums` before `run.json` had any; `one_writer` with them, its Parquet file holding every metric;
`joined_row_groups` with row groups that were encoded one by one, and pages for absent columns made by hand.
"""

import shutil
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pytest

from gpureport.store import Entry, Store
from tests.store.runs import noisy, reading

EARLIER = Path(__file__).with_name("earlier")
STORES = sorted(folder.name for folder in EARLIER.iterdir())
COLUMNS = (
    *("device", "timestamp", "imputed", "gpu_utilization_ratio", "gpu_memory_used_bytes", "gpu_power_watts"),
    *("cpu_utilization_ratio", "extra_new_field"),
)
SECONDS = range(12)


def copied(name: str, folder: Path) -> Entry:
    """Copy a store of an earlier version, since one that is tested may be written to; return its run."""
    shutil.copytree(EARLIER / name, folder)
    (entry,) = Store(folder).entries()
    return entry


def percents(entry: Entry, store: Store, device: str, column: str) -> list[int | None]:
    """Return a share in percent at each second."""
    cells = store.read(entry).rows_of(device).column(column).to_pylist()
    return [None if cell is None else round(100 * cell) for cell in cells]


@pytest.mark.parametrize("name", STORES)
def test_a_store_of_an_earlier_version_is_read(tmp_path: Path, name: str) -> None:
    """Every value, gap, device and label is what was logged."""
    entry, store = copied(name, tmp_path / "store"), Store(tmp_path / "store")
    recording = store.read(entry)
    assert (recording.run.name, recording.run.step, recording.run.tags) == ("run", "a", (("by", "hand"),))
    assert [device.id for device in recording.run.devices] == ["gpu:0", "gpu:1", "host"]
    assert recording.series.column_names == [*COLUMNS]
    assert percents(entry, store, "gpu:1", "gpu_utilization_ratio") == [second * 7 + 3 for second in SECONDS]
    assert percents(entry, store, "host", "cpu_utilization_ratio") == [*SECONDS]
    power = recording.rows_of("gpu:0").column("gpu_power_watts").to_pylist()
    assert power == [None if second == 5 else 200.5 + second for second in SECONDS]
    assert recording.rows_of("gpu:1").column("gpu_memory_used_bytes").to_pylist() == [1025 * 2**20] * 12
    assert recording.rows_of("gpu:0").column("extra_new_field").to_pylist() == ["even", "odd"] * 6
    assert len(recording.training) == (12 if name == "joined_row_groups" else 0)


@pytest.mark.parametrize("name", STORES)
def test_it_takes_labels_and_new_runs(tmp_path: Path, name: str) -> None:
    """A label changes in place, another run is stored beside, and both are read."""
    entry, store = copied(name, tmp_path / "store"), Store(tmp_path / "store")
    store.relabel(entry, entry.run)
    (tmp_path / "new.csv").write_text(noisy(0, 30))
    store.write(reading(tmp_path / "new.csv"), "new")
    assert [len(store.read(each).series) for each in store.entries()] == [36, 60]


def test_other_tools_read_all_versions_together(tmp_path: Path) -> None:
    """Runs of every version, whose files hold different columns, are one table by the names of their columns."""
    store = Store(tmp_path / "store")
    (tmp_path / "new.csv").write_text(noisy(0, 30))
    store.write(reading(tmp_path / "new.csv"), "new")
    files = [*EARLIER.glob("*/runs/*/hardware.parquet"), *store.folder.glob("runs/*/hardware.parquet")]
    expected = [(24 * 3, 36 * 3 + 60)]
    logged = "count(gpu_utilization_ratio) - 60, count(*)"
    query = f"select {logged} from read_parquet({[str(each) for each in files]}, union_by_name = true)"  # noqa: S608 - a test
    assert duckdb.connect().execute(query).fetchall() == expected
    polars = pl.concat(map(pl.read_parquet, files), how="diagonal")
    pandas = pd.concat(map(pd.read_parquet, files))
    for used, rows in (
        (polars["gpu_utilization_ratio"].count(), len(polars)),
        (pandas["gpu_utilization_ratio"].count(), len(pandas)),
    ):
        assert [(used - 60, rows)] == expected

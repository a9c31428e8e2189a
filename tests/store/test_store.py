"""Runs on disk: the same out as in, whole or not at all."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pytest
from pyarrow import parquet

from gpureport.errors import SourceError, StoreError
from gpureport.importers import IMPORTER_VERSION, Labels, Reading, ReadOptions, find_runs
from gpureport.store import Entry, Store, run_json
from gpureport.store.stored_names import list_stored_names
from gpureport.testing import Work
from tests.importers.written_logs import HEADER, log, row
from tests.local_place import local
from tests.store.runs import leftovers

HOST = "timestamp,cpu_percent\n" + "".join(f"2026-03-14T09:00:{second:02d}.500,{second}\n" for second in range(20))
LABELS = Labels(step="b", params=(("batch", "64"),), tags=(("team", "x"),), work=Work(amount=10, unit="steps"))


def reading(folder: Path, content: str = "", labels: Labels | None = None) -> Reading:
    """Return a log of this content with a host CSV beside it, being read."""
    folder.mkdir(exist_ok=True)
    (folder / "gpu.csv").write_text(content or log(20, gpus=3))
    (folder / "host.csv").write_text(HOST)
    (inputs,) = find_runs(folder / "gpu.csv", [folder / "host.csv"])
    return Reading(inputs, ReadOptions(), labels or Labels())


def stored(store: Store, folder: Path, content: str = "") -> Entry:
    """Put such a run into the store."""
    return store.write(reading(folder, content), IMPORTER_VERSION)


def test_what_went_in_comes_out(tmp_path: Path) -> None:
    """A run read from the store equals the run read from its log."""
    store = Store(tmp_path / "store")
    entry = store.write(reading(tmp_path / "a", labels=LABELS), IMPORTER_VERSION)
    direct = reading(tmp_path / "a", labels=LABELS).recording()
    back = store.read(entry)
    assert back.run == direct.run
    assert back.series.equals(direct.series)


def test_row_groups_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run written in many row groups, in small pieces, is the same; no device that fills one shares it."""
    monkeypatch.setattr("gpureport.importers.decoding.pieces.pieces.__defaults__", (500,))
    monkeypatch.setattr("gpureport.store.series_file.ROW_GROUP", 7)
    monkeypatch.setattr("gpureport.store.series_file.SHARED_ROWS", 7)
    store = Store(tmp_path / "store")
    entry = stored(store, tmp_path / "a", log(50, gpus=3))
    file = parquet.ParquetFile(local(entry.folder) / "hardware.parquet")
    for index in range(file.num_row_groups):
        assert len(set(file.read_row_group(index).column("device").to_pylist())) == 1
    assert file.num_row_groups > 10
    (direct,) = [reading(tmp_path / "a", log(50, gpus=3)).recording()]
    assert store.read(entry).series.equals(direct.series)


def test_a_column_named_late_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown column that a header in the middle of a long log names is in the file, null before."""
    monkeypatch.setattr("gpureport.importers.decoding.pieces.pieces.__defaults__", (500,))
    monkeypatch.setattr("gpureport.store.series_file.ROW_GROUP", 7)
    text = log(40) + "\n".join([f"{HEADER}, new.field", *(f"{row(second)}, odd" for second in range(40, 60)), ""])
    store = Store(tmp_path / "store")
    entry = stored(store, tmp_path / "a", text)
    series = store.read(entry).series
    assert series.column("extra_new_field").to_pylist()[:60] == [None] * 40 + ["odd"] * 20
    assert series.equals(reading(tmp_path / "a", text).recording().series)
    assert {path.name for path in entry.folder.iterdir()} == {"hardware.parquet", "run.json"}


def test_other_tools_read_it(tmp_path: Path) -> None:
    """DuckDB, polars and pandas read a whole fleet of runs, whatever columns each has."""
    store = Store(tmp_path / "store")
    stored(store, tmp_path / "a")
    stored(store, tmp_path / "b", "timestamp, temperature.gpu\n2026/03/14 09:00:05.000, 40\n")
    pattern = tmp_path / "store" / "runs" / "*" / "hardware.parquet"
    used, hot = "gpu_utilization_ratio", "gpu_temperature_celsius"
    union = f"read_parquet('{pattern}', union_by_name = true)"
    query = f"select run_id, count({used}), max({hot}) from {union} group by 1"  # noqa: S608 - a path of this test
    rows = duckdb.connect().execute(query).fetchall()
    assert sorted((count, most) for _, count, most in rows) == [(0, 40.0), (60, None)]
    files = sorted((tmp_path / "store" / "runs").glob("*/hardware.parquet"))
    polars = pl.concat(map(pl.scan_parquet, files), how="diagonal").group_by("run_id")
    counted = polars.agg(pl.col(used).count(), pl.col(hot).max()).collect()
    assert sorted(counted.select(used, hot).rows()) == [(0, 40.0), (60, None)]
    pandas = pd.concat(map(pd.read_parquet, files)).groupby("run_id", observed=True)
    assert sorted(pandas[used].count()) == [0, 60]
    assert pandas[hot].max().dropna().tolist() == [40.0]


def test_a_file_holds_what_was_recorded(tmp_path: Path) -> None:
    """Besides the id of the run there are the columns that a source has, and no others."""
    entry = stored(Store(tmp_path / "store"), tmp_path / "a")
    names = parquet.read_schema(local(entry.folder) / "hardware.parquet").names
    assert names == ["run_id", *entry.stored.columns]
    assert names[1:4] == ["device", "timestamp", "imputed"]
    assert {*names[4:]} == {
        *("gpu_utilization_ratio", "gpu_memory_used_bytes", "gpu_power_watts", "cpu_utilization_ratio")
    }


def test_the_same_bytes_are_the_same_run(tmp_path: Path) -> None:
    """Identity is content and placement, not the path; other placement is another run."""
    first = reading(tmp_path / "a").run_id
    assert reading(tmp_path / "b").run_id == first
    (inputs,) = find_runs(tmp_path / "a" / "gpu.csv", [tmp_path / "a" / "host.csv"])
    assert Reading(inputs, ReadOptions(tz="UTC"), Labels()).run_id != first


def test_a_run_is_looked_for_by_size_first(tmp_path: Path) -> None:
    """Only a run whose sources have the same sizes may be the same; one stored without sizes may be any."""
    store = Store(tmp_path / "store")
    assert not store.may_hold([1])
    entry = stored(store, tmp_path / "a")
    sizes = reading(tmp_path / "a").sizes
    assert (store.may_hold(sizes), store.may_hold(sizes[::-1]), store.may_hold(sizes[:1])) == (True, True, False)
    old = replace(entry.run, sources=tuple(replace(each, bytes=None) for each in entry.run.sources))
    (local(entry.folder) / "run.json").write_text(run_json.dump_run(replace(entry.stored, run=old)))
    assert store.may_hold(sizes[:1])


def test_a_failed_read_leaves_nothing(tmp_path: Path) -> None:
    """A log that turns out useless leaves no folder behind, and the run stored before is untouched."""
    store = Store(tmp_path / "store")
    with pytest.raises(SourceError):
        stored(store, tmp_path / "a", "timestamp, uuid\n2026/03/14 09:00:00.000, x\n")
    assert list((tmp_path / "store" / "runs").iterdir()) == []


def test_a_kill_in_the_middle_leaves_no_run(tmp_path: Path) -> None:
    """A writer that is killed while writing leaves nothing a reader takes for a run."""
    (tmp_path / "gpu.csv").write_text(log(3))
    script = (
        "import os, time\nfrom pathlib import Path\n"
        "from gpureport.importers import *\nfrom gpureport.store import Store\n"
        "(inputs,) = find_runs(Path('gpu.csv'))\nreading = Reading(inputs, ReadOptions(), Labels())\n"
        "read = reading.batches\n"
        "def slow():\n    yield from read()\n    print('half', flush=True)\n    time.sleep(60)\n"
        "reading.batches = slow\nStore(Path('store')).write(reading, '1')\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"half\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert Store(tmp_path / "store").entries() == []


def test_readers_never_see_half_a_run(tmp_path: Path) -> None:
    """While two writers replace a run again and again, readers always find it whole, and nothing is left behind."""
    store = Store(tmp_path / "store")
    entry = stored(store, tmp_path / "a")
    script = (
        "import sys\nfrom pathlib import Path\nfrom gpureport.importers import *\nfrom gpureport.store import Store\n"
        "(inputs,) = find_runs(Path('a/gpu.csv'), [Path('a/host.csv')])\n"
        "for _ in range(25):\n    Store(Path('store')).write(Reading(inputs, ReadOptions(), Labels()), '1')\n"
    )
    expected = store.read(entry)
    writers = [subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path) for _ in range(2)]
    reads = 0
    while any(writer.poll() is None for writer in writers):
        (found,) = store.entries()
        assert store.read(found).series.equals(expected.series)
        reads += 1
        time.sleep(0.002)
    assert [writer.returncode for writer in writers] == [0, 0]
    assert reads > 10
    assert [path.name for path in (tmp_path / "store" / "runs").iterdir()] == [entry.run.id]


def test_old_leftovers_are_swept(tmp_path: Path) -> None:
    """What a killed writer left a day ago goes with the next write; what another writer or a person has stays."""
    store = Store(tmp_path / "store")
    stored(store, tmp_path / "a")
    runs = tmp_path / "store" / "runs"
    for name in ("run-1-0123abcd", "0123456789abcdef-old", "new-1-0123abcd", "mine"):
        (runs / f".tmp-{name}").mkdir()
        if not name.startswith("new"):
            os.utime(runs / f".tmp-{name}", (1, 1))
    stored(store, tmp_path / "b", log(30))
    assert sorted(path.name for path in runs.glob(".tmp-*")) == [".tmp-mine", ".tmp-new-1-0123abcd"]


def test_a_run_that_is_a_link_leaves_nothing(tmp_path: Path) -> None:
    """Where the folder of a run is a link, the run replaces it; what it led to stays, and so does nothing else."""
    store = Store(tmp_path / "store")
    folder = local(stored(store, tmp_path / "a").folder)
    elsewhere = folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(elsewhere)
    (folder.parent / ".tmp-run-1-0123abcd").symlink_to(elsewhere)
    os.utime(folder.parent / ".tmp-run-1-0123abcd", (1, 1), follow_symlinks=False)
    stored(store, tmp_path / "a")
    assert leftovers(store) == []
    assert folder.is_dir()
    assert (elsewhere / "run.json").is_file()


def test_a_run_that_is_a_link_is_removed(tmp_path: Path) -> None:
    """The link goes; what it leads to stays."""
    store = Store(tmp_path / "store")
    entry = stored(store, tmp_path / "a")
    elsewhere = local(entry.folder).rename(tmp_path / "elsewhere")
    local(entry.folder).symlink_to(elsewhere)
    store.remove(entry)
    assert (leftovers(store), store.entries()) == ([], [])
    assert (elsewhere / "run.json").is_file()


def test_an_export_sweeps_its_own_leftovers(tmp_path: Path) -> None:
    """What a killed export left a day ago goes with the next one of that name, and nothing else."""
    store = Store(tmp_path / "store")
    entry = stored(store, tmp_path / "a")
    for name in ("out.parquet", "other.parquet"):
        (tmp_path / f".tmp-{name}-1-0123abcd").write_text("half")
        os.utime(tmp_path / f".tmp-{name}-1-0123abcd", (1, 1))
    store.export(entry, tmp_path / "out.parquet")
    assert [path.name for path in tmp_path.glob(".tmp-*")] == [".tmp-other.parquet-1-0123abcd"]


def test_a_damaged_run_does_not_hide_the_others(tmp_path: Path) -> None:
    """A run.json that cannot be read is named, and the rest is listed."""
    store = Store(tmp_path / "store")
    broken, whole = stored(store, tmp_path / "a"), stored(store, tmp_path / "b", log(30))
    (local(broken.folder) / "run.json").write_text("{")
    assert [entry.run.id for entry in store.entries()] == [whole.run.id]
    assert store.damaged() == [broken.folder]


@pytest.mark.parametrize("name", ["hardware.parquet", "training.parquet"])
def test_series_beyond_the_limit_are_not_read(tmp_path: Path, name: str) -> None:
    """A file of 20 GB, most of which is a hole, is refused by its size, and named; reading it again is no help."""
    store = Store(tmp_path / "store")
    entry = stored(store, tmp_path / "a")
    entry = replace(entry, stored=replace(entry.stored, training_sha256="0" * 64))
    (local(entry.folder) / name).touch()
    os.truncate(local(entry.folder) / name, 20 * 2**30)
    reads = (store.read, store.open_series) if name == "hardware.parquet" else (store.read,)
    for read in reads:
        with pytest.raises(StoreError, match="too large: 21,474,836,480 bytes, at most 4,294,967,296 are") as refused:
            read(entry)
        assert refused.value.where.endswith(f"/{name}")
        assert refused.value.hint == "give a part of it with --from and --to, or a log a node"
    assert not store.intact(entry)


def test_series_beyond_the_limit_are_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They could not be read again; no permission and no other store would help."""
    monkeypatch.setattr("gpureport.store.series_reader.MOST_SERIES_BYTES", 1000)
    with pytest.raises(StoreError, match=r"store: hardware\.parquet: too large: [\d,]+ bytes, .*; give a part of it"):
        stored(Store(tmp_path / "store"), tmp_path / "a")


def test_labels_change_in_place(tmp_path: Path) -> None:
    """Name and step change without reading again."""
    store = Store(tmp_path / "store")
    entry = stored(store, tmp_path / "a")
    store.relabel(entry, replace(entry.run, name="big", step="baseline"))
    assert (store.named("big").run.step, store.named(entry.run.id[:6]).run.name) == ("baseline", "big")


def test_a_mistyped_run_is_guessed(tmp_path: Path) -> None:
    """A name close to one in the store is suggested."""
    store = Store(tmp_path / "store")
    entry = stored(store, tmp_path / "a")
    store.relabel(entry, replace(entry.run, name="baseline"))
    with pytest.raises(StoreError, match="did you mean 'baseline'"):
        store.named("basline")


def test_removed_runs_are_gone(tmp_path: Path) -> None:
    """Removing a run takes its folder away."""
    store = Store(tmp_path / "store")
    store.remove(stored(store, tmp_path / "a"))
    assert list((tmp_path / "store" / "runs").iterdir()) == []


def test_a_newer_store_is_refused(tmp_path: Path) -> None:
    """A store of a later format is not touched."""
    store = Store(tmp_path / "store")
    stored(store, tmp_path / "a")
    (tmp_path / "store" / "store.json").write_text(json.dumps({"format": 2}))
    with pytest.raises(StoreError, match="format 2 is newer than 1; upgrade gpureport"):
        Store(tmp_path / "store")


@pytest.mark.parametrize("number", ["1e400", "[", "null"])
def test_a_marker_that_names_no_format_is_refused(tmp_path: Path, number: str) -> None:
    """An infinite one, too."""
    stored(Store(tmp_path / "store"), tmp_path / "a")
    (tmp_path / "store" / "store.json").write_text(f'{{"format": {number}}}')
    with pytest.raises(StoreError, match=r"store\.json: cannot be read; restore it"):
        Store(tmp_path / "store")


@pytest.mark.parametrize(
    ("key", "value"),
    [("id", 5.0), ("name", None), ("step", {}), ("started", "x"), ("ended", 10**30), ("timezone", 1), ("columns", [5])],
)
def test_a_run_of_values_of_another_kind_is_damaged(tmp_path: Path, key: str, value: object) -> None:
    """A `run.json` without a checksum, as the first version wrote it, may say anything; the other runs are listed."""
    store = Store(tmp_path / "store")
    other, entry = stored(store, tmp_path / "b", log(10)), stored(store, tmp_path / "a")
    path = local(entry.folder) / "run.json"
    content = {name: said for name, said in json.loads(path.read_text()).items() if "sha256" not in name}
    (content if key == "columns" else content["run"])[key] = value
    path.write_text(json.dumps(content))
    assert [each.run.id for each in store.entries()] == [other.run.id]
    assert [each.name for each in store.damaged()] == [entry.run.id]
    with pytest.raises(StoreError, match=r"run\.json: damaged; ingest the run again"):
        store.get(entry.run.id)


def test_a_run_without_a_time_has_no_name(tmp_path: Path) -> None:
    """Names are listed for the completion of words, which no damaged run may end."""
    entry = stored(Store(tmp_path / "store"), tmp_path / "a")
    path = tmp_path / "store" / "runs" / entry.run.id / "run.json"
    assert [each.id for each in list_stored_names(tmp_path / "store")] == [entry.run.id]
    path.write_text(re.sub(r'"started": \d+', '"started": 1e400', path.read_text()))
    assert list_stored_names(tmp_path / "store") == []


def test_the_store_is_found_upwards(tmp_path: Path) -> None:
    """From a folder below, the store above is used."""
    below = tmp_path / "x" / "y"
    below.mkdir(parents=True)
    (tmp_path / ".gpureport").mkdir()
    assert Store.find(below).folder == tmp_path / ".gpureport"


def test_five_rejected_lines_of_each_reason_are_kept(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    odd = "".join(f"odd line {number}\n" for number in range(7))
    entry = stored(store, tmp_path / "a", log(3) + odd + "x" * 300 + "\n")
    told = json.loads((entry.folder / "run.json").read_text("utf-8"))["run"]["quality"]["rejected"]
    assert [each["rows"] for each in told] == [8]
    assert told[0]["examples"] == [{"line": 5 + number, "text": f"odd line {number}"} for number in range(5)]
    (kept,) = store.named(entry.run.id).run.quality.rejected
    assert [each.line for each in kept.examples] == [5, 6, 7, 8, 9]

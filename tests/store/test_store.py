"""Runs on disk: the same out as in, whole or not at all, and what other tools and earlier versions make of them."""

import json
import os
import random
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pytest
from pyarrow import compute as pc
from pyarrow import parquet

import gpureport as api
from tests.store.runs import SCALE, Known, contents, leftovers, noisy, read_store, unsign
from tests.support.logs import HEADER, log, row, write
from tests.support.program import Outcome, Program
from tests.support.tables import read_table

EARLIER = sorted(Path(__file__).with_name("earlier").iterdir())
"""Stores as versions wrote them: before `run.json` had a checksum; with one, every metric in the Parquet file; with row
groups that were encoded one by one."""
HOST = "timestamp,cpu_percent\n" + "".join(f"2026-03-14T09:00:{second:02d}.500,{second}\n" for second in range(20))
LABELS = ("--step", "b", "--param", "batch=64", "--tag", "team=x", "--work", "10:steps")
TRIALS = 150 * SCALE


def ok(done: Outcome) -> str:
    assert done.code == 0, done.err
    return done.out


def analysis(gpureport: Program, *words: str) -> Any:
    (found,) = json.loads(ok(gpureport("analyze", *words, "--format", "json")))["runs"]
    return found


def test_what_went_in_comes_out(gpureport: Program, tmp_path: Path) -> None:
    write(tmp_path, gpu=log(20, gpus=3), host=HOST)
    words = ("gpu.csv", "--host", "host.csv", *LABELS)
    ok(gpureport("ingest", *words))
    (run_id,) = read_store(tmp_path / ".gpureport")
    assert analysis(gpureport, run_id) == analysis(gpureport, *words)
    ok(gpureport("runs", "export", run_id, "-o", "out.parquet"))
    (direct,) = api.read("gpu.csv", host="host.csv")
    names = direct.series.column_names
    assert parquet.read_table("out.parquet").select(names).to_pylist() == direct.series.to_pylist()
    assert parquet.read_schema(f".gpureport/runs/{run_id}/hardware.parquet").names == ["run_id", *names]
    assert {*names} == {
        *("device", "timestamp", "imputed", "gpu_utilization_ratio", "gpu_memory_used_bytes"),
        *("gpu_power_watts", "cpu_utilization_ratio"),
    }


def test_long_and_short_devices_are_read_as_they_were(gpureport: Program, tmp_path: Path) -> None:
    ticks = [n / 100 for n in range(200_000)]
    stamps = [f"2026/03/14 {9 + int(at) // 3600:02}:{int(at) // 60 % 60:02}:{at % 60:06.3f}" for at in ticks]
    lines = [f"{stamp}, 0, {n % 101} %" for n, stamp in enumerate(stamps)]
    for gpu in (1, 2, 3):
        lines += [f"{stamp}, {gpu}, {n % 97} %" for n, stamp in enumerate(stamps[: 90 * gpu])]
    write(tmp_path, gpu="\n".join(["timestamp, index, utilization.gpu [%]", *lines, ""]))
    ok(gpureport("ingest", "gpu.csv"))
    (stored,) = read_store(tmp_path / ".gpureport").values()
    (direct,) = api.read("gpu.csv")
    names = ["device", "timestamp", "gpu_utilization_ratio"]
    ok(gpureport("runs", "export", stored.run["id"], "-o", "out.parquet"))
    exported = parquet.read_table("out.parquet").select(names)
    for device in ("gpu:0", "gpu:1", "gpu:2", "gpu:3"):
        rows = direct.rows_of(device).select(names[1:])
        own = exported.filter(pc.field("device") == device).select(names[1:])
        assert own.to_pylist() == rows.to_pylist(), device
    assert parquet.ParquetFile("out.parquet").num_row_groups > 1
    assert analysis(gpureport, stored.run["id"])["statistics"] == analysis(gpureport, "gpu.csv")["statistics"]


def test_a_column_named_late_is_kept(gpureport: Program, tmp_path: Path) -> None:
    write(tmp_path, gpu=log(40) + "\n".join([f"{HEADER}, new.field", *(f"{row(s)}, odd" for s in range(40, 60)), ""]))
    ok(gpureport("ingest", "gpu.csv"))
    (stored,) = read_store(tmp_path / ".gpureport").values()
    assert stored.rows.column("extra_new_field").to_pylist() == [None] * 40 + ["odd"] * 20


def test_other_tools_read_runs_of_every_version(gpureport: Program, tmp_path: Path) -> None:
    write(tmp_path, a=noisy(0, 30), b="timestamp, temperature.gpu\n2026/03/14 09:00:05.000, 40\n")
    ok(gpureport("ingest", "a.csv"))
    ok(gpureport("ingest", "b.csv"))
    files = [*Path(".gpureport").glob("runs/*/hardware.parquet")]
    files += [path for store in EARLIER for path in store.glob("runs/*/hardware.parquet")]
    used, hot, expected = "gpu_utilization_ratio", "gpu_temperature_celsius", (24 * 3 + 60, 36 * 3 + 61, 40.0)
    query = (
        f"select count({used}), count(*), max({hot}) from read_parquet({list(map(str, files))}, union_by_name = true)"  # noqa: S608 - a test
    )
    assert duckdb.connect().execute(query).fetchall() == [expected]
    polars, pandas = pl.concat(map(pl.read_parquet, files), how="diagonal"), pd.concat(map(pd.read_parquet, files))
    assert (polars[used].count(), len(polars), polars[hot].max()) == expected
    assert (pandas[used].count(), len(pandas), pandas[hot].max()) == expected


@pytest.mark.parametrize("earlier", EARLIER, ids=lambda path: path.name)
def test_a_store_of_an_earlier_version(gpureport: Program, tmp_path: Path, earlier: Path) -> None:
    shutil.copytree(earlier, tmp_path / ".gpureport")
    said = analysis(gpureport, "run")
    assert (said["run"]["name"], said["run"]["step"], said["run"]["tags"]) == ("run", "a", {"by": "hand"})
    assert [device["id"] for device in said["run"]["devices"]] == ["gpu:0", "gpu:1", "host"]
    ok(gpureport("runs", "export", "run", "-o", "out.parquet"))
    rows = parquet.read_table("out.parquet").to_pylist()
    of = {device: [each for each in rows if each["device"] == device] for device in ("gpu:0", "gpu:1", "host")}
    assert [round(100 * each["gpu_utilization_ratio"]) for each in of["gpu:1"]] == [
        second * 7 + 3 for second in range(12)
    ]
    assert [round(100 * each["cpu_utilization_ratio"]) for each in of["host"]] == [*range(12)]
    power = [None if second == 5 else 200.5 + second for second in range(12)]
    assert [each["gpu_power_watts"] for each in of["gpu:0"]] == power
    assert [each["gpu_memory_used_bytes"] for each in of["gpu:1"]] == [1025 * 2**20] * 12
    assert [each["extra_new_field"] for each in of["gpu:0"]] == ["even", "odd"] * 6
    write(tmp_path, new=noisy(0, 30))
    ok(gpureport("runs", "step", "run", "c"))
    ok(gpureport("ingest", "new.csv"))
    found = read_store(tmp_path / ".gpureport")
    assert sorted(len(each.rows) for each in found.values()) == [36, 60]
    assert all("sha256" in each.said for each in found.values())


def test_the_same_bytes_are_the_same_run(gpureport: Program, tmp_path: Path) -> None:
    for place in ("a", "b"):
        write(tmp_path / place, gpu=log(30))
        ok(gpureport("ingest", f"{place}/gpu.csv"))
    assert len(read_store(tmp_path / ".gpureport")) == 1
    (tmp_path / "x/y").mkdir(parents=True)
    os.chdir("x/y")
    ok(gpureport("ingest", "../../a/gpu.csv", "--tz", "UTC"))
    assert len(read_store(tmp_path / ".gpureport")) == 2
    assert list((tmp_path / "x/y").iterdir()) == []


def test_a_failed_read_leaves_nothing(gpureport: Program, tmp_path: Path) -> None:
    write(tmp_path, gpu="timestamp, uuid\n2026/03/14 09:00:00.000, x\n")
    assert gpureport("ingest", "gpu.csv").code == 3
    assert list((tmp_path / ".gpureport/runs").iterdir()) == []


def test_old_leftovers_are_swept(before: Known, store: Path, gpureport: Program) -> None:
    for name in ("run-1-0123abcd", "0123456789abcdef-old", "new-1-0123abcd", "mine"):
        (store / "runs" / f".tmp-{name}").mkdir()
        if not name.startswith("new"):
            os.utime(store / "runs" / f".tmp-{name}", (1, 1))
    ok(gpureport(*before.ingest("new", store)))
    assert sorted(path.name for path in leftovers(store)) == [".tmp-mine", ".tmp-new-1-0123abcd"]


def test_a_run_that_is_a_link(before: Known, store: Path, gpureport: Program, tmp_path: Path) -> None:
    folder, elsewhere = store / "runs" / before.old_id, tmp_path / "elsewhere"
    for command in (before.ingest("old", store, "--force"), ("runs", "rm", "old", "--store", str(store))):
        shutil.rmtree(elsewhere, ignore_errors=True)
        folder.rename(elsewhere)
        folder.symlink_to(elsewhere)
        ok(gpureport(*command))
        assert (leftovers(store), folder.is_symlink(), (elsewhere / "run.json").is_file()) == ([], False, True)
    assert not folder.exists()


@pytest.mark.parametrize("text", ['{"format": 2}', '{"format": 1e400}', '{"format": [}', '{"format": null}'])
def test_a_store_of_another_format_is_refused(store: Path, gpureport: Program, text: str) -> None:
    (store / "store.json").write_text(text)
    held = contents(store)
    done = gpureport("runs", "list", "--store", str(store))
    assert (done.code, done.err.count("\n"), contents(store)) == (3, 1, held)


@pytest.mark.parametrize(("key", "value"), read_table(Path(__file__).with_name("damaged_fields.tsv")))
def test_a_damaged_run_does_not_hide_the_others(
    before: Known, store: Path, gpureport: Program, key: str, value: str
) -> None:
    ok(gpureport(*before.ingest("new", store, "--name", "new")))
    unsign(store / "runs" / before.old_id / "run.json", **{key: json.loads(value)})
    listed = gpureport("runs", "list", "--format", "json", "--store", str(store))
    assert [run["name"] for run in json.loads(listed.out)["runs"]] == ["new"]
    assert before.old_id in listed.err
    assert gpureport("analyze", before.old_id, "--store", str(store)).code == 3
    ok(gpureport(*before.ingest("old", store)))
    assert len(read_store(store)) == 2


@pytest.mark.parametrize("name", ["run.json", "hardware.parquet"])
def test_reading_the_log_again_mends_a_run(before: Known, store: Path, gpureport: Program, name: str) -> None:
    path = store / "runs" / before.old_id / name
    path.write_bytes(path.read_bytes()[:-30])
    export = ("runs", "export", before.old_id[:6], "-o", "out.parquet", "--store", str(store))
    assert gpureport(*export).code == 3
    assert not Path("out.parquet").exists()
    ok(gpureport(*before.ingest("old", store)))
    assert read_store(store)[before.old_id].rows.equals(before.runs[before.old_id].rows)
    ok(gpureport(*export))
    ok(gpureport("runs", "rm", before.old_id[:6], "--store", str(store)))
    assert list((store / "runs").iterdir()) == []


def test_series_beyond_the_limit_are_not_read(before: Known, store: Path, gpureport: Program) -> None:
    """A file of 20 GB, most of which is a hole, is refused by its size, and named."""
    os.truncate(store / "runs" / before.old_id / "hardware.parquet", 20 * 2**30)
    done = gpureport("analyze", "old", "--store", str(store))
    assert (done.code, "hardware.parquet" in done.err, "too large" in done.err) == (3, True, True)


def test_secrets_are_none_in_a_store(gpureport: Program, tmp_path: Path) -> None:
    (tmp_path / "gpureport.toml").write_text('[secrets]\nnames = ["badge"]\n')
    lines = [f"{HEADER}, badge, lane", *(f"{row(second)}, 4711, {second % 2}" for second in range(20)), ""]
    names = ("b:s3cr3t@node", "loss", "a:s3cr3t@node")
    train = "\n".join(json.dumps({"time": 1_773_478_800 + n, "step": n, name: 1}) for n, name in enumerate(names))
    write(tmp_path, gpu="\n".join(lines))
    (tmp_path / "train.jsonl").write_text(train + "\n")
    ok(gpureport("ingest", "gpu.csv", "--training", "train.jsonl", "--tz", "UTC"))
    (stored,) = read_store(tmp_path / ".gpureport").values()
    assert {*stored.rows.column("extra_badge").to_pylist()} == {"***"}
    assert {*stored.rows.column("extra_lane").to_pylist()} == {"0", "1"}
    kept = parquet.read_table(stored.folder / "training.parquet").column("name").to_pylist()
    assert (len({*kept}), "loss" in kept, "s3cr3t" in str(kept)) == (3, True, False)


def pages(path: Path) -> list[int]:
    metadata, places = parquet.ParquetFile(path).metadata, list[int]()
    for group in (metadata.row_group(index) for index in range(metadata.num_row_groups)):
        for column in (group.column(index) for index in range(group.num_columns)):
            if column.path_in_schema != "run_id":
                start = column.dictionary_page_offset or column.data_page_offset
                places += range(start, start + column.total_compressed_size)
    return places


def flipped(path: Path, places: Sequence[int], trials: int) -> Iterator[None]:
    chance, whole = random.Random(20261121), path.read_bytes()
    for _ in range(trials):
        place = chance.choice(places)
        path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << chance.randrange(8))]) + whole[place + 1 :])
        yield
    path.write_bytes(whole)


@pytest.mark.stress
def test_a_flip_in_the_series_is_found(before: Known, store: Path, gpureport: Program) -> None:
    path = store / "runs" / before.old_id / "hardware.parquet"
    for _ in flipped(path, range(path.stat().st_size), 2 * TRIALS):
        for words in (("runs", "export", "old", "-o", "out.parquet"), ("analyze", "old")):
            done = gpureport(*words, "--store", str(store))
            assert (done.code, done.err.count("\n")) == (3, 1)


@pytest.mark.stress
def test_a_flip_in_the_series_of_an_old_run_is_no_other_value(before: Known, store: Path, gpureport: Program) -> None:
    folder = store / "runs" / before.old_id
    unsign(folder / "run.json")
    expected, found = analysis(gpureport, "old", "--store", str(store))["statistics"], 0
    for _ in flipped(folder / "hardware.parquet", pages(folder / "hardware.parquet"), TRIALS):
        done = gpureport("analyze", "old", "--store", str(store), "--format", "json")
        found += done.code == 3
        assert done.code == 3 or json.loads(done.out)["runs"][0]["statistics"] == expected
    assert found > 0.9 * TRIALS


@pytest.mark.stress
@pytest.mark.parametrize("name", ["run.json", "store.json"])
def test_a_flip_elsewhere_is_an_error_or_does_not_matter(
    before: Known, store: Path, gpureport: Program, name: str
) -> None:
    path = store / name if name == "store.json" else store / "runs" / before.old_id / name
    place = ("--store", str(store))
    listed = ok(gpureport("runs", "list", *place))
    for _ in flipped(path, range(path.stat().st_size), 2 * TRIALS):
        done = gpureport("runs", "list", *place)
        assert done.out == listed or done.code == 3 or before.old_id in done.err
    assert ok(gpureport("runs", "list", *place)) == listed


def test_training_metrics_are_kept_and_checked(gpureport: Program, tmp_path: Path) -> None:
    write(tmp_path, gpu=log(20))
    (tmp_path / "metrics.csv").write_text("epoch,step,train_loss,val_loss\n0,10,2.5,\n0,20,,2.1\n1,30,nan,\n")
    said = [ok(gpureport("ingest", "gpu.csv", *more)) for more in ([], ["--training", "metrics.csv"], [])]
    assert len(set(said)) == 3
    (stored,) = read_store(tmp_path / ".gpureport").values()
    path = stored.folder / "training.parquet"
    assert parquet.read_table(path).num_rows == 6
    for _ in flipped(path, range(path.stat().st_size), 20):
        assert gpureport("analyze", stored.run["id"]).code == 3

"""Several logs of one run: of every form, of nodes and recorders, and parts of a run by time."""

import json
import os
import threading
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

from gpureport.errors import SourceError
from gpureport.testing import HOST
from tests.importers.trackers.mlflow.stores import START as RUN_STARTED
from tests.importers.trackers.mlflow.stores import Made, database, monitored, run_id
from tests.readers.pairs import kept
from tests.support.logs import COMPRESSED, HEADER, PACKED, log, read, stamp, write
from tests.support.program import Program
from tests.support.tables import read_table

HOST_LOG = "timestamp,cpu_percent\n" + "".join(f"2026-03-14T09:00:{second:02d}.000,50\n" for second in range(20))


@pytest.mark.parametrize("packed", COMPRESSED)
def test_a_compressed_log_and_host_log(tmp_path: Path, packed: str) -> None:
    write(tmp_path, gpu=log())
    write(tmp_path, ".csv.gz", packed=PACKED[packed](log().encode()))
    write(tmp_path, ".log", host=PACKED[packed](HOST_LOG.encode()))
    plain = read(tmp_path / "gpu.csv")
    recording = read(tmp_path / "packed.csv.gz", host=tmp_path / "host.log")
    assert recording.rows_of("gpu:0").select(plain.series.column_names).to_pylist() == plain.series.to_pylist()
    assert (len(recording.rows_of("host")), recording.run.name) == (20, "packed")
    assert recording.run.id != plain.run.id


def test_the_identity_is_that_of_the_bytes(tmp_path: Path) -> None:
    write(tmp_path, gpu=log(9))
    run = read(tmp_path / "gpu.csv").run
    hashed = sha256(log(9).encode()).hexdigest()
    assert run.id == sha256(f"nvidia_smi {hashed}\ntz= gpus=\n".encode()).hexdigest()[:16]
    assert (run.sources[0].sha256, run.sources[0].bytes) == (hashed, len(log(9)))
    early, late = log(10), log(20).replace(log(10)[len(HEADER) + 1 :], "")
    ids = []
    for one, other in ((early, late), (late, early), (early, "")):
        write(tmp_path / "run", a=one, b=other)
        if not other:
            (tmp_path / "run/b.csv").unlink()
        ids.append(read(tmp_path / "run", as_one_run=True).run.id)
    assert ids[0] == ids[1] != ids[2] == read(tmp_path / "run/a.csv").run.id


def test_pipes_and_cut_logs_are_read_once_and_up_to_there(tmp_path: Path) -> None:
    content = PACKED["gzip"](log(4000).encode())
    write(tmp_path, gpu=content[: len(content) // 2])
    quality = read(tmp_path / "gpu.csv").run.quality
    assert (quality.rows_kept > 1000, len(quality.notes) > 0) == (True, True)
    os.mkfifo(tmp_path / "pipe.csv")
    feeder = threading.Thread(target=(tmp_path / "pipe.csv").write_bytes, args=(PACKED["zstd"](log(9).encode()),))
    feeder.start()
    recording = read(tmp_path / "pipe.csv")
    feeder.join()
    assert kept(recording) == 9


def test_logs_that_cannot_be_one_run_are_refused_by_name(tmp_path: Path, gpureport: Program) -> None:
    bad = "timestamp, uuid\n2026/03/14 09:00:00.000, x\n"
    a, _, late = write(tmp_path, a=log(), b=bad, late=HOST_LOG.replace("2026", "2027"))
    done = gpureport("analyze", "a.csv", "b.csv", "--as-one-run")
    assert (done.code, done.err.startswith("gpureport: b.csv: ")) == (3, True)
    with pytest.raises(SourceError) as refused:
        read(a, host=late)
    assert refused.value.where == str(late)
    with pytest.raises(SourceError) as refused:
        read(a, host=write(tmp_path, one=HOST_LOG, other=HOST_LOG))
    assert "cpu_utilization_ratio" in refused.value.what


def test_many_machines_are_named_in_part(tmp_path: Path) -> None:
    for number in range(16):
        write(tmp_path / f"n{number:02}", gpu=log().replace("90 %", f"{number} %"))
    (note,) = (note for note in read(tmp_path, as_one_run=True).run.quality.notes if "several machines" in note)
    assert ("n02" in note, "n03" in note, "13" in note) == (True, False, True)


def host(name: str, times: Iterable[float], values: Iterable[float]) -> str:
    """Return a host log of one column, times in seconds of the log's hour."""
    rows = (f"{stamp(time)},{value}\n" for time, value in zip(times, values, strict=True))
    return f"timestamp,{name}\n" + "".join(rows)


def test_the_store_holds_what_was_read(tmp_path: Path, gpureport: Program) -> None:
    chance = np.random.default_rng(3)
    times = np.sort(chance.uniform(0, 19, 40)).round(3).tolist()
    cpu = host("cpu_percent", times, chance.uniform(0, 100, 40).round(1).tolist())
    io = host("iowait_percent", range(19), [1.0] * 19)
    gpu, *hosts = write(tmp_path, gpu=log(20), cpu=cpu, io=io)
    recording = read(gpu, host=hosts)
    turned = read(tmp_path / "gpu.csv", host=[tmp_path / "io.csv", tmp_path / "cpu.csv"])
    assert turned.rows_of(HOST).to_pylist() == recording.rows_of(HOST).to_pylist()
    assert gpureport("ingest", "gpu.csv", "--host", "cpu.csv", "--host", "io.csv").code == 0
    assert gpureport("runs", "export", recording.run.id, "-o", "run.parquet").code == 0
    stored = parquet.read_table("run.parquet").select(recording.series.column_names)
    assert stored.to_pylist() == recording.series.to_pylist()


NO_TIMES = ("soon", "inf", "nan", f"{'9' * 400}h", f"{'9' * 5000}:00:00", "2m:")
BEYOND = (f"{'9' * 306}s", f"{'9' * 306}d", "1e305", "0001-01-01T00:00")


@pytest.fixture
def a_log(tmp_path: Path) -> None:
    write(tmp_path, gpu=log(300, gpus=2))


def part(gpureport: Program, start: str | None = None, end: str | None = None, *more: str) -> Any:
    bounds = [word for option, value in (("--from", start), ("--to", end)) if value for word in (option, value)]
    done = gpureport("analyze", "gpu.csv", *bounds, *more, "--format", "json")
    assert done.code == 0, done.err
    (run,) = json.loads(done.out)["runs"]
    return run


@pytest.mark.usefixtures("a_log")
def test_a_part_is_named_by_elapsed_time_or_moment(gpureport: Program) -> None:
    parts = [*read_table(Path(__file__).with_name("parts.tsv")), ["", f"{'9' * 290}s", "300"]]
    ids = set()
    for start, end, length in parts:
        found = part(gpureport, start, end)
        assert found["quality"]["rows_kept"] == 2 * int(length), (start, end)
        ids.add(found["run"]["id"])
    assert len(ids) == len(parts)
    assert part(gpureport, "60")["run"]["id"] in ids


@pytest.mark.usefixtures("a_log")
def test_a_moment_is_one_of_the_zone_and_of_the_run(gpureport: Program) -> None:
    # With a zone, 09:01 is the local time, and a stamp with another offset is the same moment.
    zone = ("--tz", "Asia/Kolkata")
    local, other = (part(gpureport, start, None, *zone) for start in ("2026-03-14T09:01", "2026-03-14T03:31+00:00"))
    assert local["run"]["started"] == other["run"]["started"]
    assert gpureport("analyze", "gpu.csv", "--from", "2026-03-14T03:31+00:00").code == 2
    for time in (*NO_TIMES, *BEYOND):
        done = gpureport("analyze", "gpu.csv", "--to" if time in BEYOND else "--from", time, "--tz", "Asia/Kolkata")
        assert (done.code in {2, 3}, done.err.count("\n")) == (True, 1), time
    assert gpureport("analyze", "gpu.csv", "--from", "2m", "--to", "1m").code == 2
    assert gpureport("analyze", "gpu.csv", "--from", "10m", "--to", "11m").code == 3


@pytest.mark.usefixtures("a_log")
@pytest.mark.parametrize("at", [1, 37, 150, 299])
def test_two_parts_are_the_whole(gpureport: Program, at: int) -> None:
    parts = [part(gpureport, None, f"{at}s"), part(gpureport, f"{at}s")]
    assert sum(each["quality"]["rows_kept"] for each in parts) == 600


@pytest.mark.usefixtures("a_log")
def test_a_part_counts_its_own_work(gpureport: Program, tmp_path: Path) -> None:
    assert part(gpureport, "1m", None, "--work", "100:steps")["run"]["work"] == {"amount": 100.0, "unit": "steps"}
    ticks = range(10_000, 310_000, 10_000)
    series = monitored(ticks) | {"it/s": [(RUN_STARTED + tick, 2.0, tick) for tick in ticks]}
    database(tmp_path / "mlflow.db", [Made(id=run_id(1), series=series, end=RUN_STARTED + 310_000)])
    whole, cut = (
        json.loads(gpureport("analyze", "mlflow:mlflow.db", *bounds, "--format", "json").out)["runs"][0]["run"]["work"]
        for bounds in ((), ("--from", "1m"))
    )
    assert (whole["unit"], cut) == ("steps", None)

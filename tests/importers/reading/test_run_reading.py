"""Several logs of one run: of every form, of nodes and recorders, and parts of a run by time."""

import json
import os
import shutil
import threading
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

from gpureport.errors import SourceError
from gpureport.testing import HOST, AbsentCells, LogGap, Recording, Rejected
from tests.importers.accounts import START, column, kept, seconds
from tests.importers.trackers.mlflow.stores import START as RUN_STARTED
from tests.importers.trackers.mlflow.stores import Made, database, monitored, run_id
from tests.support.logs import COMPRESSED, HEADER, PACKED, log, read, row, stamp, write
from tests.support.program import Program

HOST_LOG = "timestamp,cpu_percent\n" + "".join(f"2026-03-14T09:00:{second:02d}.000,50\n" for second in range(20))


def rows(seconds: Iterable[float], gpu: int = 0, util: int = 90) -> str:
    return "\n".join([HEADER, *(row(second, gpu, util=util) for second in seconds), ""])


def one(folder: Path, **logs: str) -> Recording:
    for left in folder.glob("*"):
        left.unlink()
    write(folder, **logs)
    return read(folder, as_one_run=True)


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


def test_rotated_logs_are_one_run(tmp_path: Path) -> None:
    early, late = (rows(span).replace("250.00 W", "[N/A]", 2) for span in (range(10), range(10, 20)))
    first, second = one(tmp_path / "x", b=early, a=late), one(tmp_path / "x", a=early, b=late)
    assert first.run.id == second.run.id
    for recording in (first, second):
        assert seconds(recording) == list(range(20))
        quality = recording.run.quality
        assert (quality.lines, kept(recording), quality.headers, quality.coverage_ratio) == (22, 20, 2, 1)
        assert quality.absent_cells == (AbsentCells(column="power.draw", reason="N/A", cells=4),)
        assert (recording.run.ended - recording.run.started, recording.run.interval) == (19_000_000, 1.0)
    alone = one(tmp_path / "x", a=early)
    assert alone.run.id == read(tmp_path / "x/a.csv").run.id != first.run.id


def test_logs_of_nodes_are_one_run(tmp_path: Path) -> None:
    for node, util in (("n1", 90), ("n2", 20)):
        write(tmp_path / node, host=HOST_LOG, **{"nvidia-smi": rows(range(20), util=util) + "rubbish\n"})
    recording = read(tmp_path, as_one_run=True)
    ids = [f"{node}/{name}" for name in ("gpu:0", "host") for node in ("n1", "n2")]
    assert [device.id for device in recording.run.devices] == ids
    assert [device.node for device in recording.run.devices] == ["n1", "n2", "n1", "n2"]
    assert set(recording.rows_of("n2/gpu:0").column("gpu_utilization_ratio").to_pylist()) == {np.float32(0.2)}
    assert recording.run.name == tmp_path.name
    assert recording.run.quality.rejected == (Rejected(reason="wrong number of cells", rows=1, first_line=22),) * 2
    assert kept(recording)


def test_time_between_rotated_logs_is_a_gap_and_a_log_per_gpu_is_none(tmp_path: Path) -> None:
    quality = one(tmp_path / "x", a=rows(range(10)), b=rows(range(110, 120))).run.quality
    assert quality.gaps == (LogGap(device="gpu:0", start=START + 9_000_000, end=START + 110_000_000),)
    assert quality.coverage_ratio == pytest.approx(18 / 119)
    recording = one(tmp_path / "x", a=rows(range(20), 0), b=rows(range(20), 1), host=HOST_LOG)
    assert [device.id for device in recording.run.devices] == ["gpu:0", "gpu:1", "host"]


def test_logs_that_cannot_be_one_run_are_refused_by_name(tmp_path: Path, gpureport: Program) -> None:
    bad = "timestamp, uuid\n2026/03/14 09:00:00.000, x\n"
    a, _, late = write(tmp_path, a=log(), b=bad, late=HOST_LOG.replace("2026", "2027"))
    done = gpureport("analyze", "a.csv", "b.csv", "--as-one-run")
    assert (done.code, done.err.startswith("gpureport: b.csv: ")) == (3, True)
    with pytest.raises(SourceError) as refused:
        read(a, host=late)
    assert refused.value.where == str(late)


EARLY, LATE, BOTH = (0, 60), (60, 120), (0, 120)


def gpus(span: tuple[int, int], name: str = "", *held: tuple[int, str], seed: int = 1) -> str:
    """Return a log of GPUs over some seconds: index, and what a column tells of each; `seed` tells machines apart."""
    lines = ["timestamp, index, utilization.gpu [%], power.draw [W]" + (f", {name}" if name else "")]
    for second in range(*span):
        for index, own in held or ((0, ""),):
            util = (second * (7 + seed) + 13 * index) % 101
            cells = f"{stamp(second)}, {index}, {util} %, {200 + (second * seed + index) % 97}.00 W"
            lines.append(cells + (f", {own}" if name else ""))
    return "\n".join(lines) + "\n"


def joined(folder: Path, logs: dict[str, str]) -> Recording:
    shutil.rmtree(folder / "run", ignore_errors=True)
    for path, content in logs.items():
        (folder / "run" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "run" / path).write_text(content)
    return read(folder / "run", as_one_run=True)


def ids(recording: Recording) -> list[str]:
    return [device.id for device in recording.run.devices]


def owners(recording: Recording) -> list[str | None]:
    return [device.uuid or device.bus_id or device.serial for device in recording.run.devices]


@pytest.mark.parametrize("name", ["uuid", "pci.bus_id"])
def test_a_gpu_keeps_its_number_where_the_indices_are_swapped(tmp_path: Path, name: str) -> None:
    a, b, c = {"uuid": ("GPU-a", "GPU-b", "GPU-c"), "pci.bus_id": tuple(f"00000000:0{n}:00.0" for n in "123")}[name]
    swapped = gpus(LATE, name, (0, b), (1, a), (2, c))
    recording = joined(tmp_path, {"gpu.csv.1": gpus(EARLY, name, (0, a), (1, b)), "gpu.csv": swapped})
    assert (ids(recording), owners(recording)) == (["gpu:0", "gpu:1", "gpu:2"], [a, b, c])
    assert seconds(recording, "gpu:0") == list(range(120))
    logs = {"gpu.csv.1": gpus(EARLY, name, (0, a)), "gpu.csv": gpus(LATE, name, (0, b))}
    assert owners(joined(tmp_path / "replaced", logs)) == [a, b]


@pytest.mark.parametrize(
    ("paths", "nodes"),
    [
        (("node1.csv", "node2.csv"), ("node1", "node2")),
        (("n1/nvidia-smi.csv", "n2/nvidia-smi.csv"), ("n1", "n2")),
        (("gpu-a_gpu.csv", "gpu-b_gpu.csv"), ("gpu-a", "gpu-b")),
    ],
)
@pytest.mark.parametrize("uuids", [("", ""), ("GPU-a", "GPU-b")])
def test_the_same_id_at_the_same_time_is_two_nodes(
    tmp_path: Path, paths: tuple[str, str], nodes: tuple[str, str], uuids: tuple[str, str]
) -> None:
    """Two logs that hold `gpu:0` at once come from two machines, named by file or folder."""
    name = "uuid" if uuids[0] else ""
    logs = {path: gpus(BOTH, name, (0, own), seed=n) for n, (path, own) in enumerate(zip(paths, uuids, strict=True), 1)}
    recording = joined(tmp_path, logs)
    assert [(device.id, device.node) for device in recording.run.devices] == [(f"{n}/gpu:0", n) for n in nodes]
    # what is sure is not told as a guess
    assert bool(recording.run.quality.notes) == (not name)


def test_a_host_log_is_its_nodes_or_everybodys(tmp_path: Path) -> None:
    logs = {
        f"{node}.csv{end}": gpus(span, seed=seed)
        for seed, node in enumerate("ab", 1)
        for end, span in (("", LATE), (".1", EARLY))
    }
    logs["b-host.csv"] = host("cpu_percent", range(120), range(120))
    assert sorted(ids(joined(tmp_path, logs))) == ["a/gpu:0", "b/gpu:0", "b/host"]
    logs = {f"{node}.csv": gpus(BOTH, seed=seed) for seed, node in enumerate("ab", 1)}
    recording = joined(tmp_path, logs | {"cpu.csv": host("cpu_percent", range(120), range(120))})
    assert [(device.id, device.node) for device in recording.run.devices if device.index is None] == [("host", None)]


@pytest.mark.parametrize("name", ["uuid", "serial"])
def test_one_gpu_in_two_logs_at_a_time_is_one(tmp_path: Path, name: str) -> None:
    recording = joined(
        tmp_path, {"a.csv": gpus(EARLY, name, (0, "GPU-a")), "b.csv": gpus((30, 120), name, (3, "GPU-a"))}
    )
    assert ids(recording) == ["gpu:0"]


def test_boards_and_copies_are_told_from_nodes(tmp_path: Path) -> None:
    board = gpus(EARLY, "serial", (0, "1"), (1, "1"))
    assert ids(joined(tmp_path, {"a.csv": board, "b.csv": board})) == ["gpu:0", "gpu:1"]
    logs = {f"{name}/gpu.csv": gpus(BOTH, seed=seed) for name, seed in (("n1", 1), ("n2", 2), ("copy-of-n1", 1))}
    assert len(ids(joined(tmp_path, logs))) == 2
    recording = joined(tmp_path, {f"n{number:02}/gpu.csv": gpus(EARLY, seed=1 + number) for number in range(16)})
    (note,) = [note for note in recording.run.quality.notes if "several machines" in note]
    assert ("n02" in note, "n03" in note, "13" in note) == (True, False, True)
    recording = joined(tmp_path, {"gpu.csv.1": gpus((0, 62)), "gpu.csv": gpus(LATE, seed=2)})
    assert ids(recording) == ["gpu:0"]


def host(name: str, times: Iterable[float], values: Iterable[float]) -> str:
    """Return a host log of one column, times in seconds of the log's hour."""
    rows = (f"{stamp(time)},{value}\n" for time, value in zip(times, values, strict=True))
    return f"timestamp,{name}\n" + "".join(rows)


def beside(folder: Path, cpu: str, io: str) -> Recording:
    gpu, *hosts = write(folder, gpu=log(20), cpu=cpu, io=io)
    return read(gpu, host=hosts)


def cells(recording: Recording, name: str = "cpu_iowait_ratio") -> list[float | None]:
    return [None if cell is None else round(cell, 3) for cell in column(recording, name, HOST)]


def test_logs_of_different_rates(tmp_path: Path) -> None:
    cases: list[tuple[Iterable[int], dict[float, int], list[float | None], int]] = [
        # of one that ends a fifth of a second before the row and one that ends four fifths after it, the first
        ([2, 3, 4], {1.8: 2, 2.8: 3, 3.8: 4}, [0.02, 0.03, 0.04], 23),
        # a reading of four seconds holds for the four rows it covers; before and after it there is none
        (range(1, 13), {4: 4, 8: 8}, [0.04] * 4 + [0.08] * 4 + [None] * 4, 32),
    ]
    for cpu, io, expected, rows in cases:
        recording = beside(tmp_path, host("cpu_percent", cpu, cpu), host("iowait_percent", io, io.values()))
        assert (cells(recording), kept(recording)) == (expected, rows), (cpu, io)


def test_readings_stand_beside_the_rows_they_cover_once(tmp_path: Path) -> None:
    cpu = host("cpu_percent", [1, 2, 3, 4], [10, 20, 30, 40])
    recording = beside(tmp_path, cpu, host("iowait_percent", [1.4, 2.4, 3.4, 4.4], [1, 2, 3, 4]))
    assert cells(recording, "cpu_utilization_ratio") == [0.1, 0.2, 0.3, 0.4]
    assert cells(recording) == [0.01, 0.02, 0.03, 0.04]
    assert (kept(recording), recording.run.quality.continued, ids(recording)) == (24, 4, ["gpu:0", HOST])
    text = host("cpu_percent", [1, 2], [3, 4])
    with pytest.raises(SourceError) as refused:
        beside(tmp_path, text, text)
    assert "cpu_utilization_ratio" in refused.value.what


def test_the_store_holds_what_was_read(tmp_path: Path, gpureport: Program) -> None:
    chance = np.random.default_rng(3)
    times = np.sort(chance.uniform(0, 19, 40)).round(3).tolist()
    cpu = host("cpu_percent", times, chance.uniform(0, 100, 40).round(1).tolist())
    recording = beside(tmp_path, cpu, host("iowait_percent", range(19), [1.0] * 19))
    turned = read(tmp_path / "gpu.csv", host=[tmp_path / "io.csv", tmp_path / "cpu.csv"])
    assert turned.rows_of(HOST).to_pylist() == recording.rows_of(HOST).to_pylist()
    assert gpureport("ingest", "gpu.csv", "--host", "cpu.csv", "--host", "io.csv").code == 0
    assert gpureport("runs", "export", recording.run.id, "-o", "run.parquet").code == 0
    stored = parquet.read_table("run.parquet").select(recording.series.column_names)
    assert stored.to_pylist() == recording.series.to_pylist()


PARTS = {
    ("60", None): 240,
    ("1m", "2m30s"): 90,
    ("0:01:00", "0:04:00"): 180,
    ("2026-03-14T09:01", "2026-03-14 09:02"): 60,
    (None, "1m"): 60,
    (None, f"{'9' * 290}s"): 300,
    (None, "9999999999d"): 300,
}
"""From, to, and the seconds of the part: the start is part of it, the end is not."""
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
    ids = set()
    for (start, end), length in PARTS.items():
        found = part(gpureport, start, end)
        assert found["quality"]["rows_kept"] == 2 * length, (start, end)
        ids.add(found["run"]["id"])
    assert len(ids) == len(PARTS)
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

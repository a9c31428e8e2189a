"""Runs from files of every form, and from several files."""

import os
import threading
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from gpureport.errors import SourceError
from gpureport.testing import AbsentCells, LogGap, Recording, Rejected
from tests.cli.program import Program
from tests.importers.accounts import START, kept, seconds
from tests.support.logs import COMPRESSED, HEADER, PACKED, log, read, row, write

HOST = "timestamp,cpu_percent\n" + "".join(f"2026-03-14T09:00:{second:02d}.000,50\n" for second in range(20))


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
    write(tmp_path, ".log", host=PACKED[packed](HOST.encode()))
    plain = read(tmp_path / "gpu.csv")
    recording = read(tmp_path / "packed.csv.gz", host=tmp_path / "host.log")
    assert recording.rows_of("gpu:0").select(plain.series.column_names).to_pylist() == plain.series.to_pylist()
    assert (len(recording.rows_of("host")), recording.run.name) == (20, "packed")
    assert recording.run.id != plain.run.id


def test_a_cut_compressed_log_is_read_up_to_there(tmp_path: Path) -> None:
    content = PACKED["gzip"](log(4000).encode())
    write(tmp_path, gpu=content[: len(content) // 2])
    quality = read(tmp_path / "gpu.csv").run.quality
    assert (quality.rows_kept > 1000, len(quality.notes) > 0) == (True, True)


def test_the_identity_is_that_of_the_bytes(tmp_path: Path) -> None:
    write(tmp_path, gpu=log(9))
    run = read(tmp_path / "gpu.csv").run
    hashed = sha256(log(9).encode()).hexdigest()
    assert run.id == sha256(f"nvidia_smi {hashed}\ntz= gpus=\n".encode()).hexdigest()[:16]
    assert (run.sources[0].sha256, run.sources[0].bytes) == (hashed, len(log(9)))


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gpu.csv")
    feeder = threading.Thread(target=(tmp_path / "gpu.csv").write_bytes, args=(PACKED["zstd"](log(9).encode()),))
    feeder.start()
    recording = read(tmp_path / "gpu.csv")
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


def test_time_between_rotated_logs_is_a_gap(tmp_path: Path) -> None:
    quality = one(tmp_path / "x", a=rows(range(10)), b=rows(range(110, 120))).run.quality
    assert quality.gaps == (LogGap(device="gpu:0", start=START + 9_000_000, end=START + 110_000_000),)
    assert quality.coverage_ratio == pytest.approx(18 / 119)


def test_logs_of_nodes_are_one_run(tmp_path: Path) -> None:
    for node, util in (("n1", 90), ("n2", 20)):
        write(tmp_path / node, host=HOST, **{"nvidia-smi": rows(range(20), util=util) + "rubbish\n"})
    recording = read(tmp_path, as_one_run=True)
    ids = [f"{node}/{name}" for name in ("gpu:0", "host") for node in ("n1", "n2")]
    assert [device.id for device in recording.run.devices] == ids
    assert [device.node for device in recording.run.devices] == ["n1", "n2", "n1", "n2"]
    assert set(recording.rows_of("n2/gpu:0").column("gpu_utilization_ratio").to_pylist()) == {np.float32(0.2)}
    assert recording.run.name == tmp_path.name
    assert recording.run.quality.rejected == (Rejected(reason="wrong number of cells", rows=1, first_line=22),) * 2
    assert kept(recording)


def test_a_log_per_gpu_is_one_run(tmp_path: Path) -> None:
    recording = one(tmp_path / "x", a=rows(range(20), 0), b=rows(range(20), 1), host=HOST)
    assert [device.id for device in recording.run.devices] == ["gpu:0", "gpu:1", "host"]


def test_logs_that_cannot_be_one_run_are_refused_by_name(tmp_path: Path, gpureport: Program) -> None:
    bad = "timestamp, uuid\n2026/03/14 09:00:00.000, x\n"
    a, _, late = write(tmp_path, a=log(), b=bad, late=HOST.replace("2026", "2027"))
    done = gpureport("analyze", "a.csv", "b.csv", "--as-one-run")
    assert (done.code, done.err.startswith("gpureport: b.csv: ")) == (3, True)
    with pytest.raises(SourceError) as refused:
        read(a, host=late)
    assert refused.value.where == str(late)

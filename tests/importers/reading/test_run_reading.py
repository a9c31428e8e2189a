"""Runs from files of every form, and from several files."""

import os
import threading
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpureport
from gpureport.errors import SettingsError, SourceError
from gpureport.importers import Labels, Reading, ReadOptions, find_run_logs, find_runs
from gpureport.testing import AbsentCells, LogGap, Recording, Rejected
from tests.importers.packed import COMPRESSED, PACKED
from tests.importers.written_logs import HEADER, log, read, row

HOST = "timestamp,cpu_percent\n" + "".join(f"2026-03-14T09:00:{second:02d}.000,50\n" for second in range(20))
STARTED = 1_773_478_800_000_000


def rows(seconds: Iterable[float], gpu: int = 0, util: int = 90) -> str:
    """Return a log of one GPU over some seconds."""
    return "\n".join([HEADER, *(row(second, gpu, util=util) for second in seconds), ""])


def one(*paths: Path, host: tuple[Path, ...] = ()) -> Reading:
    """Return several logs as one run, being read."""
    return Reading(find_run_logs(paths, host), ReadOptions(), Labels(), as_one_run=True)


def write(folder: Path, **logs: str) -> list[Path]:
    """Write logs and return where."""
    paths = [folder / f"{name}.csv" for name in logs]
    for path, content in zip(paths, logs.values(), strict=True):
        path.write_text(content)
    return paths


def seconds(recording: Recording, device: str) -> list[float]:
    """Return the times of one device, in seconds of the log's hour."""
    return [(value.value - STARTED) / 1e6 for value in recording.rows_of(device).column("timestamp")]


@pytest.mark.parametrize("packed", COMPRESSED)
def test_a_compressed_log_and_host_log(tmp_path: Path, packed: str) -> None:
    """A compressed log, and one beside it, give the run of the plain ones under an identity and name of their own."""
    (tmp_path / "gpu.csv").write_text(log())
    (tmp_path / "packed.csv.gz").write_bytes(PACKED[packed](log().encode()))
    (tmp_path / "host.log").write_bytes(PACKED[packed](HOST.encode()))
    plain = read(tmp_path / "gpu.csv")
    (inputs,) = find_runs(tmp_path / "packed.csv.gz", [tmp_path / "host.log"])
    recording = Reading(inputs, ReadOptions(), Labels()).recording()
    assert recording.rows_of("gpu:0").select(plain.series.column_names).to_pylist() == plain.series.to_pylist()
    assert len(recording.rows_of("host")) == 20
    assert recording.run.name == "packed"
    assert recording.run.id != plain.run.id


def test_a_cut_compressed_log_says_so(tmp_path: Path) -> None:
    """What is left of it is a run; its last line is a cut one."""
    content = PACKED["gzip"](log(4000).encode())
    (tmp_path / "gpu.csv").write_bytes(content[: len(content) // 2])
    quality = read(tmp_path / "gpu.csv").run.quality
    assert quality.rows_kept > 1000
    assert "The compressed log is cut: read up to there." in quality.notes


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (PACKED["gzip"](b""), "the file is empty; gpureport record -- COMMAND records one"),
        (PACKED["gzip"](b"x" * 100)[:10], "cut before its first line; copy or compress it again"),
        (b"PK\x03\x04" + b"\0" * 40, "a zip archive; unpack it and give the files in it"),
        (
            PACKED["gzip"](b"gpu.csv" + b"\0" * 250 + b"ustar  \0" + b"\0" * 500),
            "a tar archive; unpack it and give the files in it, or leave it out",
        ),
    ],
)
def test_what_cannot_be_read_is_told(tmp_path: Path, content: bytes, said: str) -> None:
    """Nothing in it, nothing left of it, or several files in it."""
    (tmp_path / "gpu.csv").write_bytes(content)
    with pytest.raises(SourceError, match=said):
        find_runs(tmp_path / "gpu.csv")


def test_the_identity_is_that_of_the_bytes(tmp_path: Path) -> None:
    """The id and the hash are those they have always been, asked for before or after the read."""
    (tmp_path / "gpu.csv").write_bytes(log(9).encode())
    (inputs,) = find_runs(tmp_path / "gpu.csv")
    early, late = (Reading(inputs, ReadOptions(), Labels()) for _ in range(2))
    hashed = sha256(log(9).encode()).hexdigest()
    expected = sha256(f"nvidia_smi {hashed}\ntz= gpus=\n".encode()).hexdigest()[:16]
    assert early.run_id == expected
    assert early.recording().run == late.recording().run
    assert (late.run_id, late.sources[0].bytes) == (expected, len(log(9)))


def test_a_log_that_changes_under_its_id_is_refused(tmp_path: Path) -> None:
    """Where the id was asked for first, other bytes are not taken for it."""
    (tmp_path / "gpu.csv").write_text(log(9))
    (inputs,) = find_runs(tmp_path / "gpu.csv")
    reading = Reading(inputs, ReadOptions(), Labels())
    assert reading.run_id
    (tmp_path / "gpu.csv").write_text(log(9).replace("90 %", "80 %"))
    with pytest.raises(SourceError, match="it changed while it was read"):
        list(reading.batches())


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    """A compressed log from a pipe is a run."""
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(PACKED["zstd"](log(9).encode()),))
    writer.start()
    recording = read(tmp_path / "pipe")
    writer.join()
    assert len(recording.series) == 9


def test_rotated_logs_are_one_run(tmp_path: Path) -> None:
    """Logs one after the other go on, in time order whatever order they are named in, with one identity and account."""
    first, second = write(tmp_path, b=rows(range(10)), a=rows(range(10, 20)))
    for path in (first, second):
        path.write_text(path.read_text().replace("250.00 W", "[N/A]", 2))
    for paths in ((first, second), (second, first)):
        recording = one(*paths).recording()
        assert seconds(recording, "gpu:0") == list(range(20))
        run = recording.run
        assert (run.quality.lines, run.quality.rows_kept, run.quality.headers) == (22, 20, 2)
        assert run.quality.absent_cells == (AbsentCells(column="power.draw", reason="N/A", cells=4),)
        assert (run.ended - run.started, run.interval) == (19_000_000, 1.0)
        assert run.quality.coverage_ratio == 1
        assert run.quality.accounted
    assert one(first, second).run_id == one(second, first).run_id != one(first).run_id
    assert one(first).run_id == read(first).run.id


def test_time_between_rotated_logs_is_a_gap(tmp_path: Path) -> None:
    """Nothing is known of the time in which no log was kept."""
    paths = write(tmp_path, a=rows(range(10)), b=rows(range(110, 120)))
    quality = one(*paths).recording().run.quality
    assert quality.gaps == (LogGap(device="gpu:0", start=STARTED + 9_000_000, end=STARTED + 110_000_000),)
    assert quality.coverage_ratio == pytest.approx(18 / 119)


def test_logs_of_nodes_are_one_run(tmp_path: Path) -> None:
    """GPUs of the same number at the same time are told apart by node; so are their hosts."""
    for node, util in (("n1", 90), ("n2", 20)):
        (tmp_path / node).mkdir()
        (tmp_path / node / "nvidia-smi.csv").write_text(rows(range(20), util=util) + "rubbish\n")
        (tmp_path / node / "host.csv").write_text(HOST)
    (recording,) = gpureport.read(tmp_path, as_one_run=True)
    assert [(device.id, device.node) for device in recording.run.devices] == [
        ("n1/gpu:0", "n1"),
        ("n2/gpu:0", "n2"),
        ("n1/host", "n1"),
        ("n2/host", "n2"),
    ]
    assert set(recording.rows_of("n2/gpu:0").column("gpu_utilization_ratio").to_pylist()) == {np.float32(0.2)}
    assert recording.run.name == tmp_path.name
    assert recording.run.quality.rejected == (Rejected(reason="wrong number of cells", rows=2, first_line=22),)
    assert recording.run.quality.accounted


def test_a_log_a_gpu_is_one_run(tmp_path: Path) -> None:
    """Logs of different GPUs of the same time stand side by side, with the host log named."""
    paths = write(tmp_path, a=rows(range(20), 0), b=rows(range(20), 1), host=HOST)
    recording = one(*paths[:2], host=(paths[2],)).recording()
    assert [device.id for device in recording.run.devices] == ["gpu:0", "gpu:1", "host"]
    assert recording.run.sources[1].locator == str(paths[1])


def test_a_log_named_twice_is_refused(tmp_path: Path) -> None:
    """A log does not go on in itself."""
    (path,) = write(tmp_path, a=log())
    with pytest.raises(SourceError, match="named twice for one run"):
        find_run_logs([path, path])


def test_a_bad_log_among_several_is_named(tmp_path: Path) -> None:
    """Of several logs the one that cannot be used is the one named."""
    paths = write(tmp_path, a=log(), b="timestamp, uuid\n2026/03/14 09:00:00.000, x\n")
    with pytest.raises(SourceError, match=r"b\.csv: no GPU metric among the columns"):
        one(*paths).recording()
    late = write(tmp_path, late=HOST.replace("2026", "2027"))
    with pytest.raises(SourceError, match=r"late\.csv: it covers another time than the GPU logs"):
        one(paths[0], host=(late[0],)).recording()


def test_options_that_are_not_used_are_no_part_of_the_identity(tmp_path: Path) -> None:
    """What a log tells itself is the same run with the option and without; what it does not is another."""

    def identity(*names: str, **options: Any) -> str:  # noqa: ANN401 - any option
        inputs = find_run_logs([tmp_path / name for name in names])
        return Reading(inputs, ReadOptions(**options), Labels(), as_one_run=True).run_id

    header, _, bare = log(9).partition("\n")
    timeless = "index, utilization.gpu [%]\n" + "0, 90 %\n" * 9
    for name, text in (("headed", log(9)), ("bare", bare), ("timeless", timeless)):
        (tmp_path / f"{name}.csv").write_text(text)
    names = tuple(heading.partition(" ")[0] for heading in header.split(", "))
    assert identity("headed.csv", columns=names, interval=2.0) == identity("headed.csv")
    assert identity("bare.csv") != identity("bare.csv", columns=names)
    assert identity("bare.csv", columns=names) == identity("bare.csv", columns=names, interval=2.0)
    assert identity("timeless.csv", interval=2.0) != identity("timeless.csv")
    both = identity("headed.csv", "bare.csv", columns=names)
    assert both != identity("headed.csv", "bare.csv")
    with pytest.raises(SettingsError, match="no query field 'a b'"):
        identity("headed.csv", columns=("a b",))

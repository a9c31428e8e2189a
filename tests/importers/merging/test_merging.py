"""Several logs of one machine become one series, and GPUs of several logs the devices of one run."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

from gpureport.errors import SourceError
from gpureport.testing import HOST, Recording
from tests.cli.program import Program
from tests.importers.accounts import column, kept, seconds
from tests.support.logs import log, read, stamp, write

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


def one(folder: Path, logs: dict[str, str]) -> Recording:
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
    recording = one(tmp_path, {"gpu.csv.1": gpus(EARLY, name, (0, a), (1, b)), "gpu.csv": swapped})
    assert (ids(recording), owners(recording)) == (["gpu:0", "gpu:1", "gpu:2"], [a, b, c])
    assert seconds(recording, "gpu:0") == list(range(120))
    logs = {"gpu.csv.1": gpus(EARLY, name, (0, a)), "gpu.csv": gpus(LATE, name, (0, b))}
    assert owners(one(tmp_path / "replaced", logs)) == [a, b]


def test_rotated_logs_may_overlap_by_seconds(tmp_path: Path) -> None:
    recording = one(tmp_path, {"gpu.csv.1": gpus((0, 62)), "gpu.csv": gpus(LATE, seed=2)})
    assert ids(recording) == ["gpu:0"]


@pytest.mark.parametrize(
    ("paths", "nodes"),
    [
        (("node1.csv", "node2.csv"), ("node1", "node2")),
        (("n1/nvidia-smi.csv", "n2/nvidia-smi.csv"), ("n1", "n2")),
    ],
)
@pytest.mark.parametrize("uuids", [("", ""), ("GPU-a", "GPU-b")])
def test_the_same_id_at_the_same_time_is_two_nodes(
    tmp_path: Path, paths: tuple[str, str], nodes: tuple[str, str], uuids: tuple[str, str]
) -> None:
    """Two logs that hold `gpu:0` at once come from two machines, named by file or folder."""
    name = "uuid" if uuids[0] else ""
    logs = {path: gpus(BOTH, name, (0, own), seed=n) for n, (path, own) in enumerate(zip(paths, uuids, strict=True), 1)}
    recording = one(tmp_path, logs)
    assert [(device.id, device.node) for device in recording.run.devices] == [(f"{n}/gpu:0", n) for n in nodes]
    # what is sure is not told as a guess
    assert bool(recording.run.quality.notes) == (not name)


def test_nodes_whose_logs_were_rotated(tmp_path: Path) -> None:
    logs = {
        f"{node}.csv{end}": gpus(span, seed=seed)
        for seed, node in enumerate("ab", 1)
        for end, span in (("", LATE), (".1", EARLY))
    }
    logs["b-host.csv"] = host("cpu_percent", range(120), range(120))
    assert sorted(ids(one(tmp_path, logs))) == ["a/gpu:0", "b/gpu:0", "b/host"]


def test_one_host_log_of_no_node_is_everybodys(tmp_path: Path) -> None:
    logs = {f"{node}.csv": gpus(BOTH, seed=seed) for seed, node in enumerate("ab", 1)}
    recording = one(tmp_path, logs | {"cpu.csv": host("cpu_percent", range(120), range(120))})
    assert [(device.id, device.node) for device in recording.run.devices if device.index is None] == [("host", None)]


@pytest.mark.parametrize("name", ["uuid", "serial"])
def test_one_gpu_in_two_logs_at_a_time_is_one(tmp_path: Path, name: str) -> None:
    recording = one(tmp_path, {"a.csv": gpus(EARLY, name, (0, "GPU-a")), "b.csv": gpus((30, 120), name, (3, "GPU-a"))})
    assert ids(recording) == ["gpu:0"]


def test_gpus_of_one_board_stay_two(tmp_path: Path) -> None:
    board = gpus(EARLY, "serial", (0, "1"), (1, "1"))
    assert ids(one(tmp_path, {"a.csv": board, "b.csv": board})) == ["gpu:0", "gpu:1"]


def test_logs_that_say_the_same_are_one_machines(tmp_path: Path) -> None:
    logs = {f"{name}/gpu.csv": gpus(BOTH, seed=seed) for name, seed in (("n1", 1), ("n2", 2), ("copy-of-n1", 1))}
    assert len(ids(one(tmp_path, logs))) == 2


def test_a_note_names_few_of_many_logs(tmp_path: Path) -> None:
    recording = one(tmp_path, {f"n{number:02}/gpu.csv": gpus(EARLY, seed=1 + number) for number in range(16)})
    (note,) = [note for note in recording.run.quality.notes if "several machines" in note]
    assert ("n02" in note, "n03" in note, "13" in note) == (True, False, True)


def host(name: str, times: Iterable[float], values: Iterable[float]) -> str:
    """Return a host log of one column, times in seconds of the log's hour."""
    rows = (f"{stamp(time)},{value}\n" for time, value in zip(times, values, strict=True))
    return f"timestamp,{name}\n" + "".join(rows)


def beside(folder: Path, cpu: str, io: str) -> Recording:
    gpu, *hosts = write(folder, gpu=log(20), cpu=cpu, io=io)
    return read(gpu, host=hosts)


def cells(recording: Recording, name: str = "cpu_iowait_ratio") -> list[float | None]:
    return [None if cell is None else round(cell, 3) for cell in column(recording, name, HOST)]


def test_readings_stand_beside_the_rows_they_cover(tmp_path: Path) -> None:
    cpu = host("cpu_percent", [1, 2, 3, 4], [10, 20, 30, 40])
    recording = beside(tmp_path, cpu, host("iowait_percent", [1.4, 2.4, 3.4, 4.4], [1, 2, 3, 4]))
    assert cells(recording, "cpu_utilization_ratio") == [0.1, 0.2, 0.3, 0.4]
    assert cells(recording) == [0.01, 0.02, 0.03, 0.04]
    assert (kept(recording), recording.run.quality.continued, ids(recording)) == (24, 4, ["gpu:0", HOST])


@pytest.mark.parametrize(
    ("cpu", "io", "expected", "rows"),
    [
        # of one that ends a fifth of a second before the row and one that ends four fifths after it, the first
        ([2, 3, 4], {1.8: 2, 2.8: 3, 3.8: 4}, [0.02, 0.03, 0.04], 23),
        # a reading of four seconds holds for the four rows it covers; before and after it there is none
        (range(1, 13), {4: 4, 8: 8}, [0.04] * 4 + [0.08] * 4 + [None] * 4, 32),
    ],
)
def test_logs_of_different_rates(
    tmp_path: Path, cpu: Iterable[int], io: dict[float, int], expected: list[float | None], rows: int
) -> None:
    recording = beside(tmp_path, host("cpu_percent", cpu, cpu), host("iowait_percent", io, io.values()))
    assert (cells(recording), kept(recording)) == (expected, rows)


def test_the_same_metric_twice_is_refused(tmp_path: Path) -> None:
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

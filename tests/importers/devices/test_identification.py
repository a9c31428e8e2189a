"""Which GPU a row belongs to."""

from pathlib import Path

import numpy as np

from gpureport import columns
from gpureport.importers.devices.column_values import Values
from gpureport.importers.devices.identification import Devices
from gpureport.testing import Rejected
from tests.importers.written_logs import read_text


def log_of(header: str, *rows: str) -> str:
    """Return a log with one row a second."""
    stamped = [f"2026/03/14 09:00:{second:02d}.000, {row}" for second, row in enumerate(rows)]
    return "\n".join([f"timestamp, {header}", *stamped, ""])


def test_a_uuid_outlives_an_index(tmp_path: Path) -> None:
    """After a reboot swapped the indices, rows still belong to the GPU of their uuid."""
    rows = ["0, GPU-a, 10 %", "1, GPU-b, 20 %", "1, GPU-a, 11 %", "0, GPU-b, 21 %"]
    recording = read_text(tmp_path, log_of("index, uuid, utilization.gpu [%]", *rows))
    assert [device.uuid for device in recording.run.devices] == ["GPU-a", "GPU-b"]
    utilisation = columns.floats(recording.rows_of("gpu:0").column("gpu_utilization_ratio"))
    assert [round(value * 100) for value in utilisation.tolist()] == [10, 11]


def test_a_bus_id_is_enough(tmp_path: Path) -> None:
    """Without an index GPUs are numbered in the order they come."""
    rows = ["00000000:0B:00.0, 10 %", "00000000:0A:00.0, 20 %"]
    devices = read_text(tmp_path, log_of("pci.bus_id, utilization.gpu [%]", *rows)).run.devices
    assert [(device.id, device.bus_id) for device in devices] == [
        ("gpu:0", "00000000:0B:00.0"),
        ("gpu:1", "00000000:0A:00.0"),
    ]


def test_indices_win_over_a_shared_bus_id(tmp_path: Path) -> None:
    """Two indices at one moment are two GPUs, whatever their bus id says."""
    text = "timestamp, index, pci.bus_id, utilization.gpu [%]\n" + "".join(
        f"2026/03/14 09:00:00.000, {gpu}, 00000000:0A:00.0, 5 %\n" for gpu in range(2)
    )
    assert len(read_text(tmp_path, text).run.devices) == 2


def test_an_unreadable_uuid_falls_back_to_the_index(tmp_path: Path) -> None:
    """A driver that answers N/A for a while does not make a new GPU."""
    header = "index, uuid, utilization.gpu [%]"
    later = f"timestamp, {header}, fan.speed [%]\n2026/03/14 09:00:05.000, 3, [N/A], 9 %, 5 %\n"
    text = log_of(header, "3, GPU-a, 10 %") + later
    recording = read_text(tmp_path, text)
    assert [(device.id, device.uuid) for device in recording.run.devices] == [("gpu:3", "GPU-a")]
    assert len(recording.rows_of("gpu:3")) == 2


def test_what_the_log_says_of_a_gpu(tmp_path: Path) -> None:
    """Model, driver, memory, limits and what power averages over come from the log and the GPU table."""
    memory, power = "memory.total [MiB], memory.reserved [MiB]", "power.draw [W], power.limit [W]"
    header = f"index, name, driver_version, {memory}, {power}, utilization.gpu [%]"
    row = "0, NVIDIA L4, 550.90.07, 23034 MiB, 556 MiB, 30.00 W, 72.00 W, 5 %"
    (device,) = read_text(tmp_path, log_of(header, row)).run.devices
    assert (device.model, device.driver, device.power_limit_watts) == ("NVIDIA L4", "550.90.07", 72.0)
    assert (device.memory_total_bytes, device.memory_reserved_bytes) == (23034 * 2**20, 556 * 2**20)
    assert device.power_window == "1 s"


def test_a_row_without_a_name_joins_no_gpu(tmp_path: Path) -> None:
    """With two GPUs known, a row whose id cannot be read is rejected, not given to one of them or to a third."""
    rows = [f"2026/03/14 09:00:{second:02d}.{gpu}00, {gpu}, {gpu}0 %" for second in range(20) for gpu in range(2)]
    rows[7] = rows[7].replace(", 1, ", ", [N/A], ")
    run = read_text(tmp_path, "\n".join(["timestamp, index, utilization.gpu [%]", *rows, ""])).run
    assert [device.id for device in run.devices] == ["gpu:0", "gpu:1"]
    assert run.quality.rejected == (Rejected(reason="GPU not named", rows=1, first_line=9),)
    assert run.quality.accounted


def test_a_serial_two_gpus_share_is_no_name(tmp_path: Path) -> None:
    """Boards with two GPUs have one serial; their rows lie milliseconds apart."""
    rows = [f"2026/03/14 09:00:{second:02d}.00{gpu}, 0, {gpu}, {gpu}0 %" for second in range(9) for gpu in range(2)]
    recording = read_text(tmp_path, "\n".join(["timestamp, serial, index, utilization.gpu [%]", *rows, ""]))
    assert [len(recording.rows_of(gpu)) for gpu in ("gpu:0", "gpu:1")] == [9, 9]


def test_the_power_window_follows_the_column_that_is_used(tmp_path: Path) -> None:
    """`power.draw` fills the column wherever it stands; the average beside it says nothing about it."""
    header = "name, power.draw.average [W], power.draw [W]"
    recording = read_text(tmp_path, log_of(header, "Tesla V100-SXM2-16GB, [N/A], 123.00 W"))
    assert recording.series.column("gpu_power_watts").to_pylist() == [123.0]
    assert recording.run.devices[0].power_window == "instant"


def test_columns_of_one_name_are_all_kept(tmp_path: Path) -> None:
    """Nothing that was logged is lost because something else has its name."""
    header = "utilization.gpu [%], utilization.gpu [%], utilization.gpu [%], foo.bar, foo_bar"
    recording = read_text(tmp_path, log_of(header, "1 %, 2 %, 3 %, x, y"))
    extras = {name: recording.series.column(name).to_pylist() for name in recording.series.column_names[4:]}
    assert extras == {
        "extra_foo_bar": ["x"],
        "extra_foo_bar_2": ["y"],
        "extra_utilization_gpu": ["2 %"],
        "extra_utilization_gpu_2": ["3 %"],
    }


def test_many_gpus_are_told_apart() -> None:
    """Ten thousand names are as many GPUs."""
    count = 10_000
    codes = np.arange(count, dtype=np.int32).repeat(2)
    names = Values(codes, np.ones(2 * count, dtype=np.bool_), [f"GPU-{gpu}" for gpu in range(count)])
    devices = Devices(None)
    found, ids = devices.assign({"uuid": names}, np.arange(2 * count))
    assert found.tolist() == codes.tolist()
    assert len(ids) == count

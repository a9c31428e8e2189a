"""The host log: what it writes is read back, and nothing is written that was not measured."""

import os
import re
import time
from pathlib import Path

import numpy as np
import pytest

from gpureport.recorder.host_log import HostLog, is_disk, measure_cores, measure_disks, measure_rates
from tests.importers.accounts import lines
from tests.importers.logs.host.series import text, values

HOST = {
    "cpu_utilization_ratio",
    "cpu_busiest_core_ratio",
    "cpu_logical_cores",
    "host_memory_used_bytes",
    "host_memory_total_bytes",
    "host_memory_used_ratio",
    "host_network_receive_bytes_per_second",
    "host_network_transmit_bytes_per_second",
}
JOB = {"job_cpu_cores", "process_cpu_cores", "process_memory_used_bytes"}
ROW = "2026/11/23 23:18:56.886,50.7,100.0,1.0,0.50,2,1561,24106,6.5,10,20,30,40,1.25,0.75,16"
HEADER = (
    "timestamp,cpu_percent,cpu_0_percent,cpu_1_percent,iowait_percent,cpu_count,memory_used_mib,memory_total_mib,"
    "memory_percent,disk_read_bytes_per_second,disk_write_bytes_per_second,network_receive_bytes_per_second,"
    "network_transmit_bytes_per_second,job_cpu_cores,process_cpu_cores,process_memory_mib"
)


def _samples(log: HostLog, count: int) -> list[str]:
    found: list[str] = []
    while len(found) < count:
        # the system counts hundredths of a second
        time.sleep(0.05)
        line = log.sample()
        found += [line] if line else []
    return found


@pytest.mark.parametrize("has_job", [False, True])
def test_all_of_it_is_read_back(tmp_path: Path, *, has_job: bool) -> None:
    """Each column becomes a metric, and none is left over."""
    log = HostLog(has_job=has_job)
    if has_job:
        log.watch_job(os.getpid())
    found = text(tmp_path, lines(log.header(), *_samples(log, 3)))
    assert found.outcome.quality.notes == ()
    assert found.outcome.quality.rejected == ()
    assert len(found.table) == 3
    columns = set(found.table.column_names)
    assert columns >= HOST | (JOB if has_job else set())
    assert not [name for name in columns if name.startswith("extra_")]
    assert has_job or not columns & JOB


def test_every_column_on_linux(tmp_path: Path) -> None:
    """The values of a row are those of its metrics."""
    found = text(tmp_path, lines(HEADER, ROW))
    expected = {
        "cpu_utilization_ratio": 0.507,
        "cpu_busiest_core_ratio": 1,
        "cpu_iowait_ratio": 0.005,
        "cpu_logical_cores": 2,
        "host_memory_used_bytes": 1561 * 2**20,
        "host_memory_total_bytes": 24106 * 2**20,
        "host_memory_used_ratio": 0.065,
        "host_disk_read_bytes_per_second": 10,
        "host_disk_write_bytes_per_second": 20,
        "host_network_receive_bytes_per_second": 30,
        "host_network_transmit_bytes_per_second": 40,
        "job_cpu_cores": 1.25,
        "process_cpu_cores": 0.75,
        "process_memory_used_bytes": 16 * 2**20,
    }
    assert {name: values(found, name)[0] for name in expected} == expected
    assert found.outcome.quality.notes == ()


def test_stamps_and_cells() -> None:
    """A line has a cell for each heading, and a stamp as nvidia-smi writes it."""
    log = HostLog(has_job=True)
    (line,) = _samples(log, 1)
    assert len(line.split(",")) == len(log.header().split(","))
    # no job has begun
    assert line.endswith(",,,")
    assert re.match(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3},", line)


def test_shares_of_cores() -> None:
    """Waiting for storage is not work, the time of guests is counted once, and a counter set back is no negative."""
    last = [{"user": 10.0, "guest": 5.0, "idle": 10.0, "iowait": 3.0}, {"user": 0.0, "idle": 20.0, "iowait": 3.0}]
    now = [{"user": 10.5, "guest": 5.5, "idle": 10.25, "iowait": 3.25}, {"user": 0.0, "idle": 21.0, "iowait": 2.0}]
    cpu, cores, iowait = measure_cores(last, now)
    assert cpu == pytest.approx(25)
    assert cores == [50, 0]
    assert iowait == pytest.approx(12.5)


def test_cores_switched_off_or_without_time_have_no_share() -> None:
    """No value is better than a false 0."""
    core = {"user": 1.0, "idle": 1.0}
    assert measure_cores([core, core], [core]) == (None, [None], None)
    assert measure_cores([core], [core]) == (None, [None], None)


def test_rates() -> None:
    """A counter that began anew, and a disk that came or went, give no rate of their own."""
    assert measure_rates((100, 50), (300, 40), 2) == [100, None]
    assert measure_rates((100, 50), None, 2) == [None, None]
    assert measure_disks({"a": (0, 0), "gone": (9, 9)}, {"a": (20, 40), "new": (500, 500)}, 2) == [10, 20]
    assert measure_disks({"a": (0, 0)}, {}, 1) == [None, None]


def test_disks(tmp_path: Path) -> None:
    """A partition, a volume made of disks and a file mounted as a disk would count bytes twice."""
    for name in ("sda", "dm-0", "loop0", "nvme0n1"):
        (tmp_path / name / "slaves").mkdir(parents=True)
    (tmp_path / "dm-0" / "slaves" / "sda").touch()
    names = ["sda", "sda1", "dm-0", "loop0", "nvme0n1", "nvme0n1p1"]
    assert [name for name in names if is_disk(name, tmp_path)] == ["sda", "nvme0n1"]
    assert is_disk("PhysicalDrive0", tmp_path / "none")


def test_no_value_is_an_empty_cell(tmp_path: Path) -> None:
    """The job has ended: its columns hold nothing, and nothing else is touched."""
    cells = ROW.split(",")
    found = text(tmp_path, lines(HEADER, ROW, ",".join([*cells[:-3], "", "", ""]).replace("56.886", "57.886")))
    assert values(found, "job_cpu_cores") == [1.25, None]
    assert np.isclose(found.column("cpu_utilization_ratio"), 0.507).all()

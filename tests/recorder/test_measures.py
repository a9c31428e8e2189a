"""What is computed from the counters of the system: no recording shows these figures alone, so they are called."""

from pathlib import Path

import pytest

from gpureport.recorder import host_log
from gpureport.recorder.host_log import Load, ProcessSnapshot, Usage
from gpureport.recorder.job_params import read_limit, read_quota


def usage(own: float, *, waited: float = 0, parent: int = 1, start: float = 0, memory: int = 100) -> Usage:
    return Usage(parent, start, own, waited, memory)


Look = tuple[float, dict[int, Usage]]
"""When all processes of a job were looked at, and what each had used."""
LOADS: tuple[tuple[Look | None, Look, float, float | None], ...] = (
    # seconds of a processor in a second are cores
    ((10, {7: usage(5), 8: usage(1)}), (12, {7: usage(7), 8: usage(2, memory=300), 9: usage(1, parent=7)}), 10, 2.0),
    # what a process used before is not the load of now
    (None, (10, {7: usage(500)}), 0, None),
    # a process that ended is counted once: its parent takes over its time, also of one between two looks
    ((10, {7: usage(5), 8: usage(20, parent=7)}), (11, {7: usage(5, waited=20.5)}), 10, 0.5),
    ((10, {7: usage(5)}), (11, {7: usage(5, waited=0.25)}), 10, 0.25),
    # one that nobody waited for takes nothing off
    ((10, {7: usage(5), 8: usage(20, parent=7)}), (11, {7: usage(6)}), 10, 1.0),
    # one that is found late may have worked for many seconds before the last look
    ((10, {7: usage(5)}), (11, {7: usage(5.5, waited=9), 9: usage(8, parent=7)}), 3, 0.5),
    # nothing is said of a job that ended
    ((10, {7: usage(5)}), (11, {}), 10, None),
)


@pytest.mark.parametrize(("last", "now", "searched", "cores"), LOADS)
def test_load_of_a_job(last: Look | None, now: Look, searched: float, cores: float | None) -> None:
    before = None if last is None else ProcessSnapshot(*last)
    load = host_log.measure_load(before, ProcessSnapshot(*now), searched=searched)
    assert load.cores == (None if cores is None else pytest.approx(cores))
    assert now[1] or load == Load(None, None, None)
    assert 8 not in now[1] or load == Load(2, 1, 300)


def test_members_of_a_job() -> None:
    everyone = {7: usage(0), 8: usage(0, parent=7), 9: usage(0, parent=8), 20: usage(0), 21: usage(0, parent=20)}
    everyone |= {30: usage(0, start=5), 40: usage(0)}
    known = {7: everyone[7], 20: everyone[20], 30: usage(0, parent=7)}
    assert set(host_log.find_members(known, everyone)) == {7, 8, 9, 20, 21}
    assert host_log.find_members({30: known[30]}, everyone) == {}
    # the name of a program may hold blanks and brackets
    fields = ["S", "42", *["0"] * 9, "150", "50", "300", "100", *["0"] * 4, "777", "0", "25"]
    found = host_log.parse_stat(f"9 (a) b) {' '.join(fields)}", 100, 4096)
    assert found == Usage(parent=42, start=777, own=2, waited=4, memory=25 * 4096)


def test_rates_of_disks(tmp_path: Path) -> None:
    assert host_log.measure_rates((100, 50), (300, 40), 2) == [100, None]
    assert host_log.measure_rates((100, 50), None, 2) == [None, None]
    assert host_log.measure_disks({"a": (0, 0), "gone": (9, 9)}, {"a": (20, 40), "new": (500, 500)}, 2) == [10, 20]
    assert host_log.measure_disks({"a": (0, 0)}, {}, 1) == [None, None]
    for name in ("sda", "dm-0", "loop0", "nvme0n1"):
        (tmp_path / name / "slaves").mkdir(parents=True)
    (tmp_path / "dm-0" / "slaves" / "sda").touch()
    names = ["sda", "sda1", "dm-0", "loop0", "nvme0n1", "nvme0n1p1"]
    assert [name for name in names if host_log.is_disk(name, tmp_path)] == ["sda", "nvme0n1"]


def test_limits_of_a_container(tmp_path: Path) -> None:
    assert read_quota(tmp_path) is None
    files = {"cpu.max": {"50000 100000": 0.5, "max 100000": None}, "cpu/cpu.cfs_quota_us": {"150000": 1.5, "-1": None}}
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu/cpu.cfs_period_us").write_text("100000\n")
    for name, texts in files.items():
        for text, cores in texts.items():
            (tmp_path / name).write_text(f"{text}\n")
            assert read_quota(tmp_path) == cores, text
        (tmp_path / name).unlink()
    for text, limit in {"max": None, "1024": 1024}.items():
        (tmp_path / "memory.max").write_text(f"{text}\n")
        assert read_limit(tmp_path / "none", tmp_path / "memory.max") == limit

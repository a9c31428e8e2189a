"""What a recording holds, and what is computed from counters of the system."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpureport.recorder import host_log
from gpureport.recorder.host_log import Load, ProcessSnapshot, Usage
from gpureport.recorder.job_params import read_limit, read_quota
from gpureport.testing import Recording
from tests.recorder.recorded import count_rows, read_run_file
from tests.support.logs import read
from tests.support.program import Program
from tests.support.tables import read_table

HOST = {
    *("cpu_utilization_ratio", "cpu_busiest_core_ratio", "cpu_logical_cores", "host_memory_used_bytes"),
    *("host_memory_total_bytes", "host_memory_used_ratio", "host_network_receive_bytes_per_second"),
    "host_network_transmit_bytes_per_second",
}
JOB = {"job_cpu_cores", "process_cpu_cores", "process_memory_used_bytes"}
WORK = "import time; end = time.time() + 1.5\nwhile time.time() < end: sum(range(1000))"
SEEN = {"cpu_cores", "memory", "python_version"}


@pytest.fixture
def record(gpureport: Program, tmp_path: Path) -> Any:
    def call(*words: str) -> Path:
        folder = tmp_path / f"rec{len(list(tmp_path.glob('rec*')))}"
        assert gpureport("record", "-o", str(folder), "--interval", "0.1", *words).code == 0
        return folder

    return call


def fields(folder: Path) -> list[str]:
    return [name.partition(" ")[0] for name in (folder / "gpu.csv").read_text().splitlines()[0].split(", ")]


@pytest.mark.slow
def test_what_the_driver_knows_is_logged(record: Any, stand_in_driver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stand_in_driver.exists()
    whole = record("--", "sleep", "1")
    new = "clocks_event_reasons.active"
    assert {"timestamp", "uuid", "utilization.gpu", "mig.mode.current", new} < {*fields(whole)}
    assert "GPM:" in (whole / "dmon.log").read_text()
    monkeypatch.setenv("STAND_IN_UNKNOWN", f"{new},temperature.gpu.tlimit")
    monkeypatch.setenv("STAND_IN_REFUSED", "mig.mode.current,temperature.memory")
    monkeypatch.setenv("STAND_IN_DMON", "no-gpm")
    less = record("--", "sleep", "1")
    assert {*fields(whole)} - {*fields(less)} == {"temperature.gpu.tlimit", "mig.mode.current", "temperature.memory"}
    text = (less / "dmon.log").read_text()
    assert ("rxpci" in text, "GPM:" in text) == (True, False)
    assert count_rows(less / "gpu.csv") > 5


def test_a_driver_without_gpus_is_an_error(gpureport: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "nvidia-smi"
    path.write_text("#!/bin/sh\necho No devices were found\nexit 6\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    done = gpureport("record", "-o", "rec", "--", "true")
    assert (done.code, done.err.count("\n"), "No devices were found" in done.err) == (3, 1, True)


def load(folder: Path) -> Recording:
    """Return what a recording without GPUs holds; every line and column is understood."""
    found = read(folder)
    assert (found.run.quality.rejected, [each for each in found.series.column_names if "extra_" in each]) == ((), [])
    return found


def test_the_load_of_machine_and_job(record: Any) -> None:
    found = load(record("--host-only", "--", sys.executable, "-c", WORK))
    assert {*found.series.column_names} >= HOST | JOB
    cores = found.series.column("job_cpu_cores").drop_null().to_numpy()
    assert 0.1 < np.median(cores[cores > 0]) < 1.5
    text = next(iter(found.run.sources)).locator
    header, *rows = Path(text).read_text().splitlines()
    assert {len(line.split(",")) for line in rows} == {len(header.split(","))}
    assert all(time.strptime(line[:19], "%Y/%m/%d %H:%M:%S") for line in rows)


@pytest.mark.slow
def test_what_can_be_seen_of_a_job(record: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    for words, *expected in read_table(Path(__file__).with_name("job_words.tsv")):
        params = read_run_file(record("--host-only", "--", *words.split()))["params"]
        own = {f"{name}={params[name]}" for name in params if name not in SEEN and not name.endswith("_version")}
        assert own == {*expected}, words
    variables = {"CUDA_VISIBLE_DEVICES": "0,1", "NCCL_DEBUG": "INFO", "XLA_FLAGS": "--a=b --token abc", "RANK": ""}
    for name, value in {**variables, "HF_TOKEN": "abc", "NCCL_": "x"}.items():
        monkeypatch.setenv(name, value)
    folder = record("--host-only", "--", sys.executable, "-c", "pass", "--batch-size", "64")
    params = read_run_file(folder)["params"]
    assert params["numpy_version"] == np.__version__
    assert params["python_version"] == ".".join(map(str, sys.version_info[:3]))
    assert float(params["cpu_cores"]) > 0
    assert (params["CUDA_VISIBLE_DEVICES"], params["NCCL_DEBUG"], params["batch_size"]) == ("0,1", "INFO", "64")
    assert params["XLA_FLAGS"] == "--a=b --token ***"
    assert {"RANK", "NCCL_", "HF_TOKEN"}.isdisjoint(params)
    assert "abc" not in json.dumps(read_run_file(folder))


def test_another_environment_has_no_known_python(record: Any, tmp_path: Path) -> None:
    job = tmp_path / "docker"
    job.write_text("#!/bin/sh\n")
    job.chmod(0o755)
    params = read_run_file(record("--host-only", "--", str(job), "run", "image", "python", "train.py"))["params"]
    assert not [name for name in params if name.endswith("_version")]


@pytest.mark.slow
def test_whose_job_it_is(record: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    slurm = {"SLURM_JOB_ID": "4418", "SLURM_ARRAY_JOB_ID": "4411", "SLURM_ARRAY_TASK_ID": "7", "SLURM_JOB_NAME": "x"}
    slurm |= {"SLURM_JOB_USER": "ada", "SLURM_JOB_ACCOUNT": "vision", "SLURMD_NODENAME": "gpu01"}
    cluster = {"POD_NAME": "train-0", "POD_NAMESPACE": "vision", "NODE_NAME": "n1", "LOGNAME": "root"}
    cases = (
        (slurm, {"user": "ada", "account": "vision", "job": "4411_7", "job_name": "x", "node": "gpu01"}),
        (cluster, {"node": "n1", "pod": "train-0", "namespace": "vision"}),
        ({"LOGNAME": "bob"}, {"user": "bob"}),
    )
    for variables, expected in cases:
        with monkeypatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            assert read_run_file(record("--host-only", "--", "true"))["tags"] == expected


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

"""Logs of the machine: what several tools say of the same seconds is the same, in captures and on this machine."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from gpureport.errors import GpureportError
from gpureport.testing import HOST
from tests.readers.pairs import PAIRS, check_account
from tests.support.logs import read

CAPTURES = PAIRS / "host"
"""What the tools printed side by side for half a minute, on a machine in Berlin with two cores."""
LOCAL = 3_600_000_000
"""How far local time was ahead of UTC, in microseconds, in the captures as below."""
BEGAN = 1_795_276_759_000_000
"""When the captures began, in UTC."""
CPU, CORE, WAIT, CORES = "cpu_utilization_ratio", "cpu_busiest_core_ratio", "cpu_iowait_ratio", "process_cpu_cores"
_STARTS_IN_UTC = ("psutil", "sadf_json", "sadf_epoch", "sadf_utc", "vmstat_utc")
SECONDS = 20
_LOAD = """
import math, time
start = time.time()
while (now := time.time()) < start + 40:
    duty = 0.5 + 0.4 * math.sin((now - start) / 5)
    while time.time() < now + 0.1 * duty: pass
    time.sleep(0.1 * (1 - duty))
"""
_PSUTIL = """
import sys, time, psutil
watched = psutil.Process(int(sys.argv[1]))
psutil.cpu_percent(percpu=True), psutil.cpu_times_percent(), watched.cpu_percent()
print("unix,cpu_percent,iowait," + ",".join(f"cpu{n}" for n in range(psutil.cpu_count())) + ",process_cpu_percent")
for _ in range(int(sys.argv[2])):
    time.sleep(1)
    cores, waiting = psutil.cpu_percent(percpu=True), psutil.cpu_times_percent().iowait
    print(time.time(), sum(cores) / len(cores), waiting, *cores, watched.cpu_percent(), sep=",", flush=True)
"""
TOOLS = {
    "sar": ["sar", "-u", "-r", "-b", "-P", "ALL", "1"],
    "mpstat": ["mpstat", "-P", "ALL", "1"],
    "mpstat JSON": ["mpstat", "-P", "ALL", "-o", "JSON", "1"],
    "pidstat": ["pidstat", "-u", "-r", "-d", "-h", "-p", "PID", "1"],
    "vmstat": ["vmstat", "-t", "1"],
    "top": ["top", "-b", "-d", "1", "-p", "PID", "-n"],
}


@dataclass(frozen=True, slots=True)
class Machine:
    """A log of a machine: its times in UTC, in microseconds, and its metrics."""

    times: npt.NDArray[np.int64]
    metrics: dict[str, npt.NDArray[np.float64]]

    def mean(self, name: str, start: int, end: int) -> float:
        return float(np.nanmean(self.metrics[name][(self.times >= start) & (self.times <= end)]))

    def over(self, name: str, start: int, end: int) -> float:
        """Return the mean over exactly the time between two moments; a row covers what is before it."""
        known = ~np.isnan(self.metrics[name])
        at, value = self.times[known].astype(np.float64), self.metrics[name][known]
        whole = np.concatenate([[0.0], np.cumsum(value[1:] * np.diff(at))])
        first, last = np.interp([start, end], at, whole)
        return float(last - first) / (end - start)


def machine(folder: Path, path: Path, began: int, *, utc: bool) -> Machine:
    """Return a log read beside one of a GPU, which begins at the same time and dates it."""
    moments = [began + (0 if utc else LOCAL) + second * 1_000_000 for second in (0, 29)]
    stamps = [f"{datetime.fromtimestamp(moment / 1e6, UTC):%Y/%m/%d %H:%M:%S.000}" for moment in moments]
    gpu = folder / "gpu.csv"
    gpu.write_text("timestamp, utilization.gpu [%]\n" + "".join(f"{stamp}, 5 %\n" for stamp in stamps))
    recording = read(gpu, host=path, tz="UTC" if utc else None)
    check_account(recording)
    rows = recording.rows_of(HOST)
    times = rows.column("timestamp").to_numpy().astype("datetime64[us]").astype(np.int64) - (0 if utc else LOCAL)
    names = [name for name in rows.column_names if name not in {"device", "timestamp", "imputed"}]
    metrics = {name: rows.column(name).to_numpy().astype(np.float64) for name in names}
    return Machine(times, {name: values for name, values in metrics.items() if not np.isnan(values).all()})


def captured(folder: Path, name: str) -> Machine:
    (path,) = (each for each in CAPTURES.glob(f"captured_{name}.*") if each.suffix != ".json")
    return machine(folder, path, BEGAN, utc=name in _STARTS_IN_UTC)


NAMES = sorted(path.stem.removeprefix("captured_") for path in CAPTURES.glob("captured_*.json"))


def test_means_are_those_of_psutil(tmp_path: Path) -> None:
    reference = captured(tmp_path, "psutil")
    for name in NAMES:
        found = captured(tmp_path, name)
        low = max(reference.times[0], found.times[0]) - 600_000
        high = min(reference.times[-1], found.times[-1]) + 600_000
        allowed = 0.015 if name.startswith(("top", "vmstat")) else 0.01
        for metric in {CPU, CORE, WAIT, CORES} & found.metrics.keys():
            expected = reference.mean(metric, low, high)
            assert found.mean(metric, low, high) == pytest.approx(expected, abs=allowed), (name, metric)
        cores = found.metrics.get("cpu_logical_cores", np.array([2.0]))
        assert set(cores[~np.isnan(cores)].tolist()) == {2}, name


def test_top_and_psutil_agree_on_memory(tmp_path: Path) -> None:
    reference = captured(tmp_path, "psutil").metrics
    for name in ("top", "top_cores"):
        found = captured(tmp_path, name).metrics
        total, used = "host_memory_total_bytes", "host_memory_used_bytes"
        assert found[total].max() == pytest.approx(reference[total].max(), rel=0.001)
        assert found[used].mean() == pytest.approx(reference[used].mean(), rel=0.05)


def test_json_of_sadf(tmp_path: Path) -> None:
    content = (CAPTURES / "captured_sadf_json.txt").read_text(encoding="utf-8")
    path, whole = tmp_path / "host.txt", captured(tmp_path, "sadf_json")
    # on one line; with a damaged object, of which there is another row each time
    path.write_text(json.dumps(json.loads(content)), encoding="utf-8")
    assert machine(tmp_path, path, BEGAN, utc=True).times.tolist() == whole.times.tolist()
    path.write_text(content.replace('"idle": ', '"idle" ', 1), encoding="utf-8")
    assert machine(tmp_path, path, BEGAN, utc=True).times.tolist() == whole.times.tolist()[1:]
    path.write_text(content.replace('"utc": 1', '"utc": 0', 1), encoding="utf-8")
    assert len(machine(tmp_path, path, BEGAN, utc=True).times) == 1
    opening = '{"sysstat": {"hosts": [{"file-date": "2026-11-21", "statistics": [\n'
    stamp = '{"timestamp": {"date": "2026-11-21", "time": "15:00:01", "utc": 1}, "queue": {"ldavg-1": 1e400}}\n'
    for text in ('{"timestamp": ' + "[" * 50_000, stamp):
        path.write_text(opening + text, encoding="utf-8")
        with pytest.raises(GpureportError):
            machine(tmp_path, path, BEGAN, utc=True)


@contextmanager
def load() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", _LOAD]) as process:
        try:
            yield process.pid
        finally:
            process.kill()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    pytest.importorskip("psutil", reason="psutil is not installed")
    missing = [command[0] for command in TOOLS.values() if shutil.which(command[0]) is None]
    if missing or shutil.which("sadf") is None:
        pytest.skip(f"not installed: {', '.join([*missing, 'sadf'])}")
    folder = tmp_path_factory.mktemp("recorded")
    environment = {**os.environ, "TZ": "Etc/GMT-1", "LC_ALL": "C"}
    with load() as pid:
        commands = {
            name: [word.replace("PID", str(pid)) for word in (*command, str(SECONDS))]
            for name, command in TOOLS.items()
        }
        commands["binary"] = ["sar", "-A", "-o", str(folder / "bin"), "1", str(SECONDS)]
        commands["psutil"] = [sys.executable, "-c", _PSUTIL, str(pid), str(SECONDS + 1)]
        _run(folder, commands, environment)
    for name, options in (("sadf -d", ["-d"]), ("sadf -j", ["-j"]), ("sadf -dU", ["-dU"])):
        command = ["sadf", *options, str(folder / "bin"), "--", "-u", "-P", "ALL", "-r", "-b"]
        (folder / name).write_bytes(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)
    return {path.name: path for path in folder.iterdir() if path.name not in {"bin", "binary"}}


def _run(folder: Path, commands: dict[str, list[str]], environment: dict[str, str]) -> None:
    running = []
    for name, command in commands.items():
        with (folder / name).open("wb") as out:
            running.append(subprocess.Popen(command, stdout=out, env=environment))
    for process in running:
        process.wait(timeout=SECONDS + 60)


@pytest.mark.producers
@pytest.mark.parametrize("name", [*TOOLS, "sadf -d", "sadf -j", "sadf -dU"])
def test_means_on_this_machine_are_those_of_psutil(recorded: dict[str, Path], name: str, tmp_path: Path) -> None:
    """Within a point, 1.5 where figures are rounded; waiting comes in bursts, which two clocks cut differently.

    Most tools stamp whole seconds, so that on a busy machine the same stamps are not the same time.
    """
    began = int(float(recorded["psutil"].read_text().splitlines()[1].partition(",")[0]) * 1e6)
    reference = machine(tmp_path, recorded["psutil"], began, utc=True)
    found = machine(tmp_path, recorded[name], began, utc=name in {"sadf -d", "sadf -j", "sadf -dU"})
    low, high = max(reference.times[0], found.times[0]), min(reference.times[-1], found.times[-1])
    low, high = int(low) + 1_000_000, int(high) - 1_000_000
    for metric in [CORES] if name == "pidstat" else [CPU, WAIT]:
        wanted = reference.over(metric, low, high)
        apart = min(
            abs(found.over(metric, low + shift, high + shift) - wanted) for shift in range(-1_000_000, 100_001, 100_000)
        )
        allowed = (0.015 if name in {"top", "vmstat"} else 0.01) * (1 if metric == CPU else 2)
        assert apart <= allowed, metric

"""What the tools print here and now is read as psutil counts it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpureport.importers.protocol.importer import ReadOptions
from tests.importers.logs.host.series import LOCAL, Read, read

pytestmark = pytest.mark.producers
SECONDS = 20
_EDGE = 1_000_000
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


@contextmanager
def load() -> Iterator[int]:
    """Keep one core busy, more and less."""
    with subprocess.Popen([sys.executable, "-c", _LOAD]) as process:
        try:
            yield process.pid
        finally:
            process.kill()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return what every tool printed side by side."""
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
    """Run commands side by side, each into a file of its name."""
    running = []
    for name, command in commands.items():
        with (folder / name).open("wb") as out:
            running.append(subprocess.Popen(command, stdout=out, env=environment))
    for process in running:
        process.wait(timeout=SECONDS + 60)


def common(one: Read, other: Read) -> tuple[int, int]:
    """Return the time two logs share, in UTC, without the second at each end that one may still cover."""
    spans = [
        tuple(time - (0 if each.outcome.timezone else LOCAL) for time in each.outcome.span) for each in (one, other)
    ]
    return max(span[0] for span in spans) + _EDGE, min(span[1] for span in spans) - _EDGE


def apart(reference: Read, found: Read, metric: str) -> float:
    """Return by how much two means differ at least, where stamps leave out the part of a second they were made in."""
    low, high = common(reference, found)
    wanted = reference.over(metric, low, high)
    shifts = range(-1_000_000, 100_001, 100_000)
    return min(abs(found.over(metric, low + shift, high + shift) - wanted) for shift in shifts)


@pytest.mark.parametrize("name", [*TOOLS, "sadf -d", "sadf -j", "sadf -dU"])
def test_means_are_those_of_psutil(recorded: dict[str, Path], name: str) -> None:
    """Within a point, 1.5 where figures are rounded; waiting comes in bursts, which two clocks cut differently.

    Most tools stamp whole seconds, so that on a busy machine the same stamps are not the same time.
    """
    reference = read(recorded["psutil"])
    local = tuple(moment + LOCAL for moment in reference.outcome.span)
    found = read(recorded[name], ReadOptions(around=(local[0], local[1])))
    metrics = ["process_cpu_cores"] if name == "pidstat" else ["cpu_utilization_ratio", "cpu_iowait_ratio"]
    for metric in metrics:
        rounded, bursts = name in {"top", "vmstat"}, metric != "cpu_utilization_ratio"
        allowed = (0.015 if rounded else 0.01) * (2 if bursts else 1)
        assert apart(reference, found, metric) <= allowed, metric

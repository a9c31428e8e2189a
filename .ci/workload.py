"""Workloads for ratios.py and growth.py: logs of any size, and the cost of a process."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

HEADER = (
    "timestamp, index, uuid, utilization.gpu [%], utilization.memory [%], memory.used [MiB], memory.total [MiB], "
    "temperature.gpu, power.draw [W], clocks.current.sm [MHz], clocks.current.memory [MHz], clocks_event_reasons.active"
)
NAMES = [cell.partition(" [")[0] for cell in HEADER.split(", ")]
_START = 1_773_480_413
_BLOCK_ROWS = 262_144
_ABSENT = 0.0005
_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9}


def size_of(text: str) -> int:
    """Return the number of bytes in a text such as `200MB`."""
    return round(float(text[:-2]) * _UNITS[text[-2:].upper()])


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A training job whose GPUs all pause for `pause` seconds out of every `gap_every`."""

    gpus: int = 8
    seconds: float = 3600.0
    interval: float = 1.0
    gap_every: float = 600.0
    pause: float = 65.0
    start: int = _START

    @property
    def ticks(self) -> int:
        """The number of samples per GPU."""
        return int(self.seconds / self.interval)


def write_log(path: Path, job: Job, size: int | None = None) -> Path:
    """Write the log of a job, or as many first rows as fit into `size` bytes; the same job gives the same log."""
    per_block = max(_BLOCK_ROWS // job.gpus, 1)
    left = size
    with path.open("wb") as file:
        file.write(f"{HEADER}\n".encode())
        for first in range(0, job.ticks, per_block):
            data = _block(job, first, min(per_block, job.ticks - first))
            if left is not None:
                data = data[: data.rfind(b"\n", 0, left) + 1]
                left -= len(data)
            file.write(data)
            if left is not None and left < len(HEADER):
                break
    return path


def _block(job: Job, first: int, ticks: int) -> bytes:
    chance = np.random.default_rng((20_261_121, first))
    rows = ticks * job.gpus
    gpu = np.tile(np.arange(job.gpus), ticks)
    times = np.repeat(np.arange(first, first + ticks), job.gpus) * job.interval
    resting = times % job.gap_every > job.gap_every - job.pause
    busy = np.where(resting, 0, chance.integers(88, 101, rows))
    power = np.where(resting, 92.0, 610.0 + chance.normal(0, 25, rows))
    stamps = ((job.start + times) * 1000).astype(np.int64) + gpu % 8
    cells: list[Any] = [
        pc.strftime(pa.array(stamps, pa.timestamp("ms")), "%Y/%m/%d %H:%M:%S"),
        _texts(gpu, ""),
        pc.take(
            pa.array([f"GPU-{n:08x}-0b3c-4f6a-9a53-1c3f2f0b7d{n % 100:02d}" for n in range(job.gpus)]), pa.array(gpu)
        ),
        _texts(busy, " %", chance),
        _texts(busy * 6 // 10, " %"),
        _texts(71_412 + gpu % 8 * 4, " MiB"),
        _texts(np.full(rows, 81_559), " MiB"),
        _texts(np.where(resting, 44, 66) + gpu % 3, ""),
        _texts((power * 100).astype(np.int64), " W", chance, digits=2),
        _texts(np.where(resting, 1_980, 1_755), " MHz"),
        _texts(np.full(rows, 2_619), " MHz"),
        pc.take(pa.array([f"0x{bit:016x}\n" for bit in (4, 1)]), pa.array(resting.astype(np.int8))),
    ]
    return bytes(memoryview(pc.binary_join_element_wise(*cells, ", ").buffers()[2]))


def _texts(codes: Any, unit: str, chance: np.random.Generator | None = None, digits: int = 0) -> Any:
    """Return a cell per row, each value with its unit; a few cells have no value."""
    values, places = np.unique(codes, return_inverse=True)
    texts = [f"{value / 10**digits:.{digits}f}{unit}" for value in values.tolist()] + ["[N/A]"]
    where = places.ravel()
    if chance is not None:
        where = np.where(chance.random(len(where)) < _ABSENT, len(values), where)
    return pc.take(pa.array(texts), pa.array(where))


_METER = """
import json, os, subprocess, sys, time
began = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
cost = (used.ru_utime + used.ru_stime, time.perf_counter() - began, used.ru_maxrss * 1024)
print(json.dumps([os.waitstatus_to_exitcode(status), *cost]), flush=True)
os._exit(0)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of a process: processor seconds, wall-clock seconds, and bytes of peak memory."""

    cpu: float
    wall: float
    memory: int


def measure(words: Sequence[str], folder: Path, environment: Mapping[str, str] = os.environ) -> Cost:
    """Run a command to its end and return its cost, without its output.

    A small process starts it, because the system counts the parent's memory as the child's.
    """
    meter = [sys.executable, "-S", "-c", _METER, *words]
    done = subprocess.run(meter, cwd=folder, env=dict(environment), stdout=subprocess.PIPE, check=True)
    code, cpu, wall, memory = json.loads(done.stdout)
    if code not in (0, 1):
        raise SystemExit(f"{' '.join(words)} ended with {code}")
    return Cost(cpu=cpu, wall=wall, memory=memory)

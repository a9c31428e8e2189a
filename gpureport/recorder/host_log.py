"""The host log: the load of the machine and of the job's processes, a CSV line a sample."""

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from gpureport.recorder.process_tree import Load, ProcessTree

_BLOCK_DEVICES = Path("/sys/block")
_MIB = 2**20
_VIRTUAL = ("loop", "ram", "zram")
"""Beginnings of the names of block devices that are no disks."""


class HostCounters(NamedTuple):
    """Bytes read and written by each disk, and received and sent; None if not counted.

    They rise; `at` is in seconds of a clock that nobody sets.
    """

    at: float
    disks: Mapping[str, tuple[int, int]] | None
    network: tuple[int, int] | None


class HostLog:
    """A host log; every column is one that `gpureport` reads, and the busiest core is read from those of the cores.

    Shares and rates cover the time since the sample before. A value that is not known is an empty cell.
    """

    def __init__(self, *, has_job: bool) -> None:
        self._has_job = has_job
        self._tree: ProcessTree | None = None
        self._first = self._last = read_counters()
        self._core_count = len(psutil.cpu_times(percpu=True))

    def watch_job(self, pid: int) -> None:
        """Log the process of this number from now on, and all that it starts."""
        self._tree = ProcessTree(pid)
        self._tree.load()

    def header(self) -> str:
        """Return the headings, without a line end."""
        return ",".join(["timestamp", *self._measure(self._first, self._first)])

    def sample(self) -> str | None:
        """Return what happened since the last sample or the begin; None where no time has passed."""
        last, now, stamp = self._last, read_counters(), datetime.now()
        if now.at <= last.at:
            return None
        self._last = now
        cells = ["" if value is None else f"{value:.{few}f}" for value, few in self._measure(last, now).values()]
        return ",".join([f"{stamp:%Y/%m/%d %H:%M:%S}.{stamp.microsecond // 1000:03}", *cells])

    def _measure(self, last: HostCounters, now: HostCounters) -> dict[str, tuple[float | None, int]]:
        first, seconds = self._first, now.at - last.at or 1.0
        # psutil says how busy they were since it was asked before
        cores, times = [*psutil.cpu_percent(percpu=True)], psutil.cpu_times_percent()
        memory, load = psutil.virtual_memory(), self._tree.load() if self._tree else Load(None, None, None)
        found: dict[str, tuple[float | None, int]] = {"cpu_percent": (psutil.cpu_percent(), 1)}
        for core in range(self._core_count):
            found[f"cpu_{core}_percent"] = cores[core] if core < len(cores) else None, 1
        if hasattr(times, "iowait"):
            found["iowait_percent"] = times.iowait, 1
        found["cpu_count"] = len(cores), 0
        found["memory_used_mib"] = (memory.total - memory.available) / _MIB, 0
        found["memory_total_mib"] = memory.total / _MIB, 0
        found["memory_percent"] = memory.percent, 1
        if first.disks is not None:
            rates = measure_disks(last.disks or {}, now.disks or {}, seconds)
            found |= {
                f"disk_{way}_bytes_per_second": (rate, 0) for way, rate in zip(("read", "write"), rates, strict=True)
            }
        if first.network is not None:
            rates = measure_rates(last.network or (0, 0), last.network and now.network, seconds)
            ways = ("receive", "transmit")
            found |= {f"network_{way}_bytes_per_second": (rate, 0) for way, rate in zip(ways, rates, strict=True)}
        if self._has_job:
            found["job_cpu_cores"], found["process_cpu_cores"] = (load.cores, 2), (load.busiest, 2)
            found["process_memory_mib"] = load.memory and load.memory / _MIB, 0
        return found


def read_counters() -> HostCounters:
    """Return the counters of the machine as they stand."""
    disks = _read(psutil.disk_io_counters, perdisk=True, nowrap=False)
    network = _read(psutil.net_io_counters, nowrap=False)
    held = {name: (each.read_bytes, each.write_bytes) for name, each in (disks or {}).items() if is_disk(name)}
    return HostCounters(
        at=time.monotonic(),
        disks=held if disks else None,
        network=None if network is None else (network.bytes_recv, network.bytes_sent),
    )


def _read(function: Callable[..., Any], **options: bool) -> Any:
    try:
        return function(**options)
    except (OSError, RuntimeError, NotImplementedError):
        return None


@lru_cache(1024)
def is_disk(name: str, block_devices: Path = _BLOCK_DEVICES) -> bool:
    """Return whether a block device is a disk: no partition, and not made of others."""
    if not block_devices.is_dir():
        return True
    device = block_devices / name.replace("/", "!")
    if name.startswith(_VIRTUAL) or not device.is_dir():
        return False
    try:
        return not any((device / "slaves").iterdir())
    except OSError:
        return True


def measure_disks(
    last: Mapping[str, tuple[int, int]], now: Mapping[str, tuple[int, int]], seconds: float
) -> list[float | None]:
    """Return bytes read and written in a second by the disks that are in both samples."""
    rates = [measure_rates(last[name], now[name], seconds) for name in last if name in now]
    if not rates or any(rate is None for pair in rates for rate in pair):
        return [None, None]
    return [sum(rate or 0 for rate in way) for way in zip(*rates, strict=True)]


def measure_rates(last: Sequence[int], now: Sequence[int] | None, seconds: float) -> list[float | None]:
    """Return how much counters rose in a second; None for one that fell, since it began anew."""
    if now is None:
        return [None] * len(last)
    return [(after - before) / seconds if after >= before else None for before, after in zip(last, now, strict=True)]

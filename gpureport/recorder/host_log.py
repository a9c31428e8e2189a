"""The host log: the load of the machine and of the job's processes, a CSV line a sample."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import psutil

from gpureport.recorder.process_tree import Load, ProcessTree

_BLOCK_DEVICES = Path("/sys/block")
_MIB = 2**20
_JOB = ("job_cpu_cores", "process_cpu_cores", "process_memory_mib")
_VIRTUAL = ("loop", "ram", "zram")
"""Beginnings of the names of block devices that are no disks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCounters:
    """Counters of the machine, which rise from one sample to the next.

    Attributes:
        at: when they were read, in seconds of a clock that nobody sets.
        cores: seconds by what a core did, for each core.
        disks: bytes read and written, by disk; None where the system does not count them.
        network: bytes received and sent over all interfaces; None where the system does not count them.
    """

    at: float
    cores: tuple[Mapping[str, float], ...]
    disks: Mapping[str, tuple[int, int]] | None
    network: tuple[int, int] | None


class HostLog:
    """A host log; every column is one that `gpureport` reads, and the busiest core is read from those of the cores.

    Shares and rates cover the time since the sample before. A value that is not known is an empty cell.
    """

    def __init__(self, *, has_job: bool) -> None:
        """Begin; `has_job` is whether a job is to be watched, from `watch_job` on."""
        self._has_job = has_job
        self._tree: ProcessTree | None = None
        self._last = read_counters()
        self._core_count = len(self._last.cores)
        self._has_iowait = any("iowait" in core for core in self._last.cores)

    def watch_job(self, pid: int) -> None:
        """Log the process of this number from now on, and all that it starts."""
        self._tree = ProcessTree(pid)
        self._tree.load()

    def header(self) -> str:
        """Return the headings, without a line end."""
        return ",".join(
            [
                "timestamp",
                "cpu_percent",
                *(f"cpu_{core}_percent" for core in range(self._core_count)),
                *(["iowait_percent"] if self._has_iowait else []),
                "cpu_count",
                "memory_used_mib",
                "memory_total_mib",
                "memory_percent",
                *(f"disk_{way}_bytes_per_second" for way in ("read", "write") if self._last.disks is not None),
                *(f"network_{way}_bytes_per_second" for way in ("receive", "transmit") if self._last.network),
                *(_JOB if self._has_job else ()),
            ]
        )

    def sample(self) -> str | None:
        """Return what happened since the last sample or the begin; None where no time has passed."""
        last, now, stamp = self._last, read_counters(), datetime.now()
        if now.at <= last.at:
            return None
        self._last = now
        cpu, cores, iowait = measure_cores(last.cores, now.cores)
        cores = [*cores, *[None] * self._core_count][: self._core_count]
        memory = psutil.virtual_memory()
        cells = [
            stamp.strftime("%Y/%m/%d %H:%M:%S.") + f"{stamp.microsecond // 1000:03}",
            _format_cell(cpu, 1),
            *(_format_cell(core, 1) for core in cores),
            *([_format_cell(iowait, 2)] if self._has_iowait else []),
            str(len(now.cores)),
            _format_cell((memory.total - memory.available) / _MIB, 0),
            _format_cell(memory.total / _MIB, 0),
            _format_cell(memory.percent, 1),
        ]
        seconds = now.at - last.at
        if last.disks is not None:
            cells += [_format_cell(rate, 0) for rate in measure_disks(last.disks, now.disks or {}, seconds)]
        if last.network is not None:
            rates = measure_rates(last.network, now.network, seconds)
            cells += [_format_cell(rate, 0) for rate in rates]
        if self._has_job:
            load = self._tree.load() if self._tree else Load(None, None, None)
            held = None if load.memory is None else load.memory / _MIB
            cells += [_format_cell(load.cores, 2), _format_cell(load.busiest, 2), _format_cell(held, 0)]
        return ",".join(cells)


def read_counters() -> HostCounters:
    """Return the counters of the machine as they stand."""
    disks = _read(psutil.disk_io_counters, perdisk=True, nowrap=False)
    network = _read(psutil.net_io_counters, nowrap=False)
    return HostCounters(
        at=time.monotonic(),
        cores=tuple(each._asdict() for each in psutil.cpu_times(percpu=True)),
        disks=None
        if not disks
        else {name: (each.read_bytes, each.write_bytes) for name, each in disks.items() if is_disk(name)},
        network=None if network is None else (network.bytes_recv, network.bytes_sent),
    )


def _read(function: Callable[..., Any], **options: bool) -> Any:
    """Return what psutil counts, None where the system does not let it."""
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


def measure_cores(
    last: Sequence[Mapping[str, float]], now: Sequence[Mapping[str, float]]
) -> tuple[float | None, list[float | None], float | None]:
    """Return how busy all cores were and each core was, and how much of all waited for storage, in per cent.

    None where no time was counted, and for the cores where one was switched on or off.
    """
    if len(last) != len(now):
        return None, [None] * len(now), None
    spent = [_measure_core(before, after) for before, after in zip(last, now, strict=True)]
    total = sum(each[0] for each in spent)
    shares = [100 * busy / seconds if seconds else None for seconds, busy, _ in spent]
    if not total:
        return None, shares, None
    return 100 * sum(each[1] for each in spent) / total, shares, 100 * sum(each[2] for each in spent) / total


def _measure_core(last: Mapping[str, float], now: Mapping[str, float]) -> tuple[float, float, float]:
    """Return the seconds that a core was there, was busy, and waited for storage.

    The time of guests is in user and nice already. Linux may set back the time a core waited.
    """
    spent = {name: max(value - last.get(name, value), 0) for name, value in now.items() if "guest" not in name}
    waited = spent.get("iowait", 0)
    total = sum(spent.values())
    return total, total - spent.get("idle", 0) - waited, waited


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


def _format_cell(value: float | None, decimals: int) -> str:
    return "" if value is None else f"{value:.{decimals}f}"

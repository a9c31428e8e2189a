"""Writes the host log: the load of the machine and the job's processes, a CSV line per sample."""

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import psutil

from gpureport.names import group_pairs

_BLOCK_DEVICES = Path("/sys/block")
_MIB = 2**20
_VIRTUAL = ("loop", "ram", "zram")
"""Prefixes of block devices that are not disks."""
_NOT_COUNTED = (OSError, RuntimeError, NotImplementedError, AttributeError)
"""Errors that psutil raises on a system without counters. Without interfaces, it returns None."""
_STAT_BYTES = 4096
"""More bytes than /proc/PID/stat can contain."""
_SEARCH_SHARE = 0.003
"""Share of a core that searches for new processes may use. Slow searches are repeated less often."""
_TICK, _PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
_PARENT, _OWN, _WAITED, _START, _PAGES = 1, slice(11, 13), slice(13, 15), 19, 21
"""Indices of fields after the program's name in /proc/PID/stat (see proc_pid_stat(5))."""


class HostCounters(NamedTuple):
    """Bytes read and written per disk, and bytes received and sent, or None if not counted."""

    at: float
    disks: Mapping[str, tuple[int, int]] | None
    network: tuple[int, int] | None


class HostLog:
    """A host log. gpureport reads every column, and derives the busiest core from the per-core columns.

    Shares and rates cover the time since the previous sample. An unknown value is an empty cell.
    """

    def __init__(self, *, has_job: bool) -> None:
        self._has_job = has_job
        self._tree: ProcessTree | None = None
        self._first = self._last = read_counters()
        self._core_count = len(psutil.cpu_times(percpu=True))

    def watch_job(self, pid: int) -> None:
        self._tree = ProcessTree(pid)
        self._tree.load()

    def header(self) -> str:
        return ",".join(["timestamp", *self._measure(self._first, self._first)])

    def sample(self) -> str | None:
        """Return the CSV line for the time since the last sample or the start, or None if no time has passed."""
        last, now, stamp = self._last, read_counters(), datetime.now()
        if now.at <= last.at:
            return None
        self._last = now
        cells = ["" if value is None else f"{value:.{few}f}" for value, few in self._measure(last, now).values()]
        return ",".join([f"{stamp:%Y/%m/%d %H:%M:%S}.{stamp.microsecond // 1000:03}", *cells])

    def _measure(self, last: HostCounters, now: HostCounters) -> dict[str, tuple[float | None, int]]:
        first, seconds = self._first, now.at - last.at or 1.0
        # psutil measures the load since it was last called
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
            read, written = measure_disks(last.disks or {}, now.disks or {}, seconds)
            found |= {"disk_read_bytes_per_second": (read, 0), "disk_write_bytes_per_second": (written, 0)}
        if first.network is not None:
            came, went = measure_rates(last.network or (0, 0), last.network and now.network, seconds)
            found |= {"network_receive_bytes_per_second": (came, 0), "network_transmit_bytes_per_second": (went, 0)}
        if self._has_job:
            found["job_cpu_cores"], found["process_cpu_cores"] = (load.cores, 2), (load.busiest, 2)
            found["process_memory_mib"] = load.memory and load.memory / _MIB, 0
        return found


def read_counters() -> HostCounters:
    disks: dict[str, tuple[int, int]] | None = None
    network: tuple[int, int] | None = None
    with suppress(*_NOT_COUNTED):
        counted = psutil.disk_io_counters(perdisk=True, nowrap=False)
        disks = {name: (each.read_bytes, each.write_bytes) for name, each in counted.items() if is_disk(name)}
        disks = disks if counted else None
    with suppress(*_NOT_COUNTED):
        interfaces = psutil.net_io_counters(nowrap=False)
        network = interfaces.bytes_recv, interfaces.bytes_sent
    return HostCounters(time.monotonic(), disks, network)


@lru_cache(1024)
def is_disk(name: str, block_devices: Path = _BLOCK_DEVICES) -> bool:
    """Return whether a block device is a physical disk, not a partition or RAID."""
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
    rates = [measure_rates(last[name], now[name], seconds) for name in last if name in now]
    if not rates or any(rate is None for pair in rates for rate in pair):
        return [None, None]
    return [sum(rate or 0 for rate in way) for way in zip(*rates, strict=True)]


def measure_rates(last: Sequence[int], now: Sequence[int] | None, seconds: float) -> list[float | None]:
    if now is None:
        return [None] * len(last)
    return [(after - before) / seconds if after >= before else None for before, after in zip(last, now, strict=True)]


# --- the processes of a job


class Usage(NamedTuple):
    """A process's resident bytes, its CPU seconds, and those of children it waited for."""

    parent: int
    start: float
    own: float
    waited: float
    memory: int


class Load(NamedTuple):
    """A job's load since the last snapshot: cores used (total and by the busiest process), and bytes of the largest."""

    cores: float | None
    busiest: float | None
    memory: int | None


class ProcessSnapshot(NamedTuple):
    at: float
    members: Mapping[int, Usage]


class ProcessTree:
    """A job's processes; a process that loses its parent remains a member."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._last: ProcessSnapshot | None = None
        self._next_search = self._searched = 0.0

    def load(self) -> Load:
        now, last, searched = time.monotonic(), self._last, self._searched
        first = _read_usage(self._root) if last is None else None
        known = last.members if last else {self._root: first} if first else {}
        if now >= self._next_search:
            found = {pid: _read_usage(pid) for pid in psutil.pids()}
            members = find_members(known, {pid: usage for pid, usage in found.items() if usage})
            self._next_search = now + (time.monotonic() - now) / _SEARCH_SHARE
            self._searched = now
        else:
            seen = {pid: _read_usage(pid) for pid in known}
            members = {pid: usage for pid, usage in seen.items() if usage and usage.start == known[pid].start}
        self._last = ProcessSnapshot(now, members)
        return measure_load(last, self._last, searched)


def find_members(known: Mapping[int, Usage], everyone: Mapping[int, Usage]) -> dict[int, Usage]:
    """Return the job's processes: known processes still running, and all their descendants."""
    started = group_pairs((usage.parent, pid) for pid, usage in everyone.items())
    open_pids = [pid for pid, usage in known.items() if pid in everyone and everyone[pid].start == usage.start]
    members: dict[int, Usage] = {}
    while open_pids:
        pid = open_pids.pop()
        if pid not in members:
            members[pid] = everyone[pid]
            open_pids.extend(started.get(pid, ()))
    return members


def measure_load(last: ProcessSnapshot | None, now: ProcessSnapshot, searched: float) -> Load:
    """Return a job's load between two snapshots.

    When a process ends, its CPU time is added to the process that waited for it, so the part already counted is
    subtracted. If no process waited for it, its last moments are lost. `searched` is the time of the last search for
    processes before this snapshot. If it is not before `last`, a process found now is new and counts in full.
    """
    memory = max((usage.memory for usage in now.members.values()), default=None)
    if last is None or not now.members or not last.members or now.at <= last.at:
        return Load(None, None, memory)
    before = last.members
    # if searches were skipped, a process found now may have started long before the last snapshot
    is_counted_in_full = searched >= last.at
    own = [
        max(usage.own - (before[pid].own if pid in before else 0 if is_counted_in_full else usage.own), 0)
        for pid, usage in now.members.items()
    ]
    waited = sum(max(usage.waited - before[pid].waited, 0) for pid, usage in now.members.items() if pid in before)
    counted = sum(usage.own + usage.waited for pid, usage in before.items() if pid not in now.members)
    seconds = now.at - last.at
    ended = max(waited - counted, 0) if is_counted_in_full else 0
    return Load((sum(own) + ended) / seconds, max(own) / seconds, memory)


def parse_stat(text: str, tick: int, page: int) -> Usage:
    fields = text[text.rindex(")") + 2 :].split()
    own, waited = (sum(map(int, fields[part])) / tick for part in (_OWN, _WAITED))
    return Usage(int(fields[_PARENT]), float(fields[_START]), own, waited, int(fields[_PAGES]) * page)


def _read_usage(pid: int) -> Usage | None:
    """Return the usage of a process, or None if it has ended or the system has no /proc."""
    try:
        # this is as cheap as possible, since it runs for every process on the machine
        file = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
        try:
            text = os.read(file, _STAT_BYTES).decode(errors="replace")
        finally:
            os.close(file)
        return parse_stat(text, _TICK, _PAGE)
    except (OSError, ValueError, IndexError):
        return None

"""The processes of a job, all that one starts, with the processor time and memory they use."""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psutil

_STAT_BYTES = 4096
"""More than a line of /proc/PID/stat can have."""
_SEARCH_SHARE = 0.003
"""Share of a core that the search for new processes may cost; a slow search is repeated less often."""
_PARENT, _OWN, _WAITED, _START, _PAGES = 1, slice(11, 13), slice(13, 15), 19, 21
"""Fields of /proc/PID/stat after the name of the program: see proc_pid_stat(5)."""


class Usage(NamedTuple):
    """What a process has used, in seconds and bytes.

    Attributes:
        parent: the process that started it.
        start: when it started, in a unit of the system; with its number it names one process for good.
        own: processor time of its own.
        waited: processor time of processes that it started, that ended and that it waited for.
        memory: resident memory.
    """

    parent: int
    start: float
    own: float
    waited: float
    memory: int


class Load(NamedTuple):
    """What the processes of a job use.

    Attributes:
        cores: cores kept busy since the last snapshot; None at the first or without a process.
        busiest: cores that the busiest of them kept busy; None as before.
        memory: resident memory of the largest of them; None without a process.
    """

    cores: float | None
    busiest: float | None
    memory: int | None


@dataclass(frozen=True, slots=True)
class ProcessSnapshot:
    """The processes of a job at one time, by number."""

    at: float
    members: Mapping[int, Usage]


class ProcessTree:
    """A job's processes; one that loses its parent stays a member."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._last: ProcessSnapshot | None = None
        self._next_search = 0.0
        self._searched = 0.0

    def load(self) -> Load:
        """Return what the processes use, and have used since the last call."""
        now = time.monotonic()
        first = read_usage(self._root) if self._last is None else None
        known = self._last.members if self._last else {self._root: first} if first else {}
        if now >= self._next_search:
            members = find_members(known, read_all())
            self._next_search = now + (time.monotonic() - now) / _SEARCH_SHARE
            searched, self._searched = self._searched, now
        else:
            seen = {pid: read_usage(pid) for pid in known}
            members = {pid: usage for pid, usage in seen.items() if usage and usage.start == known[pid].start}
            searched = self._searched
        snapshot, last = ProcessSnapshot(now, members), self._last
        self._last = snapshot
        return measure_load(last, snapshot, searched)


def find_members(known: Mapping[int, Usage], everyone: Mapping[int, Usage]) -> dict[int, Usage]:
    """Return the job's processes: those known already that still run, and all that they started."""
    started: dict[int, list[int]] = {}
    for pid, usage in everyone.items():
        started.setdefault(usage.parent, []).append(pid)
    open_pids = [pid for pid, usage in known.items() if pid in everyone and everyone[pid].start == usage.start]
    members: dict[int, Usage] = {}
    while open_pids:
        pid = open_pids.pop()
        if pid not in members:
            members[pid] = everyone[pid]
            open_pids.extend(started.get(pid, ()))
    return members


def measure_load(last: ProcessSnapshot | None, now: ProcessSnapshot, searched: float) -> Load:
    """Return what a job used between two snapshots.

    The time of a process that ended shows in that of the process which waited for it. What was counted for it already
    is taken off; where nobody waited for it, its last moments are lost and nothing is taken off.

    Args:
        last: the snapshot before, None where there is none.
        now: this snapshot.
        searched: time of the last search before this snapshot; a process found later than that is younger, unless the
            search passed it by.
    """
    memory = max((usage.memory for usage in now.members.values()), default=None)
    if last is None or not now.members or not last.members or now.at <= last.at:
        return Load(None, None, memory)
    before = last.members
    # a process found after searches were left out may have worked long before the last snapshot
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
    """Return what a line of /proc/PID/stat says; a name in it may hold blanks and brackets."""
    fields = text[text.rindex(")") + 2 :].split()
    return Usage(
        parent=int(fields[_PARENT]),
        start=float(fields[_START]),
        own=sum(map(int, fields[_OWN])) / tick,
        waited=sum(map(int, fields[_WAITED])) / tick,
        memory=int(fields[_PAGES]) * page,
    )


def _read_proc(pid: int) -> Usage | None:
    try:
        # as plain as can be: this is done for every process of the machine
        file = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
        try:
            text = os.read(file, _STAT_BYTES).decode(errors="replace")
        finally:
            os.close(file)
        return parse_stat(text, _TICK, _PAGE)
    except (OSError, ValueError, IndexError):
        return None


def read_with_psutil(pid: int) -> Usage | None:
    """Return what a process has used, on a system without /proc; None where it cannot be read."""
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            times = process.cpu_times()
            waited = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
            memory = process.memory_info().rss
            return Usage(process.ppid(), process.create_time(), times.user + times.system, waited, memory)
    except psutil.Error:
        return None


_IS_LINUX = psutil.LINUX and Path("/proc/self/stat").is_file()
_TICK, _PAGE = (os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")) if _IS_LINUX else (1, 1)
# one file says all that is asked for, at a quarter of what psutil takes
read_usage: Callable[[int], Usage | None] = _read_proc if _IS_LINUX else read_with_psutil


def read_all(pids: Iterable[int] | None = None) -> dict[int, Usage]:
    """Return what every process of the machine has used; those that cannot be read are left out."""
    found = ((pid, read_usage(pid)) for pid in (psutil.pids() if pids is None else pids))
    return {pid: usage for pid, usage in found if usage is not None}

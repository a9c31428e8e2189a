"""The processes of a job, all that one starts, with the processor time and memory they use."""

import os
import time
from collections.abc import Mapping
from typing import NamedTuple

import psutil

_STAT_BYTES = 4096
"""More than a line of /proc/PID/stat can have."""
_SEARCH_SHARE = 0.003
"""Share of a core that the search for new processes may cost; a slow search is repeated less often."""
_TICK, _PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
_PARENT, _OWN, _WAITED, _START, _PAGES = 1, slice(11, 13), slice(13, 15), 19, 21
"""Fields of /proc/PID/stat after the name of the program: see proc_pid_stat(5)."""


class Usage(NamedTuple):
    """What a process has used: seconds of its own, those of processes it started and waited for, and resident bytes.

    With its number, its `start` in a unit of the system names one process for good.
    """

    parent: int
    start: float
    own: float
    waited: float
    memory: int


class Load(NamedTuple):
    """What a job used since the last look: cores in all, cores of its busiest process, and bytes of the largest one.

    None without a process; for the cores also at the first look.
    """

    cores: float | None
    busiest: float | None
    memory: int | None


class ProcessSnapshot(NamedTuple):
    """The processes of a job at one time, by number."""

    at: float
    members: Mapping[int, Usage]


class ProcessTree:
    """A job's processes; one that loses its parent stays a member."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._last: ProcessSnapshot | None = None
        self._next_search = self._searched = 0.0

    def load(self) -> Load:
        """Return what the processes use, and have used since the last call."""
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
    is taken off; where nobody waited for it, its last moments are lost and nothing is taken off. A process found later
    than the last search before this snapshot, which was at `searched`, is younger, unless the search passed it by.
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
    own, waited = (sum(map(int, fields[part])) / tick for part in (_OWN, _WAITED))
    return Usage(int(fields[_PARENT]), float(fields[_START]), own, waited, int(fields[_PAGES]) * page)


def _read_usage(pid: int) -> Usage | None:
    """Return what a process has used; None for one that is gone, and on a system without /proc."""
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

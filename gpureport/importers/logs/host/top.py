"""Reads what `top -b` prints: a summary and a list of processes a time. It writes no date.

What the first summary says of the cores covers no time of its own, so it is not kept.
"""

import re
from typing import ClassVar

from gpureport.importers.delimited.row_sections import LineKind
from gpureport.importers.logs.host.day_clock import parse_time_of_day
from gpureport.importers.logs.host.host_form import LineForm
from gpureport.importers.logs.host.printed_numbers import KIB, LARGEST, parse_percent, parse_size
from gpureport.importers.logs.host.tick_totals import CORE_COUNT, PROCESSES, TickTotals
from gpureport.importers.protocol.reject_reasons import BEFORE_HEADER, CUT_LAST_LINE, MALFORMED, NO_TIME, WRONG_CELLS

_TOP = re.compile(r"top - (\d\d:\d\d:\d\d) up .*load average: *(\d{1,9}[.,]\d{1,9})", re.ASCII)
# the branch that fails last must take nothing, as Python before 3.11.5 goes on where it failed (gh-106052)
_CORES = re.compile(r"%?cpu(?:\(s\)|(\d{1,4}) {0,9}) {0,9}:((?:%(?!cpu)|[^%]++)*+)", re.IGNORECASE | re.ASCII)
_SHARE = re.compile(r"(?<!\d)(\d{1,3}[.,]\d{1,3}|\d{1,3})[ %]?(id|wa)\b", re.ASCII)
_MEMORY = re.compile(r"([KMGT])iB \w{1,20} *:(.*?)(?:[KMGT]iB|$)", re.ASCII)
_AMOUNT = re.compile(r"(?<!\d)(\d{1,15}(?:[.,]\d{1,9})?)\+? ?(total|used|buff/cache)", re.ASCII)
_POWERS = {"K": 1, "M": 2, "G": 3, "T": 4}
_FIRST = "the first summary covers no time of its own"
_MOST = 1.01
_OF_THREADS = "the list is one of threads, and what a process does is the sum of its threads"
_NARROW = "cut off by the width of the terminal"


class Top(LineForm):
    """Summaries and processes of `top`."""

    name: ClassVar[str] = "top -b"
    held_back = 1

    def __init__(self, around: tuple[int, int] | None = None) -> None:
        """Start; `around` is as for all host logs."""
        super().__init__(around)
        self._block: TickTotals | None = None
        self._times = 0
        self._names: list[str] = []
        self._threads = False
        self._memory = False
        self._cores: list[tuple[float, float] | None] = []
        self._numbers: list[int] = []

    @staticmethod
    def identify(lines: list[str]) -> bool:
        """Return whether any of the first lines begins a summary."""
        return any(_TOP.match(line) for line in lines)

    def _blank_line(self) -> None:
        self._names = []

    def _line(self, number: int, line: str, *, cut: bool) -> None:
        if cut:
            self._readings.lost(number, CUT_LAST_LINE, line)
        elif match := _TOP.match(line):
            self._begin(number, line, match)
        elif self._block is None:
            self._readings.lost(number, NO_TIME if self._times else BEFORE_HEADER, line)
        elif self._names:
            self._process(self._block, number, line)
        else:
            self._summary(self._block, number, line)

    def _begin(self, number: int, line: str, match: "re.Match[str]") -> None:
        since_midnight = parse_time_of_day(match[1])
        stamp = None if since_midnight is None else self._clock.at(since_midnight)
        self._blocks.close()
        self._block, self._names, self._memory = None, [], False
        self._cores, self._numbers = [], []
        self._times += 1
        if stamp is None:
            self._readings.lost(number, NO_TIME, line)
            return
        self._block = self._blocks.at("", stamp, number)
        self._block.values["host_load_average"] = float(match[2].replace(",", "."))

    def _summary(self, block: TickTotals, number: int, line: str) -> None:
        found = list(_CORES.finditer(line))
        memory = _MEMORY.match(line)
        if found:
            self._cores += [_shares(match) for match in found]
            self._numbers += [int(match[1]) for match in found if match[1]]
        elif memory is not None and not self._memory:
            # the second such line is swap
            self._memory = True
            self._take_cores(block)
            _take_memory(block, memory)
        elif {"%CPU", "PID"} <= set(line.split()):
            self._names = line.split()
            self._readings.lost(number, "", line, LineKind.HEADER)
            if self._threads:
                self._readings.lacks("%CPU", _OF_THREADS)
            return
        elif line.startswith("Threads:"):
            self._threads = True
        elif memory is None and not line.split(maxsplit=1)[0].endswith(":"):
            self._readings.lost(number, WRONG_CELLS, line)
            return
        block.lines += 1

    def _take_cores(self, block: TickTotals) -> None:
        """Take the shares of all cores, which stand on a line of all or on one for each."""
        cores = [shares for shares in self._cores if shares is not None]
        narrow = len(cores) < len(self._cores) or _gaps(self._numbers)
        if self._times == 1 or narrow:
            self._readings.lacks("%Cpu", _FIRST if self._times == 1 else _NARROW)
        elif cores:
            block.values["cpu_utilization_ratio"] = sum(busy for busy, _ in cores) / len(cores)
            block.values["cpu_iowait_ratio"] = sum(waiting for _, waiting in cores) / len(cores)
            if self._numbers:
                block.values["cpu_busiest_core_ratio"] = max(busy for busy, _ in cores)
                block.values[CORE_COUNT] = float(len(cores))

    def _process(self, block: TickTotals, number: int, line: str) -> None:
        cells = line.split()
        if len(cells) < len(self._names):
            self._readings.lost(number, WRONG_CELLS, line)
            return
        row = dict(zip(self._names, cells, strict=False))
        used, held = parse_percent(row["%CPU"]), parse_size(row.get("RES", ""))
        if used is None:
            self._readings.lost(number, f"{MALFORMED} %CPU", line)
            return
        block.lines += 1
        block.count(PROCESSES)
        if self._times > 1 and not self._threads:
            block.greatest("process_cpu_cores", used, PROCESSES)
        if held is not None:
            block.greatest("process_memory_used_bytes", held, PROCESSES)


def _gaps(numbers: list[int]) -> bool:
    """Return whether cores are missing between those shown.

    `top` may put two cores or more into a line, and where that is too long whole ones are left out: of two cores one
    is left, of eight each second one. A machine of one core is not told apart from the first of two.
    """
    return bool(numbers) and (len(numbers) == 1 or sorted(numbers) != list(range(len(numbers))))


def _shares(match: "re.Match[str]") -> tuple[float, float] | None:
    """Return how long a core was busy and how long it waited for a disk, None where that is cut off."""
    shares = {name: parse_percent(text) for text, name in _SHARE.findall(match[2])}
    idle, waiting = shares.get("id"), shares.get("wa")
    if idle is None or waiting is None or idle + waiting > _MOST:
        return None
    return max(1 - idle - waiting, 0.0), waiting


def _take_memory(block: TickTotals, match: "re.Match[str]") -> None:
    """Take the memory in use; where the page cache is not told apart, it is part of what is called so."""
    unit = KIB ** _POWERS[match[1]]
    amounts = {name: float(text.replace(",", ".")) * unit for text, name in _AMOUNT.findall(match[2])}
    if any(amount >= LARGEST for amount in amounts.values()):
        return
    total, used = amounts.get("total"), amounts.get("used")
    if total:
        block.values["host_memory_total_bytes"] = total
    if total and used is not None and "buff/cache" in amounts:
        block.values["host_memory_used_bytes"] = used
        block.values["host_memory_used_ratio"] = used / total

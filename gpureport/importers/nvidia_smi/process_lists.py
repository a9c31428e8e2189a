"""Lists of processes of `nvidia-smi pmon` and `--query-compute-apps`: how many a GPU has, and what memory they hold."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpureport.importers.account import Account
from gpureport.importers.columns import TIME, Rows, absence, parse_time, rows_from_records
from gpureport.importers.nvidia_smi.monitors import of_day, pass_midnight
from gpureport.importers.nvidia_smi.query_lines import CUT_NOTE
from gpureport.importers.protocol.reject_reasons import (
    BEFORE_HEADER,
    CUT_LAST_LINE,
    GPU_NOT_NAMED,
    MALFORMED,
    NO_READING,
    NO_TIME,
    WRONG_CELLS,
)
from gpureport.units import parse_quantity

PMON, APPS = "nvidia-smi pmon", "nvidia-smi --query-compute-apps"
_SLACK = 60_000
"""Rows of one tick of a query lie some milliseconds apart; those of pmon share their stamp; in microseconds."""
_NOTES = {
    PMON: (
        "pmon lists processes: how many a GPU has and what memory they hold is kept. Their sm, mem, enc and dec do not "
        "add up to those of the GPU; nvidia-smi dmon -o DT records these."
    ),
    APPS: (
        "The log lists processes: how many a GPU has and what memory they hold is kept; the GPU has more in use than "
        "that. A GPU has no row while it runs none. gpureport record records the GPU itself."
    ),
}
_HEADINGS = re.compile(r"\s*+#?\s*+(?:date[\s,]+)?(?:time[\s,]+)?gpu[\s,]+pid[\s,]+type\b.*", re.IGNORECASE | re.DOTALL)
_UNITS = re.compile(r"\s*+#?\s*+(?:yyyymmdd[\s,]+)?(?:hh:mm:ss[\s,]+)?idx[\s,]+#.*", re.IGNORECASE | re.DOTALL)
_IDENTITY = {"gpu_uuid": "uuid", "gpu_bus_id": "bus_id", "gpu_serial": "serial", "gpu_name": "model"}
"""Field of a query to what it says of a GPU."""
_MEMORY = ("used_gpu_memory", "used_memory")
_FIELDS = {
    *(TIME, *_IDENTITY, *_MEMORY, "gpu_instance_id", "compute_instance_id", "process_name", "name", "pid"),
    *("gpu_util", "gpu_utilization", "mem_util", "mem_utilization", "max_memory_usage", "time"),
}


@dataclass(frozen=True, slots=True)
class _Listed:
    """One line of a list: its number, when the list was made, what names the GPU, the process, and its memory.

    The process is `-` where the line says that there is none, the memory None where the list does not show it.
    """

    number: int
    time: int
    gpu: Mapping[str, str]
    pid: str
    memory: str | None


ReadLine = Callable[[int, str], _Listed | None]
"""Returns what a line says; None where it is counted as another."""


def opens_pmon(line: str) -> bool:
    """Return whether a line is a heading of pmon."""
    return _HEADINGS.fullmatch(line) is not None


def opens_apps(line: str) -> bool:
    """Return whether a line is a header that names a process by its id, and nothing but fields of these queries."""
    names = _names(line)
    return "pid" in names and len(names) > 1 and set(names) <= _FIELDS and len(set(names)) == len(names)


def _names(line: str) -> list[str]:
    return [cell.partition("[")[0].strip() for cell in line.strip().split(",")]


def read_pmon(lines: Iterable[str], first: int, account: Account) -> Iterator[Rows]:
    """Yield the rows of pmon: one a GPU and tick."""
    names: list[str] = []
    comma, clock = False, list[int]()

    def read(number: int, text: str) -> _Listed | None:
        nonlocal names, comma
        if opens_pmon(text):
            comma = "," in text
            names = [name.lower() for name in text.replace(",", " ").replace("#", " ", 1).split()]
        if opens_pmon(text) or _UNITS.fullmatch(text):
            account.headers += 1
            return None
        if text.lstrip().startswith("#"):
            account.noise += 1
            return None
        # only the name of a process may hold blanks or commas
        cells = [cell.strip() for cell in text.strip().split("," if comma else None, len(names) - 1)]
        if not names or len(cells) != len(names):
            account.sort_out(number, text, WRONG_CELLS if names else BEFORE_HEADER)
            return None
        row = dict(zip(names, cells, strict=True))
        time = _pmon_time(row, clock)
        checks = (
            (f"{MALFORMED} gpu", re.fullmatch(r"[0-9]{1,4}", row["gpu"])),
            (f"{MALFORMED} pid", re.fullmatch(r"[0-9]{1,10}|-", row["pid"])),
            (NO_TIME, "time" in row),
            (f"{MALFORMED} time", time is not None),
        )
        reason = next((reason for reason, holds in checks if not holds), None)
        if reason is not None or time is None:
            account.reject(reason or NO_TIME, number, text)
            return None
        memory = f"{row['fb']} MB" if row.get("fb", "-").isdigit() else row.get("fb")
        return _Listed(number, time, {"index": row["gpu"]}, row["pid"], memory)

    yield from rows_from_records(_records(_listed(lines, first, account, read), 0, account, PMON))


def _pmon_time(row: Mapping[str, str], clock: list[int]) -> int | None:
    if "time" not in row:
        return None
    if "date" in row:
        day = row["date"]
        time = parse_time(f"{day[:4]}-{day[4:6]}-{day[6:]} {row['time']}")
        return None if time is None else time[0]
    since = of_day(row["time"])
    return None if since is None else pass_midnight(since, clock)


def read_compute_apps(lines: Iterable[str], first: int, account: Account) -> Iterator[Rows]:
    """Yield the rows of a query for processes: one a GPU and tick."""
    names: list[str] = []
    unit = ""

    def read(number: int, text: str) -> _Listed | None:
        nonlocal names, unit
        if opens_apps(text):
            names = _names(text)
            unit = text.rpartition("memory [")[2].partition("]")[0] if "memory [" in text else ""
            account.headers += 1
            return None
        cells = _cells(names, text)
        if cells is None:
            account.sort_out(number, text, WRONG_CELLS if names else BEFORE_HEADER)
            return None
        row = dict(zip(names, cells, strict=True))
        time = parse_time(row[TIME]) if TIME in row else None
        gpu = {_IDENTITY[name]: row[name] for name in _IDENTITY if name in row and not row[name].startswith("[")}
        checks = (
            (f"{MALFORMED} pid", row["pid"].isascii() and row["pid"].isdigit()),
            (f"{MALFORMED} {TIME}", time is not None or TIME not in row),
            # a process that has ended says nothing of the GPU at any time
            (NO_READING, not {"time", "max_memory_usage"} & row.keys()),
            (NO_TIME, TIME in row),
            (GPU_NOT_NAMED, bool(gpu)),
        )
        reason = next((reason for reason, holds in checks if not holds), None)
        if reason is not None or time is None:
            account.reject(reason or NO_TIME, number, text)
            return None
        memory = next((row[name] for name in _MEMORY if name in row), None)
        if memory is not None and memory.isdigit():
            memory = f"{memory} {unit or 'MiB'}"
        return _Listed(number, time[0], gpu, row["pid"], memory)

    yield from rows_from_records(_records(_listed(lines, first, account, read), _SLACK, account, APPS))


def _cells(names: list[str], text: str) -> list[str] | None:
    """Return the cells of a row, None where their number is wrong; a process's name may hold commas."""
    cells = [cell.strip() for cell in text.split(",")]
    free = next((place for place, name in enumerate(names) if name in {"process_name", "name"}), None)
    surplus = len(cells) - len(names)
    if not names or surplus < 0 or (surplus and free is None):
        return None
    if surplus and free is not None:
        cells[free : free + surplus + 1] = [", ".join(cells[free : free + surplus + 1])]
    return cells


def _listed(lines: Iterable[str], first: int, account: Account, read: ReadLine) -> Iterator[_Listed]:
    """Yield the lines that are of a list."""
    for number, line in enumerate(lines, first):
        text = line.rstrip("\r\n")
        if not text.strip("\0\t "):
            continue
        if not line.endswith("\n"):
            account.note(CUT_NOTE)
            account.reject(CUT_LAST_LINE, number, text)
        elif (found := read(number, text)) is not None:
            yield found


@dataclass(slots=True)
class _Gpu:
    """A GPU in the list that is open: the line it is counted for, its processes, and their memory where it is known."""

    first: _Listed
    pids: set[str] = field(default_factory=set)
    memory: int | None = 0


def _records(listed: Iterable[_Listed], slack: int, account: Account, name: str) -> Iterator[dict[str, Any]]:
    """Yield a record a GPU and list; lines of one list lie no further apart than the slack, and name a process once."""
    gpus: dict[tuple[tuple[str, str], ...], _Gpu] = {}
    began = 0
    for line in listed:
        key = tuple(line.gpu.items())
        known = gpus.get(key)
        again = known is not None and line.pid in known.pids
        if gpus and (again or abs(line.time - began) > slack):
            yield from map(_record, gpus.values())
            gpus, known = {}, None
        began = began if gpus else line.time
        account.continued += known is not None
        if known is None:
            known = gpus[key] = _Gpu(line)
            account.note(_NOTES[name])
        known.pids |= {line.pid} - {"-", ""}
        known.memory = _add_memory(known.memory, line, account)
    yield from map(_record, gpus.values())


def _record(gpu: _Gpu) -> dict[str, Any]:
    line = gpu.first
    counted = {"gpu_processes": len(gpu.pids), "gpu_process_memory_bytes": gpu.memory}
    return {"line": line.number, TIME: line.time, **line.gpu, **counted}


def _add_memory(held: int | None, line: _Listed, account: Account) -> int | None:
    """Return the memory of the processes, None where that of one is not known."""
    if line.pid in {"-", ""}:
        return held if line.memory is not None else None
    if line.memory is None:
        return None
    why = absence(line.memory)
    if why is not None:
        account.absent["used_gpu_memory", why] += 1
        return None
    size = parse_quantity(line.memory, "MiB", "By")
    return None if held is None or size is None else held + round(size)

"""Lists of processes of `nvidia-smi pmon` and `--query-compute-apps`: how many a GPU has, and what memory they hold."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from gpureport.importers.account import Account
from gpureport.importers.columns import TIME, Rows, absence, parse_time, rows_from_records
from gpureport.importers.nvidia_smi.monitors import CLOCK_NOTE
from gpureport.importers.printed import DAY, count_days, parse_time_of_day, whole_lines
from gpureport.importers.protocol import reject_reasons as reasons
from gpureport.parsing import parse_quantity

PMON, APPS = "nvidia-smi pmon", "nvidia-smi --query-compute-apps"
_SLACK = 60_000
"""Rows of one tick of a query lie some milliseconds apart; those of pmon share their stamp; in microseconds."""
_PMON_NOTE = (
    "pmon lists processes: how many a GPU has and what memory they hold is kept. The sm of a GPU's only process is "
    "taken for the GPU's utilisation; those of several do not add up to it. nvidia-smi dmon -o DT records it."
)
_APPS_NOTE = (
    "The log lists processes: how many a GPU has and what memory they hold is kept; the GPU has more in use than "
    "that. A GPU has no row while it runs none. gpureport record records the GPU itself."
)
_HEADINGS = re.compile(r"\s*#?\s*(?:date[\s,]+)?(?:time[\s,]+)?gpu[\s,]+pid[\s,]+type\b", re.IGNORECASE)
_UNITS = re.compile(r"\s*#?\s*(?:yyyymmdd[\s,]+)?(?:hh:mm:ss[\s,]+)?idx[\s,]+#", re.IGNORECASE)
_IDENTITY = {"gpu_uuid": "uuid", "gpu_bus_id": "bus_id", "gpu_serial": "serial", "gpu_name": "model"}
"""Field of a query to what it says of a GPU."""
_FIELDS = {
    *(TIME, *_IDENTITY, "used_gpu_memory", "used_memory", "gpu_instance_id", "compute_instance_id"),
    *("process_name", "name", "pid", "gpu_util", "gpu_utilization", "mem_util", "mem_utilization"),
    *("max_memory_usage", "time"),
}


class _Listed(NamedTuple):
    """One line of a list: its number, when the list was made, what names the GPU, the process, its memory and its load.

    The process is `-` where the line says that there is none, the memory None where the list does not show it.
    """

    number: int
    time: int
    gpu: dict[str, str]
    pid: str
    memory: str | None
    load: str = ""


def opens_pmon(line: str) -> bool:
    """Return whether a line is a heading of pmon."""
    return _HEADINGS.match(line) is not None


def opens_apps(line: str) -> bool:
    """Return whether a line is a header that names a process by its id, and nothing but fields of these queries."""
    names = [cell.partition("[")[0].strip() for cell in line.split(",")]
    return "pid" in names and len(names) > 1 and set(names) <= _FIELDS and len(set(names)) == len(names)


def read_pmon(lines: Iterable[str], first: int, account: Account) -> Iterator[Rows]:
    """Yield the rows of pmon: one a GPU and tick."""
    clock = list[int]()
    for rows in rows_from_records(_records(_read_pmon(lines, first, account), 0, account, _PMON_NOTE)):
        if rows.times is not None and rows.times.max() < DAY:
            account.note(CLOCK_NOTE)
            rows.times = count_days(rows.times, clock)
            clock[:] = rows.times[-1:].tolist()
        yield rows


def _read_pmon(lines: Iterable[str], first: int, account: Account) -> Iterator[_Listed]:
    names = list[str]()
    for number, line in whole_lines(lines, first, account):
        if not line:
            continue
        heading = opens_pmon(line)
        if heading:
            names = line.lower().replace(",", " ").replace("#", " ", 1).split()
        if heading or _UNITS.match(line):
            account.headers += 1
            continue
        # only the name of a process may hold blanks or commas
        cells = [cell.strip() for cell in line.strip().split("," if ", " in line else None, len(names) - 1)]
        if not names or len(cells) != len(names):
            account.sort_out(number, line, reasons.WRONG_CELLS if names else reasons.BEFORE_HEADER)
            continue
        row = dict(zip(names, cells, strict=True))
        time = parse_time(f"{row['date']} {row['time']}") if {"date", "time"} <= row.keys() else None
        of_day = parse_time_of_day(row.get("time", "")) if "date" not in row else None
        checks = {
            f"{reasons.MALFORMED} gpu": re.fullmatch(r"[0-9]{1,4}", row["gpu"]),
            f"{reasons.MALFORMED} pid": re.fullmatch(r"[0-9]{1,10}|-", row["pid"]),
            reasons.NO_TIME: "time" in row,
            f"{reasons.MALFORMED} time": time or of_day is not None,
        }
        if reason := next((reason for reason, holds in checks.items() if not holds), ""):
            account.reject(reason, number, line)
            continue
        memory = f"{row['fb']} MB" if row.get("fb", "-").isdigit() else row.get("fb")
        yield _Listed(
            number, time[0] if time else of_day or 0, {"index": row["gpu"]}, row["pid"], memory, row.get("sm", "")
        )


def read_compute_apps(lines: Iterable[str], first: int, account: Account) -> Iterator[Rows]:
    """Yield the rows of a query for processes: one a GPU and tick."""
    yield from rows_from_records(_records(_read_apps(lines, first, account), _SLACK, account, _APPS_NOTE))


def _read_apps(lines: Iterable[str], first: int, account: Account) -> Iterator[_Listed]:
    names, unit = list[str](), ""
    for number, line in whole_lines(lines, first, account):
        cells = [cell.strip() for cell in line.split(",")]
        if not line:
            continue
        if opens_apps(line):
            names = [cell.partition("[")[0].strip() for cell in cells]
            unit = line.partition("memory [")[2].partition("]")[0] or "MiB"
            account.headers += 1
            continue
        name = next((place for place, name in enumerate(names) if name in {"process_name", "name"}), None)
        if name is not None and len(cells) > len(names):
            # the name of a process may hold commas
            end = name + len(cells) - len(names) + 1
            cells[name:end] = [", ".join(cells[name:end])]
        if not names or len(cells) != len(names):
            account.sort_out(number, line, reasons.WRONG_CELLS if names else reasons.BEFORE_HEADER)
            continue
        row = dict(zip(names, cells, strict=True))
        time = parse_time(row[TIME]) if TIME in row else None
        gpu = {_IDENTITY[name]: row[name] for name in _IDENTITY if name in row and not row[name].startswith("[")}
        checks = {
            f"{reasons.MALFORMED} pid": row["pid"].isascii() and row["pid"].isdigit(),
            f"{reasons.MALFORMED} {TIME}": time or TIME not in row,
            # a process that has ended says nothing of the GPU at any time
            reasons.NO_READING: not {"time", "max_memory_usage"} & row.keys(),
            reasons.NO_TIME: time,
            reasons.GPU_NOT_NAMED: gpu,
        }
        if reason := next((reason for reason, holds in checks.items() if not holds), ""):
            account.reject(reason, number, line)
            continue
        memory = row.get("used_gpu_memory", row.get("used_memory"))
        memory = f"{memory} {unit}" if memory and memory.isdigit() else memory
        yield _Listed(number, time[0] if time else 0, gpu, row["pid"], memory)


def _records(listed: Iterable[_Listed], slack: int, account: Account, note: str) -> Iterator[dict[str, Any]]:
    """Yield a record a GPU and list; lines of one list lie no further apart than the slack, and name a process once."""
    gpus: dict[tuple[str, ...], dict[str, _Listed]] = {}
    began = 0
    for line in listed:
        account.note(note)
        key = tuple(line.gpu.values())
        if gpus and (abs(line.time - began) > slack or line.pid in gpus.get(key, ())):
            yield from (_record([*own.values()], account) for own in gpus.values())
            gpus = {}
        began = began if gpus else line.time
        account.continued += key in gpus
        gpus.setdefault(key, {})[line.pid] = line
    yield from (_record([*own.values()], account) for own in gpus.values())


def _record(lines: list[_Listed], account: Account) -> dict[str, Any]:
    """Return how many processes a GPU has and what memory they hold; None where that of one is not known."""
    line, running = lines[0], [line for line in lines if line.pid != "-"]
    sizes = [_size(each.memory, account) for each in running]
    known = line.memory is not None and None not in sizes
    memory = sum(size for size in sizes if size) if known else None
    counted: dict[str, float | None] = {"gpu_processes": len(running), "gpu_process_memory_bytes": memory}
    if any(each.load for each in lines):
        # over five minutes of one process on an H100, its sm and that of dmon have the same mean: 59.2 and 59.4 %
        counted["gpu_utilization_ratio"] = parse_quantity(running[0].load, "%", "1") if len(running) == 1 else None
    return {"line": line.number, TIME: line.time, **line.gpu, **counted}


def _size(text: str | None, account: Account) -> int | None:
    if text is None:
        return None
    if (why := absence(text)) is not None:
        account.absent["used_gpu_memory", why] += 1
        return None
    size = parse_quantity(text, "MiB", "By")
    return None if size is None else round(size)

"""What vmstat, top and AMDuProf print of a machine, each form one function."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from gpureport.importers.account import Account
from gpureport.importers.columns import Rows, parse_time
from gpureport.importers.day_clock import parse_time_of_day
from gpureport.importers.host.fields import Around, DayClock, Machine, parse_number, whole_lines
from gpureport.importers.protocol.reject_reasons import BEFORE_HEADER, MALFORMED, NO_TIME, WRONG_CELLS

# vmstat -t

_GROUPS = re.compile(r"-*procs-* -+memory-+ ")
_NEEDED = ("bi", "bo", "id", "sy", "us", "wa")
_PAGE = 21
"""Rows below a heading where it is written again, in a file."""
_SECOND = 1_000_000


def find_vmstat_names(cells: Sequence[str]) -> list[str]:
    """Return the names of the columns of a heading, its zone left out; none where the line is none."""
    last = max((cells.index(name) for name in ("wa", "st", "gu") if name in cells), default=-1)
    return list(cells[: last + 1]) if set(cells[: last + 1]).issuperset(_NEEDED) else []


def read_vmstat(lines: Iterable[str], first: int, account: Account, around: Around = None) -> Iterator[Rows]:
    """Yield the rows of `vmstat -t`: date and time last, in a zone that the heading names.

    The first row of each time it was started speaks of the time since the machine was: only its stamp is kept.
    """
    del around
    machine = Machine(account)
    names: list[str] = []
    utc, last, pace, below = False, 0, 0, 0
    for number, line in whole_lines(lines, first, account):
        cells = line.split()
        if heading := find_vmstat_names(cells):
            begins, below = not names or below != _PAGE, 0
            zone = cells[len(heading)] if len(cells) > len(heading) else ""
            names, utc = heading, zone in {"UTC", "GMT"}
            if zone and not utc:
                account.note(f"Its stamps are said to be {zone}, read as local time of the machine.")
            account.note("vmstat writes no total of memory, so its columns of memory are not kept.")
        if heading or _GROUPS.match(line):
            account.headers += 1
            continue
        found = parse_time(" ".join(cells[-2:])) if len(cells) == len(names) + 2 else None
        if not names or found is None or line.count(":") < 2:  # noqa: PLR2004 - a time cut behind its minutes is a time too
            untimed = len(cells) == len(names)
            reason = (
                BEFORE_HEADER
                if not names
                else NO_TIME
                if untimed
                else WRONG_CELLS
                if found is None
                else f"{MALFORMED} timestamp"
            )
            account.reject(reason, number, line) if cells else None
            continue
        row = dict(zip(names, cells, strict=False))
        step = found[0] - last
        # a heading is also repeated, on a screen as often as that is full: rows keep their pace there
        begins |= below == 0 and abs(step - pace) > max(pace // 2, _SECOND)
        if begins:
            account.absent["us sy id wa bi bo", "means since the machine was started"] += 1
        load = {"CPU": "all", "%idle": row["id"], "%iowait": row["wa"]}
        machine.take(number, line, (found[0], utc), [] if begins else [load, {"bi": row["bi"], "bo": row["bo"]}])
        last, pace, below, begins = found[0], step, below + 1, False
    yield from machine.rows()


# top -b

TOP = re.compile(r"top - (\d\d:\d\d:\d\d) up .*load average: *(\d{1,9}[.,]\d{1,9})", re.ASCII)
_CORE = re.compile(r"%?cpu(\(s\)|\d{1,4}) {0,9}:((?:%(?!cpu)|[^%]++)*+)", re.IGNORECASE | re.ASCII)
_SHARE = re.compile(r"(?<!\d)(\d{1,3}[.,]\d{1,3}|\d{1,3})[ %]?(id|wa)\b", re.ASCII)
_MEMORY = re.compile(r"([KMGT])iB \w{1,20} *:(.*?)(?:[KMGT]iB|$)", re.ASCII)
_AMOUNT = re.compile(r"(?<!\d)(\d{1,15}(?:[.,]\d{1,9})?)\+? ?(total|used|buff/cache)", re.ASCII)
_FIRST = "the first summary covers no time of its own"
_NARROW = "cut off by the width of the terminal"
_OF_THREADS = "the list is one of threads, and what a process does is the sum of its threads"


def read_top(lines: Iterable[str], first: int, account: Account, around: Around = None) -> Iterator[Rows]:
    """Yield the rows of `top -b`: a summary and a list of processes a time, without a date.

    What the first summary says of the cores covers no time of its own, so it is not kept.
    """
    machine, clock = Machine(account), DayClock(account, around)
    time, screens, threads, memory = None, 0, False, False
    names: list[str] = []
    cores: list[dict[str, str]] = []
    for number, line in whole_lines(lines, first, account):
        cells = line.split()
        if match := TOP.match(line):
            machine.close()
            time, screens = clock.at(parse_time_of_day(match[1])), screens + 1
            names, cores, threads, memory = [], [], False, False
            machine.take(number, line, time, [{"ldavg-1": match[2]}], "top")
        elif not cells:
            names = []
        elif time is None:
            account.reject(NO_TIME if screens else BEFORE_HEADER, number, line)
        elif names:
            row = dict(zip(names, cells, strict=False))
            kept = {"Command": "", **({"RSS": row["RES"]} if "RES" in row else {})}
            kept |= {} if screens == 1 or threads else {"%CPU": row.get("%CPU", "")}
            machine.take(number, line, time, [kept], "top")
        elif {"%CPU", "PID"} <= set(cells):
            names = cells
            account.headers += 1
            account.absent.update([("%CPU", _OF_THREADS)] if threads else [])
        elif found := list(_CORE.finditer(line)):
            cores += [{"CPU": each[1], **{name: text for text, name in _SHARE.findall(each[2])}} for each in found]
            account.continued += 1
        elif (match := _MEMORY.match(line)) and not memory:
            memory = True
            why_not = _FIRST if screens == 1 else "" if _are_whole(cores) else _NARROW
            account.absent.update([("%Cpu", why_not)] if why_not else [])
            loads = [] if why_not else _loads(cores)
            machine.take(number, line, time, [*_memory(match), *loads], "top")
        elif match or cells[0].endswith(":"):
            # the second such line is swap
            threads |= cells[0] == "Threads:"
            account.continued += 1
        else:
            account.reject(WRONG_CELLS, number, line)
    yield from machine.rows()


def _are_whole(cores: Sequence[dict[str, str]]) -> bool:
    """Return whether no core is missing: of two in a line that is too long one is left, of eight each second one."""
    numbers = [int(core["CPU"]) for core in cores if core["CPU"].isdigit()]
    whole = all({"id", "wa"} <= set(core) for core in cores)
    return whole and len(numbers) != 1 and sorted(numbers) == list(range(len(numbers)))


def _loads(cores: Sequence[dict[str, str]]) -> list[dict[str, Any]]:
    """Return the load of each core, where they are told apart, and of all of them."""
    idle, waiting = ([parse_number(core[name]) or 0.0 for core in cores] for name in ("id", "wa"))
    if not cores:
        return []
    mean: dict[str, Any] = {"CPU": "all", "%idle": sum(idle) / len(cores), "%iowait": sum(waiting) / len(cores)}
    each: list[dict[str, Any]] = [{"CPU": core["CPU"], "%idle": core["id"], "%iowait": core["wa"]} for core in cores]
    return [mean, *(each if cores[0]["CPU"].isdigit() else [])]


def _memory(match: "re.Match[str]") -> list[dict[str, float]]:
    """Return the memory in use; where the page cache is not told apart, it is part of what is called so."""
    unit = 1024.0 ** ("KMGT".index(match[1]) + 1)
    amounts = {name: float(text.replace(",", ".")) * unit for text, name in _AMOUNT.findall(match[2])}
    if not {"used", "buff/cache"} <= set(amounts):
        amounts.pop("used", None)
    return [amounts] if amounts.get("total") else []


# the timechart of AMDuProf

_CLOCK = re.compile(r"(\d{1,2}):(\d{1,2}):(\d{1,2}):(\d{1,3})", re.ASCII)
_STARTED = re.compile(r"Profile Start Time:,(\w{3}-\d{1,2}-\d{4})_", re.ASCII)
_POWER = re.compile(r"socket\d+-package-power")


def read_uprof(lines: Iterable[str], first: int, account: Account, around: Around = None) -> Iterator[Rows]:
    """Yield the power of the processors: times of day below the time the profile started."""
    machine, clock = Machine(account), DayClock(account, around)
    names: list[str] = []
    sockets: list[int] = []
    for number, line in whole_lines(lines, first, account):
        cells = [cell.strip() for cell in line.split(",")]
        if heading := line.startswith("RecordId,Timestamp,"):
            names = cells
            sockets = [place for place, name in enumerate(cells) if _POWER.fullmatch(name)]
            others = [name for place, name in enumerate(cells[2:], 2) if place not in sockets and name]
            if others:
                account.note(f"{len(others)} counters of the timechart are not kept, such as {others[0]}.")
        elif match := _STARTED.match(line):
            with suppress(ValueError):
                clock.date(datetime.strptime(match[1], "%b-%d-%Y").date().isoformat())
        if heading or (line and not names):
            account.headers += 1
        elif line and (len(cells) - (not cells[-1]) != len(names) - (not names[-1]) or not sockets):
            account.reject(WRONG_CELLS if sockets else BEFORE_HEADER, number, line)
        elif line:
            at = _CLOCK.fullmatch(cells[1])
            time = clock.at(parse_time_of_day(f"{at[1]}:{at[2]:0>2}:{at[3]:0>2}")) if at else None
            watts = [parse_number(cells[place]) for place in sockets]
            total = -1.0 if None in watts else sum(each or 0.0 for each in watts)
            moment = (time[0] + int(at[4]) * 1000, False) if time and at else None
            machine.take(number, line, moment, [{"watts": total}])
    yield from machine.rows()

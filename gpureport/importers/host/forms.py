"""What tools print and store of a machine, each form one function: sysstat, vmstat, top and AMDuProf."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice
from typing import Any

from gpureport.importers.account import Account
from gpureport.importers.columns import Rows, parse_time
from gpureport.importers.host.fields import Around, DayClock, Machine, Moment, parse_number
from gpureport.importers.printed import parse_time_of_day, whole_lines
from gpureport.importers.protocol import reject_reasons as reasons
from gpureport.parsing import replace_half_characters

# sar, mpstat and pidstat

_TIMED = re.compile(
    r"(?:#\s+Time|(?P<at>\d{1,2}:\d\d:\d\d)(?: (?P<half>[AP]M))?|(?P<epoch>[1-4]\d{9}))\s+(?P<rest>.*)",
    re.ASCII | re.IGNORECASE,
)
"""A heading or a row: a time stands before both."""
_BANNER = re.compile(
    r"\S+ \S+ \(.*?\)\s.*?(?P<date>\d{1,4}([-./])\d{1,2}\2\d{1,4})\s(?:.*\((?P<cores>\d{1,5}) |.*\(.*)CPU\)", re.ASCII
)
"""The line that sysstat's programs begin with: system, release, host, date, and how many cores the machine has."""
_WIDEST = 300
_SAR = {"%system", "kbmemfree", "bread/s", "runq-sz", "DEV", "IFACE", "proc/s", "pgpgin/s", "cswch/s", "INTR", "%sys"}


def read_sysstat(lines: Iterable[str], first: int, account: Account, around: Around = None) -> Iterator[Rows]:
    """Yield the rows of tables below a line with the date: headings begin with a time, as rows do."""
    machine, clock = Machine(account), DayClock(account, around)
    names: tuple[str, ...] = ()
    cores: list[str] = []
    for number, line in whole_lines(lines, first, account):
        timed, banner = _TIMED.match(line), _BANNER.fullmatch(line[:_WIDEST])
        heading = _heading(line)
        if heading or banner or not line:
            machine.close()
        at = parse_time_of_day(timed["at"], timed["half"] or "") if timed and timed["at"] else None
        if timed and "RESTART" in line:
            account.messages += 1
        elif heading or banner:
            account.headers += 1
            if banner:
                clock.date(banner["date"])
                cores = [banner["cores"]] if banner["cores"] else []
            names = (*heading, "cores") if cores and "%idle" in heading else heading
            # the time the first row counts from: midnight may lie between
            clock.at(at, names)
        elif not timed and re.match(r"\S+ *:", line):
            # the means over the whole log
            account.noise += 1
        elif line and (not timed or not names):
            account.reject(reasons.BEFORE_HEADER if timed else reasons.WRONG_CELLS, number, line)
        elif timed:
            time = (int(timed["epoch"]) * 1_000_000, True) if timed["epoch"] else clock.at(at, names)
            cells = timed["rest"].split()
            machine.take_table(number, line, time, names, [*cells, *cores] if names[-1] == "cores" else cells)
    yield from machine.rows()


def _heading(line: str) -> tuple[str, ...]:
    """Return the names of the columns of a heading, its time left out; none for another line."""
    timed = _TIMED.match(line)
    cells = timed["rest"].split() if timed else []
    # one name may be a message
    is_heading = line[:1] == "#" or (len(cells) > 1 and all(parse_number(name) is None for name in cells))
    return tuple(cells) if is_heading else ()


def is_sysstat(lines: Sequence[str]) -> bool:
    """Return whether any of the first lines is a heading of sar, mpstat or pidstat."""
    return any(
        {"CPU", "%irq", "%idle"} <= set(names)
        or ({"PID", "TGID"} & set(names) and names[-1] == "Command")
        or ("PID" not in names and _SAR & set(names))
        for names in map(_heading, lines)
        if names
    )


# sadf -d

SADF = re.compile(r"#\s*hostname;interval;timestamp;(.+)")


def read_sadf(lines: Iterable[str], first: int, account: Account, around: Around = None) -> Iterator[Rows]:
    """Yield the rows of `sadf -d`: semicolons, a heading a table, and stamps in UTC unless asked for otherwise."""
    del around
    machine = Machine(account)
    names: tuple[str, ...] = ()
    host = ""
    for number, line in whole_lines(lines, first, account):
        heading, cells = SADF.match(line), line.split(";")
        if heading or cells[1:2] == ["-1"]:
            machine.close()
        if heading:
            # with -h, groups that recur are marked
            names = tuple(name.removesuffix("[...]") for name in heading[1].split(";"))
            account.headers += 1
        elif cells[1:2] == ["-1"]:
            # a restart of the machine, or a comment
            account.messages += 1
        elif line and (not names or len(cells) < 4):  # noqa: PLR2004 - machine, interval and stamp stand before the values
            account.reject(reasons.WRONG_CELLS if names else reasons.BEFORE_HEADER, number, line)
        elif line and (host := host or cells[0]) != cells[0]:
            account.reject(reasons.OTHER_MACHINE, number, line)
        elif line:
            machine.take_table(number, line, parse_time(re.sub(" (?:UTC|GMT)$", "Z", cells[2])), names, cells[3:])
    yield from machine.rows()


# sadf -j and mpstat -o JSON


def is_json(lines: Sequence[str]) -> bool:
    """Return whether lines are those of `sadf -j` or `mpstat -o JSON`."""
    text = " ".join(lines)
    return '"sysstat"' in text and ('"date"' in text or '"file-date"' in text)


_OBJECT = re.compile(r'\{\s*"timestamp"\s*:')
_DATE = re.compile(r'"date"\s*:\s*"([^"]*)"')
_DECODER = json.JSONDecoder()
_TOGETHER = 20_000
"""Lines that are read at once."""
_ACTIVITIES = ("cpu-load", "cpu-load-all", "memory", "io", "queue", "disk")
_NAMES = {
    **{"cpu": "CPU", "idle": "%idle", "iowait": "%iowait", "ldavg-1": "ldavg-1", "disk-device": "DEV"},
    **{name: f"kb{name}" for name in ("memfree", "memused", "buffers", "cached", "slab")},
    **{name: f"{name}/s" for name in ("bread", "bwrtn", "rkB", "wkB", "rd_sec", "wr_sec")},
    "memused-percent": "%memused",
}
"""Names of the JSON to those of the tables."""


def read_sysstat_json(lines: Iterable[str], first: int, account: Account, around: Around = None) -> Iterator[Rows]:
    """Yield the rows of JSON: an object a time, its activities by name, wherever the log ends."""
    machine, clock = Machine(account), DayClock(account, around)
    number = first
    for text, content in _objects(lines):
        if content is not None:
            rows = [_cells(part) for name in _ACTIVITIES for part in _parts(content.get(name))]
            machine.take(number, text, _moment(content.get("timestamp"), clock), rows)
            machine.close()
        elif _OBJECT.match(text):
            account.reject(reasons.CUT_LAST_LINE, number, text, rows=len(text.split("\n")))
        else:
            said = sum(line.strip(" \t\r,") != "" for line in text.split("\n"))
            account.headers += said if '":' in text else 0
            account.noise += 0 if '":' in text else said
            if date := _DATE.search(text):
                clock.date(date[1])
        number += text.count("\n")
    yield from machine.rows()


def _objects(lines: Iterable[str]) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Yield the objects of a log, and what stands between them or is not whole, with None."""
    remaining, held = iter(lines), ""
    while True:
        part = "".join(islice(remaining, _TOGETHER))
        held += replace_half_characters(part)
        at = 0
        last = max((match.start() for match in _OBJECT.finditer(held)), default=0) if part else len(held)
        while at < last:
            begins, content = _OBJECT.match(held, at), None
            if begins:
                with suppress(ValueError, RecursionError):
                    content, end = _DECODER.raw_decode(held, at)
            if content is None:
                follower = _OBJECT.search(held, begins.end() if begins else at)
                end = follower.start() if follower else len(held)
            yield held[at:end], content
            at = end
        held = held[at:]
        if not part:
            return


def _moment(said: object, clock: DayClock) -> Moment:
    """Return the time an object states."""
    if isinstance(said, dict):
        found = parse_time(f"{said.get('date')} {said.get('time')}")
        return found and (found[0], said.get("utc") == 1 or said.get("tz") in {"UTC", "GMT"})
    time, _, half = str(said).partition(" ")
    return clock.at(parse_time_of_day(time, half.strip()))


def _parts(activity: object) -> list[object]:
    return activity if isinstance(activity, list) else [activity]


def _cells(part: object) -> dict[str, Any]:
    """Return the figures of an activity by the names of the tables."""
    if not isinstance(part, dict):
        return {}
    for way in ("io-reads", "io-writes"):
        part |= part[way] if isinstance(part.get(way), dict) else {}
    return {_NAMES[name]: value for name, value in part.items() if name in _NAMES}


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
                reasons.BEFORE_HEADER
                if not names
                else reasons.NO_TIME
                if untimed
                else reasons.WRONG_CELLS
                if found is None
                else f"{reasons.MALFORMED} timestamp"
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
            account.reject(reasons.NO_TIME if screens else reasons.BEFORE_HEADER, number, line)
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
            account.reject(reasons.WRONG_CELLS, number, line)
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
            account.reject(reasons.WRONG_CELLS if sockets else reasons.BEFORE_HEADER, number, line)
        elif line:
            at = _CLOCK.fullmatch(cells[1])
            time = clock.at(parse_time_of_day(f"{at[1]}:{at[2]:0>2}:{at[3]:0>2}")) if at else None
            watts = [parse_number(cells[place]) for place in sockets]
            total = -1.0 if None in watts else sum(each or 0.0 for each in watts)
            moment = (time[0] + int(at[4]) * 1000, False) if time and at else None
            machine.take(number, line, moment, [{"watts": total}])
    yield from machine.rows()

"""Reads the output of sar, sadf, mpstat, pidstat, vmstat, top and AMDuProf."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from math import nan
from typing import Any

from gpureport.errors import CodedProblem
from gpureport.importers import account as reasons
from gpureport.importers import tools
from gpureport.importers.account import Account, whole_lines
from gpureport.importers.clock import parse_time, parse_time_of_day
from gpureport.importers.host import FIGURE, KNOWN, Around, Cells, DayClock, Said, find_table, host_form, read_csv

_TIMED = re.compile(
    r"(?:#\s+Time|(?P<at>\d{1,2}:\d\d:\d\d(?: [AP]M)?)|(?P<epoch>[1-4]\d{9}))\s+(?P<rest>.*)",
    re.ASCII | re.IGNORECASE,
)
_BANNER = re.compile(
    r"\S+ \S+ \(.*?\)\s.*?(?P<date>\d{1,4}([-./])\d{1,2}\2\d{1,4})\s(?:.*\((?P<cores>\d{1,5}) |.*\(.*)CPU\)", re.ASCII
)
"""Matches the first line from sysstat: system, release, host, date, and number of cores."""
_SYSSTAT = {
    *("%idle", "kbmemfree", "bread/s", "runq-sz", "DEV", "IFACE"),
    *("proc/s", "pgpgin/s", "cswch/s", "INTR", "Command"),
}


@host_form
def read_sysstat(lines: Iterable[str], first: int, account: Account, around: Around) -> Iterator[Said]:
    clock, names = DayClock(account, around), tuple[str, ...]()
    cores: list[str] = []
    for number, line in whole_lines(lines, first, account):
        timed, banner, heading = _TIMED.match(line), _BANNER.fullmatch(line[:300]), _find_heading(line)
        at = parse_time_of_day(timed["at"]) if timed and timed["at"] else None
        if timed and "RESTART" in line:
            account.messages += 1
        elif banner:
            account.headers += 1
            clock.date(banner["date"])
            cores, names = [banner["cores"]] if banner["cores"] else [], ()
        elif heading:
            account.headers += 1
            names = (*heading, "machine_cores") if cores and "%idle" in heading else heading
            # the first row covers the time since this line, which may include midnight
            clock.at(at, names)
        elif not timed and re.match(r"\S+ *:", line):
            # this line, in any language, contains means over the whole log
            account.noise += 1
        elif timed and names:
            time = (int(timed["epoch"]) * 1_000_000, True) if timed["epoch"] else clock.at(at, names)
            cells = timed["rest"].split() + (cores if names[-1] == "machine_cores" else [])
            yield number, line, time, _name_cells(names, cells), names
        elif line:
            account.reject(reasons.BEFORE_HEADER if timed else reasons.WRONG_CELLS, number, line)
        else:
            yield number, line, None, [], ""


def _find_heading(line: str) -> tuple[str, ...]:
    timed = _TIMED.match(line)
    cells = timed["rest"].split() if timed else []
    return tuple(cells) if line[:1] == "#" or (len(cells) > 1 and not any(map(FIGURE.fullmatch, cells))) else ()


def _name_cells(names: tuple[str, ...], cells: Sequence[str]) -> list[Cells] | None:
    """Return cells by name (none without a metric), or None if the number of cells is wrong."""
    if KNOWN.isdisjoint(names):
        return [{}]
    fits = len(cells) == len(names) or (names[-1] == "Command" and len(cells) > len(names))
    return [dict(zip(names, cells, strict=False))] if fits else None


_SADF = re.compile(r"#\s*hostname;interval;timestamp;(.+)")


@host_form
def read_sadf(lines: Iterable[str], first: int, account: Account, _: Around) -> Iterator[Said]:
    names, host = tuple[str, ...](), ""
    for number, line in whole_lines(lines, first, account):
        heading, cells = _SADF.match(line), line.split(";")
        if heading:
            # `sadf -h` marks recurring groups
            names = tuple(name.removesuffix("[...]") for name in heading[1].split(";"))
            account.headers += 1
        elif cells[1:2] == ["-1"]:
            # the machine was restarted, or the line is a comment
            account.messages += 1
        elif line and (not names or len(cells) < 4):  # noqa: PLR2004 - machine, interval, stamp, value
            account.reject(reasons.WRONG_CELLS if names else reasons.BEFORE_HEADER, number, line)
        elif line and (host := host or cells[0]) != cells[0]:
            account.reject(reasons.OTHER_MACHINE, number, line)
        elif line:
            yield number, line, parse_time(re.sub(" (?:UTC|GMT)$", "Z", cells[2])), _name_cells(names, cells[3:]), names


_OBJECT = re.compile(r'(?=\{\s*"timestamp"\s*:)')
_TOGETHER = 20_000
_NAMES = {
    **{"cpu": "CPU", "idle": "%idle", "iowait": "%iowait", "ldavg-1": "ldavg-1", "disk-device": "DEV"},
    **{name: f"kb{name}" for name in ("memfree", "memused", "buffers", "cached", "slab")},
    **{name: f"{name}/s" for name in ("bread", "bwrtn", "rkB", "wkB")},
    "memused-percent": "%memused",
}


@host_form
def read_sysstat_json(lines: Iterable[str], first: int, account: Account, around: Around) -> Iterator[Said]:
    clock, number, remaining, held = DayClock(account, around), first, iter(lines), ""
    while part := "".join(islice(remaining, _TOGETHER)):
        *texts, held = _OBJECT.split(held + part)
        for text in texts:
            yield from _read_object(text, number, account, clock)
            number += text.count("\n")
    yield from _read_object(held, number, account, clock)


def _read_object(text: str, number: int, account: Account, clock: DayClock) -> Iterator[Said]:
    content, end, time = None, 0, None
    with suppress(ValueError, RecursionError):
        content, end = json.JSONDecoder().raw_decode(text)
    others = sum(any(map(str.isalnum, line)) for line in text[end:].split("\n"))
    if isinstance(content, dict):
        said = content.get("timestamp")
        if isinstance(said, dict):
            found = parse_time(f"{said.get('date')} {said.get('time')}")
            time = found and (found[0], said.get("utc") == 1 or said.get("tz") in {"UTC", "GMT"})
        elif isinstance(said, str):
            time = clock.at(parse_time_of_day(said))
        parts = [content.get(name) for name in ("cpu-load", "cpu-load-all", "memory", "io", "queue", "disk")]
        rows = [_name_figures(row) for part in parts for row in (part if isinstance(part, list) else [part])]
        yield number, text[:end], time, rows, ""
    elif _OBJECT.match(text):
        account.reject(reasons.CUT_LAST_LINE, number, text, rows=others)
        return
    account.headers += others
    if date := re.search(r'"date"\s*:\s*"([^"]*)"', text[end:]):
        clock.date(date[1])


def _name_figures(part: object) -> dict[str, Any]:
    found = part if isinstance(part, dict) else {}
    for way in ("io-reads", "io-writes"):
        found = found | (found[way] if isinstance(found.get(way), dict) else {})
    return {_NAMES[name]: value for name, value in found.items() if name in _NAMES}


_GROUPS, _SHORTEST = re.compile(r"-*procs-* -+memory-+ "), 10
"""Matches the line above vmstat's headings, and the minimum number of rows on a page."""


def _find_vmstat_names(cells: Sequence[str]) -> list[str]:
    last = max((cells.index(name) for name in ("wa", "st", "gu") if name in cells), default=-1)
    return list(cells[: last + 1]) if {"bi", "bo", "id", "wa"}.issubset(cells[: last + 1]) else []


@host_form
def read_vmstat(lines: Iterable[str], first: int, account: Account, _: Around) -> Iterator[Said]:
    """Yield rows. The first row after a start keeps only its timestamp, because its values are means since boot."""
    names, utc, begins, below, page, last, pace = list[str](), False, False, 0, 0, 0, 0
    for number, line in whole_lines(lines, first, account):
        cells = line.split()
        if heading := _find_vmstat_names(cells):
            # a page of a different length shows that vmstat was started again
            begins, page, below = below < _SHORTEST or page not in {0, below}, page or below, 0
            names, utc = heading, cells[len(heading) :] in (["UTC"], ["GMT"])
        if heading or _GROUPS.match(line):
            account.headers += 1
        elif cells and not names:
            account.reject(reasons.BEFORE_HEADER, number, line)
        elif cells:
            # the time may have been cut off after the minutes
            time = parse_time(" ".join(cells[-2:])) if line.count(":") > 1 else None
            row = dict(zip(names, cells, strict=False))
            rows: list[Cells] = [{"CPU": "all", "%idle": row.get("id"), "%iowait": row.get("wa")}, row]
            step = time[0] - last if time else pace
            # vmstat may have restarted at the end of a page, which changes the interval of rows
            begins |= below == 0 and abs(step - pace) > max(pace // 2, 1_000_000)
            if time and begins:
                account.absent["us sy id wa bi bo", "means since the machine was started"] += 1
                rows, begins = [], False
            fits = len(cells) == len(names) + (2 if time else 0)
            yield number, line, time and (time[0], utc), rows if fits else None, "vmstat"
            below, last, pace = below + 1, last + step, step


_TOP = re.compile(r"top - (\d\d:\d\d:\d\d) up .*load average: *(\d{1,9}[.,]\d{1,9})", re.ASCII)
_CORE = re.compile(r"%?cpu(\(s\)|\d{1,4}) {0,9}:((?:%(?!cpu)|[^%]++)*+)", re.IGNORECASE | re.ASCII)
_PART = re.compile(r"(?<!\d)(\d{1,3}[.,]\d{1,3}|\d{1,3})[ %]?(id|wa)\b", re.ASCII)
_MEMORY = re.compile(r"([KMGT])iB \w{1,20} *:(.*?)(?:[KMGT]iB|$)", re.ASCII)
_AMOUNT = re.compile(r"(?<!\d)(\d{1,15}(?:[.,]\d{1,9})?)\+? ?(total|used|buff/cache)", re.ASCII)
_NO_LOADS = "the first summary covers no time, or the terminal cut off cores"
_OF_THREADS = "the list shows threads, whose loads add up to that of a process"


@host_form
def read_top(lines: Iterable[str], first: int, account: Account, around: Around) -> Iterator[Said]:
    """Yield each screen's summary and processes, without the first screen's loads, which cover no time."""
    clock, time, screens, threads = DayClock(account, around), None, 0, False
    names: list[str] = []
    cores: list[tuple[str, dict[str, float]]] | None = []
    for number, line in whole_lines(lines, first, account):
        cells = line.split()
        if match := _TOP.match(line):
            time, screens, names, cores = clock.at(parse_time_of_day(match[1])), screens + 1, [], []
            yield number, line, time, [{"ldavg-1": match[2]}], "top"
        elif not cells:
            names = []
        elif time is None:
            account.reject(reasons.NO_TIME if screens else reasons.BEFORE_HEADER, number, line)
        elif names:
            row = dict(zip(names, cells, strict=False))
            kept = {"Command": "", **({"RSS": row["RES"]} if "RES" in row else {})}
            kept |= {} if screens == 1 or threads else {"%CPU": row.get("%CPU", "")}
            yield number, line, time, [kept], "top"
        elif {"%CPU", "PID"} <= set(cells):
            names = cells
            account.headers += 1
            account.absent.update([("%CPU", _OF_THREADS)] if threads else [])
        elif cores is not None and (match := _MEMORY.match(line)):
            loads = _average(cores) if screens > 1 else None
            unit = 1024.0 ** ("KMGT".index(match[1]) + 1)
            account.absent.update([("%Cpu", _NO_LOADS)] if loads is None else [])
            amounts = {name: _parse(text) * unit for text, name in _AMOUNT.findall(match[2])}
            # if the page cache is not shown, used memory includes it
            is_known = amounts.get("total") and "buff/cache" in amounts
            yield number, line, time, [*([amounts] if is_known else ()), *(loads or ())], "top"
            # the next line in this format is about swap
            cores = None
        elif cores is not None and (found := _CORE.findall(line)):
            cores += [(core, {name: _parse(text) for text, name in _PART.findall(said)}) for core, said in found]
            account.continued += 1
        elif _MEMORY.match(line) or cells[0].endswith(":"):
            threads |= cells[0] == "Threads:"
            account.continued += 1
        else:
            account.reject(reasons.WRONG_CELLS, number, line)


def _parse(text: str) -> float:
    return float(text.replace(",", "."))


def _average(cores: Sequence[tuple[str, dict[str, float]]]) -> list[Cells] | None:
    """Return each core's load and their mean, or None if the terminal cut off some cores."""
    numbers = sorted(int(core) for core, _ in cores if core.isdigit())
    is_cut = len(numbers) == 1 or numbers != list(range(len(numbers))) or not all(len(parts) > 1 for _, parts in cores)
    if is_cut or not cores:
        return None if is_cut else []
    mean = {name: sum(parts[name] for _, parts in cores) / len(cores) for name in ("id", "wa")}
    named = [*(cores if numbers else ()), ("all", mean)]
    return [{"CPU": core, "%idle": parts["id"], "%iowait": parts["wa"]} for core, parts in named]


@host_form
def read_uprof(lines: Iterable[str], first: int, account: Account, around: Around) -> Iterator[Said]:
    clock, names, sockets = DayClock(account, around), list[str](), list[int]()
    for number, line in whole_lines(lines, first, account):
        cells = [cell.strip() for cell in line.removesuffix(",").split(",")]
        if match := re.match(r"Profile Start Time:,(\w{3}-\d{1,2}-\d{4})_", line, re.ASCII):
            clock.date(match[1])
        if heading := line.startswith("RecordId,Timestamp,"):
            names = cells
            sockets = [place for place, name in enumerate(cells) if re.fullmatch(r"socket\d+-package-power", name)]
        if heading or (line and not names):
            account.headers += 1
        elif line and (not sockets or len(cells) != len(names)):
            account.reject(reasons.WRONG_CELLS, number, line)
        elif line:
            at = re.fullmatch(r"(\d{1,2}):(\d{1,2}):(\d{1,2}):(\d{1,3})", cells[1], re.ASCII)
            time = clock.at(parse_time_of_day(f"{at[1]}:{at[2]:0>2}:{at[3]:0>2}")) if at else None
            moment = (time[0] + int(at[4]) * 1000, False) if time and at else None
            watts = sum(_parse(one[1]) if (one := FIGURE.fullmatch(cells[place])) else nan for place in sockets)
            yield number, line, moment, [{"watts": watts}], "timechart"


def _has(found: Callable[[str], object]) -> Callable[[str], bool]:
    return lambda text: any(map(found, tools.first_lines(text, 100)))


def _explain(account: Account) -> CodedProblem:
    rejected = ", ".join(f"{n} {reason}" for reason, (n, *_) in account.rejected.items()) or "no metric"
    hint = "record one of these with dates and times: sar -u -r -b -P ALL 1, mpstat, pidstat, vmstat -t, or a CSV"
    return f"none of its {account.lines} lines contains host data ({rejected})", hint, "no_usable_row"


HOST = tools.ToolLog(
    kind="host",
    title="host log",
    forms=(
        ("sadf -d", _has(_SADF.match), read_sadf),
        ("a CSV", lambda text: bool(find_table(tools.split_cells(text.lstrip().split("\n")[0], ""))), read_csv),
        ("JSON of sysstat", lambda text: bool(re.search(r'(?s)"sysstat".*"(?:file-)?date"', text)), read_sysstat_json),
        ("sar, mpstat or pidstat", _has(lambda line: _SYSSTAT & {*_find_heading(line)}), read_sysstat),
        ("vmstat", _has(lambda line: _find_vmstat_names(line.split())), read_vmstat),
        ("top -b", _has(_TOP.match), read_top),
        ("AMDuProf timechart", lambda text: text.lstrip().startswith("AMDPROFILER"), read_uprof),
    ),
    explain=_explain,
)

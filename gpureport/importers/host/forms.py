"""What vmstat, top and AMDuProf print of a machine, each form one function."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime

from gpureport.importers.account import Account
from gpureport.importers.columns import Rows, parse_time
from gpureport.importers.host import fields
from gpureport.importers.host.fields import Around, DayClock, Said, Ticks, parse_number, plain_lines
from gpureport.importers.protocol.reject_reasons import BEFORE_HEADER, CUT_LAST_LINE, MALFORMED, NO_TIME, WRONG_CELLS

# vmstat -t

_GROUPS = re.compile(r"-*procs-* -+memory-+ ")
_NEEDED = ("bi", "bo", "id", "sy", "us", "wa")
_PAGE = 21
"""Rows below a heading where it is written again, in a file; on a screen they are as many as it shows."""
_SECOND = 1_000_000


def read_vmstat(lines: Iterable[str], first: int, account: Account, around: Around = None) -> Iterator[Rows]:
    """Yield the rows of `vmstat -t`: date and time last, in a zone that the heading names.

    The first row of each time it was started speaks of the time since the machine was: only its stamp is kept.
    """
    del around
    ticks = Ticks(account)
    names: list[str] = []
    utc, last, pace, below, page = False, 0, 0, 0, _PAGE
    for number, line, cut in plain_lines(lines, first):
        cells = line.split()
        if heading := find_vmstat_names(cells):
            names, page, below = heading, below or page, 0
            zone = cells[len(names)] if len(cells) > len(names) and not last else ""
            utc |= zone in {"UTC", "GMT"}
            if zone and not utc:
                account.note(f"Its stamps are said to be {zone}, read as local time of the machine.")
            account.note("vmstat writes no total of memory, so its columns of memory are not kept.")
        if heading or _GROUPS.match(line):
            account.headers += 1
        elif isinstance(row := _read_vmstat_row(names, cells), str):
            if cells:
                account.reject(CUT_LAST_LINE if cut and names else row, number, line)
        else:
            at, values = row
            step = at - last
            # a heading is also repeated; below one that is not, a row is half the pace, or the second to which stamps
            # are cut, off the pace (pragmatic), and no screen shows one row alone
            late = abs(step - pace) > max(pace // 2, _SECOND) or page == 1 or (page != _PAGE and step != pace)
            begins = not last or (below == 0 and late)
            last, pace, below = at, 0 if begins else step, below + 1
            if begins:
                account.absent["us sy id wa bi bo", "means since the machine was started"] += 1
            ticks.say("", at, number, [("", {} if begins else values)])
            ticks.close()
    yield from ticks.rows("UTC" if utc else None)


def find_vmstat_names(cells: Sequence[str]) -> list[str]:
    """Return the names of the columns of a heading, its zone left out; none where the line is none."""
    last = max((cells.index(name) for name in ("wa", "st", "gu") if name in cells), default=-1)
    return list(cells[: last + 1]) if set(cells[: last + 1]).issuperset(_NEEDED) else []


def _read_vmstat_row(names: Sequence[str], cells: Sequence[str]) -> tuple[int, dict[str, float]] | str:
    """Return the time and the figures of a row, or why the line is none."""
    if not names or len(cells) != len(names) + 2:
        return BEFORE_HEADER if not names else NO_TIME if len(cells) == len(names) else WRONG_CELLS
    found = parse_time(" ".join(cells[-2:]))
    # a time cut behind its minutes is a time as well
    if found is None or cells[-1].count(":") < 2:  # noqa: PLR2004 - hours, minutes, seconds
        return f"{MALFORMED} timestamp"
    row = dict(zip(names, cells, strict=False))
    read = {name: value for name in _NEEDED if (value := parse_number(row[name])) is not None and value >= 0}
    wrong = next((name for name in _NEEDED if name not in read), "")
    if wrong or read["id"] + read["wa"] > 103:  # noqa: PLR2004 - per cent, each rounded to a whole one
        return f"{MALFORMED} {wrong or 'id'}"
    busy, moved = (
        max(1 - (read["id"] + read["wa"]) / 100, 0.0),
        fields.disk(*(read[name] * 1024 for name in ("bi", "bo"))),
    )
    return found[0], {"cpu_utilization_ratio": busy, "cpu_iowait_ratio": read["wa"] / 100, **moved}


# top -b

TOP = re.compile(r"top - (\d\d:\d\d:\d\d) up .*load average: *(\d{1,9}[.,]\d{1,9})", re.ASCII)
# the branch that fails last must take nothing, as Python before 3.11.5 goes on where it failed (gh-106052)
_CORES = re.compile(r"%?cpu(?:\(s\)|(\d{1,4}) {0,9}) {0,9}:((?:%(?!cpu)|[^%]++)*+)", re.IGNORECASE | re.ASCII)
_SHARE = re.compile(r"(?<!\d)(\d{1,3}[.,]\d{1,3}|\d{1,3})[ %]?(id|wa)\b", re.ASCII)
_MEMORY = re.compile(r"([KMGT])iB \w{1,20} *:(.*?)(?:[KMGT]iB|$)", re.ASCII)
_AMOUNT = re.compile(r"(?<!\d)(\d{1,15}(?:[.,]\d{1,9})?)\+? ?(total|used|buff/cache)", re.ASCII)
_FIRST = "the first summary covers no time of its own"
_NARROW = "cut off by the width of the terminal"
_OF_THREADS = "the list is one of threads, and what a process does is the sum of its threads"
_Core = tuple[int | None, float, float]
"""Number of a core, None for all of them; how long it was busy, and how long it waited for a disk."""


def read_top(lines: Iterable[str], first: int, account: Account, around: Around = None) -> Iterator[Rows]:
    """Yield the rows of `top -b`: a summary and a list of processes a time, without a date.

    What the first summary says of the cores covers no time of its own, so it is not kept.
    """
    ticks, clock, screens = Ticks(account), DayClock(account, around), 0
    for screen in _split_screens(lines, first, account):
        match = TOP.match(screen[0][1])
        screens += match is not None
        at = clock.at(fields.parse_time_of_day(match[1])) if match else None
        if match is None or at is None:
            for number, line in (each for each in screen if each[1]):
                account.reject(NO_TIME if match else BEFORE_HEADER, number, line)
            continue
        others = account.lines
        said = [("", {"host_load_average": float(match[2].replace(",", "."))})]
        said += _read_screen(screen[1:], account, alone=screens == 1)
        ticks.close()
        ticks.say("", at, screen[0][0], said, sum(bool(line) for _, line in screen) - (account.lines - others))
    yield from ticks.rows()


def _split_screens(lines: Iterable[str], first: int, account: Account) -> Iterator[list[tuple[int, str]]]:
    """Yield the lines that `top` prints at a time, and before all others what stands above."""
    screen: list[tuple[int, str]] = []
    for number, line, cut in plain_lines(lines, first):
        if line and cut:
            account.reject(CUT_LAST_LINE, number, line)
        elif screen and TOP.match(line):
            yield screen
            screen = [(number, line)]
        elif line or screen:
            screen.append((number, line))
    if screen:
        yield screen


def _read_screen(screen: Sequence[tuple[int, str]], account: Account, *, alone: bool) -> Iterator[Said]:
    """Yield what a summary says, and each process below it; `alone` stands for the first one of a log."""
    names: list[str] = []
    cores, memory, threads = list[_Core | None](), None, False
    for number, line in screen:
        cells = line.split()
        names = names if cells else []
        if names:
            process = _read_process(names, cells, alone=alone or threads)
            if isinstance(process, str):
                account.reject(process, number, line)
            else:
                yield fields.PROCESSES, process
        elif {"%CPU", "PID"} <= set(cells):
            names = cells
            account.headers += 1
            account.absent.update([("%CPU", _OF_THREADS)] if threads else [])
        elif found := list(_CORES.finditer(line)):
            cores += map(_read_core, found)
        elif match := _MEMORY.match(line):
            # the second such line is swap
            memory = memory or match
        elif not cells or cells[0].endswith(":"):
            threads |= cells[:1] == ["Threads:"]
        else:
            account.reject(WRONG_CELLS, number, line)
    if memory:
        yield "", _read_memory(memory)
        if why_not := _FIRST if alone else "" if _are_whole(cores) else _NARROW:
            account.absent["%Cpu", why_not] += 1
        elif cores:
            yield "", _sum_cores([core for core in cores if core])


def _are_whole(cores: "Sequence[_Core | None]") -> bool:
    """Return whether no core is missing: of two in a line that is too long one is left, of eight each second one."""
    numbers = [core[0] for core in cores if core and core[0] is not None]
    return None not in cores and len(numbers) != 1 and sorted(numbers) == list(range(len(numbers)))


def _read_core(match: "re.Match[str]") -> _Core | None:
    """Return the shares of a core, None where they are cut off."""
    shares = {name: float(text.replace(",", ".")) / 100 for text, name in _SHARE.findall(match[2])}
    if not {"id", "wa"} <= set(shares) or sum(shares.values()) > 1.01:  # noqa: PLR2004 - each is rounded
        return None
    return int(match[1]) if match[1] else None, max(1 - shares["id"] - shares["wa"], 0.0), shares["wa"]


def _sum_cores(cores: Sequence[_Core]) -> dict[str, float]:
    numbers, busy, waiting = zip(*cores, strict=True)
    values = {"cpu_utilization_ratio": sum(busy) / len(busy), "cpu_iowait_ratio": sum(waiting) / len(waiting)}
    each = {"cpu_busiest_core_ratio": max(busy), fields.CORE_COUNT: len(busy)}
    return values if numbers[0] is None else values | each


def _read_memory(match: "re.Match[str]") -> dict[str, float]:
    """Return the memory in use; where the page cache is not told apart, it is part of what is called so."""
    unit = 1024.0 ** ("KMGT".index(match[1]) + 1)
    amounts = {name: float(text.replace(",", ".")) * unit for text, name in _AMOUNT.findall(match[2])}
    total, used = amounts.get("total"), amounts.get("used")
    if not total or max(amounts.values()) >= fields.LARGEST:
        return {}
    values = {"host_memory_total_bytes": total}
    if used is not None and "buff/cache" in amounts:
        values |= {"host_memory_used_bytes": used, "host_memory_used_ratio": used / total}
    return values


def _read_process(names: Sequence[str], cells: Sequence[str], *, alone: bool) -> dict[str, float] | str:
    """Return what a process does, or why the line is none."""
    row = dict(zip(names, cells, strict=False))
    if len(cells) < len(names):
        return WRONG_CELLS
    used, held = parse_number(row["%CPU"]), fields.parse_size(row.get("RES", ""))
    if used is None or used < 0:
        return f"{MALFORMED} %CPU"
    values = {} if alone else {"process_cpu_cores": used / 100}
    return values if held is None else values | {"process_memory_used_bytes": held}


# the timechart of AMDuProf

_CLOCK = re.compile(r"(\d{1,2}):(\d{1,2}):(\d{1,2}):(\d{1,3})", re.ASCII)
_STARTED = re.compile(r"Profile Start Time:,(\w{3}-\d{1,2}-\d{4})_", re.ASCII)


def read_uprof(lines: Iterable[str], first: int, account: Account, around: Around = None) -> Iterator[Rows]:
    """Yield the power of the processors: times of day below the time the profile started."""
    ticks, clock = Ticks(account), DayClock(account, around)
    names: list[str] = []
    sockets: list[int] = []
    for number, line, cut in plain_lines(lines, first):
        cells = [cell.strip() for cell in line.split(",")]
        if heading := line.startswith("RecordId,Timestamp,") and not cut:
            names, sockets = (
                cells,
                [n for n, name in enumerate(cells) if re.fullmatch(r"socket\d+-package-power", name)],
            )
            others = [name for n, name in enumerate(cells[2:], 2) if n not in sockets and name]
            if others:
                account.note(f"{len(others)} counters of the timechart are not kept, such as {others[0]}.")
        elif match := _STARTED.match(line):
            with suppress(ValueError):
                clock.date(datetime.strptime(match[1], "%b-%d-%Y").date().isoformat())
        if heading or (line and not names):
            account.headers += 1
        elif line:
            found = CUT_LAST_LINE if cut else _read_power(names, cells, sockets, clock)
            if isinstance(found, str):
                account.reject(found, number, line)
            else:
                ticks.say("", found[0], number, [("", {"cpu_power_watts": found[1]})])
                ticks.close()
    yield from ticks.rows()


def _read_power(
    names: Sequence[str], cells: Sequence[str], sockets: Sequence[int], clock: DayClock
) -> tuple[int, float] | str:
    """Return the time and the power of a record, or why it is none."""
    if len(cells) != len(names) and not (len(cells) == len(names) + 1 and not cells[-1]):
        return WRONG_CELLS
    if not sockets:
        return BEFORE_HEADER
    match = _CLOCK.fullmatch(cells[1])
    watts = [value for place in sockets if (value := parse_number(cells[place])) is not None and value >= 0]
    at = clock.at(fields.parse_time_of_day(f"{match[1]}:{match[2]:0>2}:{match[3]:0>2}")) if match else None
    if match is None or at is None:
        return NO_TIME
    return (at + int(match[4]) * 1000, sum(watts)) if len(watts) == len(sockets) else f"{MALFORMED} package power"

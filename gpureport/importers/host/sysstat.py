"""What sysstat prints and stores: the tables of sar, mpstat and pidstat, and the CSV and JSON of sadf and mpstat."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from gpureport.importers.account import Account
from gpureport.importers.columns import Rows, parse_time
from gpureport.importers.day_clock import parse_time_of_day
from gpureport.importers.host.fields import Around, DayClock, Machine, Moment, find_dates, parse_number, whole_lines
from gpureport.importers.protocol.reject_reasons import (
    BEFORE_HEADER,
    CUT_LAST_LINE,
    OTHER_MACHINE,
    WRONG_CELLS,
)
from gpureport.json_text import replace_half_characters

# sar, mpstat and pidstat

_EPOCH = re.compile(r"[1-4]\d{9}", re.ASCII)
_CORES = re.compile(r"\((\d{1,5}) CPU\)$", re.ASCII)
"""How many cores the machine has, at the end of the line that sysstat begins with."""
_SAR = {"%system", "kbmemfree", "bread/s", "runq-sz", "DEV", "IFACE", "proc/s", "pgpgin/s", "cswch/s", "INTR", "%sys"}


def read_sysstat(lines: Iterable[str], first: int, account: Account, around: Around = None) -> Iterator[Rows]:
    """Yield the rows of tables below a line with the date: headings begin with a time, as rows do."""
    machine, clock = Machine(account), DayClock(account, around)
    names: tuple[str, ...] = ()
    cores: list[str] = []
    for number, line in whole_lines(lines, first, account):
        cells = line.split()
        width = _time_width(cells)
        heading, date = _heading(cells, width), _banner(cells)
        if heading or date or not cells:
            machine.close()
        if not cells:
            continue
        if "RESTART" in line and width:
            account.messages += 1
        elif heading or date:
            account.headers += 1
            if date:
                clock.date(date)
                cores = _CORES.findall(line)
            names = (*heading, "cores") if cores and "%idle" in heading else heading
            if names:
                # the time the first row counts from: midnight may lie between
                clock.at(_time_of_day(cells, width), names)
        elif not width and (cells[0].endswith(":") or cells[1:2] == [":"]):
            # the means over the whole log
            account.noise += 1
        elif not width or not names:
            account.reject(BEFORE_HEADER if width else WRONG_CELLS, number, line)
        else:
            counted = _EPOCH.fullmatch(cells[0]) is not None
            time = (int(cells[0]) * 1_000_000, True) if counted else clock.at(_time_of_day(cells, width), names)
            machine.take_table(
                number, line, time, names, [*cells[width:], *cores] if names[-1] == "cores" else cells[width:]
            )
    yield from machine.rows()


def _time_of_day(cells: Sequence[str], width: int) -> int | None:
    return parse_time_of_day(*cells[:width]) if width else None


def _time_width(cells: Sequence[str]) -> int:
    """Return how many of the first cells are a time."""
    if not cells or parse_time_of_day(cells[0]) is None:
        return int(bool(cells) and _EPOCH.fullmatch(cells[0]) is not None)
    return 2 if cells[1:2] and cells[1].upper() in {"AM", "PM"} else 1


def _heading(cells: Sequence[str], width: int) -> tuple[str, ...]:
    """Return the names of the columns of a heading, its time left out; none for another line."""
    if cells[:1] == ["#"]:
        return tuple(cells[2:])
    # one name may be a message
    is_heading = width and len(cells) - width > 1 and all(parse_number(name) is None for name in cells[width:])
    return tuple(cells[width:]) if is_heading else ()


def _banner(cells: Sequence[str]) -> str:
    """Return the date of the line that sysstat's programs begin with: system, release, host and date."""
    if len(cells) < 4 or not cells[2].startswith("(") or not cells[-1].endswith("CPU)"):  # noqa: PLR2004 - these four
        return ""
    return next((cell for cell in cells[3:] if find_dates(cell)), "")


def is_sysstat(lines: Sequence[str]) -> bool:
    """Return whether any of the first lines is a heading of sar, mpstat or pidstat."""
    headings = (_heading(cells, _time_width(cells)) for cells in map(str.split, lines))
    return any(
        {"CPU", "%irq", "%idle"} <= set(names)
        or ({"PID", "TGID"} & set(names) and names[-1] == "Command")
        or ("PID" not in names and _SAR & set(names))
        for names in headings
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
            account.reject(WRONG_CELLS if names else BEFORE_HEADER, number, line)
        elif line and (host := host or cells[0]) != cells[0]:
            account.reject(OTHER_MACHINE, number, line)
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
            account.reject(CUT_LAST_LINE, number, text, rows=len(text.split("\n")))
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

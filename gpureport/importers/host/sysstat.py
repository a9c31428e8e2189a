"""What sysstat prints and stores: the tables of sar, mpstat and pidstat, and the CSV and JSON of sadf and mpstat."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from gpureport.importers.account import Account
from gpureport.importers.columns import Rows, parse_time
from gpureport.importers.host.fields import (
    CORE_COUNT,
    Around,
    DayClock,
    MalformedError,
    Said,
    Ticks,
    find_dates,
    find_readers,
    parse_number,
    parse_time_of_day,
    plain_lines,
)
from gpureport.importers.protocol.reject_reasons import (
    BEFORE_HEADER,
    CUT_LAST_LINE,
    MALFORMED,
    NO_TIME,
    OTHER_MACHINE,
    WRONG_CELLS,
)
from gpureport.json_text import replace_half_characters

# sar, mpstat and pidstat

_EPOCH = re.compile(r"[1-4]\d{9}", re.ASCII)
_MACHINE = re.compile(r"\((\d{1,5}) CPU\)$", re.ASCII)
"""How many cores the machine has, at the end of the line that sysstat begins with."""
_SAR = {"%system", "kbmemfree", "bread/s", "runq-sz", "DEV", "IFACE", "proc/s", "pgpgin/s", "cswch/s", "INTR", "%sys"}


def read_sysstat(lines: Iterable[str], first: int, account: Account, around: Around = None) -> Iterator[Rows]:
    """Yield the rows of tables below a line with the date: headings begin with a time, as rows do."""
    ticks, clock = Ticks(account), DayClock(account, around)
    names: tuple[str, ...] = ()
    cores, epoch = 0, None
    for number, line, cut in plain_lines(lines, first):
        cells = line.split()
        width = _time_width(cells)
        heading, date = _heading(cells, width), _banner(cells)
        if heading or date or not cells:
            ticks.close()
        if not cells:
            continue
        if cut and not heading:
            account.reject(CUT_LAST_LINE, number, line)
        elif "RESTART" in line and width:
            account.messages += 1
        elif heading or date:
            account.headers += 1
            names = heading
            if date:
                clock.date(date)
                found = _MACHINE.search(line)
                cores = int(found[1]) if found else 0
            elif width:
                # the time the first row counts from: midnight may lie between
                clock.at(parse_time_of_day(*cells[:width]), names)
        elif not width and (cells[0].endswith(":") or cells[1:2] == [":"]):
            # the means over the whole log
            account.noise += 1
        elif not width or not names:
            account.reject(BEFORE_HEADER if width else WRONG_CELLS, number, line)
        else:
            counted = _EPOCH.fullmatch(cells[0]) is not None
            epoch = counted if epoch is None else epoch
            at = int(cells[0]) * 1_000_000 if counted else clock.at(parse_time_of_day(*cells[:width]), names)
            kept = ticks.take(names, at if counted == epoch else None, number, cells[width:], line)
            if kept and at and cores and "%idle" in names:
                ticks.say(names, at, number, [("", {CORE_COUNT: cores})], lines=0)
    yield from ticks.rows("UTC" if epoch else None)


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
    ticks = Ticks(account)
    names: tuple[str, ...] = ()
    machine, utc = "", None
    for number, line, cut in plain_lines(lines, first):
        heading, cells = SADF.match(line), line.split(";")
        if heading or cells[1:2] == ["-1"]:
            ticks.close()
        if not line:
            continue
        if cut and not heading:
            account.reject(CUT_LAST_LINE, number, line)
        elif heading:
            # with -h, groups that recur are marked
            names = tuple(name.removesuffix("[...]") for name in heading[1].split(";"))
            account.headers += 1
        elif cells[1:2] == ["-1"]:
            # a restart of the machine, or a comment
            account.messages += 1
        elif not names or len(cells) < 4:  # noqa: PLR2004 - machine, interval and stamp stand before the values
            account.reject(WRONG_CELLS if names else BEFORE_HEADER, number, line)
        elif (machine := machine or cells[0]) != cells[0]:
            account.reject(OTHER_MACHINE, number, line)
        elif (found := parse_time(re.sub(" (?:UTC|GMT)$", "Z", cells[2]))) is None or utc not in {None, found[1]}:
            account.reject(f"{MALFORMED} timestamp", number, line)
        else:
            utc = found[1]
            ticks.take(names, found[0], number, cells[3:], line)
    yield from ticks.rows("UTC" if utc else None)


# sadf -j and mpstat -o JSON


def is_json(lines: Sequence[str]) -> bool:
    """Return whether lines are those of `sadf -j` or `mpstat -o JSON`."""
    text = " ".join(lines)
    return '"sysstat"' in text and ('"date"' in text or '"file-date"' in text)


_OBJECT = re.compile(r'\{\s*"timestamp"\s*:')
_DATE = re.compile(r'"date"\s*:\s*"([^"]*)"')
_DECODER = json.JSONDecoder()
_TOGETHER = 2**20
"""Characters that are read at once."""
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
    ticks, clock, utc, number = Ticks(account), DayClock(account, around), None, first
    for text, content in (each for part in _split_text(lines, first) for each in _find_objects(part)):
        held = [(number + n, line) for n, line in enumerate(text.split("\n")) if line.strip(" \t\r,")]
        number += text.count("\n")
        if content is None:
            begins = _OBJECT.match(text) is not None
            _sort_out(held, account, cut=begins)
            if not begins and (date := _DATE.search(text)):
                clock.date(date[1])
            continue
        time, stated = _moment(content.get("timestamp"), clock)
        utc = stated if utc is None and time is not None else utc
        if reason := _take_object(ticks, content, time if stated == utc else None, held):
            account.reject(reason, held[0][0], rows=len(held))
    yield from ticks.rows("UTC" if utc else None)


def _split_text(lines: Iterable[str], first: int) -> Iterator[str]:
    """Yield a log in parts of some megabytes, each but the first from the beginning of an object on."""
    held, size = list[str](), 0
    for _, line, _ in plain_lines(lines, first):
        held.append(f"{line}\n")
        size += len(line)
        if size > _TOGETHER:
            text, size = "".join(held), 0
            begin = max((match.start() for match in _OBJECT.finditer(text)), default=0)
            held = [text[begin:]]
            if begin:
                yield replace_half_characters(text[:begin])
    yield replace_half_characters("".join(held))


def _find_objects(text: str) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Yield the objects of a text, and what stands between them or is not whole, with None."""
    at = 0
    while at < len(text):
        begins, content = _OBJECT.match(text, at), None
        if begins:
            with suppress(ValueError, RecursionError):
                content, end = _DECODER.raw_decode(text, at)
        if content is None:
            follower = _OBJECT.search(text, begins.end() if begins else at)
            end = follower.start() if follower else len(text)
        yield text[at:end], content
        at = end


def _sort_out(held: Sequence[tuple[int, str]], account: Account, *, cut: bool) -> None:
    """Count the lines between two objects, or those of one that is not whole."""
    for number, line in held:
        if cut:
            account.reject(CUT_LAST_LINE, number, line)
        elif '"boot"' in line or '"com"' in line:
            account.messages += 1
        elif re.search(r'"[^"]+"\s*:', line):
            account.headers += 1
        else:
            account.noise += 1


def _moment(said: object, clock: DayClock) -> tuple[int | None, bool]:
    """Return the time an object states, and whether it is UTC."""
    if isinstance(said, dict):
        found = parse_time(f"{said.get('date')} {said.get('time')}")
        return found and found[0], said.get("utc") == 1 or said.get("tz") in {"UTC", "GMT"}
    time, _, half = str(said).partition(" ")
    return clock.at(parse_time_of_day(time, half.strip())), False


def _take_object(ticks: Ticks, content: dict[str, Any], at: int | None, held: Sequence[tuple[int, str]]) -> str:
    """Take what an object says of its time; return why it is none."""
    if at is None:
        return NO_TIME
    said: list[Said] = []
    try:
        for activity in (content[name] for name in _ACTIVITIES if name in content):
            for part in activity if isinstance(activity, list) else [activity]:
                cells = _cells(part)
                said += (reader(cells) for reader in find_readers(tuple(cells)))
    except MalformedError as error:
        return str(error)
    ticks.say("", at, held[0][0], said, len(held))
    ticks.close()
    return ""


def _cells(part: object) -> dict[str, Any]:
    """Return the figures of an activity by the names of the tables."""
    if not isinstance(part, dict):
        return {}
    for way in ("io-reads", "io-writes"):
        part |= part[way] if isinstance(part.get(way), dict) else {}
    return {_NAMES[name]: value for name, value in part.items() if name in _NAMES}

"""The tables that plain `nvidia-smi` draws, once or with `-l`, and inside the logs of jobs."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from gpureport.importers.account import LOST_WORDS, Account
from gpureport.importers.columns import LOST, TIME, Rows, absence, make_column, rows_from_records
from gpureport.importers.protocol.reject_reasons import MALFORMED, NOT_OF_FORM, TORN

NAME = "plain nvidia-smi"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_MONTH = f"(?P<month>{'|'.join(_MONTHS)})"
_CLOCK = r"(?P<clock>\d{1,2}:\d\d:\d\d)(?: (?P<half>AM|PM))?"
_ZONE = r"(?: (?P<zone>[A-Z]{2,5}|[+-]\d\d(?:\d\d)?))?"
_ASCTIME = re.compile(rf"{_DAY} {_MONTH} +(?P<day>\d{{1,2}}) (?P<clock>\d\d:\d\d:\d\d) (?P<year>\d{{4}})", re.ASCII)
"""What C's asctime writes: nvidia-smi's own line above a table and in its `-q` outputs."""
_DATES = (
    _ASCTIME,
    re.compile(rf"{_DAY},? {_MONTH} +(?P<day>\d{{1,2}}) {_CLOCK}{_ZONE} (?P<year>\d{{4}})", re.ASCII),
    re.compile(rf"{_DAY},? (?P<day>\d{{1,2}}) {_MONTH} (?P<year>\d{{4}}) {_CLOCK}{_ZONE}", re.ASCII),
)
"""What `date` writes, in the C locale and in English ones."""
_ISO = re.compile(
    r"(?<!\d)(\d{4})([-/])(\d\d)\2(\d\d)[ T](\d\d:\d\d:\d\d(?:[.,]\d{1,6})?)"
    r"(?P<zone> ?(?:Z\b|UTC\b|[+-]\d\d:?\d\d\b))?",
    re.ASCII,
)
_EPOCH, _LATEST = datetime(1970, 1, 1), timedelta(days=365 * 8029)
_NOON, _LAST_SECOND = 12, 60


@lru_cache(64)
def parse_printed_time(text: str) -> tuple[int, bool] | None:
    """Return the time a text holds, in microseconds as written, and whether it names a zone; None without a time."""
    match = next((found for pattern in _DATES if (found := pattern.search(text))), None)
    if match is None:
        stamp = _ISO.search(text)
        if stamp is None:
            return None
        day, clock, half, zoned = f"{stamp[1]}-{stamp[3]}-{stamp[4]}", stamp[5], None, stamp["zone"] is not None
    else:
        parts = match.groupdict()
        day = f"{parts['year']}-{_MONTHS.index(parts['month']) + 1:02d}-{int(parts['day']):02d}"
        clock, half, zoned = parts["clock"], parts.get("half"), parts.get("zone") is not None
    hours, minutes, seconds = clock.replace(",", ".").split(":")
    hour = int(hours) if half is None else int(hours) % _NOON + _NOON * (half == "PM")
    try:
        since = datetime.fromisoformat(f"{day}T{hour:02d}:{minutes}:00") - _EPOCH + timedelta(seconds=float(seconds))
    except ValueError:
        return None
    # a leap second is taken for the next minute
    usable = float(seconds) < _LAST_SECOND + 1 and timedelta(0) <= since < _LATEST
    return (round(since / timedelta(microseconds=1)), zoned) if usable else None


_OPENING = re.compile(rf"\s*(?:\| NVIDIA-SMI \d|{_ASCTIME.pattern}\s*$)")
_BANNER = "| NVIDIA-SMI "
_DRIVER = re.compile(r"(?:Driver|KMD) Version: *(\d[\w.]*)")
_HEADING = re.compile(r"\| *(?:GPU +Name|Fan +Temp|\| +\| +MIG M\.).*")
_INDEX_AT = 4
"""Place of the last digit of a GPU's index behind the first bar: nvidia-smi writes it four characters wide."""
_WIDEST, _LONGEST, _MOST = 300, 1_000, 20_000
"""A line that is wider is none of a table; characters of other lines that are looked at; lines that are held."""
_ABOVE = 4
"""Lines of text above a table in which a job script may have written its time."""
_LACKING = "Tables of nvidia-smi hold no SM clock, no clock event reasons, and power in whole watts"
_LACKS = f"{_LACKING}: they do not show throttling; --query-gpu does."
_INSTANCES = "MIG instances are listed, which are parts of a GPU: they are not read."
_ZONES = "Times above the tables name a zone: they are taken as written."
_SHORT = "Names of GPUs are shortened in such tables, so what is known of their models is not used."
_BUS = r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]"
_WORDS = r"N/A|ERR!|On|Off"
_LOST = "|".join(sorted(LOST_WORDS))
_ASKED = {"utilization.gpu", "temperature.gpu", "power.draw"}
"""What every board measures: a GPU that errs in all of them answers no more."""
_CELLS: tuple[tuple[tuple[tuple[str, ...], str], ...], ...] = (
    (
        (("index", "name"), rf" *(\d+) +(\S.*?) +(?:{_WORDS}|WDDM|TCC|MCDM) *"),
        # without a GPU to ask, a cell is wider than its column
        (("pci.bus_id",), rf" *({_BUS}|N/A|ERR!)(?: +|(?=ERR!))(?:{_WORDS}) *"),
        (("ecc.errors.uncorrected.volatile.total",), r" *(\S+) *"),
    ),
    (
        (
            ("fan.speed", "temperature.gpu", "pstate", "power.draw", "enforced.power.limit"),
            r" *(\S+) +(\S+) +(\S+) +(N/A|[^\s/]+) */ *(\S+) *",
        ),
        # MIG and integrated GPUs show one text in place of both
        (("memory.used", "memory.total"), rf" *(?:N/A|Not Supported|{_LOST}|(N/A|[^\s/]+) */ *(\S+)) *"),
        (("utilization.gpu",), r" *(\S+) +\S.*"),
    ),
    (((), r".*"), ((), r".*"), (("mig.mode.current",), r" *(\S*) *")),
)
"""Cells of the two or three lines of a GPU: the query fields of the groups of a pattern."""
_TARGETS = {
    "index": "index",
    "name": "model",
    "pci.bus_id": "bus_id",
    "ecc.errors.uncorrected.volatile.total": "gpu_ecc_uncorrected_total",
    "fan.speed": "gpu_fan_ratio",
    "temperature.gpu": "gpu_temperature_celsius",
    "pstate": "gpu_performance_state",
    "power.draw": "gpu_power_watts",
    "enforced.power.limit": "gpu_power_limit_watts",
    "memory.used": "gpu_memory_used_bytes",
    "memory.total": "gpu_memory_total_bytes",
    "utilization.gpu": "gpu_utilization_ratio",
    "mig.mode.current": "mig",
}
_COLUMNS = {name: make_column(target, name) for name, target in _TARGETS.items()}


def opens(line: str) -> bool:
    """Return whether a line is nvidia-smi's time above a table, or the banner of one."""
    return _OPENING.match(line) is not None


@lru_cache(100_000)
def _read_cell(place: int, cell: int, text: str) -> tuple[tuple[str, Any, str | None], ...]:
    """Return what a cell says: its query fields, each with its value and why it has none; neither where damaged."""
    names, pattern = _CELLS[place][cell]
    match = re.fullmatch(pattern, text, re.ASCII)
    if match is None:
        return tuple((name, None, None) for name in names)
    return tuple((name, *_read(name, part, match[0].strip())) for name, part in zip(names, match.groups(), strict=True))


def _read(name: str, text: str | None, whole: str) -> tuple[Any, str | None]:
    if text is None:
        return None, whole
    if name == "name" and text.endswith("..."):
        return None, "shortened"
    if name.startswith("ecc.") and text in {"Off", "On"}:
        # a board shows its ECC mode in place of a number where it counts no errors: Off, or On with MIG
        return None, text
    why = absence(text)
    return (None, why) if why is not None else (_COLUMNS[name].read(text), None)


@dataclass(slots=True)
class _Snapshot:
    """The lines of one table that are not blank, from what stands above it on.

    Attributes:
        lines: number, text and shape of each.
        time: time of the table, None where none is known.
        zoned: whether it names a zone.
        stamp: number of the line it stands in, 0 where there is none.
        driver: version of the driver, None where none is said.
        begun: whether the line of the table's banner is among them.
    """

    lines: list[tuple[int, str, str]]
    time: int | None = None
    zoned: bool = False
    stamp: int = 0
    driver: str | None = None
    begun: bool = False


def shape_line(text: str) -> str:
    """Return what a line looks like, by its bars.

    `frame` is a border, the banner or a line of the table of processes, `device` a line of the table of GPUs,
    `instance` one of the table of MIG instances; `text` is no line of a table, `broken` has no such number of bars.
    """
    if not text:
        return "blank"
    if text[:2] in {"+-", "+=", "|-", "|="}:
        return "frame" if text[-1:] in {"|", "+"} else "broken"
    if text[0] != "|":
        return "text"
    shapes = {2: "frame", 4: "device", 5: "instance"}
    return shapes.get(text.count("|"), "broken") if text[-1] == "|" else "broken"


def find_time_above(texts: Sequence[str]) -> tuple[int, int, bool] | None:
    """Return the nearest time that a script wrote above a banner, None where there is none.

    Args:
        texts: the lines above a banner.

    Returns:
        how many of the last lines belong to the table, the time in microseconds, and whether it names a zone.
    """
    place, told = len(texts), 0
    if place and shape_line(texts[place - 1].strip()) == "frame":
        place -= 1
    while place and told < _ABOVE:
        place -= 1
        text = texts[place].strip()
        shape = shape_line(text)
        if shape not in {"blank", "text"}:
            return None
        if shape == "text":
            told += 1
            if text.count(",") > 1:
                # a row of a CSV, whose time is its own
                return None
            if (found := parse_printed_time(text)) is not None:
                return len(texts) - place, *found
    return None


def _snapshots(lines: Iterable[str], first: int) -> Iterator[_Snapshot]:
    """Yield the lines of each table; those above the first one, or of one whose beginning is lost, have no time."""
    held = _Snapshot([])
    for number, line in enumerate(lines, first):
        # damage joins no lines
        for text in filter(None, map(str.strip, line.split("\0"))):
            shape = shape_line(text)
            banner = shape == "frame" and text.startswith(_BANNER)
            own = shape == "text" and _ASCTIME.fullmatch(text) is not None
            if own:
                yield held
                time = parse_printed_time(text)
                held = _Snapshot([], time=time and time[0], stamp=number if time else 0)
            elif banner and (held.begun or not held.stamp or _is_apart(held.lines[1:])):
                above = [each for _, each, _ in held.lines[-_ABOVE - 1 :]]
                found = find_time_above(above)
                cut = len(held.lines) - (found[0] if found else int(above != [] and shape_line(above[-1]) == "frame"))
                begun = _Snapshot(held.lines[cut:])
                if found:
                    begun.time, begun.zoned, begun.stamp = found[1], found[2], begun.lines[0][0]
                held.lines = held.lines[:cut]
                yield held
                held = begun
            if banner:
                driver = _DRIVER.search(text)
                held.driver, held.begun = driver and driver[1], True
            held.lines.append((number, text, shape))
        if len(held.lines) > _MOST:
            yield held
            held = replace(held, lines=[])
    yield held


def _is_apart(between: Sequence[tuple[int, str, str]]) -> bool:
    """Return whether more than the border of a table stands between nvidia-smi's time and a banner."""
    return len(between) > 1 or any(shape != "frame" for *_, shape in between)


def read_drawn_tables(lines: Iterable[str], first: int, account: Account) -> Iterator[Rows]:
    """Yield the rows of tables: the lines of a table besides the first one of each GPU say more of its rows."""
    account.snapshot = True
    yield from rows_from_records(_records(lines, first, account))


def _records(lines: Iterable[str], first: int, account: Account) -> Iterator[dict[str, Any]]:
    rest, good = 0, False
    for snapshot in _snapshots(lines, first):
        last, time = -1, snapshot.time
        held = iter(range(len(snapshot.lines)))
        for place in held:
            number, text, shape = snapshot.lines[place]
            if shape == "device" and text[_INDEX_AT : _INDEX_AT + 1].isdigit():
                size = _size(snapshot.lines[place + 1 : place + 3])
                record = _gpu([line for _, line, _ in snapshot.lines[place : place + size]], number, account)
                rest += size - 1
                for _ in range(size - 1):
                    next(held)
                if record is None:
                    continue
                # GPUs are listed by index: where that falls with nothing above, what stood above was lost
                index = int(record["index"] or 0)
                time = None if index <= last else time
                last, good = index, True
                yield record | {TIME: time, "driver": snapshot.driver}
            elif shape == "frame" and text.startswith(_BANNER):
                account.headers += 1
            elif shape == "text" and number != snapshot.stamp:
                account.stray(number, text[:_LONGEST])
            elif shape == "broken":
                account.reject(NOT_OF_FORM, number, text)
            elif shape == "device" and (len(text) > _WIDEST or not _HEADING.fullmatch(text)):
                account.reject(TORN, number, text)
            else:
                rest += 1
                if shape == "instance":
                    account.note(_INSTANCES)
        if snapshot.zoned:
            account.note(_ZONES)
    # lines of tables without a row say nothing
    account.continued += rest if good else 0
    account.noise += 0 if good else rest


def _size(below: Sequence[tuple[int, str, str]]) -> int:
    """Return how many lines a GPU has, by those below its first: two or three, one where it is torn."""
    if not below or below[0][2] != "device" or below[0][1][_INDEX_AT : _INDEX_AT + 1].isdigit():
        return 1
    third = (
        len(below) > 1 and below[1][2] == "device" and not below[1][1].rpartition("|")[0].rpartition("|")[0].strip("| ")
    )
    return 2 + third


def _gpu(lines: Sequence[str], number: int, account: Account) -> dict[str, Any] | None:
    """Return what a table says of one GPU, None where its lines are damaged."""
    if len(lines) == 1:
        account.reject(TORN, number, lines[0])
        return None
    record: dict[str, Any] = {"line": number}
    found: list[tuple[str, str]] = []
    for place, line in enumerate(lines):
        for cell, text in enumerate(line.split("|")[1:-1]):
            for name, value, why in _read_cell(place, cell, text):
                if value is None and why is None:
                    account.reject(f"{MALFORMED} {name}", number, "\n".join(lines[:2]))
                    return None
                record[_TARGETS[name]] = value
                found += [(name, why)] if why is not None else []
    lost = next((why for _, why in found if why in LOST_WORDS), None)
    if lost or {name for name, why in found if why == "ERR!"} >= _ASKED:
        record[LOST] = lost or "ERR!"
    account.absent.update(found)
    account.note(_LACKS, *([_SHORT] if ("name", "shortened") in found else []))
    return record

"""The tables that plain `nvidia-smi` draws, once or with `-l`, and inside the logs of jobs."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from gpureport.importers.account import LOST_WORDS, Account
from gpureport.importers.clock import parse_printed_time as parse_printed_time  # noqa: PLC0414 - for query_lines
from gpureport.importers.columns import LOST, TIME, Rows, absence, make_column, rows_from_records
from gpureport.importers.protocol.reject_reasons import MALFORMED, NOT_OF_FORM, TORN

NAME = "plain nvidia-smi"
_ASCTIME = re.compile(r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d \d{4}", re.ASCII)
"""What C's asctime writes: nvidia-smi's own line above a table."""
_OPENING = re.compile(rf"\s*(?:\| NVIDIA-SMI \d|{_ASCTIME.pattern}\s*$)", re.ASCII)
_BANNER = "| NVIDIA-SMI "
_DRIVER = re.compile(r"(?:Driver|KMD) Version: *(\d[\w.]*)")
_HEADING = re.compile(r"\| *(?:GPU +Name|Fan +Temp|\| +\| +MIG M\.)")
_BEGINS = re.compile(r"\| {,3}\d+ ", re.ASCII)
"""The first line of a GPU, by its index."""
_WIDEST, _LONGEST = 300, 1_000
"""A line that is wider is none of a table; characters of other lines that are looked at."""
_ABOVE = 4
"""Lines of text above a table in which a job script may have written its time."""
_LACKS = (
    "Tables of nvidia-smi hold no SM clock, no clock event reasons, and power in whole watts: they do not show "
    "throttling; --query-gpu does."
)
_INSTANCES = "MIG instances are listed, which are parts of a GPU: they are not read."
_ZONES = "Times above the tables name a zone: they are taken as written."
_SHORT = "Names of GPUs are shortened in such tables, so what is known of their models is not used."
_BUS = r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]"
_WORDS = r"N/A|ERR!|On|Off"
_GPU = re.compile(
    rf"\| *(?P<index>\d+) +(?P<name>\S.*?) +(?:{_WORDS}|WDDM|TCC|MCDM) *"
    # without a GPU to ask, a cell is wider than its column
    rf"\| *(?P<bus>{_BUS}|N/A|ERR!)(?: +|(?=ERR!))(?:{_WORDS}) *\| *(?P<ecc>\S+) *\|\n"
    r"\| *(?P<fan>\S+) +(?P<heat>\S+) +(?P<state>\S+) +(?P<power>N/A|[^\s/]+) */ *(?P<limit>\S+) *"
    # MIG and integrated GPUs show one text in place of both
    rf"\| *(?:(?P<none>N/A|Not Supported|{'|'.join(sorted(LOST_WORDS))})|(?P<used>N/A|[^\s/]+) */ *(?P<total>\S+)) *"
    r"\| *(?P<load>\S+) +\S[^|]*\|(?:\n\| +\| +\| *(?P<mig>\S*) *\|)?",
    re.ASCII,
)
"""The two or three lines of a GPU."""
_MOST_LINES = 3
_FIELDS = {
    "index": ("index", "index"),
    "name": ("name", "model"),
    "bus": ("pci.bus_id", "bus_id"),
    "ecc": ("ecc.errors.uncorrected.volatile.total", "gpu_ecc_uncorrected_total"),
    "fan": ("fan.speed", "gpu_fan_ratio"),
    "heat": ("temperature.gpu", "gpu_temperature_celsius"),
    "state": ("pstate", "gpu_performance_state"),
    "power": ("power.draw", "gpu_power_watts"),
    "limit": ("enforced.power.limit", "gpu_power_limit_watts"),
    "used": ("memory.used", "gpu_memory_used_bytes"),
    "total": ("memory.total", "gpu_memory_total_bytes"),
    "load": ("utilization.gpu", "gpu_utilization_ratio"),
    "mig": ("mig.mode.current", "mig"),
}
"""Cell to query field, and what it fills."""
_COLUMNS = {cell: make_column(target, field) for cell, (field, target) in _FIELDS.items()}


def opens(line: str) -> bool:
    """Return whether a line is nvidia-smi's time above a table, or the banner of one."""
    return _OPENING.match(line) is not None


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
    return shapes.get(text.count("|"), "broken") if text[-1] == "|" and len(text) <= _WIDEST else "broken"


def find_time_above(texts: Sequence[str]) -> tuple[int, int, bool] | None:
    """Return the nearest time that a script wrote above a banner, None where there is none.

    Before it stands how many of the last lines belong to the table, behind it whether it names a zone.
    """
    shapes = [shape_line(text.strip()) for text in texts]
    place, told = len(texts) - (shapes[-1:] == ["frame"]), 0
    while place and told < _ABOVE and shapes[place - 1] in {"blank", "text"}:
        place -= 1
        told += shapes[place] == "text"
        if found := _time_of(texts[place].strip()):
            return len(texts) - place, *found
    return None


def _time_of(text: str) -> tuple[int, bool] | None:
    """Return the time that a line of text states of what is below it; a row of a CSV has a time of its own."""
    return parse_printed_time(text[:_LONGEST]) if text.count(",") <= 1 else None


def read_drawn_tables(lines: Iterable[str], first: int, account: Account) -> Iterator[Rows]:
    """Yield the rows of tables: the lines of a table besides the first one of each GPU say more of its rows."""
    account.snapshot = True
    yield from rows_from_records(_records(lines, first, account))


def _parts(lines: Iterable[str], first: int) -> Iterator[tuple[int, str, str]]:
    """Yield the lines that are not blank, each with its number and shape; those of one GPU together, as `gpu`."""
    begun, gpu = 0, list[str]()
    for number, line in enumerate(lines, first):
        # damage joins no lines
        for text in map(str.strip, line.split("\0") if "\0" in line else [line]):
            shape = shape_line(text)
            begins = shape == "device" and _BEGINS.match(text) is not None
            if shape == "device" and gpu and not begins and len(gpu) < _MOST_LINES:
                gpu.append(text)
                continue
            if gpu:
                yield begun, "gpu", "\n".join(gpu)
            begun, gpu = number, [text] if begins else []
            if not begins and text:
                yield number, shape, text
    if gpu:
        yield begun, "gpu", "\n".join(gpu)


def _records(lines: Iterable[str], first: int, account: Account) -> Iterator[dict[str, Any]]:
    rest, rows, zoned, instances = 0, 0, False, False
    time = above = driver = None
    told, last, own = 0, -1, False
    for number, shape, text in _parts(lines, first):
        if shape == "gpu":
            rest += text.count("\n")
            if (record := _gpu(text, number, account)) is not None:
                # GPUs are listed by index: where that falls with nothing above, what stood above was lost
                time = None if int(record["index"]) <= last else time
                last, own, rows = int(record["index"]), False, rows + 1
                yield record | {TIME: time and time[0], "driver": driver}
                zoned |= time is not None and time[1]
        elif shape == "frame" and text.startswith(_BANNER):
            found = _DRIVER.search(text)
            time, driver = time if own else above, found and found[1]
            above, last, own = None, -1, False
            account.headers += 1
        elif shape == "text":
            stated = _time_of(text)
            told = 0 if stated else told + 1
            above = stated or (above if told < _ABOVE else None)
            if _ASCTIME.fullmatch(text):
                time, last, own = stated, -1, True
            if stated:
                rest += 1
            else:
                account.stray(number, text[:_LONGEST])
        elif shape == "broken" or (shape == "device" and not _HEADING.match(text)):
            account.reject(NOT_OF_FORM if shape == "broken" else TORN, number, text)
        else:
            rest += 1
            instances |= shape == "instance"
    account.note(*[_ZONES] if zoned else [], *[_INSTANCES] if instances else [])
    # lines of tables without a row say nothing
    account.continued += rest if rows else 0
    account.noise += 0 if rows else rest


@lru_cache(100_000)
def _read(cell: str, text: str) -> tuple[Any, str | None]:
    """Return the value of a cell, or why it has none; neither where it is damaged."""
    if cell == "name" and text.endswith("..."):
        return None, "shortened"
    if cell == "ecc" and text in {"Off", "On"}:
        # a board shows its ECC mode in place of a number where it counts no errors: Off, or On with MIG
        return None, text
    why = absence(text)
    return (None, why) if why is not None else (_COLUMNS[cell].read(text), None)


def _gpu(text: str, number: int, account: Account) -> dict[str, Any] | None:
    """Return what a table says of one GPU, None where its lines are damaged."""
    match = _GPU.fullmatch(text)
    if match is None:
        account.reject(TORN, number, text)
        return None
    cells = match.groupdict()
    nothing = cells.pop("none")
    record: dict[str, Any] = {"line": number}
    absent: dict[str, str] = {}
    for cell, written in cells.items():
        if written is None and cell == "mig":
            continue
        name, target = _FIELDS[cell]
        value, why = (None, nothing) if written is None else _read(cell, written)
        if value is None and why is None:
            account.reject(f"{MALFORMED} {name}", number, text)
            return None
        record[target] = value
        if why is not None:
            absent[name] = why
    lost = next((why for why in absent.values() if why in LOST_WORDS), None)
    # what every board measures: a GPU that errs in all of them answers no more
    if lost or all(absent.get(name) == "ERR!" for name in ("utilization.gpu", "temperature.gpu", "power.draw")):
        record[LOST] = lost or "ERR!"
    account.absent.update(absent.items())
    account.note(_LACKS, *[_SHORT] if "name" in absent else [])
    return record

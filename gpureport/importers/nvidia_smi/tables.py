"""The tables that plain `nvidia-smi` draws, once or with `-l`, and inside the logs of jobs."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from gpureport.importers.account import LOST_WORDS, Account
from gpureport.importers.columns import LOST, TIME, Rows, absence, make_column, rows_from_records
from gpureport.importers.nvidia_smi.fields import find_target
from gpureport.importers.printed import parse_printed_time
from gpureport.importers.protocol.reject_reasons import MALFORMED, TORN

_ASCTIME = re.compile(r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d \d{4}", re.ASCII)
"""What C's asctime writes: nvidia-smi's own line above a table."""
_BANNER = re.compile(r"\s*\| NVIDIA-SMI \d", re.ASCII)
_DRIVER = re.compile(r"(?:Driver|KMD) Version: *(\d[\w.]*)")
_BEGINS = re.compile(r"\| {,3}\d+ ", re.ASCII)
"""The first line of a GPU, by its index."""
_WIDEST = 1_000
"""Characters of a line that are looked at."""
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
_LINES = re.compile(
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
    "index": "index",
    "name": "name",
    "bus": "pci.bus_id",
    "ecc": "ecc.errors.uncorrected.volatile.total",
    "fan": "fan.speed",
    "heat": "temperature.gpu",
    "state": "pstate",
    "power": "power.draw",
    "limit": "enforced.power.limit",
    "used": "memory.used",
    "total": "memory.total",
    "load": "utilization.gpu",
    "mig": "mig.mode.current",
}
"""Cell to query field."""


def opens_table(line: str) -> bool:
    """Return whether a line is nvidia-smi's time above a table, or the banner of one."""
    return _BANNER.match(line) is not None or _ASCTIME.fullmatch(line.strip()) is not None


def count_above(lines: Sequence[str]) -> int:
    """Return how many of the lines above a banner belong to the table: its border, and the lines up to its time."""
    border, told = bool(lines) and lines[-1].lstrip()[:1] == "+", 0
    for count in range(border + 1, len(lines) + 1):
        text = lines[-count].strip()
        if told == _ABOVE or text[:1] in {"|", "+"}:
            break
        if _time_of(text):
            return count
        told += bool(text)
    return int(border)


def _time_of(text: str) -> tuple[int, bool] | None:
    """Return the time that a line of text states of what is below it; a row of a CSV has a time of its own."""
    return parse_printed_time(text[:_WIDEST]) if text.count(",") <= 1 else None


def read_drawn_tables(lines: Iterable[str], first: int, account: Account) -> Iterator[Rows]:
    """Yield the rows of tables: the lines of a table besides the first one of each GPU say more of its rows."""
    account.snapshot = True
    yield from rows_from_records(_table_records(lines, first, account))


def _parts(lines: Iterable[str], first: int) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, with their numbers; those of one GPU together."""
    begun, gpu = 0, list[str]()
    for number, line in enumerate(lines, first):
        # damage joins no lines
        for text in map(str.strip, line.split("\0")):
            cells = text[:1] == "|" == text[-1:] and text.count("|") == _ABOVE
            begins = cells and _BEGINS.match(text) is not None
            if gpu and cells and not begins and len(gpu) < _MOST_LINES:
                gpu.append(text)
                continue
            if gpu:
                yield begun, "\n".join(gpu)
            begun, gpu = number, [text] if begins else []
            if text and not begins:
                yield number, text
    if gpu:
        yield begun, "\n".join(gpu)


def _table_records(lines: Iterable[str], first: int, account: Account) -> Iterator[dict[str, Any]]:
    above = time = driver = None
    told, last = 0, -1
    for number, text in _parts(lines, first):
        account.continued += text.count("\n")
        if (match := _LINES.fullmatch(text)) is not None:
            if (record := _gpu(match, number, account)) is not None:
                # GPUs are listed by index: where that falls with nothing above, what stood above was lost
                time = None if int(record["index"]) <= last else time
                last = int(record["index"])
                account.note(*[_ZONES] if time and time[1] else [])
                yield record | {TIME: time and time[0], "driver": driver}
        elif _BANNER.match(text):
            found = _DRIVER.search(text)
            time, above, driver, last = above, None, found and found[1], -1
            account.headers += 1
        elif text[0] not in "|+":
            stated = _time_of(text)
            told = 0 if stated else told + 1
            above = stated or (above if told < _ABOVE else None)
            if stated:
                account.continued += 1
            else:
                account.stray(number, text[:_WIDEST])
        else:
            # a border, headings, and lines of tables of processes and instances
            bars = text.count("|") if text[-1] == "|" else 0
            sound = text[:2] in {"+-", "+=", "|-", "|="} or bars in {2, 5} or not re.search(r"\d", text)
            account.note(*[_INSTANCES] if bars == 5 else [])  # noqa: PLR2004 - cells of an instance
            account.continued += sound
            if not sound:
                account.reject(TORN, number, text)


def _gpu(match: re.Match[str], number: int, account: Account) -> dict[str, Any] | None:
    """Return what a table says of one GPU, None where a cell is damaged."""
    cells = match.groupdict()
    nothing = cells.pop("none")
    record: dict[str, Any] = {"line": number}
    absent: dict[str, str] = {}
    for cell, written in cells.items():
        if written is None and cell == "mig":
            continue
        name = _FIELDS[cell]
        value, why = (None, nothing) if written is None else _read_cell(name, written)
        if value is None and why is None:
            account.reject(f"{MALFORMED} {name}", number, match[0])
            return None
        record[find_target(name)] = value
        if why is not None:
            absent[name] = why
    lost = next((why for why in absent.values() if why in LOST_WORDS), None)
    # what every board measures: a GPU that errs in all of them answers no more
    if lost or all(absent.get(name) == "ERR!" for name in ("utilization.gpu", "temperature.gpu", "power.draw")):
        record[LOST] = lost or "ERR!"
    account.absent.update(absent.items())
    account.note(_LACKS, *[_SHORT] if "name" in absent else [])
    return record


@lru_cache(100_000)
def _read_cell(name: str, text: str) -> tuple[Any, str | None]:
    """Return the value of a cell, or why it has none; neither where it is damaged."""
    if name == "name" and text.endswith("..."):
        return None, "shortened"
    if name.startswith("ecc") and text in {"Off", "On"}:
        # a board shows its ECC mode in place of a number where it counts no errors: Off, or On with MIG
        return None, text
    why = absence(text)
    return None if why is not None else make_column(find_target(name), name).read(text), why

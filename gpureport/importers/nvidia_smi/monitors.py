"""`nvidia-smi dmon`, as text or CSV: a row a GPU and tick under a pair of headings that is written again and again."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np

from gpureport.columns import BoolArray, IntArray
from gpureport.importers.account import Account
from gpureport.importers.columns import Column, Rows, Texts, decode, make_column, parse_time
from gpureport.importers.printed import count_days, parse_time_of_day
from gpureport.importers.protocol import reject_reasons as reasons
from gpureport.importers.source_text import damage
from gpureport.importers.tables import Layout, make_layout, scan, without_faults
from gpureport.metrics import BY_NAME
from gpureport.parsing import UNITS

NAME = "nvidia-smi dmon"
_CLOCK, _DATE = "time of day", "day"
"""Targets of columns that hold a time without a date, and a date without a time."""
CLOCK_NOTE = "The log has times of day and no date (-o T): days are counted from 1970-01-01. -o DT writes both."
_DAY_ONLY = "dmon -o D writes the day alone, which is no time of a row."
_MIG = "Rows of MIG instances are left out: what an instance does is no figure of its GPU."
_INSTANCE = frozenset({"mig", "mig_id", "gi", "gi_id", "ci", "ci_id"})
"""Headings of columns that name a part of a GPU."""
_SERIES = {
    "pwr": ("gpu_power_watts", "W"),
    "gtemp": ("gpu_temperature_celsius", "C"),
    "temp": ("gpu_temperature_celsius", "C"),
    "mtemp": ("gpu_memory_temperature_celsius", "C"),
    "sm": ("gpu_utilization_ratio", "%"),
    "mem": ("gpu_memory_controller_ratio", "%"),
    "enc": ("gpu_encoder_ratio", "%"),
    "dec": ("gpu_decoder_ratio", "%"),
    "jpg": ("gpu_jpeg_ratio", "%"),
    "ofa": ("gpu_ofa_ratio", "%"),
    "mclk": ("gpu_memory_clock_hertz", "MHz"),
    "pclk": ("gpu_sm_clock_hertz", "MHz"),
    "pviol": ("gpu_power_violation_ratio", "%"),
    "tviol": ("gpu_thermal_violation", ""),
    "fb": ("gpu_memory_used_bytes", "MB"),
    "bar1": ("gpu_bar1_used_bytes", "MB"),
    "ccpm": ("gpu_protected_memory_used_bytes", "MB"),
    "sbecc": ("gpu_ecc_single_bit_total", ""),
    "dbecc": ("gpu_ecc_double_bit_total", ""),
    "pci": ("pcie_replays_total", ""),
    "rxpci": ("pcie_receive_bytes_per_second", "MB/s"),
    "txpci": ("pcie_transmit_bytes_per_second", "MB/s"),
    "gract": ("gpu_graphics_engine_active_ratio", "%"),
    "smutil": ("gpu_sm_active_ratio", "%"),
    "smocc": ("gpu_sm_occupancy_ratio", "%"),
    "mmaact": ("gpu_tensor_active_ratio", "%"),
    "dram": ("gpu_dram_active_ratio", "%"),
    "pcitx": ("pcie_transmit_bytes_per_second", "MiB/s"),
    "pcirx": ("pcie_receive_bytes_per_second", "MiB/s"),
    "nvltx": ("nvlink_transmit_bytes_per_second", "MiB/s"),
    "nvlrx": ("nvlink_receive_bytes_per_second", "MiB/s"),
}
"""Heading to metric, and the unit it counts in where no line of units says; its MB of memory are MiB.

From `gract` on they are those of `--gpm-metrics` (Hopper and newer), as driver 580.159.04 writes them on an H100.
"""
_SETS = {
    "pwr gtemp mtemp": "W C C",
    "sm mem enc dec jpg ofa": "% % % % % %",
    "mclk pclk": "MHz MHz",
    "pviol tviol": "% bool",
    "fb bar1 ccpm": "MB MB MB",
    "sbecc dbecc pci": "errs errs errs",
    "rxpci txpci": "MB/s MB/s",
}
"""Columns of each letter of `-s pucvmet`, in the order in which dmon writes them, and their units; no two are alike."""
_DEFAULT = ("gpu", *" ".join(list(_SETS)[:3]).split())
"""Columns of dmon without `-s`, drivers of R550 and newer, which can leave the header out."""
_ALL = ("gpu", *" ".join(_SETS).split())
_FIRST_UNITS = {"YYYYMMDD": "Date", "HH:MM:SS": "Time", "Idx": "gpu"}
"""What the line of units says below the first headings."""
_BARE = re.compile(r" ?\d{8}, \d\d:\d\d:\d\d((?:, *(?:\d+|-))+)\s*", re.ASCII)
"""A row of `--format csv,noheader -o DT`."""
_MOST_COLUMNS = 500
_TOGETHER = 50_000
"""Rows that are parsed together."""


def opens_dmon(line: str) -> bool:
    """Return whether a line is a heading of dmon, its units, or a row of a CSV that has neither."""
    return bool(_names(line) or _measured(line) or _assumed(line))


def _split(line: str) -> list[str]:
    return line.replace(",", " ").split()


def _names(line: str) -> list[str]:
    """Return the headings in a line, none where it is no line of dmon's headings."""
    words = line.lstrip()[:1] in {"#", "d", "D", "t", "T", "g"} and _split(line.replace("#", " ", 1))
    if not words or len(words) > _MOST_COLUMNS:
        return []
    names = [word.lower() for word in words]
    rest = [name for name in names if name not in {"date", "time", "gpu", *_INSTANCE}]
    known = sum(name in _SERIES for name in rest)
    if "gpu" not in names[:3] or "pid" in rest or not known or ("#" not in line and not 1 < known == len(rest)):
        return []
    return words


def _units(line: str) -> list[str]:
    """Return the units in a line, none where it is no line of dmon's units."""
    words = _split(line[1:]) if line.startswith("#") else []
    return words if "Idx" in words[:3] else []


def _measured(line: str) -> list[str]:
    """Return the headings that a line of units stands for, none where it does not show them."""
    units = _units(line)
    first = units[: units.index("Idx") + 1] if units else []
    rest, names = " ".join([*units[len(first) :], ""]), [_FIRST_UNITS[unit] for unit in first if unit in _FIRST_UNITS]
    for headings, said in _SETS.items():
        if rest.startswith(f"{said} "):
            names, rest = [*names, *headings.split()], rest[len(said) + 1 :]
    return names if len(names) > len(first) and not rest else []


def _assumed(line: str) -> list[str]:
    """Return the headings of a row of CSV that has none, none where its cells do not show them."""
    match = _BARE.fullmatch(line)
    columns = next((names for names in (_DEFAULT, _ALL) if match and match[1].count(",") == len(names)), None)
    return ["Date", "Time", *columns] if columns else []


def _layout(names: Sequence[str], units: Sequence[str] = ()) -> Layout:
    """Return the layout of rows under headings, of which the line of units below may say the units."""
    stated = units if len(units) == len(names) else [""] * len(names)
    pairs = zip(names, stated, strict=True)
    return make_layout([_column(name, unit.removeprefix("GPM:")) for name, unit in pairs], delimiter=" ")


def _column(heading: str, unit: str) -> Column:
    name = heading.lower()
    if name == "time":
        return Column(target=_CLOCK, source=heading, read=parse_time_of_day)
    if name == "date":
        return Column(target=_DATE, source=heading, read=_of_date)
    target, usual = _SERIES.get(name, ("index" if name == "gpu" else "", ""))
    if target == "gpu_thermal_violation":
        return Column(target=target, source=heading, read={"0": False, "1": True}.get)
    stated = unit in UNITS and target in BY_NAME and UNITS[unit].base == BY_NAME[target].unit
    return make_column(target, heading, unit if stated else usual)


def _of_date(text: str) -> int | None:
    """Return the midnight, in microseconds, with which a day begins that is written as `20260314`; None for no day."""
    found = parse_time(f"{text} 00:00:00")
    return None if found is None else found[0]


def read_dmon(lines: Iterable[str], first: int, account: Account) -> Iterator[Rows]:
    """Yield the rows of dmon, as text or CSV, under a pair of headings that is written again and again."""
    layout, names, known, clock = None, list[str](), set[str](), list[int]()
    remaining = iter(lines)
    while block := list(islice(remaining, _TOGETHER)):
        if layout is None and (assumed := _assumed(block[0])):
            layout = _layout(assumed)
            account.note(f"dmon wrote no header; its columns are taken for {' '.join(assumed[2:])}.")
        begin, clean = 0, _is_sound("".join(block))
        others = [n for n, line in enumerate(block) if line[0] not in " 0123456789" or not (clean or _is_sound(line))]
        for place in others:
            line, block[place] = block[place], ""
            if line in known:
                # the headings in force
                account.headers += 1
                continue
            units = _units(line)
            if found := _names(line) or (names if units and len(units) == len(names) else _measured(line)):
                yield from _take(layout, block[begin:place], first + begin, account, clock)
                known = {*known, line} if units else {line}
                begin, names, layout = place, found, _layout(found, units)
                account.headers += 1
                if units and not known - {line}:
                    columns = " ".join(name for name in found if name not in {"Date", "Time"})
                    account.note(f"dmon wrote units and no names (noheader); its columns are taken for {columns}.")
            elif line[0] == "#":
                account.noise += 1
            else:
                reason = damage(line) or ("" if line.endswith("\n") else reasons.CUT_LAST_LINE)
                _sort_out(
                    account, first + place, line, reason or (reasons.WRONG_CELLS if layout else reasons.BEFORE_HEADER)
                )
        yield from _take(layout, block[begin:], first + begin, account, clock)
        first += len(block)


def _is_sound(text: str) -> bool:
    return text.isascii() and "\0" not in text and text.endswith("\n")


_BLANKS = bytes.maketrans(b",\t\r", b"   ")


def _cells_apart(lines: bytes) -> bytes:
    """Return lines in which one blank stands between cells, and none around them."""
    lines = lines.translate(_BLANKS) if b"," in lines or b"\t" in lines or b"\r" in lines else lines
    text = np.frombuffer(lines, dtype=np.uint8)
    blank = text == ord(" ")
    # of a run the last one stays, unless the line ends behind it
    blank[:-1] &= blank[1:] | (text[1:] == ord("\n"))
    kept: bytes = text[~blank].tobytes()
    return kept.replace(b"\n ", b"\n").removeprefix(b" ")


def _take(layout: Layout | None, block: list[str], first: int, account: Account, clock: list[int]) -> Iterator[Rows]:
    """Yield lines as rows under the headings above them; those that are empty count elsewhere.

    `clock` holds the last moment where days are counted.
    """
    text = "".join(block)
    if layout is None:
        for place, line in enumerate(block):
            _sort_out(account, first + place, line, reasons.BEFORE_HEADER)
    if layout is None or not text:
        return
    cells, odd = scan(_cells_apart(text.encode()), layout)
    places = np.flatnonzero(np.fromiter(map(len, block), dtype=np.int64, count=len(block)))
    for place in places[odd].tolist():
        _sort_out(account, first + place, block[place], reasons.WRONG_CELLS)
    places = np.delete(places, odd)
    rows, faults = decode(layout.columns, cells, places + first)
    rows, found = without_faults(rows, _faults(rows, faults, layout, account))
    for place, reason in found:
        if not block[places[place]].isspace():
            account.reject(reason, int(places[place]) + first, block[places[place]])
    clocks, days = _pop(rows, _CLOCK), _pop(rows, _DATE)
    if clocks is not None and days is not None:
        rows.times = days + clocks
    elif clocks is not None and len(rows):
        account.note(CLOCK_NOTE)
        rows.times = count_days(clocks, clock)
        clock[:] = rows.times[-1:].tolist()
    elif days is not None:
        account.note(_DAY_ONLY)
    yield rows


def _sort_out(account: Account, number: int, line: str, reason: str) -> None:
    if line and not line.isspace():
        account.sort_out(number, line, reason)


def _faults(rows: Rows, faults: dict[str, BoolArray], layout: Layout, account: Account) -> dict[str, BoolArray]:
    """Return the rows that have each fault: also those without a GPU or time, and those of a part of a GPU."""
    for column in layout.columns:
        texts = rows.data.get(column.target)
        if not isinstance(texts, Texts):
            continue
        if column.source.lower() in _INSTANCE:
            part = texts.codes >= 0
            faults[reasons.MIG_INSTANCE] = faults.get(reasons.MIG_INSTANCE, np.False_) | part
            account.note(*[_MIG] if part.any() else [])
            del rows.data[column.target]
            rows.reasons.pop(column.source, None)
        elif column.target in {"index", _CLOCK, _DATE}:
            faults[f"{reasons.MALFORMED} {column.source}"] = texts.codes < 0
    return faults


def _pop(rows: Rows, target: str) -> IntArray | None:
    texts = rows.data.pop(target, None)
    return np.array(texts.texts, dtype=np.int64)[texts.codes] if isinstance(texts, Texts) and len(texts) else None

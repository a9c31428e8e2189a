"""`nvidia-smi dmon`, as text or CSV: a row a GPU and tick under a pair of headings that is written again and again."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from gpureport.columns import IntArray
from gpureport.importers.account import Account
from gpureport.importers.columns import CUT, TIME, Column, Rows, Texts, make_column, parse_time
from gpureport.importers.nvidia_smi.query_lines import CUT_NOTE
from gpureport.importers.protocol.reject_reasons import (
    BEFORE_HEADER,
    CUT_LAST_LINE,
    MALFORMED,
    MIG_INSTANCE,
    WRONG_CELLS,
)
from gpureport.importers.source_text import damage
from gpureport.importers.tables import Layout, make_layout, read_rows, without_faults
from gpureport.metrics import BY_NAME
from gpureport.units import UNITS

NAME = "nvidia-smi dmon"
_DAY = 86_400_000_000
_CLOCK, _DATE = "time of day", "day"
"""Targets of columns that hold a time without a date, and a date without a time."""
_CLOCK_NOTE = "The log has times of day and no date (-o T): days are counted from 1970-01-01. -o DT writes both."
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
_HEADINGS = re.compile(r"(?:date[\s,]+)?(?:time[\s,]+)?gpu[\s,]+\S.*", re.IGNORECASE | re.DOTALL)
_UNITS = re.compile(r"(?:yyyymmdd[\s,]+)?(?:hh:mm:ss[\s,]+)?idx\b.*", re.IGNORECASE | re.DOTALL)
# Python before 3.11.5 goes on behind a comma that no number follows (gh-106052)
_BARE = re.compile(r"\s*\d{8}[ ,] *\d\d:\d\d:\d\d((?: *, *(?:\d++|-))++)(?<=[\d-])\s*")
"""A row of `--format csv,noheader -o DT`."""
_MOST_COLUMNS = 500
_TOGETHER = 50_000
"""Rows that are parsed together."""


def opens_dmon(line: str) -> bool:
    """Return whether a line is a heading of dmon, its units, or a row of a CSV that has neither."""
    return bool(_names(line) or _measured(line)) or _assumed(line) is not None


def _split(text: str) -> list[str]:
    return text.replace(",", " ").split() if "," in text else text.split()


@lru_cache(256)
def _names(line: str) -> tuple[str, ...]:
    """Return the headings in a line, none where it is no line of dmon's headings."""
    text = line.lstrip()
    signed, text = text.startswith("#"), text.lstrip("#, \t")
    names = tuple(_split(text)) if _HEADINGS.fullmatch(text) else ()
    if not names or len(names) > _MOST_COLUMNS:
        return ()
    rest = [name.lower() for name in names if name.lower() not in {"date", "time", "gpu", *_INSTANCE}]
    told = sum(name in _SERIES for name in rest)
    return names if "pid" not in rest and told and (signed or 1 < told == len(rest)) else ()


@lru_cache(256)
def _units(line: str) -> tuple[str, ...]:
    """Return the units in a line, none where it is no line of dmon's units."""
    text = line.lstrip("#, \t")
    return tuple(_split(text)) if _UNITS.fullmatch(text) else ()


@lru_cache(256)
def _measured(line: str) -> tuple[str, ...]:
    """Return the headings that a line of units stands for, none where it does not tell them."""
    units = _units(line) if line.lstrip().startswith("#") else ()
    stamp = ("Date", "Time")[: units.index("Idx")] if "Idx" in units[:3] else ()
    if not units or units[: len(stamp)] != ("YYYYMMDD", "HH:MM:SS")[: len(stamp)]:
        return ()
    rest, names = list(units[len(stamp) + 1 :]), list[str]()
    for headings, said in _SETS.items():
        if rest[: len(said.split())] == said.split():
            names, rest = [*names, *headings.split()], rest[len(said.split()) :]
    return (*stamp, "gpu", *names) if names and not rest else ()


def _assumed(line: str) -> tuple[str, ...] | None:
    """Return the headings of a row of CSV that has none, None where its cells do not tell."""
    match = _BARE.fullmatch(line)
    return {len(names): names for names in (_DEFAULT, _ALL)}.get(match[1].count(",") if match else 0)


def _layout(names: Sequence[str], units: Sequence[str] = ()) -> Layout:
    """Return the layout of rows under headings, of which the line of units below may say the units."""
    pairs = list(zip(names, units if len(units) == len(names) else [""] * len(names), strict=True))
    return make_layout([_column(name, unit.removeprefix("GPM:")) for name, unit in pairs])


def _column(heading: str, unit: str) -> Column:
    name = heading.lower()
    if name in {"time", "date"}:
        clock = name == "time"
        return Column(target=_CLOCK if clock else _DATE, source=heading, read=of_day if clock else _of_date)
    target, usual = _SERIES.get(name, ("index" if name == "gpu" else "", ""))
    if target == "gpu_thermal_violation":
        return Column(target=target, source=heading, read={"0": False, "1": True}.get)
    # a unit of another dimension is none of this column
    stated = unit in UNITS and target in BY_NAME and UNITS[unit].base == BY_NAME[target].unit
    return make_column(target, heading, unit if stated else usual)


def of_day(text: str) -> int | None:
    """Return microseconds since midnight of `HH:MM:SS`, None when the text is no time of day."""
    match = re.fullmatch(r"([01]\d|2[0-3]):([0-5]\d):([0-5]\d|60)", text, re.ASCII)
    return match and ((int(match[1]) * 60 + int(match[2])) * 60 + int(match[3])) * 1_000_000


@lru_cache(64)
def _of_date(text: str) -> int | None:
    """Return the midnight, in microseconds, with which a day begins that is written as `20260314`; None for no day."""
    found = parse_time(f"{text[:4]}-{text[4:6]}-{text[6:]} 00:00:00") if len(text) == 8 else None  # noqa: PLR2004
    return None if found is None else found[0]


def pass_midnight(clock: int, before: list[int]) -> int:
    """Return microseconds since the first midnight of one time of day; `before` holds the last one, and gets this."""
    return int(_pass_midnights(np.array([clock], dtype=np.int64), before)[0])


def _pass_midnights(clocks: IntArray, before: list[int]) -> IntArray:
    """Return microseconds since the first midnight; a clock that falls by half a day passed midnight.

    Args:
        clocks: microseconds since midnight, in the order of the log.
        before: the last time so far, which is replaced; empty at the beginning.
    """
    times: IntArray = clocks + _DAY * np.floor_divide(before[0] if before else 0, _DAY)
    steps = np.diff(times, prepend=before[0] if before else times[:1])
    times += _DAY * np.cumsum((steps < -_DAY // 2).astype(np.int64) - (steps > _DAY // 2))
    before[:] = times[-1:].tolist()
    return times


@dataclass(slots=True)
class _Dmon:
    """The headings in force, as they stand in the log and what they declare; and rows that wait to be parsed."""

    account: Account
    names: str = ""
    units: str = ""
    layout: Layout | None = None
    before: tuple[str, str, Layout | None] = ("", "", None)
    clock: list[int] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)

    def declares(self, text: str) -> bool:
        """Return whether a line is one of headings or units; what it declares is in force from now on."""
        if text in {self.names, self.units}:
            return True
        names, units = _names(text), _units(text)
        if names:
            self.before = self.names, self.units, self.layout
            self.names, self.units, self.layout = text, "", _layout(names)
        elif units and self.names:
            known = _names(self.names)
            if len(known) == len(units):
                self.units, self.layout = text, _layout(known, units)
            elif self.before[2] is not None:
                # not as many units, so that one of the two lines is torn
                self.names, self.units, self.layout = self.before
        elif measured := _measured(text):
            self.names, self.units, self.layout = "", text, _layout(measured, units)
            named = " ".join(name for name in measured if name not in {"Date", "Time"})
            self.account.note(f"dmon wrote units and no names (noheader); its columns are taken for {named}.")
        return bool(names or units)

    def add(self, number: int, line: str) -> None:
        """Take a line that is a row, or none."""
        text, layout = line.strip(), self.layout
        if layout is None and (names := _assumed(text)) is not None:
            self.layout = layout = _layout(("Date", "Time", *names))
            self.account.note(f"dmon wrote no header; its columns are taken for {' '.join(names)}.")
        cells = _split(text)
        cut = not line.endswith("\n")
        if cut:
            self.account.note(CUT_NOTE)
            cells[-1] = cells[-1] if line[-1].isspace() else f"[{CUT}]"
        if layout is None or len(cells) != len(layout.columns) or not text.isascii():
            reason = BEFORE_HEADER if layout is None else CUT_LAST_LINE if cut else WRONG_CELLS
            self.account.sort_out(number, text, reason)
            return
        self.lines.append(",".join(cells))
        self.numbers.append(number)

    def take(self, layout: Layout | None) -> Iterator[Rows]:
        """Yield the rows that wait, under the headings in force above them."""
        if layout is None or not self.lines:
            return
        rows, faults = read_rows(layout, self.lines, np.array(self.numbers, dtype=np.int64))
        for column in layout.columns:
            texts = rows.data.get(column.target)
            if column.source.lower() in _INSTANCE and isinstance(texts, Texts):
                faults[MIG_INSTANCE] = faults.get(MIG_INSTANCE, np.False_) | (texts.codes >= 0)
                del rows.data[column.target]
                rows.reasons.pop(column.source, None)
            elif column.target in {"index", _CLOCK} and isinstance(texts, Texts):
                faults[f"{MALFORMED} {column.source}"] = texts.codes < 0
            if (
                column.target in {_CLOCK, _DATE}
                and _DATE in rows.data
                and (fault := f"{MALFORMED} {column.source}") in faults
            ):
                faults[f"{MALFORMED} {TIME}"] = faults.get(f"{MALFORMED} {TIME}", np.False_) | faults.pop(fault)
        rows, found = without_faults(rows, faults)
        for place, reason in found:
            self.account.reject(reason, self.numbers[place], self.lines[place])
            self.account.note(*[_MIG] if reason == MIG_INSTANCE else [])
        self.lines.clear()
        self.numbers.clear()
        clocks, days = (rows.data.pop(name, None) for name in (_CLOCK, _DATE))
        if not len(rows):
            return
        if isinstance(clocks, Texts):
            rows.times = np.array(clocks.texts, dtype=np.int64)[clocks.codes]
            if isinstance(days, Texts):
                rows.times = rows.times + np.array(days.texts, dtype=np.int64)[days.codes]
            else:
                self.account.note(_CLOCK_NOTE)
                rows.times = _pass_midnights(rows.times, self.clock)
        elif days is not None:
            self.account.note(_DAY_ONLY)
        yield rows


def read_dmon(lines: Iterable[str], first: int, account: Account) -> Iterator[Rows]:
    """Yield the rows of dmon, as text or CSV, under a pair of headings that is written again and again."""
    state, width = _Dmon(account), -1
    taken, numbers = state.lines, state.numbers
    for number, line in enumerate(lines, first):
        cells = line.replace(",", " ").split() if "," in line else line.split()
        if len(cells) == width and cells[0].isdigit() and line.isascii() and "\0" not in line and line[-1] == "\n":
            taken.append(",".join(cells))
            numbers.append(number)
            if len(taken) < _TOGETHER:
                continue
            yield from state.take(state.layout)
        elif not cells:
            continue
        elif fault := damage(line):
            account.reject(fault, number, line)
        elif cells[0][0] == "#" or cells[0][0].isalpha():
            layout, declares = state.layout, state.declares(line.strip())
            if state.layout is not layout:
                yield from state.take(layout)
            if declares or cells[0][0] == "#":
                account.headers += declares
                account.noise += not declares
            else:
                state.add(number, line)
        else:
            state.add(number, line)
        width = -1 if state.layout is None else len(state.layout.columns)
    yield from state.take(state.layout)

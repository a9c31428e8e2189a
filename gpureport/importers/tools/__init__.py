"""Code shared by readers of other tools' logs, and those tools' names for metrics."""

import csv
import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

import numpy as np

from gpureport.errors import CodedProblem, SourceError
from gpureport.importers import columns, extraction, headings, source_text
from gpureport.importers.account import BEFORE_HEADER, WRONG_CELLS, Account, whole_lines
from gpureport.importers.clock import parse_time
from gpureport.importers.columns import TIME, Record, Stamp, form
from gpureport.importers.protocol import HEAD_BYTES, ReadOptions
from gpureport.metrics import BY_NAME
from gpureport.parsing import LONGEST_LINE, MOST, UNITS, replace_half_characters
from gpureport.redaction import redact_start

__all__ = ["Record", "Stamp", "form"]
Meaning = tuple[str, str]
"""A metric or attribute, and the unit for bare numbers."""
Meanings = Mapping[str, Meaning]
Column = tuple[int, int | None, str, Meaning]
Form = tuple[str, Callable[[str], bool], Callable[..., Iterator[columns.Rows]]]
"""Name of a form, and functions that recognise and read a log."""
T = TypeVar("T")
JSON, NVITOP, WANDB, GPUZ, LIGHTNING, TEGRASTATS = (dict[str, Meaning]() for _ in range(6))
"""The metric for each name, by tool; JSON covers gpustat, nvtop and all-smi."""
_NAMES = """
uuid | uuid
driver | driver
model | name, device_name | | name
gpu_utilization_ratio % | utilization.gpu, gpu_util, utilization | gpu_utilization (%) | gpu | GPU Load
gpu_utilization_ratio % | | | | | utilization.gpu | GR3D_FREQ
gpu_memory_controller_ratio % | | memory_utilization (%) | memory | Memory Controller Load | utilization.memory
gpu_encoder_ratio % | utilization.enc | | encoderUtilization
gpu_decoder_ratio % | utilization.dec
gpu_fan_ratio % | fan.speed, fan_speed | fan_speed (%) | fanSpeed | Fan Speed (%), Fan 1 Speed (%) | fan.speed
gpu_temperature_celsius C | temperature.gpu, temp, temperature | temperature (C) | temp | GPU Temperature
gpu_temperature_celsius C | | | | | temperature.gpu | gpu@
gpu_memory_temperature_celsius C | | | | | temperature.memory
gpu_power_watts W | power.draw, power_draw, power_consumption | power_usage (W) | powerWatts | Board Power Draw
gpu_power_limit_watts W | enforced.power.limit | | enforcedPowerLimitWatts
gpu_power_limit_requested_watts W | | power_limit (W)
gpu_sm_clock_hertz MHz | | | smClock | GPU Clock
gpu_graphics_clock_hertz MHz | gpu_clock, frequency | | graphicsClock | | | GR3D_FREQ@
gpu_memory_clock_hertz MHz | mem_clock | | memoryClock
gpu_memory_used_bytes MiB | memory.used | memory_used (MiB) | | Memory Used, Memory Used (Dedicated) | memory.used
gpu_memory_used_bytes B | mem_used, used_memory | | memoryAllocatedBytes
gpu_memory_free_bytes MiB | | memory_free (MiB) | | | memory.free
gpu_memory_free_bytes B | mem_free
gpu_memory_total_bytes MiB | memory.total | memory_total (MiB)
gpu_memory_total_bytes B | mem_total, total_memory | | memoryTotal
pcie_link_generation | | | pcieLinkGen
pcie_link_generation_max | | | maxPcieLinkGen
pcie_link_width | | | pcieLinkWidth
pcie_link_width_max | | | maxPcieLinkWidth
gpu_sm_active_ratio % | | | smActive
gpu_sm_occupancy_ratio % | | | smOccupancy
gpu_tensor_active_ratio % | | | pipeTensorActive
gpu_dram_active_ratio % | | | dramActive
cpu_utilization_ratio % | | cpu_percent (%)
host_memory_used_bytes MiB | | | | System Memory Used | | RAM used
host_memory_used_bytes GiB | | memory_used (GiB)
host_memory_total_bytes MiB | | | | | | RAM total
"""
for _what, *_cells in (line.split("|") for line in _NAMES.strip().splitlines()):
    _metric, _, _unit = _what.strip().partition(" ")
    for _meanings, _cell in zip((JSON, NVITOP, WANDB, GPUZ, LIGHTNING, TEGRASTATS), _cells, strict=False):
        _meanings.update(dict.fromkeys(_cell.strip().split(", ") if _cell.strip() else (), (_metric, _unit)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ToolLog:
    """The importer for a tool's logs, in one or more forms.

    `longest` contains the maximum line size by form, in bytes. `explain` returns why no row is usable.
    """

    kind: str
    title: str
    forms: tuple[Form, ...]
    longest: Mapping[str, int] = field(default_factory=dict)
    explain: Callable[[Account], CodedProblem] | None = None

    def identify(self, head: bytes) -> bool:
        text = source_text.head_text(head)
        return any(recognises(text) for _, recognises, _ in self.forms)

    def extract(self, file: source_text.RawFile, options: ReadOptions) -> extraction.Extraction:
        text = source_text.head_text(source_text.head(file.again(), HEAD_BYTES))
        for name, recognises, read in self.forms:
            if recognises(text):
                of_host = self.explain is not None
                return extraction.Extraction(
                    file,
                    ReadOptions(tz=options.tz) if of_host else options,
                    partial(read, around=options.around) if of_host else read,
                    name=name,
                    explain=self.explain,
                    longest=self.longest.get(name, LONGEST_LINE),
                )
        what = f"its start matches none of these formats: {', '.join(name for name, *_ in self.forms)}"
        raise SourceError(str(file.path), what, "leave out --source-kind, or change it", code="not_of_this_kind")


def first_lines(text: str, most: int = 20) -> list[str]:
    return [line for line in text.splitlines() if line.strip()][:most]


def text_lines(
    lines: Iterable[str], first: int, account: Account, *, may_be_cut: bool = False
) -> Iterator[tuple[int, str]]:
    """Yield the number and text of intact non-empty lines, and reject damaged lines."""
    found = whole_lines(lines, first, account, ends="\r\n", may_be_cut=may_be_cut)
    return ((number, text) for number, text in found if text.strip())


def table_rows(
    lines: Iterable[str], first: int, account: Account, find: Callable[[list[str]], T | None], delimiter: str = ","
) -> Iterator[tuple[int, T, list[str]]]:
    """Yield each row's number, layout and cells; `find` returns a header's layout."""
    layout: T | None = None
    width = 0
    for number, text in text_lines(lines, first, account):
        delimiter = delimiter or find_delimiter(text)
        row = split_cells(text, delimiter)
        # empty text after the last delimiter is not a cell
        header = row[:-1] if len(row) > 1 and not row[-1] else row
        found = None if layout is not None and text.lstrip('"')[:1].isdigit() else find(header)
        if found is not None:
            layout, width = found, len(header)
            account.headers += 1
        elif layout is None:
            account.reject(BEFORE_HEADER, number, text)
        elif width not in {len(row), len(header)}:
            account.reject(WRONG_CELLS, number, text)
        else:
            yield number, layout, row[:width]


def find_delimiter(header: str) -> str:
    return next((each for each in ",;\t" if each in header), ",")


def split_cells(text: str, delimiter: str = ",") -> list[str]:
    delimiter = delimiter or find_delimiter(text)
    if '"' not in text:
        return [cell.strip() for cell in text.split(delimiter)]
    try:
        rows = list(csv.reader([text[:LONGEST_LINE]], delimiter=delimiter, skipinitialspace=True, strict=True))
    except csv.Error:
        return []
    return [cell.strip() for row in rows for cell in row]


def has_header(find: Callable[[list[str]], object | None], text: str) -> bool:
    return any(find(split_cells(line)) is not None for line in first_lines(text))


def parse_documents(text: str) -> list[Any] | None:
    text, at = replace_half_characters(text), 0
    decoder, found = json.JSONDecoder(), list[Any]()
    while match := re.compile(r"[^\s,]").search(text, at):
        try:
            content, at = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            # the document is nested too deeply, or a number has thousands of digits
            return None
        found.append(content)
    return found


_QUANTITY = re.compile(
    r"([+-]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*(%|°?[A-Za-z]+(?:/s)?)?",
    re.ASCII,
)
_SPELLINGS = {"celsius": "C", "watt": "W", "watts": "W", "mb": "MB", "mib": "MiB", "gb": "GiB", "w": "W", "°f": "F"}
"""Other spellings of units; a GB of GPU memory is 1024³ bytes."""


NO_VALUE = "no value it can have"


def parse_cell(cell: object, unit: str, metric: str) -> float | int | None:
    """Return a value in its base unit, or None if invalid. `unit` applies to bare numbers."""
    match = _QUANTITY.fullmatch(cell.strip()) if isinstance(cell, str) else None
    number = headings.parse_number(match[1].replace(",", "") if match else cell)
    written = _SPELLINGS.get(match[2].lower(), match[2]) if match and match[2] else unit
    if number is None or metric == columns.MASK:
        return int(number) if number is not None and number.is_integer() and 0 <= number < 2**64 else None
    if written == "F":
        number, written = (number - 32) / 1.8, "C"
    wanted = BY_NAME[metric]
    value = UNITS[written].to_base(number) if written in UNITS and UNITS[written].base == wanted.unit else MOST
    if abs(value) >= MOST or (value < 0 and wanted.unit != "Cel"):
        return None
    if wanted.unit == "1" and not wanted.may_exceed_one and value > 1:
        # rounding may raise a mean of shares above 1
        return 1.0 if value <= 1 + 1e-6 else None
    most = np.iinfo(wanted.dtype).max if "int" in wanted.dtype else None
    return value if most is None else round(value) if round(value) <= most else None


def take_cells(record: Record, account: Account, cells: Iterable[tuple[str, Any]], meanings: Meanings) -> Record:
    """Add cells to a record, unknown ones as text, and count those without a valid value."""
    for name, cell in cells:
        target, unit = meanings.get(name, ("", ""))
        if target in columns.ATTRIBUTES:
            record |= {target: cell} if cell and isinstance(cell, str) else {}
        elif target:
            value = parse_cell(cell, unit, target)
            if value is None:
                account.absent[name, headings.absence_word(cell) or NO_VALUE] += 1
            else:
                record[target] = value
        elif isinstance(cell, str | int | float) and cell != "" and name:
            target = columns.extra_name(name)
            record[target] = str(cell)
        if target and cell is not None:
            account.columns[name, target] = None
    return record


def refuse_machines(seen: dict[str, bool], host: object, *, named: bool) -> None:
    """Raise SourceError if several machines' GPUs lack UUIDs; `seen` records which have them."""
    if host and isinstance(host, str):
        seen[host] = seen.get(host, True) and named
    if len(seen) > 1 and not all(seen.values()):
        what = f"GPUs from several machines ({redact_start(', '.join(sorted(seen)[:5]))}) have no UUID"
        raise SourceError(
            "the log", what, "write one file per machine and read them with --as-one-run", code="several_machines"
        )


def parse_stamp(text: str) -> Stamp:
    return parse_time(re.sub(r" ?(?:(?:UTC|GMT)|([+-]\d\d:?\d\d))$", lambda zone: zone[1] or "Z", text.strip()))


def parse_with(text: str, pattern: str) -> Stamp:
    try:
        return parse_time(datetime.strptime(text, pattern).isoformat())
    except (ValueError, OverflowError):
        return None


def take_row(
    account: Account, cells: Iterable[Column], row: Sequence[str], without: Container[str] = ()
) -> dict[int | None, Record]:
    """Return records by GPU (None for the machine), without cells whose text is in `without`."""
    devices: dict[int | None, Record] = {}
    for place, gpu, name, meaning in cells:
        if row[place] not in without:
            take_cells(devices.setdefault(gpu, {}), account, [(name, row[place])], {name: meaning})
    return devices


def split_devices(number: int, when: Stamp, devices: Mapping[int | None, Record]) -> Iterator[Record]:
    for gpu, record in devices.items():
        name = {columns.HOST_ROW: True} if gpu is None else {"index": str(gpu)}
        yield {"line": number, TIME: when, **name, **record}

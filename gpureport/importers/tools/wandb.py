"""Reads the system metrics of a W&B run: `run.history(stream="events")` as CSV or JSON lines.

Their names are `system.gpu.0.powerWatts`, with this prefix, another one or none. From the SDK's own collector (wandb
gpu_stats: `gpu.{i}.gpu`, `.memoryAllocatedBytes`, `.temp`, `.powerWatts` and so on, in per cent, bytes, degrees, watts
and MHz) and its reference of system metrics. On GPUs of Hopper and newer it adds the ratios of NVML's GPM or of DCGM in
per cent.

- `cpu` is what the process used, `cpu.{i}.cpu_percent` what each core did: only the latter speak of the machine.
- Errors are counted over the life of the GPU, not since the driver was loaded, and PCIe and NVLink in a unit that no
  reference states: both are kept as they are.
- `gpu.process.{i}` repeats what is said of GPUs the process uses.
- `/l:node1` behind a name stands for what W&B asked a dcgm-exporter on another machine; these are not read.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, ClassVar

from gpureport.importers.account import Account
from gpureport.importers.columns import extra_name, parse_time
from gpureport.importers.extraction import Extraction
from gpureport.importers.protocol.importer import ReadOptions
from gpureport.importers.protocol.reject_reasons import BEFORE_HEADER, CUT_LAST_LINE, NOT_JSON, WRONG_CELLS
from gpureport.importers.quantities import parse_number, parse_quantity
from gpureport.importers.source_file import RawFile
from gpureport.importers.source_text import head_text
from gpureport.importers.tools import (
    Record,
    form,
    parse_documents,
    split_cells,
    split_devices,
    take_number,
    text_lines,
)

_GPU = {
    "gpu": ("gpu_utilization_ratio", "%"),
    "memory": ("gpu_memory_controller_ratio", "%"),
    "memoryAllocatedBytes": ("gpu_memory_used_bytes", "B"),
    "memoryTotal": ("gpu_memory_total_bytes", "B"),
    "temp": ("gpu_temperature_celsius", "C"),
    "powerWatts": ("gpu_power_watts", "W"),
    "enforcedPowerLimitWatts": ("gpu_power_limit_watts", "W"),
    "smClock": ("gpu_sm_clock_hertz", "MHz"),
    "graphicsClock": ("gpu_graphics_clock_hertz", "MHz"),
    "memoryClock": ("gpu_memory_clock_hertz", "MHz"),
    "fanSpeed": ("gpu_fan_ratio", "%"),
    "encoderUtilization": ("gpu_encoder_ratio", "%"),
    "pcieLinkGen": ("pcie_link_generation", ""),
    "pcieLinkWidth": ("pcie_link_width", ""),
    "maxPcieLinkGen": ("pcie_link_generation_max", ""),
    "maxPcieLinkWidth": ("pcie_link_width_max", ""),
    "smActive": ("gpu_sm_active_ratio", "%"),
    "smOccupancy": ("gpu_sm_occupancy_ratio", "%"),
    "pipeTensorActive": ("gpu_tensor_active_ratio", "%"),
    "dramActive": ("gpu_dram_active_ratio", "%"),
}
_ALLOCATED = "memoryAllocated"
"""Share of the memory installed that is used, in per cent."""
_CORE = "core"
_PREFIX = re.compile(r"_?(?:system[./]_?)?")
_OF_GPU = re.compile(r"gpu\.(\d{1,4})\.(\w+)", re.ASCII)
_OF_CORE = re.compile(r"cpu\.\d{1,5}\.cpu_percent", re.ASCII)
_OF_HOST = re.compile(r"(?:cpu|memory_percent|disk\..*|network\..*|proc\..*|memory)", re.ASCII)
_TIMES = ("_timestamp", "timestamp")
_EMPTY = {"", "nan", "NaN", "null", "None"}
_FEW, _SAMPLED = 5, 500
"""Lines among which a header is looked for, and rows that W&B hands out unless asked for more."""
_THINNED = (
    "It holds 500 rows, as many as W&B hands out unless asked for more: of a longer run it is a sample. "
    'run.history(stream="events", samples=100000) gives all.'
)


class Wandb:
    """The importer of W&B's system metrics."""

    kind: ClassVar[str] = "wandb"
    title: ClassVar[str] = "Weights & Biases"
    recognised_by: ClassVar[str] = (
        "A CSV or JSON lines with system metrics such as `system.gpu.0.powerWatts` and a time."
    )
    sample: ClassVar[str] = "wandb/wandb.csv"

    def identify(self, head: bytes) -> bool:
        """Return whether one of the first lines names metrics as W&B does, and a time."""
        return any(_is_of_wandb(_names(line)) for line in head_text(head).splitlines()[:_FEW])

    def extract(self, file: RawFile, options: ReadOptions) -> Extraction:
        """Begin to read an export."""
        return Extraction(file, options, read_wandb, name="W&B system metrics")


def _names(line: str) -> Iterable[str]:
    """Return the names that a header or a document holds."""
    documents = parse_documents(line) if line.lstrip().startswith("{") else None
    return (
        split_cells(line)
        if documents is None
        else {name: 0 for each in documents if isinstance(each, dict) for name in each}
    )


def _is_of_wandb(names: Iterable[str]) -> bool:
    """Return whether there is a time among names, and one that only W&B uses."""
    held = list(names)
    meanings = [meaning for name in held if (meaning := _parse_name(name)) and meaning[0] is not None]
    return not {*_TIMES, "_runtime"}.isdisjoint(held) and any(
        metric in _GPU or metric in {"name", _ALLOCATED} for _, metric in meanings
    )


@lru_cache(4096)
def _parse_name(text: str) -> tuple[int | None, str] | None:
    """Return the GPU (None for the machine) and the metric that a name stands for, None for another name."""
    plain = _PREFIX.sub("", text, count=1)
    if match := _OF_GPU.fullmatch(plain):
        return int(match[1]), match[2]
    if _OF_CORE.fullmatch(plain):
        return None, _CORE
    return (None, plain) if _OF_HOST.fullmatch(plain) else None


@form
def read_wandb(lines: Iterable[str], first: int, account: Account) -> Iterator[Record]:
    """Yield the rows of the machine and of each GPU."""
    header: list[str] = []
    cells: dict[str, Any]
    rows = 0
    for number, text, cut in text_lines(lines, first, account):
        if text.lstrip().startswith("{"):
            documents = [each for each in parse_documents(text) or [None] if isinstance(each, dict)]
            cells = documents[0] if documents else {}
            fault = "" if len(documents) == 1 else NOT_JSON
        elif _is_of_wandb(row := split_cells(text)):
            header = row
            account.headers += 1
            continue
        else:
            cells = dict(zip(header, row, strict=False))
            fault = "" if header and not cut and len(row) == len(header) else WRONG_CELLS if header else BEFORE_HEADER
        if fault:
            account.reject(CUT_LAST_LINE if cut and fault != BEFORE_HEADER else fault, number, text)
            continue
        devices = _read(cells, account)
        rows += bool(devices)
        account.noise += not devices
        when = parse_time(str(next((cells[key] for key in _TIMES if key in cells), "")))
        in_order = dict(sorted(devices.items(), key=lambda item: -1 if item[0] is None else item[0]))
        yield from split_devices(number, when, in_order)
    if rows == _SAMPLED:
        account.note(_THINNED)


def _read(cells: Mapping[str, Any], account: Account) -> dict[int | None, Record]:
    """Return what a row says of each device."""
    devices: dict[int | None, Record] = {}
    cores: list[float] = []
    shares: dict[int | None, float] = {}
    for text, cell in cells.items():
        name = _parse_name(text)
        if name is None or cell is None or str(cell) in _EMPTY:
            if "/l:" in text:
                account.note("Names with /l: stand for GPUs of other machines and are not read.")
            continue
        (gpu, metric), number = name, parse_number(cell)
        if number is not None and metric == _CORE and gpu is None:
            cores.append(number)
        elif number is not None and metric == _ALLOCATED and gpu is not None:
            shares[gpu] = number
        elif gpu is not None and metric in _GPU:
            take_number(devices.setdefault(gpu, {}), account, metric, cell, _GPU[metric])
        else:
            target = "model" if gpu is not None and metric == "name" else extra_name(metric)
            devices.setdefault(gpu, {})[target] = str(cell)
    if cores and min(cores) >= 0 and max(cores) <= 100:  # noqa: PLR2004 - per cent
        devices.setdefault(None, {}).update(
            cpu_utilization_ratio=sum(cores) / len(cores) / 100,
            cpu_busiest_core_ratio=max(cores) / 100,
            cpu_logical_cores=len(cores),
        )
    for gpu, share in shares.items():
        _take_share(devices.setdefault(gpu, {}), share, account)
    return devices


def _take_share(record: Record, share: float, account: Account) -> None:
    """Tell the memory installed from the bytes used and the share they are; keep a share that tells nothing."""
    used, known = record.get("gpu_memory_used_bytes"), "gpu_memory_total_bytes" in record
    total = None
    if used and 0 < share <= 100 and not known:  # noqa: PLR2004 - per cent
        total = parse_quantity(used * 100 / share, "B", "gpu_memory_total_bytes")
    if total is not None:
        record["gpu_memory_total_bytes"] = total
        account.note("Memory installed was told from bytes used and the share that they are.")
    elif not known:
        record[extra_name(_ALLOCATED)] = str(share)

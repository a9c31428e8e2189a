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
from functools import lru_cache, partial
from typing import Any

from gpureport.importers.account import Account
from gpureport.importers.clock import parse_time
from gpureport.importers.columns import extra_name
from gpureport.importers.headings import parse_number, parse_quantity
from gpureport.importers.protocol.reject_reasons import CUT_LAST_LINE, NOT_JSON
from gpureport.importers.tools import (
    Record,
    ToolLog,
    describe_cores,
    form,
    has_header,
    parse_documents,
    split_devices,
    table_rows,
    take_cells,
    text_lines,
)

_GPU = {
    "name": ("model", ""),
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
_NAME = re.compile(
    r"_?(?:system[./]_?)?(?:gpu\.(?P<gpu>\d{1,4})\.(?P<metric>\w+)|cpu\.\d{1,5}\.cpu_percent|(?P<host>.+))", re.ASCII
)
_OF_HOST = re.compile(r"(?:cpu|memory_percent|disk\..*|network\..*|proc\..*|memory)", re.ASCII)
_TIMES = ("_timestamp", "timestamp")
_EMPTY = {"", "nan", "NaN", "null", "None"}
_SAMPLED = 500
"""Rows that W&B hands out unless asked for more."""
_THINNED = (
    "It holds 500 rows, as many as W&B hands out unless asked for more: of a longer run it is a sample. "
    'run.history(stream="events", samples=100000) gives all.'
)


def _find_names(names: Iterable[str]) -> list[str] | None:
    """Return names among which is a time and one that only W&B uses, None for others."""
    held = list(names)
    found = (meaning[1] for name in held if (meaning := _parse_name(name)) and meaning[0] is not None)
    known = any(metric in _GPU or metric == _ALLOCATED for metric in found)
    return held if known and not {*_TIMES, "_runtime"}.isdisjoint(held) else None


@lru_cache(4096)
def _parse_name(text: str) -> tuple[int | None, str] | None:
    """Return the GPU (None for the machine) and the metric that a name stands for, None for another name."""
    match = _NAME.fullmatch(text)
    if match is None or (match["host"] and not _OF_HOST.fullmatch(match["host"])):
        return None
    return (int(match["gpu"]), match["metric"]) if match["gpu"] else (None, match["host"] or _CORE)


@form
def read_table(lines: Iterable[str], first: int, account: Account) -> Iterator[Record]:
    """Yield the rows of a CSV."""
    rows = table_rows(lines, first, account, _find_names)
    yield from _read_rows(((number, dict(zip(names, row, strict=True))) for number, names, row in rows), account)


@form
def read_lines(lines: Iterable[str], first: int, account: Account) -> Iterator[Record]:
    """Yield the rows of JSON lines."""

    def documents() -> Iterator[tuple[int, Mapping[str, Any]]]:
        for number, text, cut in text_lines(lines, first, account):
            found = parse_documents(text) or []
            if len(found) == 1 and isinstance(found[0], dict):
                yield number, found[0]
            else:
                account.reject(CUT_LAST_LINE if cut else NOT_JSON, number, text)

    yield from _read_rows(documents(), account)


def _read_rows(rows: Iterable[tuple[int, Mapping[str, Any]]], account: Account) -> Iterator[Record]:
    """Yield the rows of the machine and of each GPU."""
    count = 0
    for number, cells in rows:
        devices = _read(cells, account)
        count += bool(devices)
        account.noise += not devices
        when = parse_time(str(next((cells[key] for key in _TIMES if key in cells), "")))
        in_order = dict(sorted(devices.items(), key=lambda item: -1 if item[0] is None else item[0]))
        yield from split_devices(number, when, in_order)
    if count == _SAMPLED:
        account.note(_THINNED)


def _read(cells: Mapping[str, Any], account: Account) -> dict[int | None, Record]:
    """Return what a row says of each device."""
    devices: dict[int | None, Record] = {}
    cores: list[float | None] = []
    for text, cell in cells.items():
        gpu, metric = _parse_name(text) or (None, "")
        if not metric or cell is None or str(cell) in _EMPTY:
            continue
        if metric == _CORE and gpu is None:
            cores.append(parse_quantity(cell, "%", "cpu_utilization_ratio"))
        else:
            take_cells(devices.setdefault(gpu, {}), account, [(metric, cell)], {} if gpu is None else _GPU)
    loads = [load for load in cores if load is not None]
    if loads and len(loads) == len(cores):
        devices.setdefault(None, {}).update(describe_cores(loads))
    for record in devices.values():
        share, used = parse_number(record.get(extra_name(_ALLOCATED))), record.get("gpu_memory_used_bytes")
        if used and share and 0 < share <= 100 and "gpu_memory_total_bytes" not in record:  # noqa: PLR2004 - per cent
            del record[extra_name(_ALLOCATED)]
            record["gpu_memory_total_bytes"] = round(used * 100 / share)
            account.note("Memory installed was told from bytes used and the share that they are.")
    return devices


def _is_lines(text: str) -> bool:
    documents = parse_documents(text[: text.find("\n") + 1] or text) if text.lstrip().startswith("{") else None
    return any(isinstance(each, dict) and _find_names(each) is not None for each in documents or ())


WANDB = ToolLog(
    kind="wandb",
    title="Weights & Biases",
    recognised_by=("A CSV or JSON lines with system metrics such as `system.gpu.0.powerWatts` and a time."),
    sample="wandb/wandb.csv",
    forms=(
        ("W&B system metrics", _is_lines, read_lines),
        ("W&B system metrics", partial(has_header, _find_names), read_table),
    ),
)

"""Reads what monitors of one's own choice write: nvtop, all-smi, tegrastats of a Jetson, GPU-Z, Lightning's columns.

- tegrastats prints a line a moment. Memory is shared by CPU and GPU, and no rail of power is the GPU's alone.
- GPU-Z writes a table of one GPU; `Memory Used` counts MiB.
- Lightning's `DeviceStatsMonitor` and `GPUStatsMonitor` add columns of nvidia-smi's figures to `metrics.csv`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from gpureport.importers.account import Account
from gpureport.importers.clock import parse_time
from gpureport.importers.headings import is_time_heading
from gpureport.importers.protocol.reject_reasons import CUT_LAST_LINE, NOT_OF_FORM
from gpureport.importers.tools import (
    FEW,
    Meaning,
    Record,
    ToolLog,
    describe_cores,
    form,
    has_header,
    parse_stamp,
    parse_with,
    split_devices,
    table_rows,
    take_cells,
    text_lines,
)
from gpureport.importers.tools.snapshots import ALL_SMI, NVTOP

# tegrastats

_TEGRA = re.compile(
    r"(?:(?P<time>\d\d-\d\d-\d{4} \d\d:\d\d:\d\d) )?RAM (?P<used>\d{1,9})/(?P<total>\d{1,9})MB .*"
    r"\bGR3D_FREQ (?P<use>\d{1,3})%(?:@\[?(?P<clock>\d{1,5}))?.*",
    re.ASCII,
)
_CORES = re.compile(r"\bCPU \[([^\]]*)\]")
_HEAT = re.compile(r"\bgpu@(\d{1,3}(?:\.\d{1,3})?)C\b", re.IGNORECASE)
"""A sensor that is switched off says -256C."""
_RAIL = re.compile(r"\b([A-Z]\w+) (\d{1,7})(?:mW)?/\d{1,7}(?:mW)?(?= |$)", re.ASCII)
_SHARED = "Memory of a Jetson is shared by CPU and GPU: what is used of it stands in the series of the machine."
_RAILS = "No rail of power that tegrastats names is the GPU's alone: they are kept as text, in mW."


def _is_tegrastats(text: str) -> bool:
    return any(_TEGRA.fullmatch(line.strip()) for line in text.splitlines()[:FEW])


@form
def read_tegrastats(lines: Iterable[str], first: int, account: Account) -> Iterator[Record]:
    """Yield the rows of the machine and of its GPU."""
    for number, text, cut in text_lines(lines, first, account):
        found = None if cut else _TEGRA.fullmatch(text.strip())
        cores = found and _CORES.search(text)
        loads = [int(load) / 100 for load in re.findall(r"(\d{1,3})%", cores[1])] if cores else []
        if found is None or int(found["use"]) > 100 or any(load > 1 for load in loads):  # noqa: PLR2004 - per cent
            account.reject(CUT_LAST_LINE if cut else NOT_OF_FORM, number, text)
            continue
        host = {
            "host_memory_used_bytes": int(found["used"]) << 20,
            "host_memory_total_bytes": int(found["total"]) << 20,
        }
        if loads:
            host |= describe_cores(loads)
        gpu: Record = {"gpu_utilization_ratio": int(found["use"]) / 100}
        if found["clock"]:
            gpu["gpu_graphics_clock_hertz"] = int(found["clock"]) * 1e6
        if heat := _HEAT.search(text):
            gpu["gpu_temperature_celsius"] = float(heat[1])
        take_cells(gpu, account, ((name, power) for name, power in _RAIL.findall(text)), {})
        account.note(_SHARED, _RAILS)
        yield from split_devices(number, parse_with(found["time"] or "", "%m-%d-%Y %H:%M:%S"), {None: host, 0: gpu})


# GPU-Z

_GPUZ = {
    "GPU Clock": ("gpu_sm_clock_hertz", "MHz"),
    "GPU Temperature": ("gpu_temperature_celsius", "C"),
    "Fan Speed (%)": ("gpu_fan_ratio", "%"),
    "Fan 1 Speed (%)": ("gpu_fan_ratio", "%"),
    "Memory Used": ("gpu_memory_used_bytes", "MiB"),
    "Memory Used (Dedicated)": ("gpu_memory_used_bytes", "MiB"),
    "GPU Load": ("gpu_utilization_ratio", "%"),
    "Memory Controller Load": ("gpu_memory_controller_ratio", "%"),
    "Board Power Draw": ("gpu_power_watts", "W"),
    "System Memory Used": ("host_memory_used_bytes", "MiB"),
}
_GPUZ_HEADING = re.compile(r"(.+?) \[([^\]]*)\]")


def _find_sensors(header: Sequence[str]) -> list[str] | None:
    """Return the names of the columns of a sensor log without their units, None where a line is no header of one."""
    if header[:1] != ["Date"]:
        return None
    parts = [_GPUZ_HEADING.fullmatch(heading) for heading in header]
    # a temperature in °F is kept as text
    names = [heading if p is None or p[2].endswith("F") else p[1] for heading, p in zip(header, parts, strict=True)]
    return names if any(_GPUZ.get(name, ("",))[0].startswith("gpu_") for name in names) else None


@form
def read_gpuz(lines: Iterable[str], first: int, account: Account) -> Iterator[Record]:
    """Yield the rows of the GPU and of the machine that a sensor log of GPU-Z holds."""
    for number, names, row in table_rows(lines, first, account, _find_sensors):
        record = take_cells({}, account, list(zip(names, row, strict=True))[1:], _GPUZ)
        host = {name: record.pop(name) for name in [*record] if name.startswith("host_")}
        yield from split_devices(number, parse_stamp(row[0]), ({None: host} if host else {}) | {0: record})


# Lightning's monitors of devices

_LIGHTNING = re.compile(r"(?:.*/)?(?:device|gpu)_id: (\d{1,4})/([\w.]+) \(.*\)", re.ASCII)
_DEVICE_STATS: dict[str, Meaning] = {
    "utilization.gpu": ("gpu_utilization_ratio", "%"),
    "utilization.memory": ("gpu_memory_controller_ratio", "%"),
    "memory.used": ("gpu_memory_used_bytes", "MiB"),
    "memory.free": ("gpu_memory_free_bytes", "MiB"),
    "fan.speed": ("gpu_fan_ratio", "%"),
    "temperature.gpu": ("gpu_temperature_celsius", "C"),
    "temperature.memory": ("gpu_memory_temperature_celsius", "C"),
}


def _find_devices(header: list[str]) -> list[str] | None:
    """Return the headings of a table that has columns of GPUs among those of training, None for another line."""
    found = [match for match in map(_LIGHTNING.fullmatch, header) if match and match[2] in _DEVICE_STATS]
    return header if found else None


@form
def read_device_stats(lines: Iterable[str], first: int, account: Account) -> Iterator[Record]:
    """Yield the rows of each GPU; rows with metrics of training alone are noise."""
    for number, header, row in table_rows(lines, first, account, _find_devices):
        devices: dict[int | None, Record] = {}
        for heading, cell in zip(header, row, strict=True):
            if cell and (match := _LIGHTNING.fullmatch(heading)):
                take_cells(devices.setdefault(int(match[1]), {}), account, [(match[2], cell)], _DEVICE_STATS)
        account.noise += not devices
        time = next((place for place, heading in enumerate(header) if is_time_heading(heading)), None)
        yield from split_devices(number, None if time is None else parse_time(row[time]), devices)


MONITORS = ToolLog(
    kind="monitors",
    title="nvtop, all-smi, tegrastats, GPU-Z, Lightning",
    recognised_by=(
        "JSON of `nvtop -s` or `all-smi record`, a line of tegrastats, a sensor log of GPU-Z, or a CSV with columns "
        "such as `device_id: 0/utilization.gpu (%)`."
    ),
    sample="",
    forms=(
        NVTOP,
        ALL_SMI,
        (
            "tegrastats",
            _is_tegrastats,
            read_tegrastats,
        ),
        ("GPU-Z sensor log", partial(has_header, _find_sensors), read_gpuz),
        ("Lightning metrics.csv", partial(has_header, _find_devices), read_device_stats),
    ),
)

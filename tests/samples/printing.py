"""What nvidia-smi and other tools would print of a sample."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

_WIDTHS = (41, 24, 22)
_WHOLE = sum(_WIDTHS) + 2
_BANNER = " NVIDIA-SMI 560.35.03              Driver Version: 560.35.03      CUDA Version: 12.6"
_PROCESS = "    0   N/A  N/A         4242      C   ...envs/train/bin/python            "
Cells = dict[str, "str | list[str] | Cells"]


def _moment(now: datetime) -> str:
    return f"{now:%a %b} {now.day:2d} {now:%H:%M:%S %Y}"


def _line(*cells: str) -> str:
    return "|" + "|".join(cell.ljust(width) for cell, width in zip(cells, _WIDTHS, strict=True)) + "|"


def _gpu_lines(read: dict[str, str]) -> list[str]:
    first, second, third = _WIDTHS
    watts, cap = f"{float(read['power.draw']):.0f}W", f"{float(read['enforced.power.limit']):.0f}W"
    used, total, busy = f"{read['memory.used']}MiB", f"{read['memory.total']}MiB", f"{read['utilization.gpu']}%"
    name, power = f"{int(read['index']):4d}  {read['name']}".ljust(first - 6), f"{watts:>5} / {cap:>5} "
    state = f" N/A  {read['temperature.gpu'] + 'C':>4}  {read['pstate']:>4}".ljust(first - len(power))
    return [
        _line(f"{name}  On", f"{read['pci.bus_id']:>{second - 5}} Off ", f"{0:>{third - 1}} "),
        _line(state + power, f"{used:>10} / {total:>8} ".rjust(second), f"{busy:>8}      Default ".rjust(third)),
        _line("", "", f"{'N/A':>{third - 1}} "),
    ]


def tables(now: datetime, readings: list[dict[str, str]]) -> str:
    border, whole = "+" + "+".join("-" * width for width in _WIDTHS) + "+", f"+{'-' * _WHOLE}+"
    lines = [f"{_moment(now)}       ", whole, f"|{_BANNER.ljust(_WHOLE)}|", border.replace("+", "|", 1)]
    lines += [
        _line(" GPU  Name", " Bus-Id", " Volatile Uncorr. ECC "),
        _line(" Fan  Temp   Perf", "         Memory-Usage ", " GPU-Util  Compute M. "),
        _line("", "", "               MIG M. "),
        "|" + "+".join("=" * width for width in _WIDTHS) + "|",
    ]
    for read in readings:
        lines += [*_gpu_lines(read), border]
    lines += [" " * _WHOLE, whole, f"|{' Processes:'.ljust(_WHOLE)}|", f"|{'=' * _WHOLE}|"]
    lines += [f"|{(_PROCESS + readings[0]['memory.used'] + 'MiB').ljust(_WHOLE)}|", whole, ""]
    return "\n".join(lines)


def _elements(read: dict[str, str]) -> Cells:
    """Return the elements of a GPU; a real document lists a hundred clocks and more."""
    watts, limit = f"{read['power.draw']} W", f"{float(read['enforced.power.limit']):.0f}.00 W"
    capped = "Active" if int(read["clocks_event_reasons.active"], 16) & 4 else "Not Active"
    reasons = {"gpu_idle": "Not Active", "sw_power_cap": capped, "display_clocks_setting": "Not Active"}
    return {
        "product_name": read["name"],
        "mig_mode": {"current_mig": "N/A", "pending_mig": "N/A"},
        "mig_devices": "None",
        "serial": "N/A",
        "uuid": f"GPU-00000000-0000-0000-0000-{int(read['index']):012d}",
        "minor_number": read["index"],
        "pci": {
            "pci_bus_id": read["pci.bus_id"],
            "pci_gpu_link_info": {
                "pcie_gen": {"max_link_gen": "4", "current_link_gen": "4"},
                "link_widths": {"max_link_width": "16x", "current_link_width": "8x"},
            },
            "tx_util": "439 KB/s",
            "rx_util": "292 KB/s",
        },
        "fan_speed": "N/A",
        "performance_state": read["pstate"],
        "clocks_event_reasons": {f"clocks_event_reason_{name}": text for name, text in reasons.items()},
        "fb_memory_usage": {
            "total": f"{read['memory.total']} MiB",
            "used": f"{read['memory.used']} MiB",
            "free": "20000 MiB",
        },
        "bar1_memory_usage": {"total": "256 MiB", "used": "1 MiB"},
        "utilization": {"gpu_util": f"{read['utilization.gpu']} %", "memory_util": f"{read['utilization.memory']} %"},
        "ecc_errors": {
            "volatile": {
                "sram_correctable": "1",
                "sram_uncorrectable": "2",
                "dram_correctable": "3",
                "dram_uncorrectable": "0",
            },
            "aggregate": {"sram_correctable": "100", "dram_correctable": "200"},
        },
        "temperature": {
            "gpu_temp": f"{read['temperature.gpu']} C",
            "gpu_temp_max_threshold": "96 C",
            "memory_temp": "N/A",
        },
        "gpu_power_readings": {
            "average_power_draw": watts,
            "instant_power_draw": watts,
            "current_power_limit": limit,
            "requested_power_limit": limit,
        },
        "module_power_readings": {"average_power_draw": "999.00 W"},
        "clocks": {
            "graphics_clock": "1980 MHz",
            "sm_clock": f"{read['clocks.current.sm']} MHz",
            "mem_clock": "6251 MHz",
        },
        "applications_clocks": {"graphics_clock": "2040 MHz"},
        "max_clocks": {"graphics_clock": "2040 MHz", "sm_clock": "2040 MHz", "mem_clock": "6251 MHz"},
        "supported_clocks": {
            "supported_mem_clock": {
                "value": "6251 MHz",
                "supported_graphics_clock": [f"{2040 - 15 * step} MHz" for step in range(4)],
            },
        },
        "processes": {"process_info": {"pid": "4242", "process_name": "python", "used_memory": "1000 MiB"}},
    }


def _tags(cells: Cells, depth: int) -> list[str]:
    tab = "\t" * depth
    lines = []
    for name, value in cells.items():
        if isinstance(value, dict):
            lines += [f"{tab}<{name}>", *_tags(value, depth + 1), f"{tab}</{name}>"]
        else:
            lines += [f"{tab}<{name}>{text}</{name}>" for text in ([value] if isinstance(value, str) else value)]
    return lines


def documents(now: datetime, readings: list[dict[str, str]]) -> str:
    lines = ['<?xml version="1.0" ?>', '<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">', "<nvidia_smi_log>"]
    lines += [f"\t<timestamp>{_moment(now)}</timestamp>", "\t<driver_version>590.48.01</driver_version>"]
    lines += ["\t<cuda_version>13.1</cuda_version>", f"\t<attached_gpus>{len(readings)}</attached_gpus>"]
    for read in readings:
        lines += [f'\t<gpu id="{read["pci.bus_id"]}">', *_tags(_elements(read), 2), "\t</gpu>", ""]
    return "\n".join([*lines, "</nvidia_smi_log>", ""])


_HEADING_EVERY = 20
"""Ticks after which dcgmi prints its heading again, as it does when a screen is full."""
_SM_ACTIVE, _TENSOR_ACTIVE = 0.74, 0.31
"""Activity of the job's kernels while they run: made up, as all of it is."""
_DCGM_WIDTHS = {"GPUTL": 13, "MCUTL": 13, "TMPTR": 10, "POWER": 13, "SMCLK": 10, "FBTTL": 12, "FBUSD": 12}
_DCGM_WIDTHS |= {"DVCCTR": 14, "SMACT": 10, "TENSO": 10, "DRAMA": 10}
_COPIED = {"PCITX": 13, "PCIRX": 13, "PCIMG": 10, "PCIMW": 10}
"""Columns of the link, for those who watch it."""
_UNITS = {"TMPTR": "C", "POWER": "W"}


@dataclass(frozen=True, slots=True)
class Reading:
    moment: datetime
    cells: dict[str, str]


def gpustat_json(ticks: Iterable[Sequence[Reading]]) -> str:
    return "".join(json.dumps(_document(readings)) + "\n" for readings in ticks)


def _document(readings: Sequence[Reading]) -> dict[str, object]:
    gpus: list[dict[str, object]] = [
        {
            "index": int(cells["index"]),
            "uuid": cells["uuid"],
            "name": cells["name"],
            "temperature.gpu": int(cells["temperature.gpu"]),
            "fan.speed": None,
            "utilization.gpu": int(cells["utilization.gpu"]),
            "power.draw": int(float(cells["power.draw"])),
            "enforced.power.limit": int(float(cells["enforced.power.limit"])),
            "memory.used": int(cells["memory.used"]),
            "memory.total": int(cells["memory.total"]),
            "processes": [],
        }
        for cells in (reading.cells for reading in readings)
    ]
    cells = readings[0].cells
    return {
        "hostname": "node1",
        "driver_version": cells["driver_version"],
        "query_time": readings[-1].moment.isoformat(),
        "gpus": gpus,
    }


def dcgmi_dmon(ticks: Iterable[Sequence[Reading]]) -> str:
    """Return what `dcgmi dmon` would have printed, every line stamped on its way into the file."""
    lines = []
    for place, readings in enumerate(ticks):
        stamp = readings[-1].moment.isoformat(timespec="milliseconds")
        widths = _DCGM_WIDTHS | (_COPIED if "pcie.rx" in readings[0].cells else {})
        heading = "#Entity   " + "".join(f"{tag:<{width}}" for tag, width in widths.items())
        units = "ID        " + "".join(f"{_UNITS.get(tag, ''):<{width}}" for tag, width in widths.items())
        if place % _HEADING_EVERY == 0:
            lines += [f"{stamp} {heading.rstrip()}", f"{stamp} {units.rstrip()}"]
        lines += [f"{stamp} {_row(reading.cells, widths)}" for reading in readings]
    return "\n".join(lines) + "\n"


def wandb_csv(ticks: Iterable[Sequence[Reading]]) -> str:
    lines: list[str] = []
    for place, readings in enumerate(ticks):
        values = {f"system.gpu.{each.cells['index']}.{name}": text for each in readings for name, text in _wandb(each)}
        moment = readings[0].moment.replace(tzinfo=UTC).timestamp()
        lines = lines or [",".join(["", *values, "_timestamp"])]
        lines.append(",".join([str(place), *values.values(), f"{moment:.3f}"]))
    return "\n".join(lines) + "\n"


def _wandb(reading: Reading) -> Iterator[tuple[str, str]]:
    cells = reading.cells
    yield "gpu", cells["utilization.gpu"]
    yield "memory", cells["utilization.memory"]
    yield "memoryAllocatedBytes", str(int(cells["memory.used"]) * 2**20)
    yield "temp", cells["temperature.gpu"]
    yield "powerWatts", cells["power.draw"]
    yield "enforcedPowerLimitWatts", cells["enforced.power.limit"]


def wrapper_csv(ticks: Iterable[Sequence[Reading]]) -> str:
    """Return what a script of one's own might write, with headings that no tool uses."""
    lines = ["zeit;" + ";".join(f"karte {gpu} {what}" for gpu in (0, 1) for what in ("last", "speicher", "watt"))]
    for readings in ticks:
        numbers = (
            (each.cells["utilization.gpu"], each.cells["memory.used"], each.cells["power.draw"]) for each in readings
        )
        shown = [number.replace(".", ",") for row in numbers for number in row]
        lines.append(";".join([f"{readings[0].moment:%d.%m.%Y %H:%M:%S}", *shown]))
    return "\n".join(lines) + "\n"


def _row(cells: dict[str, str], widths: dict[str, int]) -> str:
    busy = int(cells["utilization.gpu"]) / 100
    shown = {
        "GPUTL": cells["utilization.gpu"],
        "MCUTL": cells["utilization.memory"],
        "TMPTR": cells["temperature.gpu"],
        "POWER": f"{float(cells['power.draw']):.3f}",
        "SMCLK": cells["clocks.current.sm"],
        "FBTTL": cells["memory.total"],
        "FBUSD": cells["memory.used"],
        "DVCCTR": str(int(cells["clocks_event_reasons.active"], 16)),
        "SMACT": f"{_SM_ACTIVE * busy:.3f}",
        "TENSO": f"{_TENSOR_ACTIVE * busy:.3f}",
        "DRAMA": f"{int(cells['utilization.memory']) / 100:.3f}",
        "PCITX": cells.get("pcie.tx", ""),
        "PCIRX": cells.get("pcie.rx", ""),
        "PCIMG": cells["pcie.link.gen.max"],
        "PCIMW": cells["pcie.link.width.max"],
    }
    entity = f"GPU {cells['index']}"
    return f"{entity:<10}{''.join(f'{shown[tag]:<{width}}' for tag, width in widths.items())}".rstrip()

"""What nvidia-smi writes for people and as XML, in its present and former shapes, made for tests."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

START = datetime(2026, 3, 14, 9, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one GPU shows; numbers are given as texts so that a test can put an error in their place."""

    index: int = 0
    name: str = "NVIDIA L4"
    mode: str = "On"
    bus: str = "00000000:31:00.0"
    errors: str = "0"
    fan: str = "30%"
    celsius: str = "41C"
    state: str = "P0"
    watts: str = "61W"
    cap: str = "72W"
    used: str = "1024MiB"
    total: str = "23034MiB"
    busy: str = "97%"
    mig: str = "N/A"
    clock: str = "1965 MHz"
    controller: str = "12 %"
    capped: bool = True


def asctime(second: int = 0) -> str:
    """Return a time some seconds after the start, as the C library writes it."""
    at = START + timedelta(seconds=second)
    return f"{at:%a %b} {at.day:2d} {at:%H:%M:%S %Y}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How a driver draws its table: widths of the three columns, and how many lines a GPU takes."""

    widths: tuple[int, int, int]
    banner: str
    lines: int = 3

    @property
    def whole(self) -> int:
        """Width between the outer bars."""
        return sum(self.widths) + 2


WIDE = Shape(
    widths=(41, 24, 22), banner=" NVIDIA-SMI 560.35.03              Driver Version: 560.35.03      CUDA Version: 12.6"
)


def _line(shape: Shape, *cells: str) -> str:
    return "|" + "|".join(cell.ljust(width) for cell, width in zip(cells, shape.widths, strict=True)) + "|"


def _gpu_lines(shape: Shape, shown: Reading) -> list[str]:
    first, second, third = shape.widths
    name = f"{shown.index:4d}  {shown.name}".ljust(first - 6) + shown.mode.rjust(4)
    fan = shown.fan if len(shown.fan) > 3 else f" {shown.fan:>3}"
    power = f"{shown.watts:>5} / {shown.cap:>5} "
    lines = [
        _line(shape, name, f"{shown.bus:>{second - 5}} Off ", f"{shown.errors:>{third - 1}} "),
        _line(
            shape,
            f"{fan}  {shown.celsius:>4}  {shown.state:>4}".ljust(first - len(power)) + power,
            f"{shown.used:>10} / {shown.total:>8} ".rjust(second),
            f"{shown.busy:>8}      Default ".rjust(third),
        ),
        _line(shape, "", "", f"{shown.mig:>{third - 1}} "),
    ]
    return lines[: shape.lines]


def table(
    shown: Sequence[Reading] = (Reading(),), shape: Shape = WIDE, time: str | None = "", processes: int = 1
) -> str:
    """Return what plain `nvidia-smi` draws.

    Args:
        shown: the GPUs.
        shape: how the driver draws it.
        time: the line above it, the start's where empty; None for none.
        processes: processes of the first GPU.
    """
    border = "+" + "+".join("-" * width for width in shape.widths) + "+"
    whole = "-" * shape.whole
    heading = [
        _line(shape, " GPU  Name", " Bus-Id", " Volatile Uncorr. ECC "),
        _line(shape, " Fan  Temp   Perf", "         Memory-Usage ", " GPU-Util  Compute M. "),
        _line(shape, "", "", "               MIG M. "),
    ][: shape.lines]
    lines = [] if time is None else [f"{time or asctime()}       "]
    lines += [f"+{whole}+", f"|{shape.banner.ljust(shape.whole)}|", border.replace("+", "|", 1), *heading]
    lines += ["|" + "+".join("=" * width for width in shape.widths) + "|"]
    for each in shown:
        lines += [*_gpu_lines(shape, each), border]
    row = f"    0   N/A  N/A         4242      C   ...envs/train/bin/python            {shown[0].used if shown else ''}"
    listed = [f"|{row.ljust(shape.whole)}|"] * processes or [f"|{'  No running processes found'.ljust(shape.whole)}|"]
    lines += [" " * shape.whole, f"+{whole}+", f"|{' Processes:'.ljust(shape.whole)}|", f"|{'=' * shape.whole}|"]
    return "\n".join([*lines, *listed, f"+{whole}+", ""])


def _watts(shown: Reading, decimals: str) -> str:
    """Return a power with decimals: those it has, else the ones given."""
    number = shown.watts.removesuffix("W")
    return f"{number} W" if "." in number else shown.watts.replace("W", decimals)


Cells = dict[str, "str | list[str] | Cells"]


CLOCKS = 110
"""Clocks that a GPU's element lists."""


def elements(shown: Reading, *, schema: int = 13, clocks: int = CLOCKS) -> Cells:
    """Return the elements of a GPU in the XML of `nvidia-smi -q -x`, by version of its document type."""
    number = shown.celsius.removesuffix("C")
    event, power = ("throttle", "power_readings") if schema < 12 else ("event", "gpu_power_readings")
    old: Cells = {
        "power_state": shown.state,
        "power_draw": _watts(shown, ".85 W"),
        "power_limit": shown.cap.replace("W", ".00 W"),
        "enforced_power_limit": shown.cap.replace("W", ".00 W"),
    }
    new: Cells = {
        "average_power_draw": _watts(shown, ".85 W"),
        "instant_power_draw": _watts(shown, ".62 W"),
        "current_power_limit": shown.cap.replace("W", ".00 W"),
        "requested_power_limit": shown.cap.replace("W", ".00 W"),
    }
    reasons = {
        "gpu_idle": "Not Active",
        "sw_power_cap": "Active" if shown.capped else "Not Active",
        "display_clocks_setting": "Not Active",
    }
    return {
        "product_name": shown.name,
        "mig_mode": {"current_mig": shown.mig, "pending_mig": shown.mig},
        "mig_devices": "None",
        "serial": "N/A",
        "uuid": f"GPU-00000000-0000-0000-0000-{shown.index:012d}",
        "minor_number": str(shown.index),
        "pci": {
            "pci_bus_id": shown.bus,
            "pci_gpu_link_info": {
                "pcie_gen": {"max_link_gen": "4", "current_link_gen": "4"},
                "link_widths": {"max_link_width": "16x", "current_link_width": "8x"},
            },
            "tx_util": "439 KB/s",
            "rx_util": "292 KB/s",
        },
        "fan_speed": shown.fan.replace("%", " %"),
        "performance_state": shown.state,
        f"clocks_{event}_reasons": {f"clocks_{event}_reason_{name}": text for name, text in reasons.items()},
        "fb_memory_usage": {
            "total": shown.total.replace("MiB", " MiB"),
            "used": shown.used.replace("MiB", " MiB"),
            "free": "20000 MiB",
        },
        "bar1_memory_usage": {"total": "256 MiB", "used": "1 MiB"},
        "utilization": {"gpu_util": shown.busy.replace("%", " %"), "memory_util": shown.controller},
        "ecc_errors": {
            "volatile": {
                "sram_correctable": "1",
                "sram_uncorrectable": "2",
                "dram_correctable": "3",
                "dram_uncorrectable": "0",
            },
            "aggregate": {"sram_correctable": "100", "dram_correctable": "200"},
        },
        "temperature": {"gpu_temp": f"{number} C", "gpu_temp_max_threshold": "96 C", "memory_temp": "N/A"},
        power: old if schema < 12 else new,
        "module_power_readings": {"average_power_draw": "999.00 W"},
        "clocks": {"graphics_clock": "1980 MHz", "sm_clock": shown.clock, "mem_clock": "6251 MHz"},
        "applications_clocks": {"graphics_clock": "2040 MHz"},
        "max_clocks": {"graphics_clock": "2040 MHz", "sm_clock": "2040 MHz", "mem_clock": "6251 MHz"},
        "supported_clocks": {
            "supported_mem_clock": {
                "value": "6251 MHz",
                "supported_graphics_clock": [f"{2040 - 15 * step} MHz" for step in range(clocks)],
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
            texts = [value] if isinstance(value, str) else value
            lines += [f"{tab}<{name}>{text}</{name}>" for text in texts]
    return lines


def document(
    shown: Sequence[Reading] = (Reading(),),
    time: str | None = "",
    *,
    schema: int = 13,
    attached: int | None = None,
    clocks: int = CLOCKS,
) -> str:
    """Return what `nvidia-smi -q -x` writes."""
    lines = ['<?xml version="1.0" ?>', f'<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v{schema}.dtd">']
    lines += ["<nvidia_smi_log>", *([] if time is None else [f"\t<timestamp>{time or asctime()}</timestamp>"])]
    lines += ["\t<driver_version>590.48.01</driver_version>", "\t<cuda_version>13.1</cuda_version>"]
    lines += [f"\t<attached_gpus>{len(shown) if attached is None else attached}</attached_gpus>"]
    for each in shown:
        lines += [f'\t<gpu id="{each.bus}">', *_tags(elements(each, schema=schema, clocks=clocks), 2), "\t</gpu>", ""]
    return "\n".join([*lines, "</nvidia_smi_log>", ""])

"""What nvidia-smi writes for people and as XML, in its present and former shapes, made for tests."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
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


def gpu(index: int, **cells: str) -> Reading:
    """Return the reading of a GPU with a bus id of its own."""
    return replace(Reading(index=index, bus=f"00000000:{0x31 + index:02X}:00.0"), **cells)  # type: ignore[arg-type]  # cells of several types


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


OLD = Shape(
    widths=(31, 22, 22), banner=" NVIDIA-SMI 418.87.01    Driver Version: 418.87.01    CUDA Version: 10.1", lines=2
)
NARROW = Shape(widths=(31, 22, 22), banner=" NVIDIA-SMI 515.65.01    Driver Version: 515.65.01    CUDA Version: 11.7")
MIDDLE = Shape(
    widths=(41, 22, 22), banner=" NVIDIA-SMI 535.104.05             Driver Version: 535.104.05   CUDA Version: 12.2"
)
WIDE = Shape(
    widths=(41, 24, 22), banner=" NVIDIA-SMI 560.35.03              Driver Version: 560.35.03      CUDA Version: 12.6"
)
NEWEST = Shape(
    widths=(41, 24, 22), banner=" NVIDIA-SMI 610.57.04              KMD Version: 610.57.04     CUDA UMD Version: 13.3"
)
SHAPES = {"2 lines": OLD, "79": NARROW, "89": MIDDLE, "91": WIDE, "R610": NEWEST}


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


INSTANCES = """\
+-----------------------------------------------------------------------------------------+
| MIG devices:                                                                            |
+------------------+----------------------------------+-----------+-----------------------+
| GPU  GI  CI  MIG |                     Memory-Usage |        Vol|        Shared         |
|      ID  ID  Dev |                       BAR1-Usage | SM     Unc| CE ENC  DEC  OFA  JPG |
|                  |                                  |        ECC|                       |
|==================+==================================+===========+=======================|
|  0    1   0   0  |             107MiB / 40192MiB    | 42      0 |  3   0    2    0    0 |
|                  |                 0MiB / 65535MiB  |           |                       |
+------------------+----------------------------------+-----------+-----------------------+
"""


def loop(snapshots: int, gpus: int = 2, every: int = 5, shape: Shape = WIDE) -> str:
    """Return what `nvidia-smi -l` draws."""
    shown = [
        [gpu(index, busy=f"{(7 * second + index) % 101}%", watts=f"{50 + second % 20}W") for index in range(gpus)]
        for second in range(snapshots)
    ]
    return "".join(table(each, shape, asctime(every * second)) for second, each in enumerate(shown))


def _watts(shown: Reading, decimals: str) -> str:
    """Return a power with decimals: those it has, else the ones given."""
    number = shown.watts.removesuffix("W")
    return f"{number} W" if "." in number else shown.watts.replace("W", decimals)


Cells = dict[str, "str | list[str] | Cells"]


def sections(shown: Reading) -> Cells:
    """Return the cells of the text of `nvidia-smi -q` (driver 590), those that matter and others."""
    number = shown.celsius.removesuffix("C")
    return {
        "Product Name": shown.name,
        "Persistence Mode": "Enabled",
        "MIG Mode": {"Current": shown.mig, "Pending": shown.mig},
        "GPU UUID": f"GPU-00000000-0000-0000-0000-{shown.index:012d}",
        "Minor Number": str(shown.index),
        "PCI": {
            "Bus Id": shown.bus,
            "GPU Link Info": {
                "PCIe Generation": {"Max": "4", "Current": "4", "Device Current": "4", "Host Max": "N/A"},
                "Link Width": {"Max": "16x", "Current": "8x"},
            },
            "Tx Throughput": "439 KB/s",
            "Rx Throughput": "292 KB/s",
        },
        "Fan Speed": shown.fan.replace("%", " %"),
        "Performance State": shown.state,
        "Clocks Event Reasons": {
            "Idle": "Not Active",
            "Applications Clocks Setting": "Not Active",
            "SW Power Cap": "Active" if shown.capped else "Not Active",
            "HW Slowdown": "Not Active",
            "  HW Thermal Slowdown": "Not Active",
            "Sync Boost": "Not Active",
            "Display Clock Setting": "Not Active",
        },
        "Clocks Event Reasons Counters": {"SW Power Capping": "7000000 us", "HW Thermal Slowdown": "0 us"},
        "FB Memory Usage": {
            "Total": shown.total.replace("MiB", " MiB"),
            "Reserved": "479 MiB",
            "Used": shown.used.replace("MiB", " MiB"),
            "Free": "20000 MiB",
        },
        "BAR1 Memory Usage": {"Total": "256 MiB", "Used": "1 MiB", "Free": "255 MiB"},
        "Utilization": {"GPU": shown.busy.replace("%", " %"), "Memory": shown.controller, "Encoder": "0 %"},
        "ECC Errors": {
            "Volatile": {
                "SRAM Correctable": "1",
                "SRAM Uncorrectable Parity": "0",
                "SRAM Uncorrectable SEC-DED": "2",
                "DRAM Correctable": "3",
                "DRAM Uncorrectable": "0",
            },
            "Aggregate": {"SRAM Correctable": "100", "DRAM Correctable": "200"},
        },
        "Temperature": {
            "GPU Current Temp": f"{number} C",
            "GPU T.Limit Temp": "46 C",
            "GPU Shutdown T.Limit Temp": "-8 C",
            "Memory Current Temp": "48 C",
        },
        "GPU Power Readings": {
            "Average Power Draw": _watts(shown, ".85 W"),
            "Instantaneous Power Draw": _watts(shown, ".62 W"),
            "Current Power Limit": shown.cap.replace("W", ".00 W"),
            "Requested Power Limit": shown.cap.replace("W", ".00 W"),
            "Max Power Limit": "72.00 W",
        },
        "Module Power Readings": {"Average Power Draw": "999.00 W", "Current Power Limit": "N/A"},
        "Clocks": {"Graphics": "1980 MHz", "SM": shown.clock, "Memory": "6251 MHz", "Video": "1545 MHz"},
        "Applications Clocks": {"Graphics": "Requested functionality has been deprecated"},
        "Max Clocks": {"Graphics": "2040 MHz", "SM": "2040 MHz", "Memory": "6251 MHz", "Video": "1770 MHz"},
        "Processes": "None",
    }


def _indented(cells: Cells, depth: int) -> list[str]:
    lines = []
    for label, value in cells.items():
        begin = "    " * (depth + (len(label) - len(label.lstrip())) // 2) + label.strip()
        lines += [begin, *_indented(value, depth + 1)] if isinstance(value, dict) else [f"{begin:51}: {value}"]
    return lines


def query(shown: Sequence[Reading] = (Reading(),), time: str | None = "", attached: int | None = None) -> str:
    """Return what `nvidia-smi -q` writes."""
    lines = ["", "==============NVSMI LOG==============", ""]
    lines += [] if time is None else [f"{'Timestamp':51}: {time or asctime()}"]
    lines += [f"{'Driver Version':51}: 590.48.01", f"{'CUDA Version':51}: 13.1", ""]
    lines += [f"{'Attached GPUs':51}: {len(shown) if attached is None else attached}"]
    for each in shown:
        lines += [f"GPU {each.bus}", *_indented(sections(each), 1), ""]
    return "\n".join([*lines, ""])


def query_loop(snapshots: int, gpus: int = 2, every: int = 5) -> str:
    """Return what `nvidia-smi -q -l` writes."""
    shown = [[gpu(index, busy=f"{(7 * n + index) % 101}%") for index in range(gpus)] for n in range(snapshots)]
    return "".join(query(each, asctime(every * second)) for second, each in enumerate(shown))


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


def document_loop(snapshots: int, gpus: int = 2, every: int = 5) -> str:
    """Return what `nvidia-smi -q -x -l` writes."""
    shown = [[gpu(index, busy=f"{(7 * n + index) % 101}%") for index in range(gpus)] for n in range(snapshots)]
    return "".join(document(each, asctime(every * second)) for second, each in enumerate(shown))

"""What plain `nvidia-smi -l` and `nvidia-smi -q -x -l` would have written of readings."""

from datetime import datetime

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

"""The names W&B gives system metrics: `system.gpu.0.powerWatts`, with its prefix, another one or none.

From the SDK's own collector (wandb gpu_stats: `gpu.{i}.gpu`, `.memoryAllocatedBytes`, `.temp`, `.powerWatts`,
`.enforcedPowerLimitWatts`, `.smClock` and so on, in per cent, bytes, degrees, watts and MHz) and its reference of
system metrics. On GPUs of Hopper and newer it adds the ratios of NVML's GPM or of DCGM in per cent.

- `cpu` is what the process used, `cpu.{i}.cpu_percent` what each core did: only the latter speak of the machine.
- Errors are counted over the life of the GPU, not since the driver was loaded, and PCIe and NVLink in a unit that no
  reference states: both are kept as they are.
- `gpu.process.{i}` repeats what is said of GPUs the process uses.
- `/l:node1` behind a name stands for what W&B asked a dcgm-exporter on another machine; these are not read.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

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
ALLOCATED = "memoryAllocated"
"""Share of the memory installed that is used, in per cent."""
_PREFIX = re.compile(r"_?(?:system[./]_?)?")
_OF_GPU = re.compile(r"gpu\.(\d{1,4})\.(\w+)", re.ASCII)
_OF_CORE = re.compile(r"cpu\.\d{1,5}\.cpu_percent", re.ASCII)
_OF_HOST = re.compile(r"(?:cpu|memory_percent|disk\..*|network\..*|proc\..*|memory)", re.ASCII)
_TEXTS = {"name": "model"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricName:
    """What the name of a system metric means.

    Attributes:
        source: the name without its prefix.
        gpu: index of the GPU; None for the machine.
        target: metric, or attribute of a GPU; empty for one without a column of its own.
        unit: unit it counts in; None for a text.
        core: whether it is what one core did.
        allocated: whether it is the share of memory used.
    """

    source: str
    gpu: int | None = None
    target: str = ""
    unit: str | None = None
    core: bool = False
    allocated: bool = False


@lru_cache(4096)
def parse_metric_name(text: str) -> MetricName | None:
    """Return what a name means, None when it is not the name of a system metric."""
    plain = _PREFIX.sub("", text, count=1)
    of_gpu = _OF_GPU.fullmatch(plain)
    if of_gpu is not None:
        index, metric = int(of_gpu[1]), of_gpu[2]
        if metric in _TEXTS:
            return MetricName(source=metric, gpu=index, target=_TEXTS[metric])
        target, unit = _GPU.get(metric, ("", None))
        return MetricName(source=metric, gpu=index, target=target, unit=unit, allocated=metric == ALLOCATED)
    if _OF_CORE.fullmatch(plain):
        return MetricName(source=plain, core=True)
    return MetricName(source=plain) if _OF_HOST.fullmatch(plain) else None


def is_wandb_name(text: str) -> bool:
    """Return whether only W&B uses a name."""
    found = parse_metric_name(text)
    return found is not None and found.gpu is not None and (bool(found.target) or found.allocated)

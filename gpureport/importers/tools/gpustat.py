"""Reads the documents of `gpustat --json`: a time, and what NVML said of every GPU.

gpustat cuts watts and MiB to whole ones, so that power is up to 1 W and memory up to 1 MiB below what it was
(gpustat 1.1.1, core.py). The time is taken after all GPUs were asked, in the local time of the machine.
"""

import re
from functools import partial
from typing import ClassVar

from gpureport.importers.tools import Form, ToolLog
from gpureport.importers.tools.snapshots import Snapshots, read_snapshots

_GPU = {
    "uuid": ("uuid", ""),
    "name": ("model", ""),
    "temperature.gpu": ("gpu_temperature_celsius", "C"),
    "fan.speed": ("gpu_fan_ratio", "%"),
    "utilization.gpu": ("gpu_utilization_ratio", "%"),
    "utilization.enc": ("gpu_encoder_ratio", "%"),
    "utilization.dec": ("gpu_decoder_ratio", "%"),
    "power.draw": ("gpu_power_watts", "W"),
    "enforced.power.limit": ("gpu_power_limit_watts", "W"),
    "memory.used": ("gpu_memory_used_bytes", "MiB"),
    "memory.total": ("gpu_memory_total_bytes", "MiB"),
}


def _begins(text: str) -> bool:
    return bool(re.search(r'"query_time"\s*:', text) and re.search(r'"gpus"\s*:\s*\[', text))


class Gpustat(ToolLog):
    """The importer of gpustat's JSON."""

    kind: ClassVar[str] = "gpustat"
    title: ClassVar[str] = "gpustat"
    recognised_by: ClassVar[str] = "A JSON document with `query_time` and `gpus`."
    sample: ClassVar[str] = "gpustat/gpustat.json"
    forms: ClassVar[tuple[Form, ...]] = (
        ("gpustat --json", _begins, partial(read_snapshots, shape=Snapshots("gpus", "query_time", _GPU, "hostname"))),
    )

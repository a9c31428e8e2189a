"""Headings that people write themselves over the values of nvidia-smi, in nvidia-smi's own words.

Only what cannot mean anything else is taken: `gpu_util%`, `mem_used_MB`, `temp_C`. Scripts that wrap nvidia-smi
with `nounits` write such headings; what they call MB are the MiB that nvidia-smi counts.
"""

import re
from dataclasses import replace

from gpureport.importers.devices.identification import IDENTITY
from gpureport.importers.logs.nvidia_smi.query import fields
from gpureport.importers.values.cells import Column

_UNITS = {
    "%": "%",
    "pct": "%",
    "percent": "%",
    "mb": "MiB",
    "mib": "MiB",
    "gb": "GiB",
    "gib": "GiB",
    "w": "W",
    "watt": "W",
    "watts": "W",
    "mw": "mW",
    "c": "C",
    "°c": "C",
    "celsius": "C",
    "mhz": "MHz",
}
_FIELDS = {
    "utilization.gpu": ("gpu_util", "gpu_utilization", "gpu_utilisation", "util_gpu", "utilization_gpu"),
    "utilization.memory": ("mem_util", "memory_util", "mem_utilization", "gpu_mem_util", "utilization_memory"),
    "memory.used": ("mem_used", "memory_used", "gpu_mem_used", "gpu_memory_used", "vram_used"),
    "memory.free": ("mem_free", "memory_free", "gpu_mem_free", "gpu_memory_free", "vram_free"),
    "memory.total": ("mem_total", "memory_total", "gpu_mem_total", "gpu_memory_total", "vram_total"),
    "temperature.gpu": ("temp", "temperature", "gpu_temp", "gpu_temperature", "temperature_gpu"),
    "power.draw": ("power", "power_draw", "gpu_power", "gpu_power_draw"),
    "power.limit": ("power_limit", "power_cap", "gpu_power_limit"),
    "clocks.current.sm": ("sm_clock", "clock_sm", "clocks_sm", "gpu_clock"),
    "clocks.current.memory": ("mem_clock", "memory_clock", "clock_mem", "clocks_mem"),
    "fan.speed": ("fan", "fan_speed", "gpu_fan"),
    "index": ("gpu", "gpu_id", "gpu_index", "gpu_idx", "device_id"),
    "name": ("gpu_name", "gpu_model"),
}
_STEMS = {stem: name for name, stems in _FIELDS.items() for stem in stems}
_WRITTEN = re.compile(rf"(\w+?)[ _]*[\[(]?({'|'.join(map(re.escape, _UNITS))})?[\])]?", re.IGNORECASE)
_LONGEST = 100
"""Letters of a heading at most; in longer words, units are looked for at too many places."""


def translated(heading: str) -> str | None:
    """Return a hand-written heading as nvidia-smi would have it, None when it is none that is known."""
    match = _WRITTEN.fullmatch(heading.strip()) if len(heading) <= _LONGEST else None
    name = _STEMS.get(match[1].lower()) if match else None
    if match is None or name is None:
        return None
    if match[2] and name in IDENTITY:
        # `gpu_mb` is no index
        return None
    # degrees have no unit in nvidia-smi's headings
    unit = _UNITS[match[2].lower()] if match[2] else ""
    return f"{name} [{unit}]" if unit else name


def column(heading: str) -> Column | None:
    """Return how the column under a heading is read, hand-written or not; None when the text is no heading."""
    own = fields.column(heading)
    if own is not None and not own.target.startswith("extra_"):
        return own
    name = translated(heading)
    written = None if name is None else fields.column(name)
    return own if written is None else replace(written, heading=heading.strip(), translated=True)


def about_gpus(heading: str) -> bool:
    """Return whether a hand-written heading names a GPU or its memory, not just any power or temperature."""
    return (
        translated(heading) is not None and re.match(r"gpu|vram|util|mem_util|sm_", heading.strip().lower()) is not None
    )

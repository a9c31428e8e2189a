"""What a log says about each GPU: its names, its driver, its limits and sizes."""

from dataclasses import dataclass, field

import numpy as np

from gpureport import gpus
from gpureport.columns import IntArray, present
from gpureport.importers.devices.column_values import Values
from gpureport.recording import Device

IDENTITY = {"uuid": "uuid", "pci.bus_id": "bus_id", "serial": "serial", "index": "index", "name": "model"}
"""What tells GPUs apart, the surest first: by nvidia-smi's name, the column of texts it is kept in."""
ATTRIBUTES = {"driver_version": "driver", "mig.mode.current": "mig", **IDENTITY}
"""What describes a GPU instead of being a series."""
_LIMITS = ("gpu_power_limit_watts", "gpu_power_limit_requested_watts")


@dataclass(slots=True)
class GpuDescription:
    """What was seen of one GPU so far."""

    index: int
    attributes: dict[str, str] = field(default_factory=dict)
    extremes: dict[str, float] = field(default_factory=dict)
    models: dict[str, None] = field(default_factory=dict)


def first_text(values: Values, rows: IntArray) -> str | None:
    """Return the first text that some rows hold."""
    valid = values.valid[rows]
    return (values.texts or [])[values.data[rows[np.argmax(valid)]]] if valid.any() else None


def note_attributes(seen: GpuDescription, rows: IntArray, data: dict[str, Values]) -> list[tuple[str, str]]:
    """Keep what some rows say of a GPU: each attribute once, limits and sizes at their extremes.

    Returns:
        the attributes that were not known before.
    """
    fresh = []
    for name in ATTRIBUTES.values():
        values = data.get(name) if name not in seen.attributes else None
        text = None if values is None else first_text(values, rows)
        if text is not None:
            seen.attributes[name] = text
            fresh.append((name, text))
    models = data.get("model")
    if models is not None:
        seen.models |= {(models.texts or [])[code]: None for code in present(models.data[rows[models.valid[rows]]])}
    for name, pick in (
        ("gpu_memory_total_bytes", max),
        ("gpu_memory_reserved_bytes", max),
        ("gpu_power_limit_default_watts", max),
        *((limit, min) for limit in _LIMITS),
    ):
        values = data.get(name)
        held = np.zeros(0) if values is None else values.data[rows][values.valid[rows]]
        if len(held):
            value = float(held.max() if pick is max else held.min())
            seen.extremes[name] = pick(seen.extremes.get(name, value), value)
    return fresh


def make_device(seen: GpuDescription, *, averaged: bool) -> Device:
    """Return a GPU as a device; `averaged` says that power came from `power.draw.average`."""
    attributes, extremes = seen.attributes, seen.extremes
    limit = next((extremes[name] for name in _LIMITS if name in extremes), None)
    memory, reserved = (extremes.get(f"gpu_memory_{part}_bytes") for part in ("total", "reserved"))
    gpu = gpus.find_gpu(attributes.get("model"))
    return Device(
        id=f"gpu:{seen.index}",
        index=seen.index,
        uuid=attributes.get("uuid"),
        bus_id=attributes.get("bus_id"),
        serial=attributes.get("serial"),
        model=attributes.get("model"),
        memory_total_bytes=None if memory is None else int(memory),
        memory_reserved_bytes=None if reserved is None else int(reserved),
        power_limit_watts=limit,
        power_limit_default_watts=extremes.get("gpu_power_limit_default_watts"),
        power_window="1 s" if averaged else "unknown" if gpu is None else gpu.power_window,
        driver=attributes.get("driver"),
        mig=None if "mig" not in attributes else attributes["mig"] == "Enabled",
    )

"""The GPUs and hosts of a run, as described besides their series."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpureport.importers.trackers.neptune import run_labels
from gpureport.importers.trackers.neptune.process_content import ProcessContent
from gpureport.importers.trackers.neptune_hardware.device_rows import DeviceKey, RowsByDevice
from gpureport.importers.trackers.neptune_hardware.series_meanings import GIB
from gpureport.recording import Device

_MEMORY = "gpu_memory_used_bytes"
_POWER = "gpu_power_watts"
_TOTAL = "gpu_memory_total_bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceInventory:
    """The devices of a run.

    Attributes:
        devices: GPUs by index, then hosts.
        given: whether a person stated the memory of the GPUs.
        largest: whether their memory is that of the largest GPU of their machine.
        unknown: whether the memory of any GPU is not known.
    """

    devices: tuple[Device, ...]
    given: bool
    largest: bool
    unknown: bool


def build_inventory(processes: Sequence[ProcessContent], arranged: RowsByDevice, given: int | None) -> DeviceInventory:
    """Return the devices of a run.

    Args:
        processes: what its processes wrote.
        arranged: its rows by device.
        given: bytes of memory of each GPU, if a person states it.
    """
    devices = tuple(_build_device(processes, arranged, place, given) for place in arranged.blocks)
    gpus = [device for device in devices if device.index is not None]
    highest = any(_highest_stated(processes, place, _MEMORY) for place in arranged.blocks if place[1] is not None)
    return DeviceInventory(
        devices=devices,
        given=given is not None and bool(gpus),
        largest=given is None and highest,
        unknown=any(device.memory_total_bytes is None for device in gpus),
    )


def _build_device(
    processes: Sequence[ProcessContent], arranged: RowsByDevice, place: DeviceKey, given: int | None
) -> Device:
    node, gpu = place
    shown = node if arranged.several and node else None
    if gpu is None:
        return Device(id=arranged.id(place), node=shown)
    highest, limit = _highest_stated(processes, place, _MEMORY), _highest_stated(processes, place, _POWER)
    recorded = [block.values[_TOTAL] for block in arranged.blocks[place] if _TOTAL in block.values]
    total = round(float(recorded[0][0])) if recorded else None
    return Device(
        id=arranged.id(place),
        index=gpu,
        node=shown,
        model=run_labels.find_gpu_model([each.content for each in processes], arranged.blocks[place], gpu),
        memory_total_bytes=given or total or (round(highest * GIB) if highest else None),
        power_limit_watts=limit or None,
    )


def _highest_stated(processes: Sequence[ProcessContent], place: DeviceKey, metric: str) -> float | None:
    """Return the maximum that the client stated for a gauge: that of the largest GPU of the machine."""
    found = [
        each.content.highest[path]
        for each in processes
        for space in each.spaces
        if run_labels.find_node(each.content, space) == place[0]
        for path, meaning in space.leaves.items()
        if meaning.metric == metric and path in each.content.highest
    ]
    return max(found, default=None)

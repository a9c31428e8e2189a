"""Names of MLflow's system metrics and what they become: the one mapping table.

A name is `system/`, the node where there are several, `gpu_` and the GPU's number for a GPU, and what was measured.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_PERCENT = 0.01
_MEGA, _GIGA = 1e6, 1e9


@dataclass(frozen=True, slots=True)
class Target:
    """What a metric becomes.

    Attributes:
        column: column of the series.
        factor: what its values are multiplied by.
        counts: whether it counts from when the monitor started, and becomes a rate.
    """

    column: str
    factor: float
    counts: bool = False


GPU = {
    "utilization_percentage": Target("gpu_utilization_ratio", _PERCENT),
    "memory_usage_megabytes": Target("gpu_memory_used_bytes", _MEGA),
    "memory_usage_gigabytes": Target("gpu_memory_used_bytes", _GIGA),
    "memory_usage_percentage": Target("gpu_memory_used_ratio", _PERCENT),
    "memory_busy_time_percent": Target("gpu_memory_controller_ratio", _PERCENT),
    "power_usage_watts": Target("gpu_power_watts", 1.0),
    "power_usage_percentage": Target("gpu_power_ratio", _PERCENT),
}
"""What is measured of a GPU; gigabytes are AMD's."""
HOST = {
    "cpu_utilization_percentage": Target("cpu_utilization_ratio", _PERCENT),
    "system_memory_usage_megabytes": Target("host_memory_used_bytes", _MEGA),
    "system_memory_usage_percentage": Target("host_memory_used_ratio", _PERCENT),
    "disk_usage_megabytes": Target("host_disk_used_bytes", _MEGA),
    "disk_usage_percentage": Target("host_disk_used_ratio", _PERCENT),
    "disk_available_megabytes": Target("host_disk_free_bytes", _MEGA),
    "network_receive_megabytes": Target("host_network_receive_bytes_per_second", _MEGA, counts=True),
    "network_transmit_megabytes": Target("host_network_transmit_bytes_per_second", _MEGA, counts=True),
}
"""What is measured of a machine."""
AMD = "memory_usage_gigabytes"
"""What only the monitor of AMD's GPUs records; it takes 500 W for the limit of every GPU."""
PREFIX = "system/"
_KNOWN = re.compile(
    rf"^{PREFIX}(?:(?P<node>.+)/)?"
    rf"(?:gpu_(?P<index>\d+)_(?P<gpu>{'|'.join(GPU)})|(?P<host>{'|'.join(HOST)}))$"
)
_OTHER = re.compile(rf"^{PREFIX}(?:(?P<node>.+)/)?(?:gpu_(?P<index>\d+)_)?(?P<rest>[^/]+)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """What the name of a system metric says.

    Attributes:
        key: the name.
        node: node it was measured on, None where there is one.
        index: number of the GPU, None for the machine.
        what: what was measured.
        target: what it becomes, None for what has no place of its own.
    """

    key: str
    node: str | None
    index: int | None
    what: str
    target: Target | None


def names(keys: Iterable[str]) -> list[Name]:
    """Return what the names of system metrics say; other names are left out.

    A part before the last slash of a name that is not known is a node only where a known name says so.
    """
    system = [key for key in keys if key.startswith(PREFIX)]
    known = {key: match for key in system if (match := _KNOWN.match(key))}
    nodes = {match["node"] for match in known.values()}
    return [_known(key, known[key]) if key in known else _other(key, nodes) for key in system]


def _known(key: str, match: re.Match[str]) -> Name:
    if match["host"]:
        return Name(key=key, node=match["node"], index=None, what=match["host"], target=HOST[match["host"]])
    what = match["gpu"]
    return Name(key=key, node=match["node"], index=int(match["index"]), what=what, target=GPU[what])


def _other(key: str, nodes: set[str | None]) -> Name:
    match = _OTHER.match(key)
    if match is None or match["node"] not in {*nodes, None}:
        return Name(key=key, node=None, index=None, what=key.removeprefix(PREFIX), target=None)
    index = None if match["index"] is None else int(match["index"])
    return Name(key=key, node=match["node"], index=index, what=match["rest"], target=None)

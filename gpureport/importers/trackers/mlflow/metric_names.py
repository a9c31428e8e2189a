"""Names of MLflow's system metrics, and the columns they become: the one mapping table.

A name is `system/`, the node where there are several, `gpu_` and the GPU's number for a GPU, and what was measured.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_PERCENT = 0.01
_MEGA, _GIGA = 1e6, 1e9


@dataclass(frozen=True, slots=True)
class MetricTarget:
    """The column a metric becomes.

    Attributes:
        column: column of the series.
        factor: what its values are multiplied by.
        counts: whether it is a counter since the start of the monitor, which becomes a rate.
    """

    column: str
    factor: float
    counts: bool = False


GPU_TARGETS = {
    "utilization_percentage": MetricTarget("gpu_utilization_ratio", _PERCENT),
    "memory_usage_megabytes": MetricTarget("gpu_memory_used_bytes", _MEGA),
    "memory_usage_gigabytes": MetricTarget("gpu_memory_used_bytes", _GIGA),
    "memory_usage_percentage": MetricTarget("gpu_memory_used_ratio", _PERCENT),
    "memory_busy_time_percent": MetricTarget("gpu_memory_controller_ratio", _PERCENT),
    "power_usage_watts": MetricTarget("gpu_power_watts", 1.0),
    "power_usage_percentage": MetricTarget("gpu_power_ratio", _PERCENT),
}
"""What is measured of a GPU; gigabytes are AMD's."""
HOST_TARGETS = {
    "cpu_utilization_percentage": MetricTarget("cpu_utilization_ratio", _PERCENT),
    "system_memory_usage_megabytes": MetricTarget("host_memory_used_bytes", _MEGA),
    "system_memory_usage_percentage": MetricTarget("host_memory_used_ratio", _PERCENT),
    "disk_usage_megabytes": MetricTarget("host_disk_used_bytes", _MEGA),
    "disk_usage_percentage": MetricTarget("host_disk_used_ratio", _PERCENT),
    "disk_available_megabytes": MetricTarget("host_disk_free_bytes", _MEGA),
    "network_receive_megabytes": MetricTarget("host_network_receive_bytes_per_second", _MEGA, counts=True),
    "network_transmit_megabytes": MetricTarget("host_network_transmit_bytes_per_second", _MEGA, counts=True),
}
"""What is measured of a machine."""
AMD_MEMORY = "memory_usage_gigabytes"
"""Recorded for AMD GPUs only; their monitor assumes a limit of 500 W for every GPU."""
PREFIX = "system/"
_KNOWN = re.compile(
    rf"^{PREFIX}(?:(?P<node>.+)/)?"
    rf"(?:gpu_(?P<index>\d+)_(?P<gpu>{'|'.join(GPU_TARGETS)})|(?P<host>{'|'.join(HOST_TARGETS)}))$"
)
_OTHER = re.compile(rf"^{PREFIX}(?:(?P<node>.+)/)?(?:gpu_(?P<index>\d+)_)?(?P<rest>[^/]+)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricName:
    """The parsed name of a system metric.

    Attributes:
        key: the name.
        node: node it was measured on; None if there is only one.
        index: number of the GPU; None for the machine.
        what: what was measured.
        target: the column it becomes; None without one.
    """

    key: str
    node: str | None
    index: int | None
    what: str
    target: MetricTarget | None


def parse_names(keys: Iterable[str]) -> list[MetricName]:
    """Return the parsed names of system metrics; other names are left out.

    In an unknown name, the part before the last slash is a node only if a known name has that node.
    """
    system = [key for key in keys if key.startswith(PREFIX)]
    known = {key: match for key in system if (match := _KNOWN.match(key))}
    nodes = {match["node"] for match in known.values()}
    return [_known_name(key, known[key]) if key in known else _other_name(key, nodes) for key in system]


def _known_name(key: str, match: re.Match[str]) -> MetricName:
    if match["host"]:
        return MetricName(
            key=key, node=match["node"], index=None, what=match["host"], target=HOST_TARGETS[match["host"]]
        )
    what = match["gpu"]
    return MetricName(key=key, node=match["node"], index=int(match["index"]), what=what, target=GPU_TARGETS[what])


def _other_name(key: str, nodes: set[str | None]) -> MetricName:
    match = _OTHER.match(key)
    if match is None or match["node"] not in {*nodes, None}:
        return MetricName(key=key, node=None, index=None, what=key.removeprefix(PREFIX), target=None)
    index = None if match["index"] is None else int(match["index"])
    return MetricName(key=key, node=match["node"], index=index, what=match["rest"], target=None)

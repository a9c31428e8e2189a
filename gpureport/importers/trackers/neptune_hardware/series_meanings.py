"""The meaning of Neptune's hardware series: the gauges of its client, and those of its monitoring recipe."""

import re
from dataclasses import dataclass

from gpureport.importers.trackers.neptune_hardware.dropped_zeros import GAUGE_NAME
from gpureport.metrics import BY_NAME
from gpureport.recording import HOST

GIB, MIB = 2**30, 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesMeaning:
    """What a series measures.

    Attributes:
        metric: column of the series.
        factor: what a value is multiplied by to be in the base unit.
        gpu: number of the GPU; None for the host.
        rate: whether a value counts since the one before, and becomes a rate.
        primes: whether the first value of a process is meaningless.
    """

    metric: str
    factor: float
    gpu: int | None = None
    rate: bool = False
    primes: bool = False

    @property
    def device(self) -> str:
        """Id of the device, without its node."""
        return HOST if self.gpu is None else f"gpu:{self.gpu}"

    @property
    def known(self) -> bool:
        """Whether there is such a metric."""
        return self.metric in BY_NAME


_GAUGES = {
    "cpu": ("cpu_utilization_ratio", 0.01),
    # the client says GB and counts 2**30 bytes
    "memory": ("host_memory_used_bytes", GIB),
    "gpu": ("gpu_utilization_ratio", 0.01),
    "gpu_memory": ("gpu_memory_used_bytes", GIB),
    "gpu_power": ("gpu_power_watts", 1.0),
}
"""Gauge of the client to metric and factor."""

_RECIPE_HOST = {
    "cpu/percent": SeriesMeaning(metric="cpu_utilization_ratio", factor=0.01, primes=True),
    "memory/virtual_used_GiB": SeriesMeaning(metric="host_memory_used_bytes", factor=GIB),
    "memory/virtual_utilized_percent": SeriesMeaning(metric="host_memory_used_ratio", factor=0.01),
    "disk/read_MiB": SeriesMeaning(metric="host_disk_read_bytes_per_second", factor=MIB, rate=True),
    "disk/write_MiB": SeriesMeaning(metric="host_disk_write_bytes_per_second", factor=MIB, rate=True),
    "network/recv_MiB": SeriesMeaning(metric="host_network_receive_bytes_per_second", factor=MIB, rate=True),
    "network/sent_MiB": SeriesMeaning(metric="host_network_transmit_bytes_per_second", factor=MIB, rate=True),
}
_RECIPE_GPU = {
    "gpu_utilization_percent": ("gpu_utilization_ratio", 0.01),
    "memory_used_MiB": ("gpu_memory_used_bytes", MIB),
    "memory_total_MiB": ("gpu_memory_total_bytes", MIB),
    "power_usage_watts": ("gpu_power_watts", 1.0),
    "temperature_celsius": ("gpu_temperature_celsius", 1.0),
    "sm_utilization_percent": ("process_sm_utilization_ratio", 0.01),
}
"""Leaf of the recipe below `gpu/<i>/` to metric and factor.

Its memory_utilized_percent is the share that is full, not nvidia-smi's utilization.memory; like memory_free_MiB it
follows from used and total.
"""
DERIVED_LEAVES = ("memory_free_MiB", "memory_utilized_percent")
_RECIPE_LEAF = re.compile(r"gpu/(?P<index>\d+)/(?P<leaf>[^/]+)")


def gauge_meaning(leaf: str) -> SeriesMeaning | None:
    """Return what a gauge of the client means, by its name after the namespace; a bare `gpu` is number 0."""
    match = GAUGE_NAME.match(leaf)
    if match is None or (match["index"] and match["what"] in {"cpu", "memory"}):
        return None
    metric, factor = _GAUGES[match["what"]]
    gpu = None if match["what"] in {"cpu", "memory"} else int(match["index"] or 0)
    return SeriesMeaning(metric=metric, factor=factor, gpu=gpu)


def recipe_meaning(leaf: str) -> SeriesMeaning | None:
    """Return what a series of the monitoring recipe means, by its name after `monitoring/`."""
    match = _RECIPE_LEAF.fullmatch(leaf)
    if match is None:
        return _RECIPE_HOST.get(leaf)
    metric, factor = _RECIPE_GPU.get(match["leaf"], ("", 1.0))
    return SeriesMeaning(metric=metric, factor=factor, gpu=int(match["index"])) if metric else None

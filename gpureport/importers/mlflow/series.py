"""MLflow's system metrics as series of devices.

MLflow's monitor reads a value, waits for its interval, and logs the value with the time of logging: every system metric
is late by an interval that is stored nowhere. A value was read when the one before it was logged, the first one when
the run started.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.importers.columns import extra_name
from gpureport.importers.mlflow.stores import Points
from gpureport.importers.protocol.reject_reasons import NOT_SELECTED, TWICE_AT_ONCE
from gpureport.importers.tracker_series import build_device_table
from gpureport.recording import HOST, Device

PREFIX = "system/"
FIRST_VALUE = "first value of a monitor"
"""Why a value that covers the time before a monitor began is left out."""
_GPU = {
    "utilization_percentage": ("gpu_utilization_ratio", 0.01),
    "memory_usage_megabytes": ("gpu_memory_used_bytes", 1e6),
    "memory_usage_gigabytes": ("gpu_memory_used_bytes", 1e9),
    "memory_usage_percentage": ("gpu_memory_used_ratio", 0.01),
    "memory_busy_time_percent": ("gpu_memory_controller_ratio", 0.01),
    "power_usage_watts": ("gpu_power_watts", 1.0),
    "power_usage_percentage": ("gpu_power_ratio", 0.01),
}
"""What is measured of a GPU: the column it becomes, and what its values are multiplied by."""
_HOST = {
    "cpu_utilization_percentage": ("cpu_utilization_ratio", 0.01),
    "system_memory_usage_megabytes": ("host_memory_used_bytes", 1e6),
    "system_memory_usage_percentage": ("host_memory_used_ratio", 0.01),
    "disk_usage_megabytes": ("host_disk_used_bytes", 1e6),
    "disk_usage_percentage": ("host_disk_used_ratio", 0.01),
    "disk_available_megabytes": ("host_disk_free_bytes", 1e6),
    "network_receive_megabytes": ("host_network_receive_bytes_per_second", 1e6),
    "network_transmit_megabytes": ("host_network_transmit_bytes_per_second", 1e6),
}
"""What is measured of a machine; the last two count since the monitor began, and become rates."""
_COUNTS = ("network_receive_megabytes", "network_transmit_megabytes")
_NAME = re.compile(rf"{PREFIX}(?:(?P<node>.+)/)?(?:gpu_(?P<gpu>[0-9]{{1,9}})_)?(?P<what>[^/]+)")
_LATE = 1.5
"""Between ticks more than this many medians apart, no monitor ran (pragmatic)."""


class Name(NamedTuple):
    """A name of a system metric: its node (None for the only one), GPU (None for the machine), and what is measured."""

    key: str
    node: str | None
    gpu: int | None
    what: str

    @property
    def target(self) -> tuple[str, float] | None:
        """The column it becomes and the factor; None for one without a place of its own."""
        return (_HOST if self.gpu is None else _GPU).get(self.what)


def parse_names(keys: Iterable[str]) -> list[Name]:
    """Return the parsed names of system metrics; other names are left out.

    In an unknown name, the part before the last slash is a node only if a known name has that node.
    """
    found = []
    for key in keys:
        if match := _NAME.fullmatch(key):
            found.append(Name(key, match["node"], int(match["gpu"]) if match["gpu"] else None, match["what"]))
    nodes = {None, *(name.node for name in found if name.target)}
    return [name if name.node in nodes else Name(name.key, None, None, name.key.removeprefix(PREFIX)) for name in found]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What was logged of a node: a value for each tick and name, NaN if there is none; times in milliseconds.

    `begins` marks the ticks at which a process began to record, `twice` counts points at a tick that has one already,
    `together` the processes that logged under the same names at the same time.
    """

    name: str | None
    logged: IntArray
    read: IntArray
    begins: BoolArray
    values: dict[Name, FloatArray]
    twice: int
    together: int


def read_nodes(points: Mapping[str, Points], started: int | None) -> list[Node]:
    """Return the nodes of a run that started at a time."""
    names = [name for name in parse_names(points) if len(points[name.key].times)]
    nodes = dict.fromkeys(name.node for name in names)
    return [_read_node(node, [name for name in names if name.node == node], points, started) for node in nodes]


def _read_node(node: str | None, names: Sequence[Name], points: Mapping[str, Points], started: int | None) -> Node:
    times, steps = (np.concatenate([getattr(points[name.key], part) for name in names]) for part in ("times", "steps"))
    ticks, first = np.unique(times, return_index=True)
    writers = _assign_writers(steps[first])
    order = np.argsort(writers, kind="stable")
    logged, begins = ticks[order], np.diff(writers[order], prepend=-1) != 0
    monitors = np.split(logged, np.flatnonzero(begins)[1:])
    # only the first one began with the run
    read = [_find_read_times(each, None if place else started) for place, each in enumerate(monitors)]
    spans = sorted((int(each[0]), int(each[-1])) for each in monitors)
    places, values, twice = np.argsort(order), {}, 0
    for name in names:
        own = points[name.key]
        rows = places[np.searchsorted(ticks, own.times)]
        values[name] = np.full(len(ticks), np.nan)
        values[name][rows] = own.values
        twice += len(rows) - len(np.unique(rows))
        if name.target and name.what in _COUNTS:
            # a count that falls is that of another process
            begins |= np.diff(values[name], prepend=np.nan) < 0
    return Node(
        name=node,
        logged=logged,
        read=np.concatenate(read),
        begins=begins,
        values=values,
        twice=twice,
        together=1 + sum(later[0] < earlier[1] for earlier, later in pairwise(spans)),
    )


def _assign_writers(steps: IntArray) -> IntArray:
    """Return the number of the monitor that logged each tick, from 0, by the steps of the ticks.

    Every monitor counts its ticks as steps. If several log the same names, steps repeat. A tick belongs to the monitor
    whose last step is the one before, else to one with a lower step; of several, to the one that waited longest.
    """
    found = np.zeros(len(steps), dtype=np.int64)
    if len(np.unique(steps)) == len(steps):
        return found
    last: list[int] = []
    latest: list[int] = []
    for place, step in enumerate(steps.tolist()):
        waiting = [writer for writer, known in enumerate(last) if known == step - 1]
        waiting = waiting or [writer for writer, known in enumerate(last) if known < step]
        writer = min(waiting, key=latest.__getitem__, default=len(last))
        last[writer : writer + 1], latest[writer : writer + 1] = [step], [place]
        found[place] = writer
    return found


def _find_read_times(logged: IntArray, started: int | None) -> IntArray:
    usual = int(np.median(np.diff(logged))) if len(logged) > 1 else 0
    before = np.append(logged[0] - usual if started is None else min(started, logged[0]), logged[:-1])
    return np.where(logged - before > _LATE * usual, logged - usual, before) if usual else before


@dataclass(slots=True)
class Devices:
    """Devices with their rows, and what became of the points: counted by reason, `absent` by name and reason."""

    devices: list[Device] = field(default_factory=list)
    tables: dict[str, pa.Table] = field(default_factory=dict)
    rejected: Counter[str] = field(default_factory=Counter)
    absent: Counter[tuple[str, str]] = field(default_factory=Counter)
    derived: list[str] = field(default_factory=list)


def read_devices(nodes: Sequence[Node], gpus: tuple[int, ...] | None, *, as_logged: bool) -> Devices:
    """Return the devices of a run, GPUs by number before the machines.

    Args:
        nodes: what was logged.
        gpus: numbers of the GPUs to keep; all when None.
        as_logged: whether rows keep the time of logging instead of the time of reading.
    """
    found = Devices()
    found.rejected[NOT_SELECTED] = 0
    found.rejected[TWICE_AT_ONCE] = sum(node.twice for node in nodes)
    keys = {(name.gpu is None, place, name.gpu or 0) for place, node in enumerate(nodes) for name in node.values}
    for is_host, place, number in sorted(keys):
        node, gpu = nodes[place], None if is_host else number
        own = {name: values for name, values in node.values.items() if name.gpu == gpu}
        if not is_host and gpus is not None and gpu not in gpus:
            found.rejected[NOT_SELECTED] += sum(int((~np.isnan(values)).sum()) for values in own.values())
            continue
        columns = _convert(node, own, found)
        if not all(np.isnan(values).all() for values in columns.values()):
            device = _describe_device(node.name, gpu, columns, found)
            found.devices.append(device)
            times = node.logged if as_logged else node.read
            found.tables[device.id] = build_device_table(device.id, times * 1000, columns)
    return found


def _convert(node: Node, logged: Mapping[Name, FloatArray], found: Devices) -> dict[str, FloatArray]:
    """Return the values of a device by column, in base units.

    Those of the time before a monitor began are left out, and a count becomes its rise a second.
    """
    # gigabytes are AMD's; their monitor takes 500 W for the limit of every GPU
    amd = any(name.gpu is not None and name.what == "memory_usage_gigabytes" for name in logged)
    columns: dict[str, FloatArray] = {}
    for name, values in logged.items():
        if name.target is None or (amd and name.what == "power_usage_percentage"):
            columns[extra_name(name.what)] = values
            continue
        column, factor = name.target
        if name.what in {*_COUNTS, "cpu_utilization_percentage"}:
            found.absent[name.key, FIRST_VALUE] += int((~np.isnan(values[node.begins])).sum())
            if name.what in _COUNTS:
                seconds = np.diff(node.read, prepend=node.read[0]) / 1e3
                values = np.diff(values, prepend=np.nan) / np.where(seconds > 0, seconds, np.nan)  # noqa: PLW2901
            values = np.where(node.begins, np.nan, values)  # noqa: PLW2901
        columns[column] = values * factor
    return columns


def _describe_device(node: str | None, gpu: int | None, columns: Mapping[str, FloatArray], found: Devices) -> Device:
    own, scope = (HOST, "host") if gpu is None else (f"gpu:{gpu}", "gpu")
    key = own if node is None else f"{node}/{own}"
    memory = _derive_total(columns.get(f"{scope}_memory_used_bytes"), columns.get(f"{scope}_memory_used_ratio"))
    limit = _derive_total(columns.get("gpu_power_watts"), columns.get("gpu_power_ratio"))
    if memory is not None:
        found.derived.append(f"the memory of {key} ({memory / 2**30:.1f} GiB)")
    if limit is not None:
        found.derived.append(f"the power limit of {key} ({limit:.0f} W)")
    total = None if memory is None else round(memory)
    return Device(id=key, index=gpu, node=node, memory_total_bytes=total, power_limit_watts=limit)


def _derive_total(values: FloatArray | None, shares: FloatArray | None) -> float | None:
    """Return the total that values are shares of, by the largest shares; None where rounding leaves it open.

    MLflow rounds per cent to one decimal; a total that may be wrong by more than 2 % is not derived (pragmatic).
    """
    if values is None or shares is None:
        return None
    known = ~np.isnan(values) & (np.nan_to_num(shares) > 0)
    if not known.any() or (largest := float(shares[known].max())) * 0.02 < 0.0005:  # noqa: PLR2004 - as above
        return None
    surest = known & (np.nan_to_num(shares) >= 0.9 * largest)
    return float(np.median(values[surest] / shares[surest]))

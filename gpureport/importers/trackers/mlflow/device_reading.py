"""The devices of a run and their series, from what its monitors logged."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gpureport.columns import FloatArray, IntArray, floats
from gpureport.importers.trackers.device_tables import build_device_table
from gpureport.importers.trackers.mlflow.derived_totals import derive_total
from gpureport.importers.trackers.mlflow.metric_names import AMD_MEMORY, MetricName
from gpureport.importers.trackers.mlflow.monitors import Monitor, Node
from gpureport.importers.trackers.mlflow.neptune_runs import NeptuneDevices
from gpureport.importers.values.cells import extra_name
from gpureport.recording import HOST, Device

if TYPE_CHECKING:
    import pyarrow as pa

FIRST_VALUE = "first value of a monitor"
"""Why a value that covers the time before a monitor began is left out."""
NOT_A_NUMBER = "not a number"
_AMD_RATIO = "extra_power_usage_percentage"


@dataclass(slots=True)
class ReadDevices:
    """Devices with their rows, and what became of the points.

    Attributes:
        devices: GPUs and machines.
        tables: rows by device id.
        points: points that were read.
        left_out: points of GPUs that were not selected.
        twice: points at a tick that already has one.
        absent: points without a value to keep, by name and reason.
        derived: what was derived, in words.
        neptune: the devices that came from Neptune; None if there are none.
        as_logged: whether rows keep the time of logging.
    """

    devices: list[Device] = field(default_factory=list)
    tables: dict[str, "pa.Table"] = field(default_factory=dict)
    points: int = 0
    left_out: int = 0
    twice: int = 0
    absent: Counter[tuple[str, str]] = field(default_factory=Counter)
    derived: list[str] = field(default_factory=list)
    neptune: NeptuneDevices | None = None
    as_logged: bool = False

    def add_neptune(self, found: NeptuneDevices) -> None:
        """Take the devices that came from Neptune."""
        self.neptune = found
        self.devices += [device for device in found.devices if device.id not in self.tables]
        self.tables = found.tables | self.tables
        self.left_out += found.left_out
        self.twice += found.repeated

    def add(self, device: Device, rows: "pa.Table", derived: Sequence[str]) -> None:
        """Take a device with its rows."""
        self.devices.append(device)
        self.tables[device.id] = rows
        self.derived += derived


def read_devices(nodes: Sequence[Node], gpus: tuple[int, ...] | None, *, as_logged: bool = False) -> ReadDevices:
    """Return the devices of a run, GPUs by number before the machines.

    Args:
        nodes: the nodes of the run.
        gpus: numbers of the GPUs to keep; all when None.
        as_logged: whether rows keep the time of logging instead of the time of reading.
    """
    found = ReadDevices(as_logged=as_logged)
    for node in nodes:
        found.points += sum(int((~np.isnan(one)).sum()) for each in node.monitors for one in each.values.values())
        found.twice += sum(monitor.twice for monitor in node.monitors)
    indices = {(place, name.index) for place, node in enumerate(nodes) for each in node.monitors for name in each.names}
    for place, index in sorted(indices, key=lambda pair: (pair[1] is None, pair[0], pair[1] or 0)):
        if index is None or gpus is None or index in gpus:
            _add_device(found, nodes[place], index)
        else:
            found.left_out += _count_points(nodes[place], index)
    return found


def _count_points(node: Node, index: int | None) -> int:
    parts = (monitor.values[name.key] for monitor in node.monitors for name in monitor.names if name.index == index)
    return sum(int((~np.isnan(values)).sum()) for values in parts)


def _add_device(found: ReadDevices, node: Node, index: int | None) -> None:
    own = HOST if index is None else f"gpu:{index}"
    device = own if node.node is None else f"{node.node}/{own}"
    times = np.concatenate([(each.logged if found.as_logged else each.read) * 1000 for each in node.monitors])
    parts = [_device_columns(monitor, index, found) for monitor in node.monitors]
    names = dict.fromkeys(name for part in parts for name in part)
    empty = [np.full(len(monitor.read), np.nan) for monitor in node.monitors]
    values = {
        name: np.concatenate([part.get(name, nothing) for part, nothing in zip(parts, empty, strict=True)])
        for name in names
    }
    if all(np.isnan(each).all() for each in values.values()):
        return
    found.add(*_describe_device(device, node.node, index, times, values))


def _describe_device(
    device: str, node: str | None, index: int | None, times: IntArray, values: dict[str, FloatArray]
) -> tuple[Device, "pa.Table", list[str]]:
    scope = "host" if index is None else "gpu"
    total = derive_total(values.get(f"{scope}_memory_used_bytes"), values.get(f"{scope}_memory_used_ratio"))
    limit = derive_total(values.get("gpu_power_watts"), values.get("gpu_power_ratio"))
    derived = []
    if total is not None:
        derived.append(f"the memory of {device} ({total / 2**30:.1f} GiB)")
    if limit is not None:
        derived.append(f"the power limit of {device} ({limit:.0f} W)")
    described = Device(
        id=device,
        index=index,
        node=node,
        memory_total_bytes=None if total is None else round(total),
        power_limit_watts=limit,
    )
    return described, build_device_table(device, times, values), derived


def _device_columns(monitor: Monitor, index: int | None, found: ReadDevices) -> dict[str, FloatArray]:
    """Return the values that one monitor logged of a device, by column, in base units."""
    names = [name for name in monitor.names if name.index == index]
    amd = any(name.what == AMD_MEMORY for name in names)
    columns: dict[str, FloatArray] = {}
    for name in names:
        if name.target is None:
            columns[extra_name(name.what)] = monitor.values[name.key]
        elif amd and name.target.column == "gpu_power_ratio":
            # a share of 500 W, whatever the limit of the GPU
            columns[_AMD_RATIO] = monitor.values[name.key]
        else:
            columns[name.target.column] = _convert(monitor, name, found) * name.target.factor
    return columns


def _convert(monitor: Monitor, name: MetricName, found: ReadDevices) -> FloatArray:
    """Return the values of a series without those from before the monitor began; counters as rates."""
    values = monitor.values[name.key]
    if name.target is None or not (name.target.counts or name.target.column == "cpu_utilization_ratio"):
        return values
    found.absent[name.key, FIRST_VALUE] += int((~np.isnan(values[monitor.begins])).sum())
    kept = _to_rates(monitor, values) if name.target.counts else values
    return np.where(monitor.begins, np.nan, kept)


def _to_rates(monitor: Monitor, values: FloatArray) -> FloatArray:
    """Return the rise of a counter per second since the tick before."""
    seconds = np.diff(monitor.read) / 1e3
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = np.diff(values) / seconds
    return np.concatenate([[np.nan], np.where(seconds > 0, rates, np.nan)])


def find_unused_gpus(found: ReadDevices) -> Iterator[str]:
    """Yield the GPUs that were never above 1 % while another one was."""
    peaks = {}
    for device in found.devices:
        rows = found.tables[device.id]
        if device.index is not None and "gpu_utilization_ratio" in rows.column_names:
            peaks[device.id] = float(np.nanmax(floats(rows.column("gpu_utilization_ratio"))))
    if any(peak > 0.01 for peak in peaks.values()):  # noqa: PLR2004 - 1 %
        yield from (device for device, peak in peaks.items() if peak <= 0.01)  # noqa: PLR2004 - as above

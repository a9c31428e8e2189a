"""Hardware series that came from Neptune: its exporter loads runs into MLflow under the names they had there.

They are gauges of Neptune's client, which drops zeros and stamps a value when it reads it: they are restored, and not
moved. Every process of a run has a namespace of its own, which becomes a stage.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.importers.trackers.device_tables import build_device_table
from gpureport.importers.trackers.mlflow.run_store import MetricSeries
from gpureport.importers.trackers.neptune_hardware.dropped_zeros import (
    GAUGE_NAME,
    GaugePoints,
    RestoredSeries,
    find_monitor_namespaces,
    restore_dropped_zeros,
)
from gpureport.recording import HOST, Device, Stage

if TYPE_CHECKING:
    import pyarrow as pa

_COLUMNS = {
    "cpu": ("cpu_utilization_ratio", 0.01),
    # Neptune says GB and means GiB
    "memory": ("host_memory_used_bytes", 2.0**30),
    "gpu": ("gpu_utilization_ratio", 0.01),
    "gpu_memory": ("gpu_memory_used_bytes", 2.0**30),
    "gpu_power": ("gpu_power_watts", 1.0),
}
"""Column and factor of each gauge."""
_HASH = re.compile(r"^[0-9a-f]{8}$")


@dataclass(frozen=True, slots=True)
class _Process:
    """The series of one namespace."""

    stage: str
    node: str
    ticks: RestoredSeries

    def leaves(self, index: int | None) -> dict[str, str]:
        """Return the names of the series of a GPU, of the machine when None, by column."""
        return {_COLUMNS[what][0]: leaf for leaf in self.ticks.values if (what := _what(leaf, index)) is not None}


@dataclass(slots=True)
class NeptuneDevices:
    """Devices of a run that came from Neptune.

    Attributes:
        devices: GPUs, then machines.
        tables: rows by device id.
        stages: one for each process.
        keys: names of the series that were read.
        zeros: values that were put back.
        copies: points that another process recorded as well.
        left_out: points of GPUs that were not asked for.
        never: GPUs whose utilization was not reported once.
    """

    devices: list[Device] = field(default_factory=list)
    tables: dict[str, "pa.Table"] = field(default_factory=dict)
    stages: tuple[Stage, ...] = ()
    keys: frozenset[str] = frozenset()
    zeros: int = 0
    copies: int = 0
    left_out: int = 0
    never: tuple[str, ...] = ()


def read_neptune_devices(
    series: Mapping[str, MetricSeries], params: Iterable[tuple[str, str]], gpus: tuple[int, ...] | None
) -> NeptuneDevices:
    """Return the devices that gauges of Neptune's client tell.

    Args:
        series: metrics of a run by name.
        params: what it was configured with; Neptune's single values are among them.
        gpus: numbers of the GPUs to keep, all when None.
    """
    said = dict(params)
    spaces = find_monitor_namespaces(series, said)
    processes = [_process(path, leaves, series, said) for path, leaves in sorted(spaces.items())]
    found = NeptuneDevices(
        stages=tuple(_stages(processes)),
        keys=frozenset(f"{path}/{leaf}" for path, leaves in spaces.items() for leaf in leaves),
        zeros=sum(each.ticks.zeros for each in processes),
        never=tuple(f"{each.stage} {leaf}" for each in processes for leaf in each.ticks.never),
    )
    several = len({each.node for each in processes}) > 1
    for node in dict.fromkeys(each.node for each in processes):
        own = [each for each in processes if each.node == node]
        for index in {index for each in own for index in _indices(each)}:
            if index is None or gpus is None or index in gpus:
                _add(found, own, node if several else None, index)
            else:
                found.left_out += sum(_known(each, index) for each in own)
    found.devices.sort(key=lambda device: (device.index is None, device.node or "", device.index or 0))
    return found


def _process(path: str, leaves: Sequence[str], series: Mapping[str, MetricSeries], said: Mapping[str, str]) -> _Process:
    read = {leaf: series[f"{path}/{leaf}"] for leaf in leaves}
    points = {leaf: GaugePoints(each.times * 1000, each.values) for leaf, each in read.items()}
    name = path.partition("/")[2] or path
    stage = f"process-{name}" if _HASH.match(name) else name
    return _Process(stage, said.get(f"{path}/hostname", ""), restore_dropped_zeros(points))


def _stages(processes: Iterable[_Process]) -> Iterator[Stage]:
    for each in processes:
        if len(each.ticks.times):
            start, end = int(each.ticks.times[0]), int(each.ticks.times[-1])
            yield Stage(name=each.stage, start=start, end=end, node=each.node or None)


def _what(leaf: str, index: int | None) -> str | None:
    """Return what a series measures of a GPU, of the machine when None; None where it is of another device."""
    match = GAUGE_NAME.match(leaf)
    if match is None:
        return None
    own = None if match["what"] in {"cpu", "memory"} else int(match["index"] or 0)
    return match["what"] if own == index else None


def _indices(process: _Process) -> set[int | None]:
    matches = [match for leaf in process.ticks.values if (match := GAUGE_NAME.match(leaf))]
    return {None if match["what"] in {"cpu", "memory"} else int(match["index"] or 0) for match in matches}


def _known(process: _Process, index: int | None) -> int:
    """Return how many points a process recorded of a device."""
    count = 0
    for leaf in process.leaves(index).values():
        count += int((~np.isnan(process.ticks.values[leaf])).sum())
        count -= int(process.ticks.imputed[leaf].sum()) if leaf in process.ticks.imputed else 0
    return count


def _add(found: NeptuneDevices, processes: Sequence[_Process], node: str | None, index: int | None) -> None:
    """Take a device with the rows of all processes that watched it, those of each moment once."""
    own = HOST if index is None else f"gpu:{index}"
    device = own if node is None else f"{node}/{own}"
    watching = [each for each in processes if each.leaves(index)]
    # the longest recording of a moment is kept whole
    watching.sort(key=lambda each: -len(each.ticks.times))
    parts: list[tuple[_Process, BoolArray]] = []
    for each in watching:
        rows = _outside(each.ticks.times, [part.ticks.times for part, _ in parts])
        found.copies += round(_known(each, index) * (1 - float(rows.mean()))) if len(rows) else 0
        parts.append((each, rows))
    joined = _joined(device, index, parts)
    if len(joined):
        found.devices.append(Device(id=device, index=index, node=node))
        found.tables[device] = joined


def _outside(times: IntArray, others: Sequence[IntArray]) -> BoolArray:
    """Return the ticks at which none of the others was watching."""
    rows = np.ones(len(times), dtype=np.bool_)
    for other in others:
        rows &= (times < other[0]) | (times > other[-1])
    return rows


def _joined(device: str, index: int | None, parts: Sequence[tuple[_Process, BoolArray]]) -> "pa.Table":
    lengths = [int(rows.sum()) for _, rows in parts]
    names = dict.fromkeys(name for each, _ in parts for name in each.leaves(index))
    factors = dict(_COLUMNS.values())
    values: dict[str, FloatArray] = {}
    for name in names:
        taken = [_values(each, each.leaves(index).get(name))[rows] for each, rows in parts]
        values[name] = np.concatenate(taken) * factors[name]
    imputed = np.concatenate([_imputed(each, index)[rows] for each, rows in parts])
    owners = np.repeat(np.arange(len(parts)), lengths)
    stages = [(each.stage, owners == place) for place, (each, _) in enumerate(parts)]
    times = np.concatenate([each.ticks.times[rows] for each, rows in parts])
    return build_device_table(device, times, values, imputed, stages)


def _values(process: _Process, leaf: str | None) -> FloatArray:
    return np.full(len(process.ticks.times), np.nan) if leaf is None else process.ticks.values[leaf]


def _imputed(process: _Process, index: int | None) -> BoolArray:
    marked = np.zeros(len(process.ticks.times), dtype=np.bool_)
    for leaf in process.leaves(index).values():
        if leaf in process.ticks.imputed:
            marked |= process.ticks.imputed[leaf]
    return marked

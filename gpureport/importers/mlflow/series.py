"""MLflow's system metrics as series of devices.

MLflow's monitor reads a value, waits for its interval, and logs the value with the time of logging: every system metric
is late by an interval that is stored nowhere. A value was read when the one before it was logged, the first one when
the run started.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from gpureport.columns import BoolArray, FloatArray, IntArray, floats
from gpureport.importers.columns import extra_name
from gpureport.importers.mlflow.stores import Points
from gpureport.importers.protocol.reject_reasons import NOT_SELECTED, TWICE_AT_ONCE
from gpureport.importers.tracker_series import build_device_table
from gpureport.recording import HOST, Device, Stage

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
_SAME_MEMORY = 0.05
"""Memory in use that differs by a larger share at the same time is that of two machines (pragmatic)."""


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
        if key.startswith(PREFIX):
            match = _NAME.fullmatch(key)
            plain = Name(key, None, None, key.removeprefix(PREFIX))
            found.append(
                Name(key, match["node"], int(match["gpu"]) if match["gpu"] else None, match["what"]) if match else plain
            )
    nodes = {None, *(name.node for name in found if name.target)}
    return [name if name.node in nodes else Name(name.key, None, None, name.key.removeprefix(PREFIX)) for name in found]


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitor:
    """What one process logged of a node: a value for each tick and name, NaN if there is none; milliseconds.

    `begins` marks the ticks at which a process began to record, `twice` counts points at a tick that has one already,
    `together` the processes that logged under the same names at the same time.
    """

    node: str | None
    logged: IntArray
    read: IntArray
    values: dict[Name, FloatArray]
    begins: BoolArray
    twice: int
    together: int = 1


def find_monitors(points: Mapping[str, Points], started: int | None) -> list[Monitor]:
    """Return the monitors of a run; those of several machines under the same names get nodes of their own."""
    names = [name for name in parse_names(points) if len(points[name.key].times)]
    found = []
    for node in dict.fromkeys(name.node for name in names):
        own = [name for name in names if name.node == node]
        times, steps = (
            np.concatenate([getattr(points[name.key], part) for name in own]) for part in ("times", "steps")
        )
        ticks, first = np.unique(times, return_index=True)
        writers = _assign_writers(steps[first])
        # only the first monitor began with the run
        monitors = [
            _build_monitor(node, ticks[writers == writer], own, points, None if writer else started)
            for writer in range(int(writers.max()) + 1)
        ]
        spans = sorted((int(each.logged[0]), int(each.logged[-1])) for each in monitors)
        together = 1 + sum(later[0] < earlier[1] for earlier, later in pairwise(spans))
        if together > 1 and not _share_machine(monitors):
            nodes = ("/".join(filter(None, (node, f"writer_{place}"))) for place, _ in enumerate(monitors, 1))
            found += [replace(monitor, node=each) for monitor, each in zip(monitors, nodes, strict=True)]
        else:
            found += [replace(monitor, together=together) for monitor in monitors]
    return found


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


def _build_monitor(
    node: str | None, ticks: IntArray, names: Sequence[Name], points: Mapping[str, Points], started: int | None
) -> Monitor:
    values, twice, begins = {}, 0, np.arange(len(ticks)) == 0
    for name in names:
        own = points[name.key]
        places = np.minimum(np.searchsorted(ticks, own.times), len(ticks) - 1)
        inside = ticks[places] == own.times
        values[name] = np.full(len(ticks), np.nan)
        values[name][places[inside]] = own.values[inside]
        twice += int(inside.sum()) - len(np.unique(places[inside]))
        if name.target and name.what in _COUNTS:
            # a count that falls is that of another process
            begins[1:] |= np.diff(values[name]) < 0
    usual = int(np.median(np.diff(ticks))) if len(ticks) > 1 else 0
    before = np.append(int(ticks[0]) - usual if started is None else min(started, int(ticks[0])), ticks[:-1])
    read = np.where(ticks - before > _LATE * usual, ticks - usual, before) if usual else before
    return Monitor(node=node, logged=ticks, read=read, values=values, begins=begins, twice=twice)


def _share_machine(monitors: Sequence[Monitor]) -> bool:
    """Return whether monitors saw the same memory in use at the same time; true if it was not recorded throughout."""
    used = [
        (monitor.read, values)
        for monitor in monitors
        for name, values in monitor.values.items()
        if name.what == "system_memory_usage_megabytes" and not np.isnan(values).any()
    ]
    if len(used) < len(monitors):
        return True
    (times, first), *others = used
    return all(
        bool(np.median(np.abs(np.interp(times, at, values) - first) / np.maximum(first, 1.0)) < _SAME_MEMORY)
        for at, values in others
    )


@dataclass(slots=True)
class Devices:
    """Devices with their rows, and what became of the points: counted by reason, `absent` by name and reason.

    The last four are of a run that came from Neptune: names of the series that were read, stages, values that were put
    back, and GPUs whose utilization was never reported.
    """

    devices: list[Device] = field(default_factory=list)
    tables: dict[str, pa.Table] = field(default_factory=dict)
    rejected: Counter[str] = field(default_factory=Counter)
    absent: Counter[tuple[str, str]] = field(default_factory=Counter)
    derived: list[str] = field(default_factory=list)
    moved: frozenset[str] = frozenset()
    stages: tuple[Stage, ...] = ()
    zeros: int = 0
    never: list[str] = field(default_factory=list)


def read_devices(monitors: Sequence[Monitor], gpus: tuple[int, ...] | None, *, as_logged: bool) -> Devices:
    """Return the devices of a run, GPUs by number before the machines.

    Args:
        monitors: what was logged.
        gpus: numbers of the GPUs to keep; all when None.
        as_logged: whether rows keep the time of logging instead of the time of reading.
    """
    found = Devices()
    found.rejected[NOT_SELECTED] = 0
    found.rejected[TWICE_AT_ONCE] = sum(monitor.twice for monitor in monitors)
    nodes = list(dict.fromkeys(monitor.node for monitor in monitors))
    places = {(name.gpu is None, nodes.index(each.node), name.gpu or 0) for each in monitors for name in each.values}
    for is_host, place, gpu in sorted(places):
        own = [monitor for monitor in monitors if monitor.node == nodes[place]]
        if is_host or gpus is None or gpu in gpus:
            _add_device(found, own, None if is_host else gpu, as_logged=as_logged)
        else:
            kept = (values for each in own for name, values in each.values.items() if name.gpu == gpu)
            found.rejected[NOT_SELECTED] += sum(int((~np.isnan(values)).sum()) for values in kept)
    return found


def _add_device(found: Devices, monitors: Sequence[Monitor], gpu: int | None, *, as_logged: bool) -> None:
    node, own = monitors[0].node, HOST if gpu is None else f"gpu:{gpu}"
    device = own if node is None else f"{node}/{own}"
    parts = [_device_columns(monitor, gpu, found) for monitor in monitors]
    values = {
        name: np.concatenate(
            [part.get(name, np.full(len(each.read), np.nan)) for part, each in zip(parts, monitors, strict=True)]
        )
        for name in dict.fromkeys(name for part in parts for name in part)
    }
    if all(np.isnan(each).all() for each in values.values()):
        return
    scope = "host" if gpu is None else "gpu"
    total = derive_total(values.get(f"{scope}_memory_used_bytes"), values.get(f"{scope}_memory_used_ratio"))
    limit = derive_total(values.get("gpu_power_watts"), values.get("gpu_power_ratio"))
    if total is not None:
        total = round(total)
        found.derived.append(f"the memory of {device} ({total / 2**30:.1f} GiB)")
    if limit is not None:
        found.derived.append(f"the power limit of {device} ({limit:.0f} W)")
    described = Device(id=device, index=gpu, node=node, memory_total_bytes=total, power_limit_watts=limit)
    times = np.concatenate([each.logged if as_logged else each.read for each in monitors]) * 1000
    found.devices.append(described)
    found.tables[device] = build_device_table(device, times, values)


def _device_columns(monitor: Monitor, gpu: int | None, found: Devices) -> dict[str, FloatArray]:
    """Return the values that one monitor logged of a device, by column, in base units.

    Those of the time before the monitor began are left out, and a count becomes its rise a second.
    """
    names = [name for name in monitor.values if name.gpu == gpu]
    # gigabytes are AMD's; their monitor takes 500 W for the limit of every GPU
    amd = any(name.gpu is not None and name.what == "memory_usage_gigabytes" for name in names)
    read: dict[str, FloatArray] = {}
    for name in names:
        values = monitor.values[name]
        if name.target is None or (amd and name.what == "power_usage_percentage"):
            read[extra_name(name.what)] = values
            continue
        if gpu is None and name.what in {*_COUNTS, "cpu_utilization_percentage"}:
            found.absent[name.key, FIRST_VALUE] += int((~np.isnan(values[monitor.begins])).sum())
            if name.what in _COUNTS:
                seconds = np.diff(monitor.read) / 1e3
                rates = np.diff(values) / np.where(seconds > 0, seconds, np.nan)
                values = np.append(np.nan, rates)
            values = np.where(monitor.begins, np.nan, values)
        column, factor = name.target
        read[column] = values * factor
    return read


def derive_total(values: FloatArray | None, shares: FloatArray | None) -> float | None:
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


def find_unused_gpus(found: Devices) -> Iterator[str]:
    """Yield the GPUs that were never above 1 % while another one was."""
    used = "gpu_utilization_ratio"
    tables = {each.id: found.tables[each.id] for each in found.devices if each.index is not None}
    peaks = {
        key: float(np.nanmax(floats(rows.column(used)))) for key, rows in tables.items() if used in rows.column_names
    }
    if any(peak > 0.01 for peak in peaks.values()):  # noqa: PLR2004 - 1 %
        yield from (device for device, peak in peaks.items() if peak <= 0.01)  # noqa: PLR2004 - as above

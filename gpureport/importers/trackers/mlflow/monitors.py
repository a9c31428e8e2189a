"""The monitors that logged a run's system metrics: one for each node, or several if every rank used the same names."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.importers.trackers.mlflow import read_times
from gpureport.importers.trackers.mlflow.metric_names import MetricName
from gpureport.importers.trackers.mlflow.run_store import MetricSeries

_MEMORY = "system_memory_usage_megabytes"
_SAME_MEMORY_SHARE = 0.05
"""If memory in use differs by more than this share at the same time, there are two machines (pragmatic)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitor:
    """What one monitor logged of a node: a value for each tick, NaN if there is none.

    Attributes:
        node: the node; None if the run has only one.
        logged: when each tick was logged, in milliseconds.
        read: when its values were read, in milliseconds.
        values: values of each series as logged, by its name.
        names: the parsed names.
        begins: ticks at which a process began to record.
        twice: number of points at a tick that already has one.
    """

    node: str | None
    logged: IntArray
    read: IntArray
    values: dict[str, FloatArray]
    names: tuple[MetricName, ...]
    begins: BoolArray
    twice: int = 0

    @property
    def usual(self) -> float | None:
        """Median seconds between ticks; None for a single tick."""
        return float(np.median(np.diff(self.logged))) / 1e3 if len(self.logged) > 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """The monitors of one node, and how many wrote at the same time.

    Attributes:
        node: the node; None if the run has only one.
        monitors: its monitors.
        together: how many of them wrote at the same time.
    """

    node: str | None
    monitors: tuple[Monitor, ...]
    together: int


def find_nodes(names: Sequence[MetricName], series: Mapping[str, MetricSeries], started: int | None) -> list[Node]:
    """Return the nodes of a run with their monitors.

    Monitors of different machines that log under the same names become nodes of their own.

    Args:
        names: the parsed names of its system metrics.
        series: its metrics by name.
        started: when it started, in milliseconds; None where not recorded.
    """
    found = []
    for node in dict.fromkeys(name.node for name in names):
        own = tuple(name for name in names if name.node == node)
        monitors = tuple(_split_monitors(node, own, series, started))
        if not monitors:
            continue
        together = _count_concurrent(monitors)
        if together > 1 and not _share_machine(monitors):
            found += [_as_own_node(monitor, place) for place, monitor in enumerate(monitors)]
        else:
            found.append(Node(node=node, monitors=monitors, together=together))
    return found


def _split_monitors(
    node: str | None, names: tuple[MetricName, ...], series: Mapping[str, MetricSeries], started: int | None
) -> Iterator[Monitor]:
    points = [series[name.key] for name in names if len(series[name.key])]
    if not points:
        return
    ticks, first = np.unique(np.concatenate([each.times for each in points]), return_index=True)
    writers = read_times.assign_monitors(ticks, np.concatenate([each.steps for each in points])[first])
    for writer in range(int(writers.max()) + 1):
        # only the first monitor began with the run
        yield _build_monitor(node, ticks[writers == writer], names, series, None if writer else started)


def _build_monitor(
    node: str | None,
    ticks: IntArray,
    names: tuple[MetricName, ...],
    series: Mapping[str, MetricSeries],
    started: int | None,
) -> Monitor:
    values, twice = {}, 0
    for name in names:
        values[name.key], again = _values_at(ticks, series[name.key])
        twice += again
    return Monitor(
        node=node,
        logged=ticks,
        read=read_times.estimate_read_times(ticks, started),
        values=values,
        names=names,
        begins=_process_starts(names, values, len(ticks)),
        twice=twice,
    )


def _values_at(ticks: IntArray, points: MetricSeries) -> tuple[FloatArray, int]:
    """Return the value of a series at each tick, and how many of its points share a tick with a later one."""
    values = np.full(len(ticks), np.nan)
    places = np.searchsorted(ticks, points.times)
    own = (places < len(ticks)) & (ticks[np.minimum(places, len(ticks) - 1)] == points.times)
    values[places[own]] = points.values[own]
    return values, int(own.sum()) - len(np.unique(places[own]))


def _process_starts(names: Sequence[MetricName], values: Mapping[str, FloatArray], length: int) -> BoolArray:
    """Return the ticks with which a process began: the first, and those at which a counter is lower than before."""
    begins = np.zeros(length, dtype=np.bool_)
    begins[0] = True
    for name in names:
        if name.target is not None and name.target.counts:
            begins[1:] |= np.diff(values[name.key]) < 0
    return begins


def _count_concurrent(monitors: Sequence[Monitor]) -> int:
    """Return how many monitors wrote at the same time; one that went on after another did not."""
    spans = sorted((int(monitor.logged[0]), int(monitor.logged[-1])) for monitor in monitors)
    overlapping = sum(later[0] < earlier[1] for earlier, later in pairwise(spans))
    return overlapping + 1


def _share_machine(monitors: Sequence[Monitor]) -> bool:
    """Return whether monitors saw the same memory in use at the same time; true if memory was not recorded."""
    used = [(monitor.read, values) for monitor in monitors if (values := _memory_used(monitor)) is not None]
    if len(used) < len(monitors):
        return True
    (times, first), *others = used
    return all(
        bool(np.median(np.abs(np.interp(times, other, values) - first) / np.maximum(first, 1.0)) < _SAME_MEMORY_SHARE)
        for other, values in others
    )


def _memory_used(monitor: Monitor) -> FloatArray | None:
    """Return the memory in use of the machine; None if it was not recorded at every tick."""
    key = next((name.key for name in monitor.names if name.what == _MEMORY), None)
    values = None if key is None else monitor.values[key]
    return None if values is None or np.isnan(values).any() else values


def _as_own_node(monitor: Monitor, place: int) -> Node:
    node = "/".join(part for part in (monitor.node, f"writer_{place + 1}") if part)
    return Node(node=node, monitors=(replace(monitor, node=node),), together=1)

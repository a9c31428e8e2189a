"""Puts back the zeros that Neptune's client drops.

The client reports a value only when it is not 0, so an idle GPU is a missing point. All values of one tick share one
time, and the memory of host and GPU is never 0. So if a tick has the memory of a GPU but not its utilization, the
utilization was 0. Anything else that is missing stays unknown.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.data_quality import gap_seconds

GAUGE_NAME = re.compile(r"^(?P<what>cpu|memory|gpu|gpu_memory|gpu_power)(?:_(?P<index>\d+))?$")
"""Names of the client's hardware series, after their namespace; a single GPU has no number."""
MONITOR_NAMESPACES = ("monitoring", "runtime")
"""How namespaces of hardware series begin, unless a person named them."""
_PROCESS_FIELDS = ("hostname", "pid", "tid")
_SAME_TICK_MICROSECONDS = 1_000


@dataclass(frozen=True, slots=True)
class GaugePoints:
    """Points of one series: times in microseconds, and a value each."""

    times: IntArray
    values: FloatArray


@dataclass(frozen=True, slots=True)
class RestoredSeries:
    """The series of one namespace, with a value for each tick.

    Attributes:
        times: ticks, in microseconds.
        values: values of each series, NaN where not recorded.
        imputed: ticks at which a 0 was put back, by series.
        never: series of GPU utilization that were never reported: unknown, not 0.
    """

    times: IntArray
    values: dict[str, FloatArray]
    imputed: dict[str, BoolArray] = field(default_factory=dict)
    never: tuple[str, ...] = ()

    @property
    def recorded(self) -> int:
        """Number of recorded values, without the zeros that were put back."""
        return sum(int((~np.isnan(each)).sum()) for each in self.values.values()) - self.zeros

    @property
    def zeros(self) -> int:
        """Number of zeros that were put back."""
        return sum(int(places.sum()) for places in self.imputed.values())


def find_monitor_namespaces(series: Iterable[str], scalars: Iterable[str]) -> dict[str, list[str]]:
    """Return the series names in each namespace of the client's hardware monitor.

    A namespace holds `memory` or `cpu`, and either begins as the client's own do or also describes a process. So a
    training metric called `train/memory` makes no namespace.

    Args:
        series: paths of series.
        scalars: paths of single values.
    """
    found: dict[str, list[str]] = {}
    for path in series:
        namespace, _, leaf = path.rpartition("/")
        if GAUGE_NAME.match(leaf):
            found.setdefault(namespace, []).append(leaf)
    known = set(scalars)
    return {
        namespace: leaves
        for namespace, leaves in found.items()
        if {"cpu", "memory"} & set(leaves)
        and (
            namespace.split("/")[0] in MONITOR_NAMESPACES
            or any(f"{namespace}/{each}" in known for each in _PROCESS_FIELDS)
        )
    }


def restore_dropped_zeros(series: Mapping[str, GaugePoints]) -> RestoredSeries:
    """Return the series of one namespace at every tick, with the dropped zeros.

    Args:
        series: points by name, in any order; of two at one tick the last counts.
    """
    times = _join_times(series)
    values = {leaf: _values_at(times, points) for leaf, points in series.items() if len(points.times)}
    imputed, never = {}, []
    for leaf in [*values, *(_gauge_of_same_gpu(leaf, "gpu") for leaf in values if _gauge_kind(leaf) == "gpu_memory")]:
        if leaf not in values:
            never.append(leaf)
        elif _gauge_kind(leaf) in {"gpu", "cpu"}:
            places = np.isnan(values[leaf]) & _ticks_read(leaf, values, times)
            if places.any():
                values[leaf][places] = 0.0
                imputed[leaf] = places
    return RestoredSeries(times, values, imputed, tuple(never))


def _ticks_read(leaf: str, values: Mapping[str, FloatArray], times: IntArray) -> BoolArray:
    """Return the ticks at which the client surely read a series."""
    if _gauge_kind(leaf) == "cpu":
        # the first reading covers no time and is dropped
        return ~_process_starts(times)
    memory = values.get(_gauge_of_same_gpu(leaf, "gpu_memory"))
    return np.zeros(len(times), dtype=np.bool_) if memory is None else ~np.isnan(memory)


def _process_starts(times: IntArray) -> BoolArray:
    """Return the first tick, and those after a gap in which no process recorded."""
    begins = np.ones(len(times), dtype=np.bool_)
    steps = np.diff(times)
    if len(steps):
        begins[1:] = steps > gap_seconds(float(np.median(steps)) / 1e6) * 1e6
    return begins


def _join_times(series: Mapping[str, GaugePoints]) -> IntArray:
    """Return the times of all series; those within a millisecond of each other are one."""
    if not series:
        return np.zeros(0, dtype=np.int64)
    times = np.unique(np.concatenate([points.times for points in series.values()]))
    return times[np.concatenate([[True], np.diff(times) > _SAME_TICK_MICROSECONDS])] if len(times) else times


def _values_at(times: IntArray, points: GaugePoints) -> FloatArray:
    """Return the value of a series at each tick, NaN where it has none."""
    values = np.full(len(times), np.nan)
    order = np.argsort(points.times, kind="stable")
    ticks = np.searchsorted(times, points.times[order], side="right") - 1
    values[ticks] = points.values[order]
    return values


def _gauge_kind(leaf: str) -> str:
    match = GAUGE_NAME.match(leaf)
    return match["what"] if match else ""


def _gauge_of_same_gpu(leaf: str, what: str) -> str:
    match = GAUGE_NAME.match(leaf)
    index = match["index"] if match else None
    return what if index is None else f"{what}_{index}"

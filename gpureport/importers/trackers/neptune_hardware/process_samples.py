"""The hardware series of one process as rows of its devices, with the zeros that the client dropped."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.importers.trackers.neptune_hardware import series_meanings
from gpureport.importers.trackers.neptune_hardware.dropped_zeros import GaugePoints, restore_dropped_zeros
from gpureport.importers.trackers.neptune_hardware.namespaces import Namespace
from gpureport.importers.trackers.neptune_hardware.point_series import Series
from gpureport.importers.trackers.neptune_hardware.ticks import drop_forked_ticks, join_ticks, to_base_unit

UTILISATION = "gpu_utilization_ratio"


@dataclass(slots=True, kw_only=True)
class DeviceRows:
    """Rows of one device as one process recorded them.

    Attributes:
        namespace: path of the process's namespace.
        stage: name of the process; None if unknown.
        node: name of its machine; empty if unknown.
        gpu: number of the GPU; None for the host.
        bare: whether the GPU had no number, because the process saw only one.
        times: time of each row in microseconds, rising.
        values: value of each row by metric, in base units, NaN where not recorded.
        imputed: rows that hold a zero that was put back.
        points: number of points of each row.
    """

    namespace: str
    stage: str | None
    node: str
    gpu: int | None
    bare: bool
    times: IntArray
    values: Mapping[str, FloatArray]
    imputed: BoolArray
    points: IntArray

    def taken(self, rows: BoolArray) -> "DeviceRows":
        """Return some of the rows."""
        return DeviceRows(
            namespace=self.namespace,
            stage=self.stage,
            node=self.node,
            gpu=self.gpu,
            bare=self.bare,
            times=self.times[rows],
            values={name: values[rows] for name, values in self.values.items()},
            imputed=self.imputed[rows],
            points=self.points[rows],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSamples:
    """The samples of one process.

    Attributes:
        blocks: rows of each device.
        points: number of points of its known series.
        repeated: number of points at a time that their series already has.
        crowded: number of points of extra ticks after a fork.
        nan: number of values that are not numbers, by metric.
        zeros: number of zeros that were put back.
        of: number of values of the series with zeros put back, including these.
        never: GPUs whose utilization was never reported although their memory was.
        unrestored: GPUs whose zeros cannot be put back, since their memory was not recorded.
        spread: largest distance of points of one tick, in microseconds; 0 up to a millisecond.
    """

    blocks: tuple[DeviceRows, ...]
    points: int
    repeated: int = 0
    crowded: int = 0
    nan: Mapping[str, int] = field(default_factory=dict)
    zeros: int = 0
    of: int = 0
    never: tuple[int, ...] = ()
    unrestored: tuple[int, ...] = ()
    spread: int = 0


def sample_process(space: Namespace, series: Mapping[str, Series], node: str) -> ProcessSamples:
    """Return what one process recorded.

    Args:
        space: its namespace.
        series: series of the run, by path.
        node: name of its machine, empty where not known.
    """
    read, spread = join_ticks({path: series[path] for path in space.leaves if path in series}, space.leaves)
    # only the client drops zeros
    keys = {(path[len(space.path) + 1 :] if space.client else f"/{path}"): path for path in read}
    whole = restore_dropped_zeros({key: read[path] for key, path in keys.items()})
    ticked = drop_forked_ticks(whole) if space.client else whole
    values = {keys[key]: each for key, each in ticked.values.items()}
    filled = {keys[key]: each for key, each in ticked.imputed.items()}
    points = {path: int((~np.isnan(each.values)).sum()) for path, each in read.items()}
    return ProcessSamples(
        blocks=_rows_by_device(space, ticked.times, values, filled, node),
        points=sum(len(each.times) for each in read.values()),
        repeated=sum(points.values()) - whole.recorded,
        crowded=whole.recorded - ticked.recorded,
        nan=_count_nan(space, read, points),
        zeros=ticked.zeros,
        of=sum(int((~np.isnan(values[path])).sum()) for path in filled),
        never=tuple(sorted(_gpu_number(leaf) for leaf in ticked.never)),
        unrestored=_gpus_without_memory(space, values),
        spread=spread,
    )


def _gpu_number(leaf: str) -> int:
    meaning = series_meanings.gauge_meaning(leaf)
    return 0 if meaning is None or meaning.gpu is None else meaning.gpu


def _count_nan(space: Namespace, read: Mapping[str, GaugePoints], points: Mapping[str, int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for path, each in read.items():
        missing = len(each.times) - points[path]
        if missing:
            metric = space.leaves[path].metric
            found[metric] = found.get(metric, 0) + missing
    return found


def _gpus_without_memory(space: Namespace, values: Mapping[str, FloatArray]) -> tuple[int, ...]:
    if not space.client:
        return ()
    of = {
        each: {space.leaves[path].gpu for path in values if space.leaves[path].metric == each} for each in _ZERO_SIGNS
    }
    return tuple(sorted(gpu for gpu in of[_ZERO_SIGNS[0]] - of[_ZERO_SIGNS[1]] if gpu is not None))


_ZERO_SIGNS = (UTILISATION, "gpu_memory_used_bytes")


def _rows_by_device(
    space: Namespace,
    times: IntArray,
    values: Mapping[str, FloatArray],
    filled: Mapping[str, BoolArray],
    node: str,
) -> tuple[DeviceRows, ...]:
    blocks = []
    for gpu in sorted({space.leaves[path].gpu for path in values}, key=lambda each: (each is None, each or 0)):
        paths = [path for path in values if space.leaves[path].gpu == gpu]
        known = np.sum([~np.isnan(values[path]) for path in paths], axis=0)
        marked = [filled[path] for path in paths if path in filled]
        imputed = np.logical_or.reduce(marked) if marked else np.zeros(len(times), dtype=np.bool_)
        block = DeviceRows(
            namespace=space.path,
            stage=space.stage,
            node=node,
            gpu=gpu,
            bare=space.bare and gpu is not None,
            times=times,
            values={space.leaves[path].metric: to_base_unit(space.leaves[path], times, values[path]) for path in paths},
            imputed=imputed,
            points=known - np.sum(marked, axis=0) if marked else known,
        )
        blocks.append(block.taken(known > 0))
    return tuple(blocks)

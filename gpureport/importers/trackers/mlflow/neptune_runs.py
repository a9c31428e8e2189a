"""Hardware series that came from Neptune: its exporter loads runs into MLflow under the names they had there.

Neptune's client drops zeros and stamps a value when it reads it: zeros are put back, and times are not moved. Every
process of a run has a namespace of its own, which becomes a stage.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpureport.importers.neptune import hardware
from gpureport.importers.neptune.names import NameMap, find_namespaces
from gpureport.importers.trackers.mlflow.run_store import MetricSeries
from gpureport.recording import Device, Stage

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class NeptuneDevices:
    """Devices of a run that came from Neptune.

    Attributes:
        devices: GPUs, then machines.
        tables: rows by device id.
        stages: one for each process.
        keys: names of the series that were read.
        zeros: values that were put back.
        repeated: points at whose time their series has another.
        copies: points that another process recorded as well.
        crowded: points that forked processes set off.
        left_out: points of GPUs that were not asked for.
        never: GPUs whose utilization was never reported, each with its process.
    """

    devices: tuple[Device, ...]
    tables: dict[str, "pa.Table"]
    stages: tuple[Stage, ...]
    keys: frozenset[str]
    zeros: int
    repeated: int
    copies: int
    crowded: int
    left_out: int
    never: tuple[str, ...]


def read_neptune_devices(
    series: Mapping[str, MetricSeries], params: Iterable[tuple[str, str]], gpus: tuple[int, ...] | None
) -> NeptuneDevices | None:
    """Return the devices that Neptune's client recorded; None where it recorded none.

    Args:
        series: metrics of a run by name.
        params: what it was configured with; Neptune's single values are among them.
        gpus: numbers of the GPUs to keep, all when None.
    """
    scalars = dict(params)
    spaces = [space for space in find_namespaces(series, scalars, NameMap()) if space.client]
    if not spaces:
        return None
    keys = frozenset(path for space in spaces for path in space.leaves)
    points = {key: hardware.Series(series[key].times * 1000, series[key].values, series[key].steps) for key in keys}
    samples = [hardware.sample_process(space, points, scalars.get(f"{space.path}/hostname", "")) for space in spaces]
    every = hardware.arrange_by_device(rows for sample in samples for rows in sample.blocks)
    kept, left_out = hardware.select_gpus(every, gpus)
    return NeptuneDevices(
        devices=tuple(
            Device(id=kept.id(key), index=key[1], node=key[0] if kept.several and key[0] else None)
            for key in kept.blocks
        ),
        tables=hardware.build_tables(kept),
        stages=hardware.list_stages(kept),
        keys=keys,
        zeros=sum(int(rows.imputed.sum()) for found in kept.blocks.values() for rows in found),
        repeated=sum(sample.repeated for sample in samples),
        copies=every.copies,
        crowded=sum(sample.crowded for sample in samples),
        left_out=left_out,
        never=tuple(
            f"{space.stage or space.path} gpu:{gpu}"
            for space, sample in zip(spaces, samples, strict=True)
            for gpu in sample.never
        ),
    )

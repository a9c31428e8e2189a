"""Rows of a device as an Arrow table."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gpureport import columns
from gpureport.columns import FloatArray
from gpureport.importers.timebase.device_clock import Clock
from gpureport.importers.trackers.neptune_hardware.device_rows import DeviceKey
from gpureport.importers.trackers.neptune_hardware.process_samples import DeviceRows
from gpureport.recording import KEY_FIELDS, METRIC_TYPES


def build_table(blocks: Sequence[DeviceRows], device: str) -> "pa.Table":
    """Return the rows of one device, in the order of time.

    Args:
        blocks: what processes recorded of it.
        device: its id.
    """
    times = np.concatenate([block.times for block in blocks])
    order = np.argsort(times, kind="stable")
    names = [name for name in METRIC_TYPES if any(name in block.values for block in blocks)]
    stages = list(dict.fromkeys(block.stage for block in blocks if block.stage is not None))
    codes = np.concatenate([np.full(len(each.times), _code(stages, each.stage)) for each in blocks])[order]
    keys = {
        "device": columns.category(device, len(times)),
        "timestamp": columns.array(times[order], pa.timestamp("us")),
        "stage": columns.categories(np.maximum(codes, 0), stages or [""], codes >= 0),
        "imputed": columns.array(np.concatenate([block.imputed for block in blocks])[order], pa.bool_()),
    }
    fields = [field for field in KEY_FIELDS if field.name != "stage" or stages]
    arrays: list[pa.Array[Any]] = [keys[field.name] for field in fields]
    for name in names:
        values = np.concatenate([block.values.get(name, _nothing(block)) for block in blocks])[order]
        kind = METRIC_TYPES[name]
        arrays.append(columns.array_with_nulls(np.rint(values) if pa.types.is_integer(kind) else values, kind))
    metrics = [pa.field(name, METRIC_TYPES[name]) for name in names]
    return pa.Table.from_arrays(arrays, schema=pa.schema([*fields, *metrics]))


def _code(stages: Sequence[str], stage: str | None) -> int:
    return -1 if stage is None else stages.index(stage)


def _nothing(block: DeviceRows) -> FloatArray:
    return np.full(len(block.times), np.nan)


def read_clock(blocks: Iterable[DeviceRows], device: str) -> Clock:
    """Return the clock of one device, read over all its rows."""
    read = Clock(device)
    read.read(np.sort(np.concatenate([block.times for block in blocks])))
    return read


def usual_interval(clocks: Mapping[DeviceKey, Clock]) -> float | None:
    """Return the median seconds between samples of one GPU, of a host where there is no GPU."""
    gpus = [each.interval for (_, gpu), each in clocks.items() if gpu is not None]
    rates = sorted(rate for rate in (gpus or [each.interval for each in clocks.values()]) if rate is not None)
    return rates[len(rates) // 2] if rates else None

"""The values a tracker recorded of one device, as rows of the series table."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from gpureport import columns
from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.data_quality import Quality
from gpureport.importers.clock import Clock, coverage_ratio
from gpureport.recording import HOST
from gpureport.series_table import METRIC_TYPES, SCHEMA


def build_device_table(
    device: str,
    times: IntArray,
    values: Mapping[str, FloatArray],
    imputed: BoolArray | None = None,
    stages: Sequence[tuple[str, BoolArray]] = (),
) -> "pa.Table":
    """Return the rows of a device in the order of time, without rows that have no value.

    Args:
        device: its id.
        times: time of each row, in microseconds.
        values: values of each column in its base unit, NaN for null. A column that is not a metric is kept as text.
        imputed: rows with a restored value; none when None.
        stages: names of stages with the rows that belong to each.
    """
    held = np.zeros(len(times), dtype=np.bool_)
    for one in values.values():
        held |= ~np.isnan(one)
    rows = np.flatnonzero(held)
    rows = rows[np.argsort(times[rows], kind="stable")]
    arrays: dict[str, pa.Array[Any]] = {
        "device": columns.category(device, len(rows)),
        "timestamp": columns.to_arrow(times[rows], pa.timestamp("us")),
        "imputed": columns.to_arrow(np.zeros(len(rows)) if imputed is None else imputed[rows], pa.bool_()),
    }
    if stages:
        arrays["stage"] = _stage_column(len(times), stages, rows)
    arrays |= {name: _metric_column(name, one[rows]) for name, one in values.items() if not np.isnan(one[rows]).all()}
    order = [name for name in SCHEMA.names if name in arrays]
    order += sorted(set(arrays) - set(order))
    return pa.Table.from_arrays([arrays[name] for name in order], names=order)


def _metric_column(name: str, values: FloatArray) -> "pa.Array[Any]":
    if name not in METRIC_TYPES:
        texts, codes = np.unique(values, return_inverse=True)
        return columns.categories(codes, [f"{text:g}" for text in texts], ~np.isnan(values))
    kind = METRIC_TYPES[name]
    return columns.nan_to_null(np.rint(values) if pa.types.is_integer(kind) else values, kind)


def _stage_column(length: int, stages: Sequence[tuple[str, BoolArray]], rows: IntArray) -> "pa.Array[Any]":
    codes = np.full(length, -1, dtype=np.int64)
    for code, (_, belongs) in enumerate(stages):
        codes[belongs] = code
    taken = codes[rows]
    return columns.categories(np.maximum(taken, 0), [name for name, _ in stages], taken >= 0)


def read_clocks(tables: Iterable["pa.Table"]) -> list[Clock]:
    """Return the clock of each device, read over all its rows."""
    found = []
    for each in tables:
        clock = Clock(each.column("device")[0].as_py())
        clock.accept(columns.integers(each.column("timestamp")))
        found.append(clock)
    return found


def usual_interval(clocks: Iterable[Clock]) -> float | None:
    """Return the median seconds between samples of one GPU, of a host where there is no GPU."""
    known = [(clock.device, clock.interval) for clock in clocks]
    gpus = [interval for device, interval in known if not device.endswith(HOST)]
    rates = sorted(rate for rate in gpus or [interval for _, interval in known] if rate is not None)
    return rates[len(rates) // 2] if rates else None


def add_timing(quality: Quality, seen: Sequence[Clock]) -> Quality:
    """Return an account with the gaps, duplicate timestamps and coverage that the clocks show."""
    gaps = tuple(gap for clock in seen for gap in clock.gaps())
    return replace(
        quality,
        gaps=gaps,
        duplicates=sum(clock.duplicates for clock in seen),
        coverage_ratio=coverage_ratio(list(seen), gaps),
    )

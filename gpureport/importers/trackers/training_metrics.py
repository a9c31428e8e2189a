"""Training metrics of a tracker as the long table of a recording, and the work they say was done."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from gpureport import columns
from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.recording import TRAINING_SCHEMA, Work, empty_training
from gpureport.training_names import choose_throughput

_PAUSE_FACTOR = 5.0
"""A time between two points above this many usual ones is a pause, in which nothing was worked (pragmatic)."""


@dataclass(frozen=True, slots=True)
class TrainingMetric:
    """Points of one training metric: times in microseconds, steps (null where `stepped` is false), values."""

    name: str
    times: IntArray
    steps: IntArray
    values: FloatArray
    stepped: BoolArray | None = None


def build_training_table(metrics: Sequence[TrainingMetric]) -> "pa.Table":
    """Return the points of all metrics in the order of time, then step; a value that is not a number is null."""
    held = [metric for metric in metrics if len(metric.times)]
    if not held:
        return empty_training()
    times, steps, values = (np.concatenate([getattr(one, part) for one in held]) for part in _PARTS)
    stepped = np.concatenate(
        [columns.all_valid(len(one.times)) if one.stepped is None else one.stepped for one in held]
    )
    codes = np.repeat(np.arange(len(held)), [len(one.times) for one in held])
    order = np.lexsort((steps, times))
    arrays = [
        columns.array(times[order], pa.timestamp("us")),
        columns.array(steps[order], pa.int64(), stepped[order]),
        columns.categories(codes[order], [one.name for one in held]),
        columns.array_with_nulls(values[order], pa.float64()),
    ]
    return pa.Table.from_arrays(arrays, schema=TRAINING_SCHEMA)


_PARTS = ("times", "steps", "values")


def measure_work(metrics: Sequence[TrainingMetric], wanted: str | None) -> tuple[Work, str] | None:
    """Return what a run accomplished by the metric that counts it, and that metric's name; None where none does.

    A throughput says how much was done a second since the point before it; a pause is no longer than usual.

    Args:
        metrics: training metrics.
        wanted: name of the metric a person gives.
    """
    named = choose_throughput([metric.name for metric in metrics], wanted)
    found = next((metric for metric in metrics if named and metric.name == named.name), None)
    if found is None or named is None:
        return None
    known = np.isfinite(found.values) & (found.values >= 0)
    times, values = found.times[known], found.values[known]
    seconds = np.diff(np.unique(times)) / 1e6
    if not len(seconds):
        return None
    usual = float(np.median(seconds))
    waits = np.minimum(np.diff(times, prepend=times[0] - round(usual * 1e6)) / 1e6, _PAUSE_FACTOR * usual)
    amount = float((values * waits).sum())
    return (Work(amount=amount, unit=named.unit or named.name), named.name) if amount > 0 else None

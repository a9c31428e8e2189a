"""Training metrics of a run as curves: every value in the order of time."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gpureport import columns
from gpureport.columns import FloatArray, IntArray

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class TrainingCurve:
    """One training metric of a run.

    Attributes:
        name: of the metric.
        times: of each value, in microseconds since 1970; empty where a value has none.
        values: in the order of time; NaN and infinities as they were logged.
    """

    name: str
    times: IntArray
    values: FloatArray

    @cached_property
    def known(self) -> FloatArray:
        """The values that are numbers."""
        return self.values[np.isfinite(self.values)]

    @property
    def has_diverged(self) -> bool:
        """Whether its last value is no number, as a loss that overflowed."""
        return len(self.values) > 0 and not bool(np.isfinite(self.values[-1]))


def build_training_curves(training: "pa.Table") -> tuple[TrainingCurve, ...]:
    """Return the curve of every training metric, by name.

    Args:
        training: in `series_table.TRAINING_SCHEMA`.
    """
    known = columns.valid(training.column("value"))
    if not len(training) or not known.any():
        return ()
    column: Any = training.column("name")
    names = np.array(column.to_pylist(), dtype=object)
    values, times = columns.floats(training.column("value")), columns.integers(training.column("timestamp"))
    timed = columns.valid(training.column("timestamp"))
    order = np.argsort(times, kind="stable")
    curves = []
    for name in sorted({str(each) for each in names}):
        rows = order[(known & (names == name))[order]]
        if len(rows):
            stamps = times[rows] if timed[rows].all() else np.zeros(0, dtype=np.int64)
            curves.append(TrainingCurve(name=name, times=stamps, values=values[rows]))
    return tuple(curves)

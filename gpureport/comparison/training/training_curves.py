"""Training metrics of a run as curves: every value in the order of time."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gpureport import columns
from gpureport.columns import FloatArray, IntArray
from gpureport.redaction import HIDDEN

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
    """Return the curve of every training metric, by name; a value that is missing was logged as no number.

    A metric with a secret in its name has none: names that differ look alike without it, so that a curve of one run
    could be taken for another one of the next.

    Args:
        training: in `series_table.TRAINING_SCHEMA`.
    """
    column: Any = training.column("name").unify_dictionaries()
    chunks = [chunk for chunk in column.chunks if len(chunk)]
    if not chunks:
        return ()
    codes = np.concatenate([columns.integers(chunk.indices, null=-1) for chunk in chunks])
    values, times = columns.floats(training.column("value")), columns.integers(training.column("timestamp"))
    timed = columns.valid(training.column("timestamp"))
    order = np.lexsort((times, codes))
    curves = []
    for code in columns.present(codes):
        first, stop = np.searchsorted(codes[order], [code, code + 1])
        rows = order[first:stop]
        stamps = times[rows] if timed[rows].all() else np.zeros(0, dtype=np.int64)
        name = chunks[0].dictionary[code].as_py()
        if HIDDEN not in name:
            curves.append(TrainingCurve(name=name, times=stamps, values=values[rows]))
    return tuple(sorted(curves, key=lambda curve: curve.name))

"""Validation metrics of a run, each with the moments it was evaluated at."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpureport import columns
from gpureport.columns import FloatArray, IntArray
from gpureport.recording import Recording
from gpureport.training_names import TrainingName, recognise_evaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluations:
    """Values of one validation metric in the order of time.

    Attributes:
        metric: its name, and what that says of it.
        times: when it was evaluated, in microseconds, never decreasing.
        values: what came out; NaN where that was no finite number.
    """

    metric: TrainingName
    times: IntArray
    values: FloatArray

    @property
    def count(self) -> int:
        """How many evaluations gave a number; values written at one moment are one."""
        return len(np.unique(self.times[~np.isnan(self.values)]))

    @property
    def best_row(self) -> int:
        """Row of the best value, the first of equal ones; there must be a number."""
        return int(np.nanargmin(self.values) if self.metric.falls else np.nanargmax(self.values))

    @property
    def longest_distance(self) -> int:
        """Microseconds between two evaluations at most, 0 with one."""
        return int(np.diff(self.times).max(initial=0))


def find_evaluations(recording: Recording) -> Iterator[Evaluations]:
    """Yield each validation metric of a run, by the first place of its name; points without a time are left out."""
    column: Any = recording.training.column("name").unify_dictionaries()
    chunks = [chunk for chunk in column.chunks if len(chunk)]
    if not chunks:
        return
    codes = np.concatenate([columns.integers(chunk.indices, null=-1) for chunk in chunks])
    timed = columns.valid(recording.training.column("timestamp"))
    times = columns.integers(recording.training.column("timestamp"))
    values = columns.floats(recording.training.column("value"))
    for code, name in enumerate(chunks[0].dictionary.to_pylist()):
        metric = recognise_evaluation(name)
        rows = np.flatnonzero((codes == code) & timed) if metric else np.empty(0, dtype=np.int64)
        if metric and len(rows):
            rows = rows[np.argsort(times[rows], kind="stable")]
            numbers = np.where(np.isfinite(values[rows]), values[rows], np.nan)
            yield Evaluations(metric=metric, times=times[rows], values=numbers)

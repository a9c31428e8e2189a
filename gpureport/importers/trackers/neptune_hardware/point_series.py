"""Points of one series as Neptune holds them."""

from dataclasses import dataclass

import numpy as np

from gpureport.columns import FloatArray, IntArray

STEP_NOT_RECORDED = int(np.iinfo(np.int64).min)
"""Stands for a step that was not recorded."""
STEP_UNITS = 1_000_000
"""Steps are counted in millionths, as Neptune stores them."""


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one series in the order they were logged: microseconds, values, and steps in millionths."""

    times: IntArray
    values: FloatArray
    steps: IntArray

    def by_step(self) -> "Series":
        """Return the points in the order of their steps; those without one stay as they are."""
        order = np.argsort(self.steps, kind="stable")
        return Series(self.times[order], self.values[order], self.steps[order])

    def at(self, times: IntArray) -> "Series":
        """Return the same points at other times."""
        return Series(times, self.values, self.steps)

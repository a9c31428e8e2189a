"""Points of one series as Neptune holds them."""

from dataclasses import dataclass

import numpy as np

from gpureport.columns import FloatArray, IntArray
from gpureport.limits import FIRST_MICROSECOND, LAST_MICROSECOND
from gpureport.units import MOST

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

    def dated(self) -> "Series":
        """Return the points whose time is a date that can be written."""
        known = (self.times >= FIRST_MICROSECOND) & (self.times < LAST_MICROSECOND)
        return self if known.all() else Series(self.times[known], self.values[known], self.steps[known])

    def possible(self) -> "Series":
        """Return the points with NaN for infinities and for values that no measurement reaches."""
        fits = np.abs(self.values) < MOST
        return self if fits.all() else Series(self.times, np.where(fits, self.values, np.nan), self.steps)

    def at(self, times: IntArray) -> "Series":
        """Return the same points at other times."""
        return Series(times, self.values, self.steps)

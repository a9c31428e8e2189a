"""Whether power shows that a GPU rested at low utilisation samples, or worked between them."""

from dataclasses import dataclass

import numpy as np

from gpureport.analysis.thresholds import pragmatic
from gpureport.columns import BoolArray, FloatArray

_ACTIVE = 0.5
"""Utilisation above which a kernel ran most of the time, so that power is that of work."""
_WORKING_LEVEL = 0.5  # half-way between the power of rest and that of work
"""Height above which power is that of work."""
_LEAST_SPAN = 1.0  # W; less between rest and work is the noise of the sensor
_FULL_POWER_QUANTILE = 0.9  # of the power beside busy samples; single peaks are not full work

RESTING_LEVEL = pragmatic(0.10, "1", "of the span from rest to work; the noise of a power sensor stays below it")
"""Height up to which power is that of rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestToWorkPower:
    """Power of one GPU beside its utilisation samples.

    Attributes:
        level: one value a sample, 0 at rest and 1 at work; NaN where it, or either of them, is not known.
        watts: the same in watts, NaN where it is not known.
        working_watts: watts above which a GPU worked in the mean; infinite where that is not known.
    """

    level: FloatArray
    watts: FloatArray
    working_watts: float

    def is_working(self, begin: int, past: int) -> bool:
        """Whether rows [begin, past) draw the power of work in the mean, whatever utilisation says.

        Power averaged over a second sees the work between point samples. Momentary power sees some of it, and none
        where there is none: a run of it that is high in the mean is no gap either.
        """
        known = self.watts[begin:past]
        known = known[~np.isnan(known)]
        return bool(len(known) and known.mean() > self.working_watts)

    def highest_level(self, begin: int, past: int) -> float | None:
        """Return the highest height of rows [begin, past), None where it or that of the rows beside is not known."""
        around = self.level[max(begin - 1, 0) : past + 1]
        return None if np.isnan(around).any() else float(self.level[begin:past].max())

    @property
    def working_samples(self) -> BoolArray:
        """Which samples draw the power of work rather than that of rest."""
        return np.asarray(self.level > _WORKING_LEVEL, dtype=np.bool_)


def scale_power(utilisation: FloatArray, watts: FloatArray, job: BoolArray | slice) -> RestToWorkPower:
    """Return the power beside utilisation samples.

    At rest is the lowest of the job. At work is what nine of ten beside high samples stay below: readings of a moment
    fall into pauses as well.

    Args:
        utilisation: utilisation, one value a sample.
        watts: power, one value a sample.
        job: which samples lie in the job.
    """
    known = ~np.isnan(watts)
    work, within = watts[(utilisation > _ACTIVE) & known], watts[job][known[job]]
    unknown = np.full(len(watts), np.nan)
    if not len(work):
        return RestToWorkPower(level=unknown, watts=watts, working_watts=float("inf"))
    full, rest = float(np.quantile(work, _FULL_POWER_QUANTILE)), float(within.min(initial=np.inf))
    return RestToWorkPower(
        level=(watts - rest) / (full - rest) if rest < full else unknown,
        watts=watts,
        working_watts=estimate_working_watts(watts, (utilisation > _ACTIVE) & known),
    )


def estimate_working_watts(watts: FloatArray, work: BoolArray) -> float:
    """Return the watts above which a GPU works: half-way from the lowest to the median at work.

    It is infinite where power at work is not known.

    Args:
        watts: power, one value a sample, NaN where it is not known.
        work: which samples are of work.
    """
    known = watts[work & ~np.isnan(watts)]
    if not len(known):
        return float("inf")
    floor = float(np.nanmin(watts))
    return floor + _WORKING_LEVEL * max(float(np.median(known)) - floor, _LEAST_SPAN)

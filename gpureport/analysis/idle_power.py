"""What power says of low utilisation samples: that the GPU was at rest all the time, or that it worked between them."""

from dataclasses import dataclass

import numpy as np

from gpureport import columns
from gpureport.columns import BoolArray, FloatArray

_ACTIVE = 0.5
"""Utilisation above which a kernel ran more than not, so that power is that of work; by definition, not measured."""
_HIGH = 0.5
"""Where between its floor and the median at work power begins to show work: half-way, chosen, not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """Power of one GPU beside its utilisation samples.

    Attributes:
        watts: one value a sample, NaN where it is not known.
        working: watts above which a GPU worked in the mean, whatever its utilisation samples say; infinite if unknown.
        height: one value a sample, 0 at rest and 1 at work; NaN where it, or either of them, is not known.
    """

    watts: FloatArray
    working: float
    height: FloatArray

    def works(self, begin: int, past: int) -> bool:
        """Whether rows [begin, past) draw the power of work in the mean.

        Power averaged over a second sees the work between point samples. Momentary power sees some of it, and none
        where there is none: a run of it that is high in the mean is no gap either.
        """
        known = self.watts[begin:past]
        known = known[~np.isnan(known)]
        return bool(len(known) and known.mean() > self.working)

    def highest(self, begin: int, past: int) -> float | None:
        """Return the highest height of rows [begin, past), None where it or that of the rows beside is not known."""
        around = self.height[max(begin - 1, 0) : past + 1]
        return None if np.isnan(around).any() else float(self.height[begin:past].max())


def beside(used: FloatArray, watts: FloatArray, low: BoolArray) -> Power:
    """Return the power beside utilisation samples: at rest is its lowest beside a low one, at work its median.

    Args:
        used: utilisation, one value a sample.
        watts: power, one value a sample.
        low: which samples of the job are low.
    """
    known = ~np.isnan(watts)
    work, rest = watts[(used > _ACTIVE) & known], watts[low & known]
    unknown = np.full(len(watts), np.nan)
    if not len(work):
        return Power(watts=watts, working=float("inf"), height=unknown)
    busy, floor = columns.median(work), float(watts[known].min())
    least = float(rest.min()) if len(rest) else busy
    height = (watts - least) / (busy - least) if least < busy else unknown
    return Power(watts=watts, working=floor + _HIGH * (busy - floor), height=height)

"""Whether power shows that a GPU rested at low utilisation samples, or worked between them."""

import numpy as np

from gpureport.columns import BoolArray, FloatArray
from gpureport.findings import Provenance, Threshold

_ACTIVE = 0.5
"""Utilisation above which a kernel ran most of the time, so that power is that of work."""
WORKING_LEVEL = 0.5  # half-way between the power of rest and that of work
"""Height above which power is that of work."""
_LEAST_SPAN = 1.0  # W; less between rest and work is the noise of the sensor
_FULL_POWER_QUANTILE = 0.9  # of the power beside busy samples; single peaks are not full work

RESTING_LEVEL = Threshold(
    value=0.10,
    unit="1",
    provenance=Provenance.PRAGMATIC,
    source="of the span from rest to work; the noise of a power sensor stays below it",
)
"""Height up to which power is that of rest."""


def scale_power(utilisation: FloatArray, watts: FloatArray) -> FloatArray:
    """Return the power beside utilisation samples: 0 at rest, 1 at work; NaN where it, or either of them, is not known.

    At rest is the lowest. At work is what nine of ten beside high samples stay below: readings of a moment
    fall into pauses as well.
    """
    known = ~np.isnan(watts)
    work = watts[(utilisation > _ACTIVE) & known]
    rest = float(watts[known].min(initial=np.inf))
    full = float(np.quantile(work, _FULL_POWER_QUANTILE)) if len(work) else rest
    return (watts - rest) / (full - rest) if rest < full else np.full(len(watts), np.nan)


def estimate_working_watts(watts: FloatArray, work: BoolArray) -> float:
    """Return the watts above which a GPU works: half-way from the lowest to the median at work.

    It is infinite where power at work is not known.
    """
    known = watts[work & ~np.isnan(watts)]
    if not len(known):
        return float("inf")
    floor = float(np.nanmin(watts))
    return floor + WORKING_LEVEL * max(float(np.median(known)) - floor, _LEAST_SPAN)

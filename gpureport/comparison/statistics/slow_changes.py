"""How far two short recordings of one load may lie apart because it changes more slowly than they are long.

A recording that is shorter than the regimes of a load shows one of them only, however little it scatters. So short
recordings are told apart only by a difference that no change of regime explains.
"""

from math import log

import numpy as np

SHARE_ALLOWANCE = 0.42
"""Largest such difference of a share: regimes of 90 and 50% utilisation, and two points as between any two runs."""

RATIO_ALLOWANCE = 1.85
"""The same as a ratio, of every other figure: 90 against 50, and three per cent."""

_FULL_SECONDS = 120.0
"""Length up to which a recording may hold a single regime."""

LONG_SECONDS = 600.0
"""Length from which the scatter within a recording speaks for itself.

Simulated with 1000 pairs of equal loads for each process of tests/comparison/processes.py: at 30, 60, 120, 300 and
450 s at most 4, 0, 0, 7 and 6% of pairs exceed both the allowance and their own scatter. By their own scatter and two
points alone up to 64, 63, 47, 30 and 32% do. Regimes of 90 and 45%, which no allowance below 43 to 87% covers,
exceed it in 20, 21 and 13% of pairs of 30, 60 and 120 s.
"""

SECONDS_A_SAMPLE = 5.0
"""Seconds that a sample counts for at most: 120 samples make up ten minutes, however far apart they lie."""


def allow_points(seconds: float) -> float:
    """Return the allowance on a share for recordings of which the shorter lasts so long."""
    return SHARE_ALLOWANCE * _remaining_part(seconds)


def allow_logarithm(seconds: float) -> float:
    """Return the allowance on a logarithm."""
    return log(RATIO_ALLOWANCE) * _remaining_part(seconds)


def _remaining_part(seconds: float) -> float:
    return float(np.interp(seconds, (_FULL_SECONDS, LONG_SECONDS), (1.0, 0.0)))

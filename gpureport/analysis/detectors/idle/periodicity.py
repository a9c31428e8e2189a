"""Whether events recur: one period that most distances between their starts are multiples of."""

from dataclasses import dataclass

import numpy as np

from gpureport.analysis.thresholds import pragmatic
from gpureport.columns import BoolArray, FloatArray, IntArray

_CANDIDATES = 200
"""Distances tried as period at most; more events only repeat them."""
_SINGLE = 0.5
"""Share of the agreeing distances that are one period long, at least: else any short distance divides the others."""


STARTS = 4.0  # rows; fewer gaps are no period
STRICT = 0.04  # of the period; a few distances agree so closely only by a cause
LOOSE = 0.10  # of the period, from seven gaps on: steps and checkpoints vary
MANY = 7.0  # rows; so many gaps do not fall into step by chance
AGREE = pragmatic(0.75, "1", "share of the distances; other gaps may lie between")
FEW = 10.0  # rows; with fewer, chance agrees in three of four distances too often
AGREE_FEW = pragmatic(0.90, "1", "distances that vary by 30% pass in 3 of 100 simulated jobs at most, with 75% in 11")


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A period in seconds, the share of distances that agree with it, and which events lie beside one that does."""

    seconds: float
    agreeing: float
    members: BoolArray


def find_period(starts: IntArray) -> Period | None:
    """Return the period of events, the longest of equally good ones, None without one.

    Args:
        starts: when each began, in microseconds, rising.
    """
    if len(starts) < STARTS:
        return None
    distances = np.diff(starts) / 1e6
    tolerance = LOOSE if len(starts) >= MANY else STRICT
    ranks = np.linspace(0, len(distances) - 1, min(len(distances), _CANDIDATES)).round().astype(np.int64)
    fitting = [
        found
        for one in np.unique(np.sort(distances)[ranks]).tolist()
        if (found := _fit_period(distances, one, tolerance))
    ]
    agreeing, seconds = max(fitting, default=(0.0, 0.0))
    if not fitting or agreeing < (AGREE_FEW.value if len(starts) < FEW else AGREE.value):
        return None
    is_multiple = _find_multiples(distances, seconds, tolerance)
    return Period(
        seconds=seconds, agreeing=agreeing, members=np.append(is_multiple, False) | np.insert(is_multiple, 0, False)
    )


def _fit_period(distances: FloatArray, seconds: float, tolerance: float) -> tuple[float, float] | None:
    """Return the share of distances that fit a period near `seconds`, and that period.

    None where most that do are several of it long.
    """
    if seconds <= 0:
        return None
    is_multiple = _find_multiples(distances, seconds, tolerance)
    seconds = float(distances[is_multiple].sum() / np.rint(distances[is_multiple] / seconds).sum())
    is_multiple = _find_multiples(distances, seconds, tolerance)
    fitting = np.count_nonzero(is_multiple)
    if not fitting or np.count_nonzero(np.rint(distances[is_multiple] / seconds) == 1) / fitting < _SINGLE:
        return None
    return fitting / len(is_multiple), seconds


def _find_multiples(distances: FloatArray, seconds: float, tolerance: float) -> BoolArray:
    times = np.rint(distances / seconds)
    return np.asarray((times >= 1) & (np.abs(distances - times * seconds) <= tolerance * seconds), dtype=np.bool_)

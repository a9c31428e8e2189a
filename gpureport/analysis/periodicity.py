"""Whether events recur: one period that most distances between their starts are multiples of."""

from dataclasses import dataclass

import numpy as np

from gpureport.columns import BoolArray, FloatArray, IntArray

_CANDIDATES = 200
"""Distances tried as period at most; more events only repeat them."""
_SINGLE = 0.5
"""Share of the agreeing distances that are one period long, at least: else any short distance divides the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What makes events periodic.

    Attributes:
        starts: events at least.
        strict: how far a distance may lie from a multiple of the period, as a share of it.
        loose: the same from `many` events on.
        many: events from which chance no longer looks like a period so easily.
        agree: share of the distances that must agree.
        few: events below which more of them must.
        agree_few: that share.
    """

    starts: int
    strict: float
    loose: float
    many: int
    agree: float
    few: int
    agree_few: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A period in seconds, the share of distances that agree with it, and which events lie beside one that does."""

    seconds: float
    agreeing: float
    members: BoolArray


def find(starts: IntArray, limits: Limits) -> Period | None:
    """Return the period of events, None where they have none; of several that fit as well, the longest.

    Args:
        starts: when each began, in microseconds, rising.
        limits: what makes them periodic.
    """
    if len(starts) < limits.starts:
        return None
    apart = np.diff(starts) / 1e6
    tolerance = limits.loose if len(starts) >= limits.many else limits.strict
    ranks = np.linspace(0, len(apart) - 1, min(len(apart), _CANDIDATES)).round().astype(np.int64)
    tried = [found for one in np.unique(np.sort(apart)[ranks]).tolist() if (found := _fit(apart, one, tolerance))]
    agreeing, seconds = max(tried, default=(0.0, 0.0))
    if not tried or agreeing < (limits.agree_few if len(starts) < limits.few else limits.agree):
        return None
    fits = _fits(apart, seconds, tolerance)
    return Period(seconds=seconds, agreeing=agreeing, members=np.append(fits, False) | np.insert(fits, 0, False))


def _fit(apart: FloatArray, seconds: float, tolerance: float) -> tuple[float, float] | None:
    """Return the share of distances that fit a period near `seconds`, and that period.

    None where most that do are several of it long.
    """
    if seconds <= 0:
        return None
    fits = _fits(apart, seconds, tolerance)
    seconds = float(apart[fits].sum() / np.rint(apart[fits] / seconds).sum())
    fits = _fits(apart, seconds, tolerance)
    fitting = np.count_nonzero(fits)
    if not fitting or np.count_nonzero(np.rint(apart[fits] / seconds) == 1) / fitting < _SINGLE:
        return None
    return fitting / len(fits), seconds


def _fits(apart: FloatArray, seconds: float, tolerance: float) -> BoolArray:
    times = np.rint(apart / seconds)
    return np.asarray((times >= 1) & (np.abs(apart - times * seconds) <= tolerance * seconds), dtype=np.bool_)

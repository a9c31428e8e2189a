"""When a figure changed: level shifts over a window of nights, never between two alone."""

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from gpureport.nightly.noise import SHORTEST, NightNoise, estimate_noise, estimate_noise_about_levels, fit_levels

if TYPE_CHECKING:
    from gpureport.columns import FloatArray

FEWEST = 10
"""Nights with a value that are needed to detect changes."""

WINDOW = 365
"""The newest nights that are looked at."""

_PENALTY = 5.0
"""What a step costs, in deviations."""

_LIMIT = 4.5
_LIMIT_OF_FEW = 9.0
"""Standard errors a step must have, and how many times more, divided by the nights: few tell less of the noise.

Chosen by simulation of twenty figures over sixty nights at a correlation of 0.5: 20 of 3060 nights raise an alarm, and
a step of five deviations is told by its third night in seven cases of ten. At 4.3 there are 27 such nights; at 4.6
there are 13, and fewer than seven cases.
"""

_APART = 2.5
_YOUNG = 2 * SHORTEST
"""Deviations by which a level younger than so many nights keeps apart, in three of them, from the level beside it.

A single large shock fades over the nights after it, and its mean over three of them is no level.
"""

_LEVEL = 1.96
_LEVEL_OF_FEW = 4.0
"""The same of the ends of a 95% interval."""

_GRADUAL = 0.8
"""How much closer than two levels a straight line must be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelShift:
    """One change of the level of a series: the first value that shows it, and the 95% interval of its size.

    It is gradual where a straight line fits better than the two levels, as a drift.
    """

    place: int
    before: float
    after: float
    low: float
    high: float
    gradual: bool

    @property
    def difference(self) -> float:
        """Level after less level before."""
        return self.after - self.before


def detect_changes(
    values: "FloatArray", *, smallest: float, relative: float = 0.0, grain: float = 0.0
) -> tuple[LevelShift, ...]:
    """Return the changes of a series, the earliest first; only the newest `WINDOW` of its nights are looked at.

    Changes smaller than that size, or that share of the level before, do not matter. The grain is the least deviation
    from night to night to be assumed.
    """
    first = max(len(values) - WINDOW, 0)
    recent = values[first:]
    if len(recent) < FEWEST:
        return ()
    edges = [*fit_levels(recent, _PENALTY * estimate_noise(recent, grain).deviation), len(recent)]
    while True:
        # of each step that is left: one that was none had taken part of the noise with it
        parts = [recent[start:end] for start, end in pairwise(edges)]
        noise = estimate_noise_about_levels(parts, grain)
        signs = []
        for old, new in pairwise(parts):
            before, after, error = noise.levels(old, new)
            size = abs(after - before)
            is_held = _is_occupied(old, before, after, noise) and _is_occupied(new, after, before, noise)
            matters = is_held and size >= max(smallest, relative * abs(before))
            signs.append((size / error if error else np.inf) if matters else 0.0)
        if not signs or min(signs) >= _LIMIT * (1 + _LIMIT_OF_FEW / len(recent)):
            break
        del edges[int(np.argmin(signs)) + 1]
    return tuple(
        _describe_shift(*pair, noise, first + edge, len(recent))
        for pair, edge in zip(pairwise(parts), edges[1:-1], strict=True)
    )


def _is_occupied(values: "FloatArray", level: float, other: float, noise: NightNoise) -> bool:
    """Return whether enough values belong to their level and not to the one beside it."""
    near = np.abs(values - level) < np.abs(values - other)
    if len(values) < _YOUNG:
        near &= (values - other) * np.sign(level - other) > _APART * noise.deviation
    return int(near.sum()) >= SHORTEST


def _describe_shift(old: "FloatArray", new: "FloatArray", noise: NightNoise, place: int, nights: int) -> LevelShift:
    """Return the change at a place, of so many nights that were looked at."""
    before, after, error = noise.levels(old, new)
    # a level lies within its values: of zeros it is zero, without rounding errors
    before, after = (
        min(max(level, float(part.min())), float(part.max())) for level, part in ((before, old), (after, new))
    )
    # with few nights the deviation itself is not well known
    reach = _LEVEL * (1 + _LEVEL_OF_FEW / nights) * error
    low, high = after - before - reach, after - before + reach
    return LevelShift(place=place, before=before, after=after, low=low, high=high, gradual=_is_gradual(old, new))


def _is_gradual(old: "FloatArray", new: "FloatArray") -> bool:
    """Return whether a line is closer to both sides of a step than their levels are."""
    values = np.concatenate([old, new])
    places = np.arange(len(values))
    line = np.polyval(np.polyfit(places, values, 1), places)
    level = np.where(places < len(old), np.median(old), np.median(new))
    by_line, by_levels = (float(np.abs(values - fit).sum()) for fit in (line, level))
    return by_line < _GRADUAL * by_levels


def select_new_shifts(found: tuple[LevelShift, ...], before: tuple[LevelShift, ...]) -> tuple[LevelShift, ...]:
    """Return those of the changes of a series that it does not show without its newest value.

    The beginning of a change may be told differently once more nights are known.
    """
    return tuple(
        step
        for step in found
        if all(abs(step.place - old.place) > SHORTEST or step.difference * old.difference <= 0 for old in before)
    )

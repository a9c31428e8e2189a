"""When a figure changed: level shifts over a window of nights, never between two alone."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from gpureport.nightly.changes.level_fit import SHORTEST, fit_levels
from gpureport.nightly.changes.night_noise import NightNoise, estimate_noise, estimate_noise_about_levels

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

_SAME = SHORTEST
"""Nights by which the beginning of a change may be told differently once more nights are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelShift:
    """One change of the level of a series.

    Attributes:
        place: place of the first value that shows it.
        before: level before.
        after: level after.
        low: lower end of the 95% interval of the difference.
        high: upper end of it.
        gradual: whether a straight line fits better than the two levels, as a drift.
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
    """Return the changes of a series, the earliest first.

    Args:
        values: one a night, without NaN; only the newest `WINDOW` are looked at.
        smallest: size below which a change does not matter, in the unit of the values.
        relative: the same as a share of the level before.
        grain: the least deviation from night to night to be assumed.
    """
    first = max(len(values) - WINDOW, 0)
    recent = values[first:]
    if len(recent) < FEWEST:
        return ()
    edges = [*fit_levels(recent, _PENALTY * estimate_noise(recent, grain).deviation), len(recent)]
    noise = _noise_about_levels(recent, edges, grain)
    while len(edges) > 2:  # noqa: PLR2004 - more than one level
        sizes = [_estimate_levels(recent, edges, at, noise) for at in range(1, len(edges) - 1)]
        signs = [
            _shift_in_errors(*each, matters=max(smallest, relative * abs(each[0])))
            if _are_both_levels_occupied(recent, edges, at, each, noise.deviation)
            else 0.0
            for at, each in enumerate(sizes, 1)
        ]
        least = int(np.argmin(signs))
        if signs[least] >= _LIMIT * (1 + _LIMIT_OF_FEW / len(recent)):
            break
        del edges[least + 1]
        # a step that was none had taken part of the noise with it
        noise = _noise_about_levels(recent, edges, grain)
    return tuple(_describe_shift(recent, edges, at, noise, first) for at in range(1, len(edges) - 1))


def select_new_shifts(found: tuple[LevelShift, ...], before: tuple[LevelShift, ...]) -> tuple[LevelShift, ...]:
    """Return the changes that only the newest value reveals.

    Args:
        found: the changes of a series.
        before: the changes of the series without its newest value.
    """
    return tuple(
        step
        for step in found
        if all(abs(step.place - old.place) > _SAME or step.difference * old.difference <= 0 for old in before)
    )


def _noise_about_levels(values: "FloatArray", edges: list[int], grain: float) -> NightNoise:
    """Return the noise about the levels, which excludes shifts."""
    return estimate_noise_about_levels([values[start:end] for start, end in pairwise(edges)], grain)


def _are_both_levels_occupied(
    values: "FloatArray", edges: list[int], at: int, levels: tuple[float, float, float], deviation: float
) -> bool:
    """Return whether both levels of a step have enough values that are nearer to them."""
    before, after, _ = levels
    old, new = values[edges[at - 1] : edges[at]], values[edges[at] : edges[at + 1]]
    return _is_level_occupied(old, before, after, deviation) and _is_level_occupied(new, after, before, deviation)


def _is_level_occupied(values: "FloatArray", level: float, other: float, deviation: float) -> bool:
    """Return whether enough values belong to their level and not to the one beside it."""
    near = np.abs(values - level) < np.abs(values - other)
    if len(values) < _YOUNG:
        near &= (values - other) * np.sign(level - other) > _APART * deviation
    return int(near.sum()) >= SHORTEST


def _shift_in_errors(before: float, after: float, error: float, *, matters: float) -> float:
    """Return a step's size in standard errors; 0 for one that is too small to matter."""
    size = abs(after - before)
    if size < matters:
        return 0.0
    return size / error if error else float("inf")


def _estimate_levels(values: "FloatArray", edges: list[int], at: int, noise: NightNoise) -> tuple[float, float, float]:
    """Return the levels before and after a step, and the standard error of their difference."""
    return noise.levels(values[edges[at - 1] : edges[at]], values[edges[at] : edges[at + 1]])


def _describe_shift(values: "FloatArray", edges: list[int], at: int, noise: NightNoise, first: int) -> LevelShift:
    old, new, error = _estimate_levels(values, edges, at, noise)
    before = _clamp_to_values(old, values[edges[at - 1] : edges[at]])
    after = _clamp_to_values(new, values[edges[at] : edges[at + 1]])
    # with few nights the deviation itself is not well known
    reach = _LEVEL * (1 + _LEVEL_OF_FEW / len(values)) * error
    return LevelShift(
        place=first + edges[at],
        before=before,
        after=after,
        low=after - before - reach,
        high=after - before + reach,
        gradual=_is_gradual(values[edges[at - 1] : edges[at + 1]], edges[at] - edges[at - 1]),
    )


def widen_interval(shift: LevelShift, finest: float) -> LevelShift:
    """Return a shift whose interval is no finer than its levels are known.

    Args:
        shift: the change.
        finest: part of itself in which a level is known at best, however many nights it lasts.
    """
    least = finest * abs(shift.after)
    low, high = min(shift.low, shift.difference - least), max(shift.high, shift.difference + least)
    return replace(shift, low=low, high=high)


def _clamp_to_values(level: float, values: "FloatArray") -> float:
    """Return a level within its values: of zeros it is zero, without rounding errors."""
    return min(max(level, float(values.min())), float(values.max()))


def _is_gradual(values: "FloatArray", place: int) -> bool:
    """Return whether a line is closer to both sides of a step than their levels are."""
    places = np.arange(len(values))
    line = np.polyval(np.polyfit(places, values, 1), places)
    level = np.where(places < place, np.median(values[:place]), np.median(values[place:]))
    by_line, by_levels = (float(np.abs(values - fit).sum()) for fit in (line, level))
    return by_line < _GRADUAL * by_levels

"""A series fitted by steps: the levels that explain it best when every step costs something."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from gpureport.columns import FloatArray, IntArray

SHORTEST = 3
"""Values a level lasts at least: one or two that lie apart are outliers."""

_MOST_LEVELS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class _PartialFits:
    """The best fits up to some value, one for each level and how long it has lasted.

    Attributes:
        cost: of shape (levels, SHORTEST); the last column is for levels that have lasted long enough.
        start: where the level in force began.
    """

    cost: "FloatArray"
    start: "IntArray"

    def next(self, cost: "FloatArray", place: int, penalty: float) -> "_PartialFits":
        """Return the best fits with one more value.

        Args:
            cost: how far that value is from each level.
            place: its place in the series.
            penalty: what a step costs.
        """
        best = int(np.argmin(self.cost[:, -1]))
        stays = self.cost[:, -1] <= self.cost[:, -2]
        costs = np.column_stack(
            [
                np.full(len(cost), self.cost[best, -1] + penalty),
                self.cost[:, :-2],
                np.where(stays, self.cost[:, -1], self.cost[:, -2]),
            ]
        )
        starts = np.column_stack(
            [
                np.full(len(cost), place),
                self.start[:, :-2],
                np.where(stays, self.start[:, -1], self.start[:, -2]),
            ]
        )
        return _PartialFits(cost=costs + cost[:, None], start=starts)


def fit_levels(values: "FloatArray", penalty: float) -> tuple[int, ...]:
    """Return where each level begins in the fit with the least sum of absolute distances and of penalties.

    It is the exact minimum over levels that are values of the series (quantiles of it where it is long), each held
    for SHORTEST values or longer.

    Args:
        values: the series, without NaN.
        penalty: what a step costs, in the unit of the values.
    """
    count = len(values)
    if count < 2 * SHORTEST:
        return (0,) if count else ()
    levels = np.unique(values)
    if len(levels) > _MOST_LEVELS:
        levels = np.quantile(levels, np.linspace(0, 1, _MOST_LEVELS))
    cost = np.full((len(levels), SHORTEST), np.inf)
    cost[:, 0] = np.abs(values[0] - levels)
    state = _PartialFits(cost=cost, start=np.zeros(cost.shape, dtype=np.int64))
    began = [0]
    for place in range(1, count):
        state = state.next(np.abs(values[place] - levels), place, penalty)
        began.append(int(state.start[np.argmin(state.cost[:, -1]), -1]))
    found, at = [], count
    while at > 0:
        at = began[at - 1]
        found.append(at)
    return tuple(reversed(found))

"""A linear model of categorical factors fitted by least squares, also where the design does not settle every effect."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np

from gpureport.columns import FloatArray

_TOLERANCE = 1e-9
"""Relative size below which a number of the design is one of rounding."""


@dataclass(frozen=True, kw_only=True)
class LinearModel:
    """A constant and one effect for each level of each factor but its first.

    Attributes:
        levels: for every factor the level of each observation, numbered from 0.
        values: the observations.
    """

    levels: tuple[tuple[int, ...], ...]
    values: FloatArray

    @cached_property
    def design(self) -> FloatArray:
        """One row an observation: the constant, then a column a level but the first of each factor."""
        columns = [np.ones(len(self.values))]
        for factor in self.levels:
            codes = np.array(factor)
            columns += [(codes == level).astype(np.float64) for level in range(1, max(factor) + 1)]
        return np.column_stack(columns)

    @cached_property
    def degrees(self) -> int:
        """Observations beyond those that the effects use up: residual degrees of freedom."""
        return len(self.values) - int(np.linalg.matrix_rank(self.design))

    @cached_property
    def residual_squares(self) -> float:
        """Sum of the squares that the model leaves."""
        residuals = self.values - self.design @ (self._inverse @ self.values)
        return float(residuals @ residuals)

    @cached_property
    def _inverse(self) -> FloatArray:
        return np.asarray(np.linalg.pinv(self.design), dtype=np.float64)

    @cached_property
    def _projection(self) -> FloatArray:
        """Onto the contrasts that the design can estimate: it leaves those as they are and changes all others."""
        return np.asarray(self._inverse @ self.design, dtype=np.float64)

    @cached_property
    def _offsets(self) -> list[int]:
        counts = [max(factor) for factor in self.levels]
        return [sum(counts[:place]) for place in range(len(counts))]

    def _contrast(self, factor: int, level: int) -> FloatArray:
        contrast = np.zeros(self.design.shape[1])
        if level:
            contrast[self._offsets[factor] + level] = 1.0
        return contrast

    def is_estimable(self, factor: int) -> bool:
        """Return whether the design tells the effects of a factor apart from those of all others."""
        return all(
            bool(np.abs(contrast @ self._projection - contrast).max() < _TOLERANCE * len(contrast))
            for contrast in (self._contrast(factor, level) for level in range(1, max(self.levels[factor]) + 1))
        )

    def effect(self, factor: int, level: int, finest: float = 0.0) -> tuple[float, float | None]:
        """Return the effect of a level against the first of its factor, and its standard error.

        The error is None where no degree of freedom is left.

        Args:
            factor: one that `is_estimable`.
            level: its level.
            finest: step in which the values were written down; they scatter by rounding at least.
        """
        weights = self._contrast(factor, level) @ self._inverse
        estimate = float(weights @ self.values)
        if self.degrees < 1:
            return estimate, None
        scatter = max(sqrt(self.residual_squares / self.degrees), finest / sqrt(12))
        return estimate, scatter * sqrt(float(weights @ weights))

    def is_additive(self, level: float) -> bool | None:
        """Return whether the factors work independently of each other, as far as repetitions tell.

        The test of lack of fit: what the model leaves beyond the scatter of repetitions, against that scatter. None
        where no setting was repeated, or the model has an effect for every setting.

        Args:
            level: probability with which a design of independent factors passes.
        """
        cells = list(zip(*self.levels, strict=True))
        places = {cell: [at for at, other in enumerate(cells) if other == cell] for cell in dict.fromkeys(cells)}
        pure = sum(float(((self.values[at] - self.values[at].mean()) ** 2).sum()) for at in places.values())
        repeated = len(cells) - len(places)
        misfit = self.degrees - repeated
        if repeated < 1 or misfit < 1 or pure <= 0:
            return None
        ratio = max(self.residual_squares - pure, 0.0) / misfit / (pure / repeated)
        return _fisher_tail(ratio, misfit, repeated) >= 1 - level


def student_tails(ratio: float, degrees: int) -> float:
    """Return the probability that a Student t lies as far from zero as a ratio, on either side."""
    from scipy import special  # noqa: PLC0415 - most commands need none

    return float(2 * special.stdtr(degrees, -abs(ratio)))


def _fisher_tail(ratio: float, above: int, below: int) -> float:
    from scipy import special  # noqa: PLC0415 - as above

    return float(special.fdtrc(above, below, ratio))


def adjust_by_holm(probabilities: Sequence[float]) -> list[float]:
    """Return probabilities of chance adjusted for their number, after S. Holm (1979)."""
    adjusted = [1.0] * len(probabilities)
    reached = 0.0
    for done, place in enumerate(sorted(range(len(probabilities)), key=probabilities.__getitem__)):
        reached = max(reached, min(probabilities[place] * (len(probabilities) - done), 1.0))
        adjusted[place] = reached
    return adjusted

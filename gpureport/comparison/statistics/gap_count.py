"""How much of the time is lost to gaps, and how sure that is when only a few were seen.

A mean over time cannot tell how rare a rare event is. Gaps are therefore counted: they come at random, each of a
length of its own, so that the time lost is a compound Poisson sum, for which M. Fay and E. Feuer (1997) give an
interval that holds for few events.
"""

from dataclasses import dataclass

import numpy as np

from gpureport.columns import BoolArray, FloatArray
from gpureport.comparison.statistics import quantiles


@dataclass(frozen=True, slots=True, kw_only=True)
class GapCount:
    """Gaps as shares of the time they were counted in.

    Attributes:
        lengths: of each gap.
    """

    lengths: tuple[float, ...]

    @property
    def share(self) -> float:
        """Share of the time that gaps took."""
        return float(np.sum(self.lengths))

    def interval(self, level: float) -> tuple[float, float]:
        """Return the ends of the interval that holds the share at a level such as 0.95."""
        tail = (1 - level) / 2
        lengths = np.array(self.lengths)
        total, squares, longest = float(lengths.sum()), float((lengths**2).sum()), float(lengths.max())
        low = squares / total * quantiles.gamma(tail, total**2 / squares)
        more, wider = total + longest, squares + longest**2
        high = wider / more * quantiles.gamma(1 - tail, more**2 / wider)
        return low, min(high, 1.0)


def gap_lengths(idle: BoolArray) -> FloatArray:
    """Return the number of samples of each run of idle ones."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], idle, [False]]).astype(np.int8)))
    return np.asarray(edges[1::2] - edges[::2], dtype=np.float64)

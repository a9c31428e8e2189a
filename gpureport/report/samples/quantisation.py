"""Quantised series, one byte a value: codes 0 to 254 on a linear scale, 255 where there is no value."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpureport.columns import FloatArray

NO_VALUE = 255
"""Code of no value."""

HIGHEST_CODE = 254
"""Highest code of a value."""

_OFF_GRID = 0.02
"""Largest distance of a single-precision value from the grid, as a share of the grid's step."""

_COUNTABLE = 100_000
"""Highest place up to which repeated places are removed by counting, which is faster."""

_EXACT_INTEGERS = 2.0**53
"""Largest integer up to which double precision represents every integer."""

Codes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeScale:
    """What codes stand for: `offset + step * code`.

    Attributes:
        offset: value of code 0.
        step: distance of neighbouring codes; 0 where all values are the same.
        exact: whether every value lies on a code.
    """

    offset: float
    step: float
    exact: bool

    @property
    def error(self) -> float:
        """Return the largest difference between a code and its value."""
        return 0.0 if self.exact else self.step / 2

    def encode(self, values: FloatArray) -> Codes:
        """Return the code nearest to each value, `NONE` where it is NaN."""
        places = values - self.offset
        places /= self.step or 1.0
        np.rint(places, out=places)
        np.clip(places, 0, HIGHEST_CODE, out=places)
        places[np.isnan(places)] = NO_VALUE
        return places.astype(np.uint8)

    def decode(self, codes: Codes) -> FloatArray:
        """Return what codes stand for, NaN for `NONE`."""
        values: FloatArray = self.offset + self.step * codes.astype(np.float64)
        values[codes == NO_VALUE] = np.nan
        return values


def fit_scale(series: Sequence[FloatArray], grid: float) -> CodeScale | None:
    """Return the scale that several series share, None where none of them holds a value.

    It is exact where all values are multiples of `grid` and no more than 255 even steps apart, as whole per cents
    are, and clocks, which move by 15 MHz; else it divides the range.

    Args:
        series: values, NaN where there is none.
        grid: the finest digit that values have; 0 for none, as means have.
    """
    known = [values if known.all() else values[known] for values, known in ((each, ~np.isnan(each)) for each in series)]
    known = [values for values in known if len(values)]
    if not known:
        return None
    low = min(float(values.min()) for values in known)
    high = max(float(values.max()) for values in known)
    return (_fit_exact_scale(known, low, high, grid) if grid else None) or CodeScale(
        offset=low, step=(high - low) / HIGHEST_CODE, exact=low == high
    )


def _fit_exact_scale(known: Sequence[FloatArray], low: float, high: float, grid: float) -> CodeScale | None:
    """Return the coarsest scale that represents all values exactly, None if there is none of at most 255 codes."""
    if max(-low, high) / grid > _EXACT_INTEGERS:
        return None
    step, first = 0, round(low / grid)
    for values in known:
        scaled = values / grid
        places = np.rint(scaled)
        scaled -= places
        if max(scaled.max(), -scaled.min()) > _OFF_GRID:
            return None
        step = _common_divisor(places.astype(np.int64) - first, step)
        if step and (high - low) / grid > HIGHEST_CODE * step + 0.5:
            return None
    return CodeScale(offset=first * grid, step=step * grid, exact=True)


def _common_divisor(places: npt.NDArray[np.int64], step: int) -> int:
    high = int(places.max())
    if high <= _COUNTABLE:
        # divisions take long: each place once, where there are few
        places = np.flatnonzero(np.bincount(places, minlength=high + 1))
    return int(np.gcd.reduce(places, initial=step))

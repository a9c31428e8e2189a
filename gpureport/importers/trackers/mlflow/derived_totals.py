"""What MLflow does not record but its values tell: totals and limits, from a value and its share."""

import numpy as np

from gpureport.columns import FloatArray

_ROUNDING_ERROR = 0.0005
"""Half of the last digit of a share: MLflow rounds per cent to one decimal."""
_LARGE_SHARE = 0.9
_LARGEST_ERROR = 0.02
"""A whole that may be wrong by more than this is not derived (pragmatic)."""


def derive_total(values: FloatArray | None, shares: FloatArray | None) -> float | None:
    """Return the whole of which values are shares, by the largest shares; None where rounding leaves it open.

    Args:
        values: values, NaN where not recorded.
        shares: share of the whole that each is, 0 to 1.
    """
    if values is None or shares is None:
        return None
    known = ~np.isnan(values) & (np.nan_to_num(shares) > 0)
    if not known.any():
        return None
    largest = float(shares[known].max())
    if largest * _LARGEST_ERROR < _ROUNDING_ERROR:
        return None
    surest = known & (np.nan_to_num(shares) >= _LARGE_SHARE * largest)
    return float(np.median(values[surest] / shares[surest]))

"""Totals and limits that MLflow does not record, derived from a value and its share of the total."""

import numpy as np

from gpureport.columns import FloatArray

_ROUNDING_ERROR = 0.0005
"""Half of the last digit of a share: MLflow rounds per cent to one decimal."""
_LARGE_SHARE = 0.9
_LARGEST_ERROR = 0.02
"""A total that may be wrong by more than this share is not derived (pragmatic)."""


def derive_total(values: FloatArray | None, shares: FloatArray | None) -> float | None:
    """Return the total that values are shares of, from the largest shares; None if rounding leaves it open.

    Args:
        values: values, NaN where not recorded.
        shares: the share of the total that each value is, 0 to 1.
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

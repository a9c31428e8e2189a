"""Where a run has settled: after the first work, and after what then still differs from the rest."""

import numpy as np

from gpureport.columns import FloatArray
from gpureport.comparison.statistics import quantiles
from gpureport.comparison.statistics.batch_means import batch_means

_BATCH = 5
"""Samples MSER-5 takes together (K. White, M. Cobb and S. Spratt, 2000)."""

_FEWEST = 10
"""Batches below which nothing is cut off."""

_SURE = 0.99865
"""Probability with which what is cut off must differ from the rest: three standard errors of a normal."""


def settled(values: FloatArray) -> int:
    """Return how many samples at the beginning have not settled, half of them at most.

    MSER-5 says where cutting makes the mean of the rest surest. It also cuts a beginning that happens to hold more
    changes than the rest, which would leave the quiet part of every slowly changing load; so what it names is cut only
    where its mean is another than that of the rest.

    Args:
        values: samples in the order of time, without gaps: MSER-5 would cut up to the last gap.
    """
    cut = _mser(values)
    if cut == 0:
        return 0
    head, rest = values[:cut], values[cut:]
    later = batch_means(rest)
    # the beginning depends on itself as the rest does, so its mean is as much less sure as it is shorter
    error = later.error * np.sqrt(1 + len(rest) / len(head))
    limit = quantiles.student(_SURE, later.degrees) * error
    return cut if abs(float(head.mean()) - later.mean) > limit else 0


def _mser(values: FloatArray) -> int:
    count = len(values) // _BATCH
    if count < _FEWEST:
        return 0
    means = values[: count * _BATCH].reshape(count, _BATCH).mean(axis=1)
    means -= means.mean()
    left = np.arange(count, 0, -1)
    sums, squares = (np.cumsum(each[::-1])[::-1] for each in (means, means**2))
    score = (squares - sums**2 / left) / left**2
    return int(np.argmin(score[: count // 2 + 1])) * _BATCH

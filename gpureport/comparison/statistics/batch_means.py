"""The mean of one series and how sure it is, by the means of batches long enough to hardly depend on each other."""

from dataclasses import dataclass

import numpy as np

from gpureport.columns import FloatArray
from gpureport.comparison.statistics import dependence, quantiles

FEWEST, MOST = 6, 30
"""Batches a series is cut into, whatever its dependence asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchMeans:
    """The mean of a series with its standard error.

    Attributes:
        mean: of all samples.
        error: standard error of the mean.
        degrees: degrees of freedom of the error; 0 where there are too few samples for any.
    """

    mean: float
    error: float
    degrees: int

    def half_width(self, level: float) -> float:
        """Return half the width of the interval that holds the mean at a level such as 0.95."""
        if self.degrees < 1:
            return float("inf")
        return quantiles.student((1 + level) / 2, self.degrees) * self.error


def batch_means(values: FloatArray, finest: float = 0.0) -> BatchMeans:
    """Return the mean of a series of equally long samples, none of them NaN.

    Args:
        values: samples in the order of time.
        finest: step in which values were written down; a mean is no surer than rounding allows.
    """
    count = len(values)
    if count < FEWEST:
        mean = float(values.mean()) if count else float("nan")
        return BatchMeans(mean=mean, error=float("inf"), degrees=0)
    batches = int(np.clip(count // dependence.batch_length(values), FEWEST, MOST))
    length = count // batches
    before = count - batches * length
    means = values[before:].reshape(batches, length).mean(axis=1)
    # of all samples, those before the first batch too, without another pass over them
    mean = (float(values[:before].sum()) + length * float(means.sum())) / count
    error = float(means.std(ddof=1)) / np.sqrt(batches)
    return BatchMeans(mean=mean, error=max(float(error), finest / np.sqrt(12)), degrees=batches - 1)

"""How long a series depends on itself, and how long a batch must be so that batches hardly do."""

import numpy as np

from gpureport.columns import FloatArray

_WINDOW = 5.0
"""Times its own estimate that the window of Sokal's autocorrelation time must span."""

_BATCH = 4.0
"""Autocorrelation times a batch must hold at least."""

_NONE = 1e-24
"""Variance below which a series is constant but for the noise of arithmetic."""

_QUIET = 2.0
"""Standard errors below which Politis and White take a correlation for none."""

_LONG = 16_384
"""Samples from twice which on neighbours are taken together: a transform of all of them costs more than the rest."""

_FEWEST_LAGS = 5
"""Correlations in a row that must be none before the rest is taken for none."""

_LAGS = 4_096
"""Lags looked at first: most series depend on themselves for less, and a shorter transform shows them."""


def autocovariance(values: FloatArray, lags: int | None = None) -> FloatArray:
    """Return the autocovariance by Fourier transform, at the first `lags` lags or at every one."""
    count = len(values)
    lags = count if lags is None else min(lags, count)
    size = _transform(count + lags - 1)
    spectrum = np.fft.rfft(values - values.mean(), size)
    power = np.square(spectrum.real) + np.square(spectrum.imag)
    return np.asarray(np.fft.irfft(power, size)[:lags] / count, dtype=np.float64)


def _transform(fewest: int) -> int:
    """Return the least length that is a power of two, or that and a quarter or a half: those transform quickest."""
    whole = 1 << (fewest - 1).bit_length()
    return next((part for part in (whole // 8 * 5, whole // 4 * 3) if part >= fewest), whole)


def correlation_time(covariance: FloatArray) -> float:
    """Return the integrated autocorrelation time in samples, 1 where samples do not depend on each other.

    Summed up to the first lag that spans five times the sum (A. Sokal, Monte Carlo Methods in Statistical Mechanics,
    1989); where none does, the largest sum.
    """
    within, most = _summed(covariance)
    return most if within is None else within


def _summed(covariance: FloatArray) -> tuple[float | None, float]:
    """Return the correlation time, None where the window lies beyond the lags given, and the largest sum."""
    if len(covariance) < 2 or covariance[0] < _NONE:  # noqa: PLR2004 - one sample depends on nothing
        return 1.0, 1.0
    times = 1 + 2 * np.cumsum(covariance[1:] / covariance[0])
    spanned = np.flatnonzero(np.arange(1, len(times) + 1) >= _WINDOW * times)
    within = max(1.0, float(times[spanned[0]])) if len(spanned) else None
    return within, max(1.0, float(times.max()))


def _last_lag(correlation: FloatArray, longest: int, in_row: int, count: int) -> int:
    quiet = np.abs(correlation[1 : longest + 1]) < _QUIET * np.sqrt(np.log10(count) / count)
    if len(quiet) >= in_row:
        calm = np.flatnonzero(np.convolve(quiet, np.ones(in_row), "valid") >= in_row)
        if len(calm):
            return int(calm[0])
    loud = np.flatnonzero(~quiet)
    return int(loud[-1]) + 1 if len(loud) else 1


def block_length(covariance: FloatArray, count: int | None = None) -> float:
    """Return the block length that the circular block bootstrap needs, at least 1.

    By the automatic rule of D. Politis and H. White (2004), as corrected by Patton, Politis and White (2009).

    Args:
        covariance: at each lag up to three times the root of `count`.
        count: length of the series; that of `covariance` when None.
    """
    count = len(covariance) if count is None else count
    if count < 2 * _FEWEST_LAGS or covariance[0] < _NONE:
        return 1.0
    in_row = max(_FEWEST_LAGS, int(np.ceil(np.sqrt(np.log10(count)))))
    longest = min(int(np.ceil(np.sqrt(count))) + in_row, count - 1)
    last = min(2 * max(_last_lag(covariance / covariance[0], longest, in_row, count), 1), longest)
    lags = np.arange(1, last + 1)
    weights = np.minimum(1.0, 2 * (1 - lags / last))
    spread = covariance[0] + 2 * float((weights * covariance[1 : last + 1]).sum())
    slope = 2 * float((weights * lags * covariance[1 : last + 1]).sum())
    if spread == 0:
        return 1.0
    length = (2 * slope**2 / (4 / 3 * spread**2)) ** (1 / 3) * count ** (1 / 3)
    return float(np.clip(length, 1.0, np.ceil(min(3 * np.sqrt(count), count / 3))))


def batch_length(values: FloatArray) -> float:
    """Return how many samples a batch must hold: by Politis and White, and no less than four correlation times.

    Of a long series the means of a few samples each are looked at. What depends for longer shows in them as well, and
    a batch that holds four of them is still one of thousands.
    """
    every = -(-len(values) // _LONG) if len(values) >= 2 * _LONG else 1
    if every > 1:
        # a sum along short rows: `mean` takes three times as long for its care with long ones
        values = np.einsum("ij->i", values[: len(values) // every * every].reshape(-1, every)) / every
    covariance = autocovariance(values, _LAGS)
    time, _ = _summed(covariance)
    if time is None:
        covariance = autocovariance(values)
        time = correlation_time(covariance)
    return every * max(block_length(covariance, len(values)), _BATCH * time)

"""Quantiles of distributions.

SciPy is loaded when the first is asked for that it gives: most commands never need one. Student's, which every
comparison needs, is worked out here, since loading SciPy takes longer than comparing does.
"""

from functools import cache
from math import exp, lgamma, log, log1p, pi

_STEPS = 1000
"""Steps after which an iteration has long met the last digit of a number, or never will."""

_DIGITS = 1e-15
_TINY = 1e-300


@cache
def student(share: float, degrees: float) -> float:
    """Return the value that a Student t of so many degrees of freedom does not exceed with a probability."""
    if share < 0.5:  # noqa: PLR2004 - it is even about 0
        return -student(1 - share, degrees)
    tail, low, high = 1 - share, 0.0, 1.0
    while _beyond(high, degrees) > tail:
        low, high = high, 2 * high
    # Newton's steps, kept between the ends that are known
    guess, last = (low + high) / 2, low
    for _ in range(_STEPS):
        if abs(guess - last) <= _DIGITS * guess:
            break
        excess = _beyond(guess, degrees) - tail
        low, high = (guess, high) if excess > 0 else (low, guess)
        step = guess + excess / _density(guess, degrees)
        last, guess = guess, step if low < step < high else (low + high) / 2
    return guess


def _log_beta(degrees: float) -> float:
    """Return the logarithm of B(degrees / 2, 1 / 2)."""
    return lgamma(degrees / 2) + log(pi) / 2 - lgamma((degrees + 1) / 2)


def _density(value: float, degrees: float) -> float:
    return exp(-_log_beta(degrees) - (log(degrees) + (degrees + 1) * log1p(value * value / degrees)) / 2)


def _beyond(value: float, degrees: float) -> float:
    """Return the probability of more than a value from 0 on: half an incomplete beta function."""
    square = value * value
    x, rest = degrees / (degrees + square), square / (degrees + square)
    if not rest:
        return 0.5
    power = exp(degrees / 2 * log(x) + log(rest) / 2 - _log_beta(degrees))
    a, b = degrees / 2, 0.5
    if x < (a + 1) / (a + b + 2):
        return power * _fraction(a, b, x) / a / 2
    return 0.5 - power * _fraction(b, a, rest) / b / 2


def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function, term by term from the left (Lentz)."""
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or _TINY)
    whole = d
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for part in (even, odd):
            c, d = 1 + part / c or _TINY, 1 / (1 + part * d or _TINY)
            whole *= c * d
        if abs(c * d - 1) <= _DIGITS:
            break
    return whole


def normal(share: float) -> float:
    """Return the value that a standard normal does not exceed with a probability."""
    from scipy import special  # noqa: PLC0415 - see above

    return float(special.ndtri(share))


def gamma(share: float, shape: float) -> float:
    """Return the value that a gamma of scale 1 does not exceed with a probability."""
    from scipy import special  # noqa: PLC0415 - see above

    return float(special.gammaincinv(shape, share))

"""Quantiles of distributions, by SciPy, which is loaded when the first is asked for: most commands need none."""

from functools import cache


@cache
def student(share: float, degrees: float) -> float:
    """Return the value that a Student t of so many degrees of freedom does not exceed with a probability."""
    from scipy import special  # noqa: PLC0415 - see above

    return float(special.stdtrit(degrees, share))


def gamma(share: float, shape: float) -> float:
    """Return the value that a gamma of scale 1 does not exceed with a probability."""
    from scipy import special  # noqa: PLC0415 - see above

    return float(special.gammaincinv(shape, share))

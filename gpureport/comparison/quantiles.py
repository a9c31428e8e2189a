"""Quantiles of distributions. SciPy is loaded when the first is asked for: most commands never need one."""


def student(share: float, degrees: float) -> float:
    """Return the value that a Student t of so many degrees of freedom does not exceed with a probability."""
    from scipy import special  # noqa: PLC0415 - see above

    return float(special.stdtrit(degrees, share))


def normal(share: float) -> float:
    """Return the value that a standard normal does not exceed with a probability."""
    from scipy import special  # noqa: PLC0415 - see above

    return float(special.ndtri(share))


def gamma(share: float, shape: float) -> float:
    """Return the value that a gamma of scale 1 does not exceed with a probability."""
    from scipy import special  # noqa: PLC0415 - see above

    return float(special.gammaincinv(shape, share))

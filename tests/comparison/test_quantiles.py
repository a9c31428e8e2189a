"""Quantiles: the same as SciPy's."""

import pytest
from scipy import special

from gpureport.comparison import quantiles

SHARES = (0.001, 0.025, 0.2, 0.5, 0.51, 0.8, 0.9, 0.95, 0.975, 0.995, 0.9999)
DEGREES = (1.0, 1.3, 2.0, 3.7, 9.0, 19.0, 38.4, 120.0, 999.5, 100_000.0)


@pytest.mark.parametrize("degrees", DEGREES)
@pytest.mark.parametrize("share", SHARES)
def test_a_student_quantile_is_that_of_scipy(share: float, degrees: float) -> None:
    """Few and broken degrees of freedom as well as many, both sides of the middle."""
    assert quantiles.student(share, degrees) == pytest.approx(special.stdtrit(degrees, share), rel=1e-9, abs=1e-12)

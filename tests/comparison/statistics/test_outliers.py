"""The one value that stands apart from repetitions."""

import pytest

from gpureport.comparison.statistics.outliers import find_outlier


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ([1.0, 1.01, 0.99, 1.02, 3.0], 4),
        ([3.0, 1.01, 0.99], 0),
        ([1.0, 1.3, 0.7, 1.5], None),
        ([1.0, 1.001, 1.1], None),
        ([1.0, 3.0], None),
        ([1.0, 1.0, 3.0, 3.0], None),
    ],
)
def test_a_value_stands_apart_from_others_that_agree(values: list[float], place: int | None) -> None:
    """It is far from them, and they are not far from each other; of two nobody knows which."""
    found = find_outlier(values, 0.18)
    assert (found and found.place) == place

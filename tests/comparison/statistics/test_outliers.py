"""The one value that stands apart from repetitions."""

import numpy as np
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


@pytest.mark.parametrize("runs", [3, 4, 5, 8])
def test_equal_repetitions_seldom_hold_one(runs: int) -> None:
    """In one set of twenty at most, however much they scatter; a slow one among five close ones is found."""
    random = np.random.default_rng(5)
    sets = random.normal(0, 0.3, (2000, runs)).tolist()
    assert sum(find_outlier(values, 0.1) is not None for values in sets) <= 0.06 * len(sets)

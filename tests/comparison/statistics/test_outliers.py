"""The one value that stands apart from repetitions."""

from math import log

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


@pytest.mark.parametrize("deviation", [0.1, 0.2])
@pytest.mark.parametrize("runs", [3, 4, 6])
def test_values_that_scatter_by_chance_seldom_stand_apart(runs: int, deviation: float) -> None:
    """In one case of twenty at most, and next to never so that it is sure."""
    random, rounds = np.random.default_rng(11), 3000
    found = [find_outlier(list(random.normal(0, deviation, runs)), log(1.2)) for _ in range(rounds)]
    assert sum(each is not None for each in found) / rounds < 0.055
    assert sum(each is not None and each.is_sure for each in found) / rounds < 0.003


@pytest.mark.parametrize(
    ("values", "is_sure"),
    [([3.0, 1.01, 0.99], False), ([1.0, 1.01, 0.99, 1.02, 3.0], True), ([1.0, 1.0, 1.3], False)],
)
def test_few_values_are_no_evidence_to_leave_one_out(values: list[float], *, is_sure: bool) -> None:
    """Two that agree may do so by chance, or by rounding."""
    found = find_outlier(values, 0.18, 0.003)
    assert found is not None
    assert found.is_sure == is_sure


@pytest.mark.parametrize("runs", [3, 4, 5, 8])
def test_equal_repetitions_seldom_hold_one(runs: int) -> None:
    """In one set of twenty at most, however much they scatter; a slow one among five close ones is found."""
    random = np.random.default_rng(5)
    sets = random.normal(0, 0.3, (2000, runs)).tolist()
    assert sum(find_outlier(values, 0.1) is not None for values in sets) <= 0.06 * len(sets)

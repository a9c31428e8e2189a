"""The difference of steps from the figures of their runs."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.comparison.estimate import Basis, DifferenceEstimate, estimate_between_runs

FIGURES = st.lists(st.floats(0.0, 1.0), min_size=2, max_size=6)


def between(before: list[float], after: list[float], finest: float = 0.0) -> DifferenceEstimate:
    found = estimate_between_runs(before, after, finest)
    assert found is not None
    return found


def test_welch_from_three_runs_a_side() -> None:
    """By hand: means 2 and 5, variances 1 and 4, so an error of sqrt(5/3) on 3.88 degrees of freedom."""
    found = between([1.0, 2.0, 3.0], [3.0, 5.0, 7.0])
    low, high = found.interval(0.95)
    assert (found.difference, found.basis) == (3.0, Basis.REPLICATES)
    assert [low, high] == pytest.approx([3 - 2.810 * np.sqrt(5 / 3), 3 + 2.810 * np.sqrt(5 / 3)], abs=0.005)
    # two runs a side are pooled: an error of 1/sqrt(2) on two degrees of freedom, 4.303 of them
    low, high = between([1.0, 2.0], [5.0, 6.0]).interval(0.95)
    assert [low, high] == pytest.approx([4 - 4.303 * np.sqrt(0.5), 4 + 4.303 * np.sqrt(0.5)], abs=0.001)
    # two figures say nothing of how far runs lie apart; three do
    assert estimate_between_runs([1.0], [2.0]) is None
    assert estimate_between_runs([], [1.0, 2.0, 3.0]) is None
    assert estimate_between_runs([1.0], [2.0, 3.0]) is not None


def test_runs_that_agree_to_the_digit_scatter_by_rounding() -> None:
    assert not between([0.97] * 3, [0.971] * 3, 0.01).excludes_zero()
    assert between([0.97] * 3, [0.99] * 3, 0.01).excludes_zero()


def test_no_number_of_runs_tells_more_than_their_samples() -> None:
    for runs in (3, 30):
        found = estimate_between_runs([23.0] * runs, [24.0] * runs, 0.1, least=1.5)
        assert found is not None
        assert found.interval(0.95) == pytest.approx((-0.5, 2.5))
    rough, plain = (estimate_between_runs([1.0, 2.0, 3.0], [3.0, 5.0, 7.0], least=least) for least in (0.5, 0.0))
    assert rough is not None
    assert plain is not None
    assert rough.interval(0.95) == plain.interval(0.95)


def test_three_runs_a_side_keep_their_promise() -> None:
    """Steps without a difference, one of which scatters more: 4 to 7% of 4000 intervals leave zero out."""
    for ratio in (1.0, 2.0, 5.0):
        rng = np.random.default_rng(8)
        false = [
            between(rng.normal(0, 1, 3).tolist(), rng.normal(0, ratio, 3).tolist()).excludes_zero() for _ in range(4000)
        ]
        assert 0.03 < np.mean(false) < 0.07, ratio


@given(FIGURES, FIGURES, st.randoms())
def test_the_order_of_repetitions_changes_nothing_and_that_of_steps_the_sign(
    before: list[float], after: list[float], rng: Random
) -> None:
    first, second = list(before), list(after)
    for side in (first, second):
        rng.shuffle(side)
    one, other = between(before, after), between(first, second)
    assert (one.difference, one.interval(0.95)) == (other.difference, other.interval(0.95))
    low, high = one.interval(0.9)
    swapped = between(after, before).interval(0.9)
    assert [low, high] == pytest.approx([-swapped[1], -swapped[0]])


def test_a_difference_as_large_as_the_detectable_one_is_shown_four_times_in_five() -> None:
    """2000 comparisons of five runs against five that lie so far apart."""
    rng = np.random.default_rng(7)
    sizes = [between(rng.normal(0, 1, 5).tolist(), rng.normal(0, 1, 5).tolist()).detectable for _ in range(2000)]
    size = float(np.mean(sizes))
    shown = [
        between(rng.normal(0, 1, 5).tolist(), rng.normal(size, 1, 5).tolist()).excludes_zero() for _ in range(2000)
    ]
    assert np.mean(shown) == pytest.approx(0.8, abs=0.05)

"""Effects of categorical factors: what a design tells, how sure, and whether factors work independently."""

import numpy as np
import pytest

from gpureport.comparison.effects import LinearModel, adjust_by_holm, student_tails

BALANCED = ((0, 0, 0, 0, 1, 1, 1, 1), (0, 0, 1, 1, 0, 0, 1, 1))


def model(levels: tuple[tuple[int, ...], ...], values: list[float]) -> LinearModel:
    return LinearModel(levels=levels, values=np.array(values))


def test_effects_of_a_balanced_design_are_differences_of_means() -> None:
    """2 and 3, with a residual of 0.1 at each: five degrees of freedom, the error as by hand."""
    noise = [0.1, -0.1] * 4
    values = [1 + 2 * a + 3 * b + e for a, b, e in zip(*BALANCED, noise, strict=True)]
    found = model(BALANCED, values)
    assert found.degrees == 5
    scatter = np.sqrt(8 * 0.1**2 / 5)
    for place, effect in ((0, 2.0), (1, 3.0)):
        assert found.is_estimable(place)
        assert found.effect(place, 1) == pytest.approx((effect, scatter * np.sqrt(2 / 4)))
    assert found.is_additive(0.95)


def test_an_unbalanced_design_takes_the_other_factor_into_account() -> None:
    """Of values without scatter the effects are exact, though the means of the levels are not."""
    levels = ((0, 0, 0, 1, 1), (0, 0, 1, 1, 1))
    found = model(levels, [1 + 2 * a + 3 * b for a, b in zip(*levels, strict=True)])
    assert [found.effect(place, 1)[0] for place in (0, 1)] == pytest.approx([2, 3])


def test_factors_that_change_together_are_not_told_apart() -> None:
    """Neither has an effect of its own; a third beside them has."""
    levels = ((0, 0, 1, 1), (0, 0, 1, 1), (0, 1, 0, 1))
    found = model(levels, [1.0, 2.0, 5.0, 6.0])
    assert [found.is_estimable(place) for place in range(3)] == [False, False, True]
    assert found.effect(2, 1)[0] == pytest.approx(1)


def test_no_run_left_leaves_no_error() -> None:
    """Three runs of three levels."""
    found = model(((0, 1, 2),), [1.0, 2.0, 4.0])
    assert found.degrees == 0
    change, error = found.effect(0, 2)
    assert (round(change, 9), error) == (3.0, None)
    assert found.is_additive(0.95) is None
    # values that agree scatter by rounding: a step of 0.3 gives each 0.3 through the root of twelve
    alike = model(((0, 0, 1, 1),), [1.0, 1.0, 2.0, 2.0])
    assert alike.effect(0, 1, finest=0.3) == pytest.approx((1.0, 0.3 / np.sqrt(12)))


def test_an_interaction_is_seen() -> None:
    """The second factor works only with the first: repetitions are far too close for independent factors."""
    values = [5 * a * b + e for a, b, e in zip(*BALANCED, [0.1, -0.1] * 4, strict=True)]
    assert model(BALANCED, values).is_additive(0.95) is False


def test_probabilities_are_adjusted_step_by_step() -> None:
    """The smallest by their number, each next by one less, none below the one before."""
    assert adjust_by_holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert adjust_by_holm([]) == []
    assert student_tails(2.776445, 4) == pytest.approx(0.05, abs=1e-6)


@pytest.mark.slow
def test_intervals_hold_the_effect_as_often_as_they_say() -> None:
    """Of 2000 studies with six repetitions missing at random, 95 in 100; false claims after Holm in 5 of 100."""
    rng = np.random.default_rng(7)
    held = claimed = told = 0
    full = [(a, b) for a in range(3) for b in range(3) for _ in range(3)]
    for _ in range(2000):
        chosen = [full[place] for place in sorted(rng.choice(len(full), 21, replace=False))]
        levels = tuple(tuple(each) for each in zip(*chosen, strict=True))
        found = model(levels, list(rng.normal(0, 0.02, len(chosen))))
        chances = []
        for place in (0, 1):
            for level in (1, 2):
                estimate, error = found.effect(place, level)
                assert error is not None
                chances.append(student_tails(estimate / error, found.degrees))
        held += sum(chance > 0.05 for chance in chances)
        told += len(chances)
        claimed += min(adjust_by_holm(chances)) <= 0.05
    assert 0.94 < held / told < 0.96
    assert claimed / 2000 < 0.06

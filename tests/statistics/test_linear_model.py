"""Effects of categorical factors: what a design tells, how sure, and whether factors work independently."""

import numpy as np
import pytest

from gpureport.comparison.estimate import find_holm_levels
from gpureport.comparison.study import LinearModel

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
        # Student's t of 5 degrees of freedom is 2.571
        reach = 2.5706 * scatter * np.sqrt(2 / 4)
        assert found.effect(place, 1).interval(0.95) == pytest.approx((effect - reach, effect + reach), abs=1e-4)
    assert found.is_additive(0.95)


def test_an_unbalanced_design_takes_the_other_factor_into_account() -> None:
    levels = ((0, 0, 0, 1, 1), (0, 0, 1, 1, 1))
    found = model(levels, [1 + 2 * a + 3 * b for a, b in zip(*levels, strict=True)])
    assert [found.effect(place, 1).change for place in (0, 1)] == pytest.approx([2, 3])


def test_factors_that_change_together_are_not_told_apart() -> None:
    levels = ((0, 0, 1, 1), (0, 0, 1, 1), (0, 1, 0, 1))
    found = model(levels, [1.0, 2.0, 5.0, 6.0])
    assert [found.is_estimable(place) for place in range(3)] == [False, False, True]
    assert found.effect(2, 1).change == pytest.approx(1)


def test_no_run_left_leaves_no_error() -> None:
    found = model(((0, 1, 2),), [1.0, 2.0, 4.0])
    assert found.degrees == 0
    change = found.effect(0, 2)
    assert (round(change.change, 9), change.excludes_zero(0.5)) == (3.0, False)
    assert found.is_additive(0.95) is None
    # values that agree scatter by rounding: a step of 0.3 gives each 0.3 through the root of twelve
    alike = model(((0, 0, 1, 1),), [1.0, 1.0, 2.0, 2.0])
    low, high = alike.effect(0, 1, finest=0.3).interval(0.95)
    assert (low + high, high - low) == pytest.approx((2.0, 2 * 4.3027 * 0.3 / np.sqrt(12)), abs=1e-4)


def test_an_interaction_is_seen() -> None:
    values = [5 * a * b + e for a, b, e in zip(*BALANCED, [0.1, -0.1] * 4, strict=True)]
    assert model(BALANCED, values).is_additive(0.95) is False


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
        effects = [found.effect(place, level) for place in (0, 1) for level in (1, 2)]
        held += sum(not effect.excludes_zero(0.95) for effect in effects)
        told += len(effects)
        levels_left = find_holm_levels(effects)
        claimed += any(one.excludes_zero(level) for one, level in zip(effects, levels_left, strict=True))
    assert 0.94 < held / told < 0.96
    assert claimed / 2000 < 0.06

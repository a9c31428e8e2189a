"""Changes are told by levels over many nights."""

from itertools import pairwise

import numpy as np
import pytest

from gpureport.columns import FloatArray
from gpureport.nightly.changes.change_detection import FEWEST, detect_changes, select_new_shifts
from gpureport.nightly.changes.level_fit import SHORTEST, fit_levels
from gpureport.nightly.changes.night_noise import estimate_noise
from tests.nightly.made import course

UTILISATION = "gpu_utilization_ratio"


def quiet(seed: int, nights: int = 60) -> FloatArray:
    """Return a utilisation that stays as it is, in per cent."""
    return 100 * course(UTILISATION, nights, np.random.default_rng(seed))


def cost(values: FloatArray, starts: tuple[int, ...], penalty: float) -> float:
    """Return what a fit by medians costs."""
    edges = [*starts, len(values)]
    parts = [values[start:end] for start, end in pairwise(edges)]
    return sum(float(np.abs(part - np.median(part)).sum()) for part in parts) + penalty * (len(parts) - 1)


def fits(count: int, start: int = 0) -> list[tuple[int, ...]]:
    """Return every way to cut a series into levels that last long enough."""
    if count - start < SHORTEST:
        return []
    whole = [(start,)]
    return whole + [
        (start, *rest) for cut in range(start + SHORTEST, count - SHORTEST + 1) for rest in fits(count, cut)
    ]


@pytest.mark.parametrize("seed", range(30))
def test_fit_is_the_best_of_all(seed: int) -> None:
    """No other way to cut a short series costs less than the one found."""
    rng = np.random.default_rng(seed)
    values = np.round(rng.normal(size=13) + rng.choice([0, 4], 13).cumsum() % 9, 1)
    penalty = float(rng.uniform(0.5, 6))
    best = min(cost(values, each, penalty) for each in fits(13))
    assert cost(values, fit_levels(values, penalty), penalty) == pytest.approx(best)


def test_step_is_found_with_its_size_on_the_third_night() -> None:
    """A step of eight spreads shows once three nights have it, where it began; its interval holds its size."""
    values = quiet(3)
    values[30:] -= 4.8
    assert detect_changes(values[:32], smallest=0.5) == ()
    (found,) = detect_changes(values[:33], smallest=0.5)
    assert found.place == 30
    assert found.low < -4.8 < found.high < 0
    assert found.difference == pytest.approx(-4.8, abs=1)
    assert not found.gradual
    (later,) = detect_changes(values, smallest=0.5)
    assert later.high - later.low < found.high - found.low


def test_a_step_of_five_spreads_is_told_by_its_third_night() -> None:
    """In two of three series at least; the noise of thirty nights is not known well enough for more."""
    told = 0
    for seed in range(60):
        values = quiet(seed, 33)
        values[30:] -= 3.0
        told += any(abs(step.place - 30) <= 1 for step in detect_changes(values, smallest=0.5))
    assert told >= 40


def test_the_level_of_nights_that_are_the_same_is_their_value() -> None:
    """Of zeros it is zero, not what rounding left of it, which would be shown with a sign."""
    for nights in range(10, 40):
        (found,) = detect_changes(np.repeat([0.0, 2.0], [nights, 3]), smallest=0.5, grain=0.5) or (None,)
        assert found is None or (found.before, found.after) == (0.0, 2.0)
    (found,) = detect_changes(np.repeat([0.0, 2.0], [30, 10]), smallest=0.5, grain=0.5)
    assert (found.before, found.after, found.difference) == (0.0, 2.0, 2.0)


def test_a_shock_that_fades_is_no_level() -> None:
    """Three nights of which each is about a third as far off as the one before are no step."""
    for seed in range(20):
        values = quiet(seed, 33)
        values[30:] -= 0.6 * np.array([8.0, 3.0, 1.0])
        assert detect_changes(values, smallest=0.5) == ()


@pytest.mark.parametrize("outliers", [[40], [40, 41], [59], [58, 59], [10], [20, 40]])
@pytest.mark.parametrize("size", [-80.0, -6.0, 12.0])
def test_outliers_are_no_change(outliers: list[int], size: float) -> None:
    """One night or two that lie apart change nothing, at the end of the series either."""
    for seed in range(5):
        values = quiet(seed)
        values[outliers] += size
        assert detect_changes(values, smallest=0.5) == ()


def test_slow_drift_is_found_and_called_one() -> None:
    """A drift of a quarter of the spread a night is found, and said to be gradual."""
    values = quiet(4)
    values[10:] -= 0.15 * np.arange(50)
    found = detect_changes(values, smallest=0.5)
    assert found
    assert all(step.difference < 0 for step in found)
    assert any(step.gradual for step in found)


def test_few_nights_say_nothing() -> None:
    """Below ten nights nothing is said, whatever they hold."""
    values = np.array([90.0] * 4 + [10.0] * 5)
    assert len(values) < FEWEST
    assert detect_changes(values, smallest=0.5) == ()
    assert detect_changes(np.zeros(0), smallest=0.5) == ()


def test_too_small_to_matter() -> None:
    """A change below the size that matters is none, however sure it is; a constant series is sure of any other."""
    values = np.array([70.0] * 20 + [70.4] * 20)
    assert detect_changes(values, smallest=0.5) == ()
    assert detect_changes(values, smallest=0.0, relative=0.01) == ()
    (found,) = detect_changes(values, smallest=0.3)
    assert found.place == 20
    assert [found.low, found.high] == pytest.approx([0.4, 0.4])


def test_scale_and_sign_change_nothing() -> None:
    """The same nights in another unit, or turned over, change in the same nights."""
    values = quiet(5)
    values[30:] += 5
    places = [step.place for step in detect_changes(values, smallest=0.0)]
    assert places
    assert [step.place for step in detect_changes(values * 2.0**30, smallest=0.0)] == places
    assert [step.place for step in detect_changes(-values, smallest=0.0)] == places


def test_noise_is_told_beside_steps_and_outliers() -> None:
    """The spread about levels is told within a third of itself, a step and an outlier in the series or not."""
    for seed in range(10):
        values = quiet(seed, 120)
        expected = estimate_noise(values, 0.0).deviation
        values[60:] += 20
        values[20] -= 40
        assert estimate_noise(values, 0.0).deviation == pytest.approx(expected, rel=0.33)


def test_only_what_is_new_is_news() -> None:
    """A change the night before knew, perhaps a night or two off, is no news; one of the other sign is."""
    values = quiet(3)
    values[30:] -= 4.8
    before, now, later = (detect_changes(values[:nights], smallest=0.5) for nights in (32, 33, 34))
    assert select_new_shifts(now, before) == now
    assert select_new_shifts(later, now) == ()
    values[31:] += 9.6
    assert len(select_new_shifts(detect_changes(values, smallest=0.5), now)) == 1

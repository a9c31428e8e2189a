"""How sure the mean of one run is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.comparison import estimate
from tests.statistics.processes import autoregressive, processes

IDLE = 5.0


def measure(values: np.ndarray) -> estimate.MeanEstimate:
    return estimate.estimate_mean(values, values <= IDLE)


def test_dependence_of_a_known_process() -> None:
    """An AR(1) of 0.9 has a time of (1 + 0.9) / (1 - 0.9) = 19 samples; white noise one of 1.

    For an AR(1) of 0.5 the rule gives blocks of (1.5 * n * (2 * rho / (1 - rho^2))^2)^(1/3) samples.
    """
    rng = np.random.default_rng(1)
    long = estimate.find_correlation_time(estimate.find_autocovariance(autoregressive(200_000, 0.9, 1.0, rng)))
    white = estimate.find_correlation_time(estimate.find_autocovariance(rng.standard_normal(200_000)))
    assert long == pytest.approx(19, rel=0.1)
    assert white == pytest.approx(1, abs=0.1)
    series = autoregressive(100_000, 0.5, 1.0, rng)
    expected = (1.5 * 100_000 * (2 * 0.5 / 0.75) ** 2) ** (1 / 3)
    assert estimate.find_block_length(estimate.find_autocovariance(series)) == pytest.approx(expected, rel=0.15)
    assert estimate.find_block_length(estimate.find_autocovariance(rng.standard_normal(10_000))) < 8


def test_a_long_series_is_cut_as_all_its_samples_ask_for() -> None:
    """Of 100,000 samples neighbours are taken together: batches are as many, and hold no fewer correlation times."""
    for process in processes():
        values = process.make(100_000, np.random.default_rng(4))
        covariance = estimate.find_autocovariance(values)
        every = max(estimate.find_block_length(covariance), 4 * estimate.find_correlation_time(covariance))
        assert estimate.find_batch_length(values) > 0.8 * every, process.name
        assert estimate.batch_means(values).degrees + 1 == np.clip(len(values) // every, 6, 30), process.name


def test_a_constant_is_as_sure_as_it_was_written_down() -> None:
    found = estimate.batch_means(np.full(600, 0.97), 0.01)
    assert [found.mean, found.error] == pytest.approx([0.97, 0.01 / np.sqrt(12)])
    assert estimate.batch_means(np.full(600, 0.97)).error == pytest.approx(0, abs=1e-12)
    # five samples make no six batches; Student's t of 9 degrees of freedom is 2.262
    assert estimate.batch_means(np.arange(5.0)).interval(0.95) == (-np.inf, np.inf)
    assert estimate.MeanEstimate(mean=0.0, error=1.0, degrees=9).interval(0.95)[1] == pytest.approx(2.262, abs=0.001)


def test_the_gamma_interval_of_equal_gaps_is_that_of_a_count() -> None:
    """Ten gaps of one length: the exact Poisson interval of ten, 4.80 to 18.39."""
    low, high = estimate.find_gap_share_interval((1.0e-3,) * 10, 0.95)
    assert [low * 1000, high * 1000] == pytest.approx([4.795, 18.39], abs=0.005)


def test_a_few_gaps_are_counted_and_widen_the_interval_downwards() -> None:
    values = np.full(1200, 90.0) + autoregressive(1200, 0.5, 1.0, np.random.default_rng(3))
    values[200:220] = values[600:620] = values[900:920] = 0.0
    found = measure(values)
    low, high = found.interval(0.95)
    assert (found.seen, len(found.gaps)) == (3, 3)
    assert found.mean - low > 1.5 * (high - found.mean) > 0
    assert not measure(np.tile(values[150:250], 30)).gaps


def test_intervals_hold_the_mean() -> None:
    """An hour of each process, 60 times: the mean lies inside about as often as promised."""
    for process in processes():
        rng = np.random.default_rng(4)
        intervals = [measure(process.make(3600, rng)).interval(0.95) for _ in range(60)]
        assert sum(low <= process.mean <= high for low, high in intervals) >= 50, process.name


def test_two_runs_of_one_process_seldom_differ() -> None:
    """A/A at an autocorrelation of 0.9: an hour against an hour, at most 7% of intervals leave zero out."""
    rng = np.random.default_rng(5)
    false = 0
    for _ in range(200):
        before, after = (measure(50 + autoregressive(3600, 0.9, 5.0, rng)) for _ in range(2))
        false += estimate.estimate_within_runs(before, after).excludes_zero()
    assert false <= 14


def test_a_slow_beginning_is_cut_off_and_slow_changes_are_not() -> None:
    rng = np.random.default_rng(6)
    begun = 90 + autoregressive(3600, 0.6, 2.0, rng)
    begun[:242] -= 40
    assert estimate.count_unsettled(begun) in range(240, 251)
    assert estimate.count_unsettled(90 + autoregressive(3600, 0.6, 2.0, rng)) == 0
    slow = processes()[5]
    cut = [estimate.count_unsettled(slow.make(1200, rng)) for _ in range(60)]
    assert np.mean(np.array(cut) > 0) < 0.2
    assert estimate.count_unsettled(np.arange(20.0)) == 0


@given(st.lists(st.floats(0, 100), min_size=40, max_size=200), st.floats(0.5, 0.99))
def test_the_mean_lies_in_its_interval(values: list[float], level: float) -> None:
    found = measure(np.array(values))
    low, high = found.interval(level)
    wide = found.interval(0.995)
    assert low <= found.mean <= high
    assert wide[0] <= low + 1e-9
    assert wide[1] >= high - 1e-9
    contrast = estimate.estimate_within_runs(found, found)
    low, high = contrast.interval(0.95)
    assert contrast.difference == 0
    assert low <= 0 <= high

"""Estimates: differences of means, intervals of a series, models of several settings, and what more data would do."""

from math import exp, expm1, inf, log
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.comparison import estimate
from gpureport.comparison.estimate import Basis, DifferenceEstimate, estimate_between_runs, find_holm_levels
from gpureport.comparison.study import LinearModel
from gpureport.comparison.verdict import (
    RunInterval,
    estimate_interval_of_next_run,
    estimate_runs_for_interval,
    find_smallest_ratio,
    measure_run_interval,
)
from gpureport.testing import Work
from tests.statistics.processes import autoregressive, processes
from tests.statistics.runs import PER_WORK, UTILISATION, compared, delta, level, made
from tests.support.tables import read_table


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
    # in any order, to the last digit: 0.1 + 0.2 + 0.4 is not 0.1 + 0.4 + 0.2
    one, other = (between(before, [0.5, 0.6, 0.8]) for before in ([0.1, 0.2, 0.4], [0.1, 0.4, 0.2]))
    assert (one.difference, one.interval(0.95)) == (other.difference, other.interval(0.95))
    # two figures say nothing of how far runs lie apart; three do
    assert estimate_between_runs([1.0], [2.0]) is None
    assert estimate_between_runs([], [1.0, 2.0, 3.0]) is None
    assert estimate_between_runs([1.0], [2.0, 3.0]) is not None


def test_samples_bound_what_runs_tell() -> None:
    assert not between([0.97] * 3, [0.971] * 3, 0.01).excludes_zero()
    assert between([0.97] * 3, [0.99] * 3, 0.01).excludes_zero()
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


def test_a_difference_as_large_as_the_detectable_one_is_shown_four_times_in_five() -> None:
    """2000 comparisons of five runs against five that lie so far apart."""
    rng = np.random.default_rng(7)
    sizes = [between(rng.normal(0, 1, 5).tolist(), rng.normal(0, 1, 5).tolist()).detectable for _ in range(2000)]
    size = float(np.mean(sizes))
    shown = [
        between(rng.normal(0, 1, 5).tolist(), rng.normal(size, 1, 5).tolist()).excludes_zero() for _ in range(2000)
    ]
    assert np.mean(shown) == pytest.approx(0.8, abs=0.05)


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


def test_a_constant_is_as_sure_as_written_and_a_long_series_cut_as_asked() -> None:
    # Of 100,000 samples neighbours are taken together: batches are as many, and hold no fewer correlation times.
    for process in processes():
        values = process.make(100_000, np.random.default_rng(4))
        covariance = estimate.find_autocovariance(values)
        every = max(estimate.find_block_length(covariance), 4 * estimate.find_correlation_time(covariance))
        assert estimate.find_batch_length(values) > 0.8 * every, process.name
        assert estimate.batch_means(values).degrees + 1 == np.clip(len(values) // every, 6, 30), process.name
    found = estimate.batch_means(np.full(600, 0.97), 0.01)
    assert [found.mean, found.error] == pytest.approx([0.97, 0.01 / np.sqrt(12)])
    assert estimate.batch_means(np.full(600, 0.97)).error == pytest.approx(0, abs=1e-12)
    # five samples make no six batches; Student's t of 9 degrees of freedom is 2.262
    assert estimate.batch_means(np.arange(5.0)).interval(0.95) == (-np.inf, np.inf)
    assert estimate.MeanEstimate(mean=0.0, error=1.0, degrees=9).interval(0.95)[1] == pytest.approx(2.262, abs=0.001)


def test_gaps_are_counted_and_intervals_hold_the_mean() -> None:
    # Ten gaps of one length: the exact Poisson interval of ten, 4.80 to 18.39.
    low, high = estimate.find_gap_share_interval((1.0e-3,) * 10, 0.95)
    assert [low * 1000, high * 1000] == pytest.approx([4.795, 18.39], abs=0.005)
    values = np.full(1200, 90.0) + autoregressive(1200, 0.5, 1.0, np.random.default_rng(3))
    values[200:220] = values[600:620] = values[900:920] = 0.0
    found = measure(values)
    low, high = found.interval(0.95)
    assert (found.seen, len(found.gaps)) == (3, 3)
    assert found.mean - low > 1.5 * (high - found.mean) > 0
    assert not measure(np.tile(values[150:250], 30)).gaps
    # An hour of each process, 60 times: the mean lies inside about as often as promised.
    for process in processes():
        rng = np.random.default_rng(4)
        intervals = [measure(process.make(3600, rng)).interval(0.95) for _ in range(60)]
        assert sum(low <= process.mean <= high for low, high in intervals) >= 50, process.name


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


def model(levels: tuple[tuple[int, ...], ...], values: list[float]) -> LinearModel:
    return LinearModel(levels=levels, values=np.array(values))


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


@pytest.mark.parametrize(("runs", "spread"), [(3, 0.013), (5, 0.02), (5, 0.005)])
def test_a_run_like_the_baseline_keeps_a_rule_of_the_smallest_size(runs: int, spread: float) -> None:
    """In at least 19 of 20 cases the change of an identical run is known and within the size."""
    random, kept, rounds = np.random.default_rng(7), 0, 2000
    for _ in range(rounds):
        baseline, new = random.normal(0, spread, runs), float(random.normal(0, spread))
        half = estimate_interval_of_next_run(list(baseline), 0.0, 0.0)
        size, change = find_smallest_ratio(half), new - float(baseline.mean())
        value, upper = np.expm1([change, change + half])
        kept += bool(upper <= size or (value <= size and upper - value <= size))
    assert kept / rounds >= 0.95


def test_runs_narrow_an_interval_and_its_smallest_size() -> None:
    for sides, half, least, wanted, repeated, runs in read_table(Path(__file__).with_name("needed.tsv")):
        before, after = map(int, sides.split())
        now = RunInterval(counts=(before, after), half_width=float(half), least=float(least))
        found = estimate_runs_for_interval(now, float(wanted), on_both=repeated == "both")
        assert str(found or "-") == runs, (sides, half, least, wanted)
    # three runs that spread by 1.3% hold a rule of 8%
    values = [log(1 - 0.013), 0.0, log(1 + 0.013)]
    assert find_smallest_ratio(estimate_interval_of_next_run(values, 0.0, 0.0)) == pytest.approx(0.071, abs=0.002)
    assert find_smallest_ratio(0.99) == pytest.approx(exp(1.98) - exp(0.99))
    assert (find_smallest_ratio(1.0), estimate_interval_of_next_run([0.0], 0.0, 0.0)) == (inf, inf)


def test_only_work_has_an_error_that_more_runs_keep() -> None:
    """A work figure is known to one sample of the recording, here to 1 s of 299 s; a share is not so limited."""
    comparison = compared(
        *(
            made(f"{step}{k}", step=step, util=level(80, 300, k), work=Work(amount=100 + k, unit="steps"))
            for step, runs in (("a", 3), ("b", 2))
            for k in range(runs)
        )
    )
    for metric, share in ((UTILISATION, 0.0), (PER_WORK, expm1(1 / 299))):
        found = delta(comparison, metric)
        for repeat_base, counts in ((True, (3, 2)), (False, (2, 3))):
            now = measure_run_interval(found, (0.1, 0.4), *comparison.steps, repeat_base=repeat_base)
            assert now.counts == counts
            assert now[1:] == pytest.approx((0.15, share * found.before)), (metric, repeat_base)

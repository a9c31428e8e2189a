"""How many runs narrow an interval between runs, and the size one more run can be held to."""

from math import inf, log

import numpy as np
import pytest

from gpureport.comparison.verdict import (
    RunInterval,
    estimate_interval_of_next_run,
    estimate_runs_for_interval,
    find_smallest_ratio,
)


def interval(half_width: float, least: float = 0.0) -> RunInterval:
    return RunInterval(counts=(3, 1), half_width=half_width, least=least)


def test_runs_narrow_an_interval() -> None:
    assert estimate_runs_for_interval(interval(0.04), 0.05) == 3
    assert estimate_runs_for_interval(interval(0.10), 0.05) == 9
    assert estimate_runs_for_interval(interval(0.10), 0.05, on_both=True) == 3
    # the side that can get more is counted, whether it is the larger or the smaller
    for counts, runs in (((2, 4), 4), ((4, 2), 9), ((1, 4), 2)):
        now = RunInterval(counts=counts, half_width=0.10, least=0.0)
        assert estimate_runs_for_interval(now, 0.075) == runs, counts


def test_no_number_of_runs_narrows_what_all_are_off_by() -> None:
    assert estimate_runs_for_interval(interval(0.06, least=0.06), 0.03) is None
    assert estimate_runs_for_interval(interval(0.06), 0.0) is None


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


def test_the_smallest_size_grows_with_the_scatter() -> None:
    """Three runs that spread by 1.3% hold a rule of 8%."""
    values = [log(1 - 0.013), 0.0, log(1 + 0.013)]
    assert find_smallest_ratio(estimate_interval_of_next_run(values, 0.0, 0.0)) == pytest.approx(0.071, abs=0.002)
    assert find_smallest_ratio(2.0) == inf

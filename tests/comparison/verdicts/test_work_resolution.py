"""The interval of a change between runs, and what narrows it."""

from dataclasses import replace

import pytest

from gpureport.comparison.chain.step_comparison import compare
from gpureport.comparison.verdicts.work_resolution import build_run_interval
from tests.checks.test_baseline_changes import worked


def test_a_change_without_an_interval_is_not_one_of_width_zero() -> None:
    """It is refused, not taken to be known exactly."""
    runs = [worked(f"old {each}", each).in_step("old") for each in (59.2, 60.0, 60.8)]
    comparison = compare([*runs, worked("new", 60.2).in_step("new")])
    delta = comparison.judged("old", "new")
    assert delta is not None
    assert delta.interval is not None
    found = build_run_interval(delta, *comparison.steps)
    assert found.counts == (3, 1)
    assert found.half_width == pytest.approx((delta.interval[1] - delta.interval[0]) / 2)
    assert found.least == pytest.approx((delta.before or 0.0) / 592, rel=0.01)
    assert found.seconds == pytest.approx(59.2, abs=0.2)
    with pytest.raises(ValueError, match="has no interval"):
        build_run_interval(replace(delta, interval=None), *comparison.steps)

"""A training metric of one run: its end, its best value, its spread."""

import numpy as np
import pytest

from gpureport.comparison.quality.run_quality import count_last, measure_run_quality, measure_spread
from gpureport.comparison.training.training_curves import build_training_curves
from gpureport.series_table import empty_training
from gpureport.testing import recording, with_training
from tests.comparison.quality.learning_curves import run_with_curves
from tests.comparison.runs import level, sampled


@pytest.mark.parametrize(("count", "last"), [(0, 0), (1, 1), (2, 2), (3, 2), (4, 2), (5, 3), (20, 3), (100, 10)])
def test_final_value_never_rests_on_one_value_where_there_are_more(count: int, last: int) -> None:
    """A tenth of the values, and of few values some of the last."""
    assert count_last(count) == last


def test_final_value_is_the_mean_of_the_last_tenth() -> None:
    """One outlier among the last ten moves it by a tenth."""
    seconds, values = np.arange(100) * 5.0, np.append(np.full(99, 0.7), 0.2)
    run = run_with_curves("a", val_accuracy=(seconds, values))
    assert measure_run_quality(run, run.training[0], higher_is_better=True).final == pytest.approx(0.65)


def test_best_value_depends_on_the_direction() -> None:
    """The first of the best values, in seconds since the start of the job; none without a direction."""
    run = run_with_curves("a", metric=(np.array([100.0, 200.0, 300.0, 400.0]), np.array([0.1, np.nan, 0.9, 0.9])))
    best = {way: measure_run_quality(run, run.training[0], higher_is_better=way) for way in (True, False, None)}
    assert [each.best for each in best.values()] == [0.9, 0.1, None]
    assert [each.best_seconds for each in best.values()] == [pytest.approx(300, abs=1), pytest.approx(100, abs=1), None]


def test_spread_leaves_out_what_the_run_still_learns() -> None:
    """A straight rise has none; scatter about it is found."""
    rise = np.linspace(0.2, 0.8, 200)
    assert measure_spread(rise) == pytest.approx(0, abs=1e-9)
    assert measure_spread(rise + np.random.default_rng(1).normal(0, 0.01, 200)) == pytest.approx(0.01, rel=0.25)
    assert measure_spread(rise[:2]) is None


def test_a_run_that_ends_without_a_number_has_diverged() -> None:
    """Its last values before are not where it ended."""
    run = run_with_curves("a", loss=(np.arange(5) * 60.0, np.array([2.0, 1.0, 3.0, np.inf, np.nan])))
    found = measure_run_quality(run, run.training[0], higher_is_better=False)
    assert (found.final, found.best, found.diverged) == (None, 1.0, True)


def test_curves_are_in_the_order_of_time() -> None:
    """Whatever the order of the rows."""
    points = [(50.0, 5, "loss", 0.5), (10.0, 1, "loss", 0.9), (10.0, 1, "acc", 0.1)]
    run = sampled("a", util=level(90, 100), training=points)
    curves = {curve.name: curve.values.tolist() for curve in run.training}
    assert curves == {"acc": [0.1], "loss": [0.9, 0.5]}
    assert build_training_curves(empty_training()) == ()


def test_a_missing_value_was_logged_as_no_number() -> None:
    """As trackers hold one: the run ended without a number."""
    made = with_training(recording(util=[90.0] * 100), [(10.0, "loss", 0.9), (20.0, "acc", 0.5), (30.0, "loss", None)])
    acc, loss = build_training_curves(made.training)
    assert (acc.name, acc.has_diverged, loss.name, loss.has_diverged) == ("acc", False, "loss", True)

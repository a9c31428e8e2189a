"""The time until a metric first reached a value, against curves whose crossing is known."""

from dataclasses import replace
from math import log

import numpy as np
import pytest

from gpureport.comparison.chain.step_comparison import compare
from gpureport.comparison.quality.time_to_target import (
    MissingTarget,
    measure_run_time_to_target,
    measure_time_to_target,
)
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.steps.step_figures import SECONDS_TO_TARGET
from gpureport.comparison.steps.steps import Step
from gpureport.comparison.training.training_curves import TrainingCurve
from gpureport.comparison.training.training_goals import QualityTarget, TrainingGoals
from gpureport.testing import Comparison, Delta, ReasonKind, Verdict
from tests.comparison.quality.learning_curves import LearningCurve, run_with_curves

GOALS = TrainingGoals(target=QualityTarget(name="val_accuracy", value=0.7))


def crossing(curve: LearningCurve, value: float) -> float:
    """Return when a curve without scatter reaches a value."""
    return -curve.constant * log((curve.end - value) / (curve.end - curve.start))


def learning(name: str, step: str, constant: float, end: float = 0.8, price: float | None = None) -> SampledRun:
    """Return a run whose accuracy approaches a level, logged every two seconds."""
    curve = LearningCurve(end=end, constant=constant, points=300, scatter=0, between=0)
    made = run_with_curves(name, val_accuracy=(curve.seconds(), curve.values(np.random.default_rng(0))))
    analysis = replace(made.analysis, run=replace(made.analysis.run, step=step, id=name, name=name))
    return replace(made, analysis=analysis, gpu_hour_price=price)


def to_target(comparison: Comparison) -> Delta:
    """Return the time to the target in the last step against the first."""
    base, step = comparison.steps[0].label, comparison.steps[-1].label
    return next(delta for delta in comparison.between(base, step) if delta.metric == SECONDS_TO_TARGET)


@pytest.mark.parametrize("constant", [40.0, 80.0, 150.0])
def test_time_to_target_is_that_of_the_first_value_beyond_it(constant: float) -> None:
    """Within the two seconds that values are apart, with the GPU time and the cost until then."""
    run = learning("a", "a", constant, price=2.0)
    found = measure_run_time_to_target(run, GOALS)
    truth = crossing(LearningCurve(end=0.8, constant=constant), 0.7)
    assert found.seconds is not None
    assert truth <= found.seconds + 1 <= truth + 3.1
    assert found.gpu_seconds == pytest.approx(found.seconds)
    assert found.cost == pytest.approx(found.seconds / 3600 * 2)


def test_a_loss_reaches_its_target_from_above() -> None:
    """Its direction is known by its name."""
    run = run_with_curves("a", val_loss=([60.0, 120.0, 180.0], [0.9, 0.5, 0.6]))
    goals = TrainingGoals(target=QualityTarget(name="val_loss", value=0.5))
    assert measure_run_time_to_target(run, goals).seconds == pytest.approx(120, abs=1)


@pytest.mark.parametrize(
    ("curves", "missing"),
    [
        ({}, MissingTarget.NOT_RECORDED),
        ({"val_loss": ([60.0], [0.9])}, MissingTarget.NOT_RECORDED),
        ({"val_accuracy": ([60.0, 90.0], [0.3, float("nan")])}, MissingTarget.NOT_REACHED),
        ({"val_accuracy": ([-60.0, 90.0], [0.8, 0.9])}, MissingTarget.BEFORE_RECORDING),
    ],
)
def test_a_run_without_a_time_says_why(
    curves: dict[str, tuple[list[float], list[float]]], missing: MissingTarget
) -> None:
    """No time is never a time of 0."""
    found = measure_run_time_to_target(run_with_curves("a", **curves), GOALS)
    assert (found.seconds, found.gpu_seconds, found.missing) == (None, None, missing)


def test_values_without_times_tell_no_time() -> None:
    """They are known, but not when."""
    curve = TrainingCurve(name="val_accuracy", times=np.zeros(0, dtype=np.int64), values=np.array([0.9]))
    run = replace(run_with_curves("a"), training=(curve,))
    assert measure_run_time_to_target(run, GOALS).missing is MissingTarget.NO_TIMES


def test_a_step_has_a_time_only_where_each_run_reached_it() -> None:
    """Those that did must not speak for those that did not."""
    runs = (learning("a", "s", 40.0), learning("b", "s", 90.0))
    step = Step(label="s", runs=runs, measures=())
    each = [measure_run_time_to_target(run, GOALS).seconds or 0 for run in runs]
    whole = measure_time_to_target(step, GOALS)
    assert whole is not None
    assert whole.seconds == pytest.approx((each[0] * each[1]) ** 0.5)
    lame = measure_time_to_target(replace(step, runs=(*runs, learning("c", "s", 40.0, end=0.6))), GOALS)
    assert lame is not None
    assert (lame.seconds, lame.reached, lame.runs[2].missing) == (None, 2, MissingTarget.NOT_REACHED)
    assert measure_time_to_target(step, TrainingGoals()) is None


def test_repetitions_show_which_step_is_sooner() -> None:
    """As a ratio, whose interval their scatter gives."""
    runs = [
        learning(f"{step}{k}", step, by * (1 + k / 50)) for step, by in (("a", 80.0), ("b", 40.0)) for k in range(3)
    ]
    found = to_target(compare(runs, goals=GOALS))
    assert (found.verdict, found.basis, found.unit) == (Verdict.BETTER, "replicates", "s")
    assert found.after is not None
    assert found.before is not None
    assert found.after / found.before == pytest.approx(0.5, abs=0.02)


def test_single_runs_claim_nothing_of_it() -> None:
    """A fifth is what seeds alone commonly change."""
    sooner = to_target(compare([learning("a", "a", 80.0), learning("b", "b", 40.0)], goals=GOALS))
    alike = to_target(compare([learning("a", "a", 80.0), learning("b", "b", 70.0)], goals=GOALS))
    assert (sooner.verdict, alike.verdict) == (Verdict.UNCONFIRMED, Verdict.NO_CLEAR_CHANGE)


@pytest.mark.parametrize(
    ("runs", "ends", "verdict"),
    [
        (1, (0.8, 0.6), Verdict.UNCONFIRMED),
        (2, (0.8, 0.6), Verdict.WORSE),
        (2, (0.6, 0.8), Verdict.BETTER),
        (2, (0.6, 0.6), Verdict.NOT_ENOUGH_DATA),
    ],
)
def test_a_target_that_one_step_never_reached(runs: int, ends: tuple[float, float], verdict: Verdict) -> None:
    """A step that never gets there is worse, though it has no time."""
    made = [learning(f"{s}{k}", s, 60.0, end=end) for s, end in zip("ab", ends, strict=True) for k in range(runs)]
    found = to_target(compare(made, goals=GOALS))
    assert found.verdict is verdict
    assert found.reason is not None
    assert found.reason.kind is ReasonKind.TARGET_NOT_REACHED
    assert (found.before is None, found.after is None) == (ends[0] < 0.7, ends[1] < 0.7)


def test_without_a_target_there_is_no_such_figure() -> None:
    """Nor a column for it."""
    comparison = compare([learning("a", "a", 80.0), learning("b", "b", 40.0)])
    assert SECONDS_TO_TARGET not in {delta.metric for delta in comparison.deltas}

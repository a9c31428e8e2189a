"""Limits on training metrics and on the time to a target, of a run and since a baseline."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from gpureport.checks.policy import LimitScope, Policy, PolicyEntry, parse_option_limit
from gpureport.checks.policy_evaluation import CheckInput, evaluate_policy
from gpureport.checks.training_figures import TrainedRun
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.training.training_goals import NO_GOALS, QualityTarget, TrainingGoals
from gpureport.testing import Check, CheckOutcome, Work, recording
from tests.comparison.quality.learning_curves import run_with_curves
from tests.comparison.runs import sampled
from tests.nightly.nights import KINDS, TODAY, changed, priced

PASSED, BROKEN, CANNOT = CheckOutcome.PASSED, CheckOutcome.BROKEN, CheckOutcome.CANNOT_JUDGE
MINUTES = [60.0 * minute for minute in range(1, 9)]
ACCURACY = [0.2, 0.5, 0.7, 0.76, 0.8, 0.79, 0.79, 0.79]
LOSS = [2.0, 1.0, 0.6, 0.5, 0.4, 0.45, 0.45, 0.45]
GOALS = TrainingGoals(better=(("my metric", False),), target=QualityTarget(name="val_accuracy", value=0.75))


def trained(curves: Mapping[str, Sequence[float]] | None = None) -> SampledRun:
    """Return a run of ten minutes with training metrics, one value a minute."""
    known = {"val_accuracy": ACCURACY, "val_loss": LOSS, "my metric": LOSS} if curves is None else curves
    return run_with_curves("a", **{name: (MINUTES, values) for name, values in known.items()})


def held(limit: str, run: SampledRun, goals: TrainingGoals = GOALS, *, gpu: int | None = None) -> Check:
    """Return the check of one limit on a run."""
    scope = LimitScope() if gpu is None else LimitScope(gpus=(gpu,))
    given = CheckInput(
        analyses=(run.analysis,),
        selected_kinds=KINDS,
        today=TODAY,
        training={run.analysis.run.id: TrainedRun(run=run, goals=goals)},
    )
    (check,) = evaluate_policy(Policy(entries=(PolicyEntry(limit=parse_option_limit(limit), scope=scope),)), given)
    return check


@pytest.mark.parametrize(
    ("limit", "outcome", "observed"),
    [
        ("val_accuracy >= 0.78", PASSED, "0.790"),
        ("val_accuracy >= .8", BROKEN, "0.790"),
        ("val_accuracy >= 78%", PASSED, "79%"),
        ("val_accuracy best >= 0.8", PASSED, "0.800"),
        ("val_loss <= 0.4", BROKEN, "0.450"),
        ("val_loss best <= 0.4", PASSED, "0.400"),
        ('training "my metric" best <= 0.3', BROKEN, "0.400"),
        ("seconds_to_target <= 5 min", PASSED, "4 min to val_accuracy=0.75"),
        ("seconds_to_target <= 3 min", BROKEN, "4 min to val_accuracy=0.75"),
        ("gpu_seconds_to_target <= 0.1 GPU-h", PASSED, "4 min to val_accuracy=0.75"),
    ],
)
def test_training_metrics_are_held_against_limits(limit: str, outcome: CheckOutcome, observed: str) -> None:
    """The final value if none is named; the time until the first value beyond the target."""
    check = held(limit, trained())
    assert (check.outcome, check.observed.replace("\N{NO-BREAK SPACE}", " ")) == (outcome, observed)


@pytest.mark.parametrize(
    ("limit", "curves", "goals", "reason"),
    [
        (
            "val_accuracy >= 0.7",
            {},
            GOALS,
            "no training metrics are known; give them with --training FILE or a tracker",
        ),
        ("val_accuracy >= 0.7", {"loss": LOSS}, GOALS, "val_accuracy was not recorded; recorded were loss"),
        ("training gain best >= 1", {"gain": LOSS}, GOALS, "whether a higher gain is better is not known"),
        ("seconds_to_target <= 1 h", None, NO_GOALS, "no target is given: --target NAME=VALUE"),
        (
            "seconds_to_target <= 1 h",
            {"val_loss": LOSS},
            GOALS,
            "val_accuracy was not recorded; recorded were val_loss",
        ),
        ("gpu_seconds_to_target <= 1 h", {"val_accuracy": LOSS[4:]}, GOALS, "the target was never reached"),
        ("cost_to_target <= 1 EUR", None, GOALS, "the price of a GPU-hour is not known"),
    ],
)
def test_what_is_not_known_cannot_be_judged(
    limit: str, curves: dict[str, list[float]] | None, goals: TrainingGoals, reason: str
) -> None:
    """Each with why."""
    values = None if curves is None else {name: (each * 8)[:8] for name, each in curves.items()}
    check = held(limit, trained(values), goals)
    assert (check.outcome, check.value) == (CANNOT, None)
    assert reason in check.reason


@pytest.mark.parametrize("limit", ["val_loss <= 1", "val_loss >= 0", "val_accuracy >= 50%"])
def test_training_that_diverged_breaks_every_limit_on_its_end(limit: str) -> None:
    """A last value that is not a number is worse than any bound; the best value before may still hold."""
    run = trained({name: [*ACCURACY[:7], float("nan")] for name in ("val_loss", "val_accuracy")})
    check = held(limit, run)
    assert (check.outcome, check.value, check.observed) == (
        BROKEN,
        None,
        "diverged: the last value is not a number",
    )
    assert held("val_accuracy best >= 0.8", run).outcome is PASSED


def test_a_run_that_never_reached_the_target_breaks_only_limits_it_outlasted() -> None:
    """How long it would have taken is not known, and is not 0."""
    run = trained({"val_accuracy": [0.1 + minute / 100 for minute in range(8)]})
    short, long = held("seconds_to_target <= 5 min", run), held("seconds_to_target <= 1 h", run)
    assert (short.outcome, short.value, short.bounds) == (BROKEN, None, None)
    assert short.observed.replace("\N{NO-BREAK SPACE}", " ") == "val_accuracy=0.75 was never reached in 8 min"
    assert (long.outcome, long.value) == (CANNOT, None)
    assert held("seconds_to_target >= 5 min", run).outcome is PASSED


def test_cost_to_the_target_is_in_the_currency_of_the_prices() -> None:
    """As any other cost."""
    run = replace(trained(), analysis=priced(recording(util=[90.0] * 600, power=300.0)), gpu_hour_price=2.0)
    assert held("cost_to_target <= 0.2 EUR", run).outcome is PASSED
    assert held("cost_to_target <= 0.1 EUR", run).outcome is BROKEN
    other = held("cost_to_target <= 1 USD", run)
    assert (other.outcome, other.reason) == (CANNOT, "prices are stated in EUR, not in USD")


def test_training_metrics_are_of_no_single_gpu() -> None:
    """A scope of GPUs is a mistake that must not pass in silence."""
    check = held("val_accuracy >= 0.1", trained(), gpu=0)
    assert (check.outcome, check.reason) == (CANNOT, "training metrics are of the whole run: leave gpu out of for")


def night(name: str, end: float) -> SampledRun:
    """Return a run whose accuracy ends at a value."""
    made = run_with_curves(name, val_accuracy=(MINUTES, [0.2, 0.5, *[end] * 6]))
    return replace(made, analysis=replace(made.analysis, run=replace(made.analysis.run, id=name, name=name, step="s")))


@pytest.mark.parametrize(
    ("limit", "ends", "outcome"),
    [
        ("change val_accuracy >= -0.05", (0.79, 0.78), PASSED),
        ("change val_accuracy >= -5 points", (0.79, 0.6), BROKEN),
        ("change val_accuracy >= -10%", (0.79, 0.6), BROKEN),
        ("change val_accuracy >= -0.01", (0.79, 0.79), CANNOT),
        ("change training other >= -1", (0.79, 0.79), CANNOT),
        ("change seconds_to_target <= 50%", (0.79, 0.79), CANNOT),
        ("change val_accuracy >= -0.9", (0.79, float("nan")), BROKEN),
    ],
)
def test_changes_since_a_baseline(limit: str, ends: tuple[float, float], outcome: CheckOutcome) -> None:
    """A change is broken beyond what repeating a run plausibly changes, and a size within it cannot be judged."""
    (check,) = changed(limit, [night("old", ends[0])], [night("new", ends[1])])
    assert check.outcome is outcome, check.reason


def test_an_accuracy_in_per_cent_is_a_share_all_the_same() -> None:
    """A limit of 78% means 78 of 100; points of what is not a share mean nothing."""
    curves = {"val_accuracy": [value * 100 for value in ACCURACY], "my metric": LOSS}
    assert held("val_accuracy >= 78%", trained(curves)).outcome is PASSED
    assert held("val_accuracy >= 80%", trained(curves)).outcome is BROKEN
    assert held("val_accuracy >= 78", trained(curves)).outcome is PASSED
    sides = [[night("old", 79.0)], [night("new", 60.0)]]
    (check,) = changed("change val_accuracy >= -5 points", sides[0], sides[1])
    assert check.outcome is BROKEN
    assert check.value == pytest.approx(-0.19)
    losses = [[run_with_curves(name, val_loss=(MINUTES, LOSS))] for name in "ab"]
    (check,) = changed("change val_loss <= 5 points", losses[0], losses[1])
    assert (check.outcome, "is not a share" in check.reason) == (CANNOT, True)


def test_repetitions_narrow_a_change() -> None:
    """Their own scatter gives the interval."""
    before, after = ([night(f"{end}-{k}", end + k / 1000) for k in range(3)] for end in (0.79, 0.785))
    (check,) = changed("change val_accuracy >= -0.01", before, after)
    assert (check.outcome, check.reason) == (PASSED, "3 baseline runs, 3 checked")


@pytest.mark.parametrize(("limit", "outcome"), [(">= 19 /s", PASSED), (">= 21 /s", BROKEN)])
def test_the_rate_of_training_alone_leaves_out_the_start_up(limit: str, outcome: CheckOutcome) -> None:
    """12,000 steps in ten minutes after five of start-up are 20 a second, without a throughput."""
    util = np.concatenate([np.zeros(300), np.full(600, 90.0)])
    run = sampled("a", util=util, work=Work(amount=12_000, unit="steps"))
    check = held(f"training_rate_hertz {limit}", run)
    assert check.outcome is outcome
    assert check.value == pytest.approx(20, rel=0.01)


def test_a_training_rate_needs_work() -> None:
    """Neither stated nor logged."""
    check = held("training_rate_hertz >= 19 /s", sampled("a", util=np.full(600, 90.0)))
    assert check.outcome is CANNOT
    assert "log a throughput, or say the work done with --work" in check.reason

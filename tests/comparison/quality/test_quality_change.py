"""How well two steps trained: what is compared, and which verdict it gets."""

from collections.abc import Callable

import numpy as np
import pytest

from gpureport.comparison.quality.quality_change import QualityChange
from gpureport.comparison.steps.steps import Step
from gpureport.comparison.training.training_goals import TrainingGoals
from gpureport.testing import Verdict
from tests.comparison.quality.learning_curves import LearningCurve, compared_quality, run_with_curves, step_of

SEEDS = 100
LOSS_BELOW = 0.7
"""Level of the first step from which on curves are accuracies."""
SMALL_DROPS = {1: 0.1, 3: 0.08}
"""Drops that are warned of in each of 100 pairs, by runs a step."""


def step_with(label: str, *runs: dict[str, list[float]]) -> Step:
    """Return a step whose runs logged some values, one a minute."""
    made = tuple(
        run_with_curves(
            f"{label}-{place}",
            **{name: (np.arange(len(values)) * 60.0, np.array(values)) for name, values in run.items()},
        )
        for place, run in enumerate(runs)
    )
    return Step(label=label, runs=made, measures=())


def changes_over_seeds(runs: int, after: float, seeds: int, before: float = 0.79) -> list[QualityChange]:
    """Return the change of an accuracy, or of a loss that begins at 2.3, of pairs with all sorts of curves."""
    found: list[QualityChange] = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        wide = 3 if before < LOSS_BELOW else 1
        between, constant = wide * float(rng.uniform(0.002, 0.01)), float(rng.choice([40.0, 80.0, 150.0]))
        scatter, points = wide * float(rng.choice([0.002, 0.005, 0.01, 0.02])), int(rng.choice([8, 15, 30, 200]))
        base, step = (
            step_of(
                label,
                LearningCurve(
                    end=end,
                    start=2.3 if before < LOSS_BELOW else 0.1,
                    between=between,
                    scatter=scatter,
                    points=points,
                    constant=constant,
                ),
                runs,
                rng,
            )
            for label, end in (("base", before), ("step", after))
        )
        found += compared_quality(base, step)
    return found


def count(changes: list[QualityChange], condition: Callable[[QualityChange], bool]) -> int:
    """Return how many changes meet a condition."""
    return sum(map(condition, changes))


@pytest.mark.slow
@pytest.mark.parametrize("runs", [1, 3])
def test_falls_are_warned_of_and_nothing_else(runs: int) -> None:
    """Over 100 pairs each: large and small falls always, a rise never, at most two false warnings of none."""
    assert count(changes_over_seeds(runs, 0.61, SEEDS), lambda each: each.fell) == SEEDS
    assert count(changes_over_seeds(runs, 0.79 - SMALL_DROPS[runs], SEEDS), lambda each: each.fell) == SEEDS
    assert count(changes_over_seeds(runs, 0.85, SEEDS), lambda each: each.fell) == 0
    stays = changes_over_seeds(runs, 0.79, SEEDS)
    assert count(stays, lambda each: each.fell) <= 2
    assert count(stays, lambda each: each.verdict is not Verdict.NO_CLEAR_CHANGE) <= 4
    assert count(changes_over_seeds(runs, 0.79, 10 * SEEDS), lambda each: each.fell) <= SEEDS // 10


@pytest.mark.slow
@pytest.mark.parametrize("runs", [1, 3])
def test_a_loss_that_rises_by_half_is_warned_of(runs: int) -> None:
    """Its noise is relative: 0.6 to 3 per cent between runs, up to 6 per cent of a value."""
    assert count(changes_over_seeds(runs, 0.75, SEEDS, before=0.5), lambda each: each.fell) == SEEDS
    assert count(changes_over_seeds(runs, 0.4, SEEDS, before=0.5), lambda each: each.fell) == 0
    assert count(changes_over_seeds(runs, 0.5, 10 * SEEDS, before=0.5), lambda each: each.fell) <= SEEDS // 5


@pytest.mark.parametrize(("runs", "verdict"), [(1, Verdict.UNCONFIRMED), (3, Verdict.WORSE)])
def test_a_fall_is_said_as_surely_as_runs_allow(runs: int, verdict: Verdict) -> None:
    """Single runs claim nothing, and are warned of all the same."""
    for change in changes_over_seeds(runs, 0.61, 3):
        assert (change.fell, change.verdict, change.leading) == (True, verdict, True)
        assert change.difference == pytest.approx(-0.18, abs=0.05)
        assert (change.interval is None) == (runs == 1)
    assert not any(change.fell for after in (0.79, 0.9) for change in changes_over_seeds(runs, after, 3))


def test_a_loss_that_rises_is_worse() -> None:
    """By its name a lower value is the better one."""
    (change,) = compared_quality(
        step_with("a", {"val_loss": [0.9, 0.5, 0.4]}), step_with("b", {"val_loss": [2.0, 1.8]})
    )
    assert (change.higher_is_better, change.fell, change.verdict) == (False, True, Verdict.UNCONFIRMED)


def test_validation_counts_before_training_and_single_batches() -> None:
    """Those of single batches are shown only where nothing else is."""
    values = [0.5, 0.4, 0.3]
    names = ("train_loss_step", "loss", "val_loss", "val_acc", "lr")
    base, step = (step_with(label, dict.fromkeys(names, values)) for label in "ab")
    assert [(each.name, each.leading) for each in compared_quality(base, step)] == [
        ("val_acc", True),
        ("val_loss", True),
        ("loss", False),
    ]
    named = compared_quality(base, step, TrainingGoals(better=(("lr", True),)))
    assert [(each.name, each.leading) for each in named][:2] == [("lr", True), ("val_acc", True)]
    base, step = (step_with(label, {"train_loss_step": values}) for label in "ab")
    assert [each.name for each in compared_quality(base, step)] == ["train_loss_step"]


def test_what_only_one_step_recorded_does_not_lead() -> None:
    """Else a new validation metric would hide that the training loss rose."""
    found = compared_quality(
        step_with("a", {"loss": [0.2] * 5}), step_with("b", {"loss": [0.9] * 5, "val_loss": [0.9] * 5})
    )
    assert [(each.name, each.leading, each.verdict) for each in found] == [
        ("val_loss", False, Verdict.NOT_ENOUGH_DATA),
        ("loss", True, Verdict.UNCONFIRMED),
    ]


@pytest.mark.parametrize(("runs", "verdict"), [(1, Verdict.UNCONFIRMED), (2, Verdict.WORSE)])
def test_a_run_that_diverged_is_worse(runs: int, verdict: Verdict) -> None:
    """Its end is no number that a mean could show."""
    good, bad = {"loss": [0.9, 0.5, 0.4]}, {"loss": [0.9, 7.0, float("nan")]}
    (change,) = compared_quality(step_with("a", *[good] * runs), step_with("b", *[good] * (runs - 1), bad))
    assert (change.fell, change.verdict, change.after.diverged) == (True, verdict, 1)
    (back,) = compared_quality(step_with("a", *[good] * (runs - 1), bad), step_with("b", *[good] * runs))
    assert not back.fell


def test_a_metric_of_any_name_is_compared_where_a_person_names_it() -> None:
    """With the direction that is given for it."""
    goals = TrainingGoals(better=(("gain", True),))
    runs = [{"gain": [5.0 + k / 100] * 5} for k in range(3)], [{"gain": [1.0 + k / 100] * 5} for k in range(3)]
    base, step = step_with("a", *runs[0]), step_with("b", *runs[1])
    assert compared_quality(base, step) == ()
    assert [each.verdict for each in compared_quality(base, step, goals)] == [Verdict.WORSE]


def test_one_run_of_three_that_went_wrong_is_seen() -> None:
    """It widens the interval of the mean so far that this shows no change."""
    base = step_with("a", *[{"val_acc": [value] * 5} for value in (0.78, 0.79, 0.80)])
    step = step_with("b", *[{"val_acc": [value] * 5} for value in (0.79, 0.80, 0.1)])
    (change,) = compared_quality(base, step)
    assert (change.verdict, change.fell) == (Verdict.NO_CLEAR_CHANGE, True)
    assert list(change.failed) == pytest.approx([0.1])
    (back,) = compared_quality(step, base)
    assert (back.failed, back.fell) == ((), False)


def test_an_accuracy_in_per_cent_is_judged_as_a_share() -> None:
    """Not by a tenth of itself: 79 and 73 are as far apart as 0.79 and 0.73."""
    for scale in (1, 100):
        base, step = (step_with(label, {"val_acc": [end * scale] * 5}) for label, end in (("a", 0.79), ("b", 0.73)))
        (change,) = compared_quality(base, step)
        assert (change.fell, change.full_scale) == (True, scale)
        assert change.margin == pytest.approx(0.0342 * scale, abs=0.0001 * scale)


def test_repetitions_far_apart_and_separate_are_worse_though_few() -> None:
    """Three runs tell their scatter badly: a fall of five points is seen all the same."""
    base = step_with("a", *[{"val_acc": [value] * 5} for value in (0.77, 0.79, 0.80)])
    step = step_with("b", *[{"val_acc": [value] * 5} for value in (0.70, 0.73, 0.765)])
    (change,) = compared_quality(base, step)
    assert change.interval is not None
    assert change.interval[1] > 0
    assert change.verdict is Verdict.WORSE

"""Rules on training metrics, on the rate of training, and on the time to a target."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from gpureport import Analysis
from gpureport.testing import Work
from tests.rules.runs import BROKEN, CANNOT, PASSED, one, told
from tests.statistics.learning import learning
from tests.statistics.runs import made

MINUTES = [60.0 * minute for minute in range(1, 9)]
ACCURACY = [0.2, 0.5, 0.7, 0.76, 0.8, 0.79, 0.79, 0.79]
LOSS = [2.0, 1.0, 0.6, 0.5, 0.4, 0.45, 0.45, 0.45]
TARGET = "val_accuracy=0.75"


def trained(curves: Mapping[str, Sequence[float]] | None = None, *, is_priced: bool = False) -> Analysis:
    """Return a run of ten minutes with training metrics, one value a minute."""
    known = {"val_accuracy": ACCURACY, "val_loss": LOSS} if curves is None else curves
    return learning("a", {name: (MINUTES, values) for name, values in known.items()}, is_priced=is_priced)


@pytest.mark.parametrize(
    ("limit", "outcome", "value"),
    [
        ("val_accuracy >= 0.78", PASSED, 0.79),
        ("val_accuracy >= .8", BROKEN, 0.79),
        ("val_accuracy >= 78%", PASSED, 0.79),
        ("val_accuracy best >= 0.8", PASSED, 0.8),
        ("val_loss <= 0.4", BROKEN, 0.45),
        ("val_loss best <= 0.4", PASSED, 0.4),
        ("seconds_to_target <= 5 min", PASSED, 240),
        ("seconds_to_target <= 3 min", BROKEN, 240),
        ("gpu_seconds_to_target <= 0.1 GPU-h", PASSED, 240),
    ],
)
def test_training_metrics_are_held_against_limits(limit: str, outcome: str, value: float) -> None:
    found = one(limit, trained(), target=TARGET)
    assert found.outcome.value == outcome
    assert found.value == pytest.approx(value, abs=11 if value > 1 else 1e-6)


@pytest.mark.parametrize(
    ("limit", "curves", "target", "code"),
    [
        ("val_accuracy >= 0.7", {}, TARGET, "not_recorded"),
        ("val_accuracy >= 0.7", {"loss": LOSS}, TARGET, "not_recorded"),
        ("training gain best >= 1", {"gain": LOSS}, TARGET, "unknown_direction"),
        ("seconds_to_target <= 1 h", None, None, "no_target"),
        ("seconds_to_target <= 1 h", {"val_loss": LOSS}, TARGET, "not_recorded"),
        ("gpu_seconds_to_target <= 1 h", {"val_accuracy": [0.4] * 8}, TARGET, "not_reached"),
        ("cost_to_target <= 1 EUR", None, TARGET, "no_price"),
    ],
)
def test_what_is_not_known_cannot_be_judged(
    limit: str, curves: dict[str, list[float]] | None, target: str | None, code: str
) -> None:
    found = one(limit, trained(curves), target=target)
    assert (told(found), found.value) == ((CANNOT, code), None)


@pytest.mark.parametrize("limit", ["val_loss <= 1", "val_loss >= 0", "val_accuracy >= 50%"])
def test_training_that_diverged_breaks_every_limit_on_its_end(limit: str) -> None:
    run = trained({name: [*ACCURACY[:7], float("nan")] for name in ("val_loss", "val_accuracy")})
    found = one(limit, run)
    assert (found.outcome.value, found.value, found.observed[:8]) == (BROKEN, None, "diverged")
    assert one("val_accuracy best >= 0.8", run).outcome.value == PASSED


def test_a_run_that_never_reached_the_target_breaks_only_limits_it_outlasted() -> None:
    """How long it would have taken is not known, and is not 0."""
    run = trained({"val_accuracy": [0.1 + minute / 100 for minute in range(8)]})
    for limit, expected in (
        ("<= 5 min", (BROKEN, "")),
        ("<= 1 h", (CANNOT, "target_not_reached")),
        (">= 5 min", (PASSED, "")),
    ):
        found = one(f"seconds_to_target {limit}", run, target=TARGET)
        assert (told(found), found.value, found.bounds) == (expected, None, None)


def test_cost_to_the_target_is_in_the_currency_of_the_prices() -> None:
    """Four minutes at 2 EUR an hour."""
    run = trained(is_priced=True)
    for limit, expected in (
        ("0.2 EUR", (PASSED, "")),
        ("0.1 EUR", (BROKEN, "")),
        ("1 USD", (CANNOT, "other_currency")),
    ):
        assert told(one(f"cost_to_target <= {limit}", run, target=TARGET)) == expected


def test_an_accuracy_in_per_cent_is_a_share_all_the_same() -> None:
    """A limit of 78% means 78 of 100."""
    run = trained({"val_accuracy": [value * 100 for value in ACCURACY]})
    outcomes = [one(f"val_accuracy >= {limit}", run).outcome.value for limit in ("78%", "80%", "78")]
    assert outcomes == [PASSED, BROKEN, PASSED]


def test_the_rate_of_training_alone_leaves_out_the_start_up() -> None:
    """12,000 steps in ten minutes after five of start-up are 20 a second, without a throughput; without work none."""
    util = np.concatenate([np.zeros(300), np.full(600, 90.0)])
    run = made("a", util=util, work=Work(amount=12_000, unit="steps"))
    for limit, outcome in ((">= 19 /s", PASSED), (">= 21 /s", BROKEN)):
        found = one(f"training_rate_hertz {limit}", run)
        assert found.outcome.value == outcome
        assert found.value == pytest.approx(20, rel=0.01)
    assert told(one("training_rate_hertz >= 19 /s", made("a", util=util))) == (CANNOT, "unknown_work")

"""GPU time after the last improvement of a validation metric."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from gpureport.testing import (
    Analysis,
    Confidence,
    Floats,
    Severity,
    analyze,
    found,
    recording,
    spans,
    steps,
    unjudged,
    with_training,
)

_KIND = "no_progress"
_NAN = float("nan")
_EVERY = 100.0
"""Seconds between evaluations: 20 of them in the 2000 s a job works."""

Points = list[tuple[float | None, str, float | None]]


def evaluated(name: str, values: Sequence[float] | Floats, *, every: float = _EVERY) -> Points:
    """Return evaluations, the first after one distance."""
    return [((place + 1) * every, name, float(value)) for place, value in enumerate(values)]


def analysed(points: Points, *, gpus: int = 1, util: Floats | None = None) -> Analysis:
    """Return the analysis of a job of 2000 s with these training metrics."""
    used = np.full(2001, 97.0) if util is None else util
    return analyze(with_training(recording(util=[used] * gpus), points))


def valley(rows: int, best: int) -> Floats:
    """Return values that fall to the row of the best and rise behind it."""
    return 1.0 + 0.01 * np.abs(np.arange(rows) - best)


def test_a_metric_that_improves_to_the_end_is_silent() -> None:
    """It was judged, and nothing was found."""
    analysis = analysed(evaluated("val_loss", np.linspace(2, 1, 20)))
    assert found(analysis, _KIND) + unjudged(analysis, _KIND) == []


def test_the_hours_after_an_early_best_are_those_of_all_gpus() -> None:
    """From the best value to the end of the job, two GPUs' time."""
    (finding,) = found(analysed(evaluated("val_loss", valley(20, 4)), gpus=2), _KIND)
    ((start, end),) = spans(finding)
    assert start == 500.0
    assert end == pytest.approx(2000, abs=1)
    assert finding.lost_gpu_seconds == pytest.approx(3000, abs=2)
    assert (finding.severity, finding.confidence, finding.devices) == (Severity.INFO, Confidence.MEDIUM, ())
    assert finding.summary == ("val_loss was best (1) after 8 min 20 s; no improvement in the 50.0 GPU-min since.")
    share, count, best = finding.evidence
    assert share.observed == pytest.approx(0.75, abs=0.001)
    assert (count.observed, best.metric, best.observed) == (20, "val_loss", 1.0)


@pytest.mark.parametrize(("best", "heard"), [(14, True), (15, True), (16, False), (19, False)])
def test_the_best_must_stand_for_a_fifth(best: int, *, heard: bool) -> None:
    """A metric that stood still for less may still improve."""
    assert bool(found(analysed(evaluated("val_loss", valley(20, best))), _KIND)) is heard


def test_an_accuracy_rises() -> None:
    """Its lowest value is not its best."""
    (finding,) = found(analysed(evaluated("eval/accuracy", 2 - valley(20, 9))), _KIND)
    assert spans(finding)[0][0] == 1000.0
    assert found(analysed(evaluated("eval/accuracy", np.linspace(0.1, 0.9, 20))), _KIND) == []


def test_the_first_of_equal_values_counts() -> None:
    """A metric that reached its end and stays there improves no more."""
    (finding,) = found(analysed(evaluated("val_acc", np.minimum(np.arange(20) * 0.1, 1.0))), _KIND)
    assert spans(finding)[0][0] == 1100.0


@pytest.mark.parametrize("seed", range(20))
def test_noise_on_a_metric_that_learns_is_silent(seed: int) -> None:
    """A few evaluations without a better one are no end of the progress."""
    noise = np.random.default_rng(seed).normal(0, 0.03, 20)
    assert found(analysed(evaluated("val_loss", np.linspace(2, 1, 20) + noise)), _KIND) == []


def test_noise_on_a_metric_that_no_longer_learns_is_found() -> None:
    """The best of it stands, whatever the others scatter."""
    values = np.concatenate([[2, 1.5, 1.2, 1.0], 1.1 + 0.05 * np.sin(np.arange(16) * 2.3)])
    (finding,) = found(analysed(evaluated("val_loss", values)), _KIND)
    assert spans(finding)[0][0] == 400.0


def test_any_validation_metric_that_improves_is_progress() -> None:
    """The time counts from the last of their best values; training metrics and rare tests say nothing."""
    loss, accuracy = evaluated("val_loss", valley(20, 3)), evaluated("val_acc", 2 - valley(20, 8))
    others = evaluated("train_loss", np.linspace(2, 0, 20)) + evaluated("test_acc", [0.1, 0.9], every=990.0)
    (finding,) = found(analysed(loss + accuracy + others), _KIND)
    assert finding.summary.startswith("val_acc was best (1) after 15 min; no improvement in the 18.3 GPU-min since.")
    rising = evaluated("val_acc", np.linspace(0.1, 0.9, 20))
    assert found(analysed(loss + rising + others), _KIND) == []


def test_points_come_in_any_order() -> None:
    """What counts is when a value was written, not where it stands."""
    points = evaluated("val_loss", valley(20, 4))
    assert found(analysed(points[::-1]), _KIND) == found(analysed(points), _KIND)


def test_values_that_are_no_numbers_are_no_improvement() -> None:
    """A loss that was lost is evaluated, and gets no better; infinity is none either."""
    values = [*np.linspace(2, 1, 10), _NAN, -np.inf, *[_NAN] * 8]
    (finding,) = found(analysed([*evaluated("val_loss", values), (1950.0, "val_loss", None)]), _KIND)
    assert spans(finding)[0][0] == 1000.0
    assert finding.samples == 10


def test_nothing_but_no_numbers_is_not_judged() -> None:
    """There is no best value."""
    (entry,) = unjudged(analysed(evaluated("val_loss", [_NAN] * 20)), _KIND)
    assert entry.reason == "val_loss has 0 evaluations, fewer than 10"


@pytest.mark.parametrize("count", [1, 9])
def test_few_evaluations_are_not_judged(count: int) -> None:
    """The one with most of them is named."""
    points = evaluated("val_loss", valley(count, 0)) + evaluated("test_acc", [])
    (entry,) = unjudged(analysed(points), _KIND)
    assert entry.reason == f"val_loss has {count} evaluation{'s' if count > 1 else ''}, fewer than 10"
    assert found(analysed(points), _KIND) == []


def test_values_of_several_processes_at_one_moment_are_one_evaluation() -> None:
    """Eight ranks that log the same do not make ten evaluations of two."""
    (entry,) = unjudged(analysed(evaluated("val_loss", [2.0, 3.0]) * 8), _KIND)
    assert entry.reason == "val_loss has 2 evaluations, fewer than 10"


@pytest.mark.parametrize(
    ("points", "reason"),
    [
        ([], "no training metrics were recorded"),
        (evaluated("loss", np.ones(20)), "none of the training metrics is a validation metric"),
        (evaluated("eval/step_time", np.ones(20)), "none of the training metrics is a validation metric"),
        ([(None, "val_loss", 1.0)] * 20, "the training metrics were recorded without times"),
    ],
)
def test_without_evaluations_it_is_not_judged(points: Points, reason: str) -> None:
    """It says what to record."""
    (entry,) = unjudged(analysed(points), _KIND)
    assert (entry.reason, entry.device) == (reason, None)
    assert entry.recording == "a validation metric such as val_loss, by a tracker or with --training FILE"


def test_time_after_the_work_is_a_tail_of_its_own() -> None:
    """The job ends with its last work, and what was not recorded of its start was not measured."""
    util = steps((97, 2000), (0, 600))
    (finding,) = found(analysed(evaluated("val_loss", valley(20, 4)), util=util), _KIND)
    assert spans(finding)[0][1] == pytest.approx(2000, abs=2)
    early: Points = [(-5000.0, "val_loss", 0.5), *evaluated("val_loss", valley(20, 4))]
    (whole,) = found(analysed(early), _KIND)
    assert spans(whole)[0][0] == 0.0


def test_where_evaluations_stopped_nothing_is_known_of_the_rest() -> None:
    """The time ends when the next evaluation was due."""
    (finding,) = found(analysed(evaluated("val_loss", valley(12, 4))), _KIND)
    assert spans(finding) == [(500.0, 1300.0)]
    assert found(analysed(evaluated("val_loss", np.linspace(2, 1, 12))), _KIND) == []


def test_evaluations_behind_the_job_count() -> None:
    """A better value after the last sample is progress."""
    assert found(analysed([*evaluated("val_loss", valley(20, 4)), (2500.0, "val_loss", 0.5)]), _KIND) == []


def test_every_second_name_of_a_table_in_pieces_is_told_apart() -> None:
    """Chunks of a table have dictionaries of their own."""
    first = with_training(recording(util=np.full(2001, 97.0)), evaluated("loss", np.linspace(2, 0, 20)))
    second = with_training(first, evaluated("val_loss", valley(20, 4)))
    joined = pa.concat_tables([first.training, second.training])
    (finding,) = found(analyze(replace(first, training=joined)), _KIND)
    assert finding.summary.startswith(
        "val_loss was best (1) after 8 min 20 s; no improvement in the 25.0 GPU-min since."
    )

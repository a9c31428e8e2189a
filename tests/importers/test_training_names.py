"""Training metrics recognised by their names."""

import numpy as np
import pytest

from gpureport.importers.trackers.training_metrics import TrainingMetric, build_training_table, measure_work
from gpureport.training_names import Role, choose_throughput, recognise_evaluation, recognise_metric


@pytest.mark.parametrize(
    ("name", "role", "validation", "unit"),
    [
        ("loss", Role.LOSS, False, ""),
        ("train/loss", Role.LOSS, False, ""),
        ("val_loss", Role.LOSS, True, ""),
        ("valLoss", Role.LOSS, True, ""),
        ("eval/perplexity", Role.LOSS, True, ""),
        ("test.acc", Role.ACCURACY, True, ""),
        ("val/mAP", Role.ACCURACY, True, ""),
        ("eval_rougeL", Role.ACCURACY, True, ""),
        ("dev_wer", Role.ERROR, True, ""),
        ("top1", Role.ACCURACY, False, ""),
        ("metrics/mAP50(B)", Role.ACCURACY, False, ""),
        ("val_precision", Role.ACCURACY, True, ""),
        ("val/nll", Role.LOSS, True, ""),
        ("eval_fid", Role.ERROR, True, ""),
        ("samples_per_second", Role.THROUGHPUT, False, "samples"),
        ("train_samples_per_second", Role.THROUGHPUT, False, "samples"),
        ("train/images_per_sec", Role.THROUGHPUT, False, "samples"),
        ("tokens/sec", Role.THROUGHPUT, False, "tokens"),
        ("perf/tokens_per_sec", Role.THROUGHPUT, False, "tokens"),
        ("it/s", Role.THROUGHPUT, False, "steps"),
        ("throughput", Role.THROUGHPUT, False, ""),
        ("throughput/samples", Role.THROUGHPUT, False, "samples"),
        ("step_time", Role.STEP_TIME, False, ""),
        ("epoch duration", Role.EPOCH_TIME, False, ""),
    ],
)
def test_names_that_say_what_they_are(name: str, role: Role, unit: str, *, validation: bool) -> None:
    """Whatever parts a name has, and however they are joined."""
    found = recognise_metric(name)
    assert found is not None
    assert (found.role, found.validation, found.unit) == (role, validation, unit)


@pytest.mark.parametrize(
    "name",
    [
        "lossless",
        "epoch",
        "lr",
        "steps",
        "accumulate",
        "samples",
        "time",
        "s",
        "",
        "per",
        "gpu/s",
        "loss_scale",
        "aux_loss_weight",
        "error_count",
        "loss_time",
    ],
)
def test_names_that_do_not(name: str) -> None:
    """A part that only looks alike is none."""
    assert recognise_metric(name) is None


@pytest.mark.parametrize(
    ("name", "falls"),
    [
        *[("val_loss", True), ("validation/error", True), ("eval_perplexity", True), ("test.rmse", True)],
        *[("valid_acc", False), ("dev/f1", False), ("eval_bleu", False), ("valAUC", False)],
    ],
)
def test_which_way_an_evaluation_gets_better(name: str, *, falls: bool) -> None:
    """Losses and errors fall, accuracies rise."""
    said = recognise_evaluation(name)
    assert said is not None
    assert said.falls is falls


@pytest.mark.parametrize(
    "name",
    [
        *("loss", "train/acc", "val/step_time", "eval_samples_per_second", "eval_runtime", "val_loss_step"),
        *("interval_loss", "latest_acc"),
    ],
)
def test_what_is_no_evaluation(name: str) -> None:
    """Training, speed, single batches, and parts that only look alike."""
    assert recognise_evaluation(name) is None


def test_samples_count_before_tokens_and_training_before_validation() -> None:
    """Of several throughputs the one a person thinks of first."""
    names = ["eval_samples_per_second", "train_steps_per_second", "train_samples_per_second"]
    found = choose_throughput(names, None)
    assert found is not None
    assert found.name == "train_samples_per_second"
    assert choose_throughput(["throughput", "loss"], None) is None


def test_what_a_person_names_counts_whatever_it_is_called() -> None:
    """It need not be recognised, but it must be there."""
    found = choose_throughput(["a", "b"], "b")
    assert found is not None
    assert (found.name, found.unit) == ("b", "")
    assert choose_throughput(["a"], "b") is None


def _metric(name: str, seconds: list[float], values: list[float]) -> TrainingMetric:
    times = np.array(seconds) * 1e6
    return TrainingMetric(name, times.astype(np.int64), np.arange(len(times)), np.array(values, dtype=np.float64))


def test_work_is_the_throughput_over_the_time_it_was_logged_for() -> None:
    """Each point is a step: one that is no number counts as its neighbours, and a pause as the step it took."""
    metric = _metric("it/s", [0, 10, 20, 30, 1030], [2.0, 2.0, float("nan"), 2.0, 2.0])
    found = measure_work([metric], None, (0, 1_030_000_000))
    assert found is not None
    assert (found[0].unit, found[1]) == ("steps", "it/s")
    # the first point speaks for time before the recording
    assert found[0].amount == pytest.approx(20 + 40 + 20)


@pytest.mark.parametrize("values", [[], [1.0], [0.0, 0.0], [float("nan")] * 3])
def test_work_needs_two_points_above_nothing(values: list[float]) -> None:
    """One point says no time, and nothing done is no work."""
    assert (
        measure_work([_metric("it/s", [float(place) for place in range(len(values))], values)], None, (0, 10**9))
        is None
    )


def test_a_table_is_in_the_order_of_time_then_step() -> None:
    """A step that was not recorded is null."""
    one = TrainingMetric("a", np.array([2, 1]), np.array([0, 0]), np.array([1.0, 2.0]), np.array([True, False]))
    other = TrainingMetric("b", np.array([1]), np.array([-1]), np.array([float("nan")]))
    rows = build_training_table([one, other]).to_pylist()
    assert [(row["name"], row["step"], row["value"]) for row in rows] == [
        ("b", -1, None),
        ("a", None, 2.0),
        ("a", 0, 1.0),
    ]
    assert len(build_training_table([])) == 0

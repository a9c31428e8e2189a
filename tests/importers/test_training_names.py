"""Training metrics recognised by their names: what counts work, and which way an evaluation gets better."""

from pathlib import Path
from typing import Any

import pytest

import gpureport
from gpureport.testing import Run, analyze, findings_of, recording, unjudged, with_training
from tests.importers.trackers.mlflow.stores import START, Made, Point, database, monitored, run_id

FALLS = (
    *("val_loss", "valLoss", "eval/perplexity", "validation/error", "eval_perplexity", "test.rmse", "dev_wer"),
    *("val/nll", "eval_fid"),
)
RISES = ("test.acc", "val/mAP", "eval_rougeL", "val_precision", "valid_acc", "dev/f1", "eval_bleu", "valAUC")
NO_EVALUATION = (
    *("loss", "train/acc", "top1", "metrics/mAP50(B)", "val/step_time", "eval_samples_per_second", "eval_runtime"),
    *("val_loss_step", "interval_loss", "latest_acc", "lossless", "epoch", "lr", "val_loss_scale", "eval_error_count"),
    *("eval_loss_time", "val_aux_loss_weight", "val", ""),
)
"""Training, speed, single batches, and parts that only look alike."""
WORK = {
    "samples_per_second": "samples",
    "train_samples_per_second": "samples",
    "train/images_per_sec": "samples",
    "tokens/sec": "tokens",
    "perf/tokens_per_sec": "tokens",
    "it/s": "steps",
    "throughput": None,
    "throughput/samples": "samples",
    "steps": None,
    "samples": None,
    "accumulate": None,
    "time": None,
    "s": None,
    "per": None,
    "gpu/s": None,
    "loss": None,
    "step_time": None,
}
"""What a metric of each name counts a second; None where its name does not say."""
MACHINE = monitored(range(10_000, 1_040_000, 10_000), {"gpu_0_utilization_percentage": 90.0})


@pytest.mark.parametrize("rises", [False, True])
def test_which_way_an_evaluation_gets_better(rises: bool) -> None:
    job = recording(util=[95] * 3000)
    better = [float(point if rises else -point) for point in range(1, 12)]
    for names, values, expected in (
        (RISES if rises else FALLS, better, 0),
        (RISES if rises else FALLS, better[::-1], 1),
    ):
        for name in names:
            points = [(250.0 * place + 20, name, value) for place, value in enumerate(values)]
            analysis = analyze(with_training(job, points))
            assert len(findings_of(analysis, "no_progress")) == expected, name
            assert not unjudged(analysis, "no_progress"), name


def test_what_is_no_evaluation() -> None:
    job = recording(util=[95] * 3000)
    for name in NO_EVALUATION:
        analysis = analyze(with_training(job, [(250.0 * place + 20, name, 1.0 + place) for place in range(12)]))
        assert unjudged(analysis, "no_progress"), name


def runs(folder: Path, metrics: list[dict[str, list[Point]]]) -> list[Run]:
    """Return runs of an MLflow store that logged such metrics beside the machine."""
    made = [
        Made(id=run_id(number), name=f"{number:02}", series=MACHINE | own, end=START + 1_030_000)
        for number, own in enumerate(metrics, 1)
    ]
    database(folder / "mlflow.db", made)
    found = gpureport.read(f"mlflow:{folder / 'mlflow.db'}")
    for each in found:
        times: list[Any] = each.training.column("timestamp").to_pylist()
        assert times == sorted(times)
    return sorted((each.run for each in found), key=lambda run: run.name)


def points(*values: float, every: float = 10) -> list[Point]:
    return [(START + round(1000 * every * place), value, place) for place, value in enumerate(values)]


def test_what_a_metric_counts_is_said_by_its_name(tmp_path: Path) -> None:
    found_runs = runs(tmp_path, [{name: points(2.0, 2.0, 2.0)} for name in WORK])
    assert {name: run.work and run.work.unit for name, run in zip(WORK, found_runs, strict=True)} == WORK


def test_work_is_the_throughput_over_the_time_it_was_logged_for(tmp_path: Path) -> None:
    paused = [*points(2.0, 2.0, float("nan"), 2.0), (START + 1_030_000, 2.0, 4)]
    both = {"eval_samples_per_second": points(9.0, 9.0), "train_steps_per_second": points(9.0, 9.0)}
    both["train_samples_per_second"] = points(1.0, 1.0, 1.0)
    none = [points(), points(1.0), points(0.0, 0.0), points(*[float("nan")] * 3)]
    first, second, *rest = runs(tmp_path, [{"it/s": paused}, both, *({"it/s": each} for each in none)])
    assert first.work is not None
    # the first point speaks for time before the recording
    assert first.work.amount == pytest.approx(20 + 40 + 20, abs=0.5)
    assert first.work.unit == "steps"
    # samples count before steps, and training before validation
    assert second.work is not None
    assert second.work.amount == pytest.approx(20, abs=0.5)
    assert second.work.unit == "samples"
    assert [run.work for run in rest] == [None] * 4

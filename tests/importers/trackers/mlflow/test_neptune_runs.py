"""Runs that Neptune's exporter loaded into MLflow: the names and the gaps of Neptune's client."""

from pathlib import Path

from tests.importers.trackers.mlflow.stores import START, TICKS, Made, Point, database, monitored, run_id
from tests.importers.trackers.tracked import codes, column, recording, rejected, times

_TICK = 10_000
_PARAMS = {"sys/id": "GO-1", "monitoring/ab12cd34/hostname": "box", "monitoring/train/hostname": "box", "lr": "0.1"}


def _gauges(space: str, used: list[float], start: int = 0) -> dict[str, list[Point]]:
    values = {
        "gpu_0": used,
        "gpu_memory_0": [4.0] * len(used),
        "gpu_power_0": [0.0 if value == 0 else 300.0 for value in used],
        "cpu": [0.0, *[50.0] * (len(used) - 1)],
        "memory": [16.0] * len(used),
    }
    return {
        f"{space}/{leaf}": [(START + start + _TICK * place, value, 0) for place, value in enumerate(series) if value]
        for leaf, series in values.items()
    }


def _store(tmp_path: Path, series: dict[str, list[Point]], params: dict[str, str] = _PARAMS) -> Path:
    return database(tmp_path / "mlflow.db", [Made(id=run_id(1), series=series, params=params)])


def test_dropped_zeros_are_put_back_and_times_stay(tmp_path: Path) -> None:
    used = [97.0, 0.0, 0.0, 97.0, 0.0]
    found = recording(_store(tmp_path, _gauges("monitoring/train", used) | {"loss": [(START, 1.0, 0)]}))
    assert column(found, "gpu:0", "gpu_utilization_ratio") == [0.97, 0.0, 0.0, 0.97, 0.0]
    assert column(found, "gpu:0", "gpu_power_watts") == [300.0, None, None, 300.0, None]
    assert column(found, "host", "cpu_utilization_ratio") == [None, 0.5, 0.5, 0.5, 0.5]
    assert column(found, "gpu:0", "gpu_memory_used_bytes")[0] == 4 * 2**30
    assert column(found, "gpu:0", "imputed") == [False, True, True, False, True]
    assert times(found, "gpu:0") == [(START + _TICK * place) * 1000 for place in range(5)]
    assert found.run.quality.imputed_points == 3
    assert found.training.column("name").to_pylist() == ["loss"]
    assert found.run.params == (("lr", "0.1"),)
    assert codes(found) >= {"from_neptune"}


def test_each_process_is_a_stage(tmp_path: Path) -> None:
    series = _gauges("monitoring/ab12cd34", [10.0] * 3) | _gauges("monitoring/train", [90.0] * 3, 100_000)
    found = recording(_store(tmp_path, series))
    assert [stage.name for stage in found.run.stages] == ["process-ab12cd34", "train"]
    assert column(found, "gpu:0", "stage") == ["process-ab12cd34"] * 3 + ["train"] * 3


def test_processes_that_watch_the_same_gpu_count_once_unless_machines_differ(tmp_path: Path) -> None:
    series = _gauges("monitoring/ab12cd34", [90.0] * 5) | _gauges("monitoring/train", [90.0] * 4, 3_000)
    found = recording(_store(tmp_path, series))
    assert len(found.rows_of("gpu:0")) == 4
    assert rejected(found) == [("another_process_recorded_the_same_device", 5 * 5 - 1)]
    (tmp_path / "mlflow.db").unlink()
    source = _store(tmp_path, series, _PARAMS | {"monitoring/train/hostname": "crate"})
    assert [device.id for device in recording(source).run.gpus] == ["box/gpu:0", "crate/gpu:0"]
    assert recording(source, gpus=(1,)).run.gpus == ()


def test_a_gpu_never_reported_is_unknown(tmp_path: Path) -> None:
    found = recording(_store(tmp_path, _gauges("monitoring/train", [0.0] * 4)))
    assert "gpu_utilization_ratio" not in found.series.column_names


def test_a_run_that_mlflow_recorded_has_no_gauges(tmp_path: Path) -> None:
    series = monitored(TICKS) | {"train/memory": [(START, 1.0, 0)]}
    found = recording(_store(tmp_path, series, {}))
    assert (found.run.stages, "from_neptune" in codes(found)) == ((), False)
    assert found.training.column("name").to_pylist() == ["train/memory"]

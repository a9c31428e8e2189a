"""MLflow's system metrics as series: names, units, times, rates, nodes, monitors."""

from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpureport.testing import Recording
from tests.importers.trackers.mlflow.stores import START, TICKS, Made, database, folder, monitored, run_id
from tests.importers.trackers.tracked import codes, column, recording, rejected, times

ID = run_id(1)
Store = Callable[..., Path]
USED = "system/gpu_0_utilization_percentage"


@pytest.fixture(params=[database, folder], ids=["sqlite", "file store"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    plain: dict[str, Any] = {"id": ID, "series": monitored(TICKS)}
    return lambda **made: request.param(Path(mkdtemp(dir=tmp_path)) / "mlflow.db", [Made(**plain | made)])


def seconds(found: Recording, device: str) -> list[float]:
    return [(time / 1000 - START) / 1000 for time in times(found, device)]


def test_every_metric_has_its_column_and_base_unit(store: Store) -> None:
    found = recording(store())
    assert [device.id for device in found.run.devices] == ["gpu:0", "host"]
    first = {name: column(found, "gpu:0", name)[0] for name in found.series.column_names[3:]}
    assert {name: value for name, value in first.items() if value is not None} == {
        "gpu_utilization_ratio": 0.9,
        "gpu_memory_used_bytes": 42_949_700_000,
        "gpu_memory_used_ratio": 0.5,
        "gpu_power_watts": 300.0,
        "gpu_power_ratio": 0.75,
    }
    assert column(found, "host", "host_memory_used_bytes")[0] == 8_000_000_000
    assert column(found, "host", "host_memory_used_ratio")[0] == 0.5
    assert found.run.quality.lines == 9 * len(TICKS)


def test_values_stand_where_they_were_read_or_where_they_were_logged(store: Store) -> None:
    source = store()
    found, raw = recording(source), recording(source, mlflow_raw_times=True)
    assert seconds(found, "gpu:0") == [0, *(tick / 1000 for tick in TICKS[:-1])]
    assert seconds(raw, "gpu:0") == [tick / 1000 for tick in TICKS]
    assert raw.run.id != found.run.id
    assert "stamped_late" in codes(found) & codes(raw)


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(1, 100_000), min_size=1, max_size=40), st.integers(-100_000, 200_000))
def test_values_are_read_in_order_and_before_they_are_logged(tmp_path: Path, steps: list[int], late: int) -> None:
    logged = [100_000 + sum(steps[: place + 1]) for place in range(len(steps))]
    made = Made(id=ID, series=monitored(logged, {"gpu_0_utilization_percentage": 5.0}), start=START + late, end=None)
    (tmp_path / "mlflow.db").unlink(missing_ok=True)
    read = seconds(recording(database(tmp_path / "mlflow.db", [made])), "gpu:0")
    assert all(one * 1000 <= other + 1e-6 for one, other in zip(read, logged, strict=True)), (read, logged)
    assert read == sorted(read)


def test_first_values_say_nothing_and_counts_begin_anew_with_a_process(store: Store) -> None:
    counts = [0.0, 20.1, 40.2, 60.3, 0.0, 10.05, 20.1, 30.15, 40.2]
    counted = [(START + tick, count, place) for place, (tick, count) in enumerate(zip(TICKS, counts, strict=True))]
    found = recording(store(series=monitored(TICKS) | {"system/network_receive_megabytes": counted}))
    rates = column(found, "host", "host_network_receive_bytes_per_second")
    assert rates == [None, 2e6, 2e6, 2e6, None, 1e6, 1e6, 1e6, 1e6]
    assert column(found, "host", "cpu_utilization_ratio") == [None, 0.3, 0.3, 0.3, None, *[0.3] * 4]
    quality = found.run.quality
    assert (quality.noise, {(each.reason, each.cells) for each in quality.absent_cells}) == (
        4,
        {("first value of a monitor", 2)},
    )


def test_totals_and_limits_are_derived_from_shares_that_tell_them(store: Store, tmp_path: Path) -> None:
    found = recording(store())
    assert found.run.gpus[0].memory_total_bytes == pytest.approx(80 * 2**30, rel=1e-3)
    assert found.run.gpus[0].power_limit_watts == pytest.approx(400)
    assert found.run.hosts[0].memory_total_bytes == pytest.approx(16e9)
    assert "derived_values" in codes(found)
    for used, share in ((400.0, 0.4), (0.0, 0.0)):
        values = {"gpu_0_memory_usage_megabytes": used, "gpu_0_memory_usage_percentage": share}
        (gpu,) = recording(database(tmp_path / f"{used}.db", [Made(id=ID, series=monitored(TICKS, values))])).run.gpus
        assert gpu.memory_total_bytes is None


def test_monitors_of_one_machine_and_one_that_counts_anew_after_a_pause(store: Store) -> None:
    one, other = monitored(TICKS), monitored([tick + 3_000 for tick in TICKS])
    found = recording(store(series={key: [*one[key], *other[key]] for key in one}))
    assert [device.id for device in found.run.devices] == ["gpu:0", "host"]
    assert len(found.rows_of("gpu:0")) == 18
    assert seconds(found, "gpu:0")[2:6] == [10.05, 13.05, 20.1, 23.1]
    assert "processes_told_by_steps" in codes(found)
    one, later = monitored(TICKS[:4]), monitored([tick + 100_000 for tick in TICKS[:4]])
    found = recording(store(series={key: [*one[key], *later[key]] for key in one}))
    assert "processes_told_by_steps" not in codes(found)
    assert len(found.run.quality.gaps) == 2
    assert seconds(found, "gpu:0")[4] == pytest.approx(100)


def test_nodes_have_devices_of_their_own(store: Store) -> None:
    series = monitored(TICKS, node="10.0.0.1") | monitored(TICKS, node="rack/b")
    found = recording(store(series=series | monitored(TICKS, {"fan": 3.0}, node="rack/b")))
    assert [device.id for device in found.run.devices] == [
        "10.0.0.1/gpu:0", "rack/b/gpu:0", "10.0.0.1/host", "rack/b/host",
    ]  # fmt: skip
    assert [device.node for device in found.run.gpus] == ["10.0.0.1", "rack/b"]
    assert column(found, "rack/b/host", "extra_fan") == ["3"] * 9


def test_a_pause_and_an_amd_gpu(store: Store) -> None:
    values = {"gpu_0_utilization_percentage": 5.0}
    found = recording(
        store(series=monitored([100_000, 110_000, 120_000, 180_000, 190_000], values), end=START + 200_000)
    )
    assert seconds(found, "gpu:0") == [90, 100, 110, 170, 180]
    values = {
        "gpu_0_memory_usage_gigabytes": 12.5,
        "gpu_0_utilization_percentage": 50.0,
        "gpu_0_power_usage_watts": 250.0,
        "gpu_0_power_usage_percentage": 50.0,
    }
    found = recording(store(series=monitored(TICKS, values)))
    assert column(found, "gpu:0", "gpu_memory_used_bytes")[0] == 12_500_000_000
    assert found.run.gpus[0].power_limit_watts is None
    assert "gpu_power_ratio" not in found.series.column_names
    assert column(found, "gpu:0", "extra_power_usage_percentage")[0] == "50"


def test_what_has_no_place_is_kept_and_what_is_no_number_counted(store: Store) -> None:
    values = {"gpu_0_utilization_percentage": 5.0, "gpu_0_temperature_celsius": 61.5, "fan": 3.0, "net/eth0": 1.0}
    found = recording(store(series=monitored(TICKS, values)))
    assert column(found, "gpu:0", "extra_temperature_celsius") == ["61.5"] * 9
    assert column(found, "host", "extra_fan") == ["3"] * 9
    values = {f"gpu_{index}_utilization_percentage": 50.0 * (index != 1) for index in range(3)}
    found = recording(store(series=monitored(TICKS, values)), gpus=(0, 2))
    assert [device.index for device in found.run.gpus] == [0, 2]
    assert rejected(found) == [("gpu_not_selected", 9)]
    series = monitored(TICKS)
    series[USED] = [(series[USED][0][0], float("nan"), 0), *series[USED][1:]]
    found = recording(store(series=series))
    assert column(found, "gpu:0", "gpu_utilization_ratio")[0] is None
    assert (USED, "not a number") in {(each.column, each.reason) for each in found.run.quality.absent_cells}


def test_training_metrics_work_params_and_tags_are_kept(store: Store) -> None:
    inf, nan = float("inf"), float("nan")
    points = ((0, 1.0, 0), (2000, inf, 2), (1000, nan, 1), (3000, -inf, 3), (500, 0.9, 2))
    loss = [(START + late, value, step) for late, value, step in points]
    rows = recording(store(series=monitored(TICKS) | {"train/loss": loss})).training.to_pylist()
    assert [row["step"] for row in rows] == [0, 2, 1, 2, 3]
    assert [row["value"] for row in rows] == [1.0, 0.9, None, inf, -inf]
    assert {row["name"] for row in rows} == {"train/loss"}
    speed = [(START + 10_000 * place, 1000.0, place) for place in range(8)]
    other = [(time, 2.0, step) for time, _, step in speed]
    source = store(series=monitored(TICKS) | {"samples_per_second": speed, "batches": other})
    assert str(recording(source).run.work) == "Work(amount=70000.0, unit='samples')"
    assert getattr(recording(source, throughput="batches").run.work, "amount", None) == pytest.approx(140)
    missing = recording(source, throughput="tokens")
    assert (missing.run.work, "no_work_metric" in codes(missing)) == (None, True)
    tags = {"team": "vision", "mlflow.user": "ada", "mlflow.source.git.commit": "abc", "gpureport.report": "x"}
    tags["mlflow.autologging"] = "pytorch"
    run = recording(store(params={"lr": "0.1", "amp": ""}, tags=tags)).run
    assert run.params == (("amp", ""), ("lr", "0.1"))
    kept = {"mlflow.autologging": "pytorch", "mlflow.source.git.commit": "abc", "team": "vision"}
    assert dict(run.tags) == kept | {"user": "ada"}


def test_runs_without_an_end_or_system_metrics(store: Store) -> None:
    found = recording(store(status="RUNNING", end=None), runs=ID)
    assert (found.run.ended, "no_end" in codes(found)) == ((START + TICKS[-2]) * 1000, True)
    found = recording(store(series={"loss": [(START, 1.0, 0)]}), runs=ID)
    assert (len(found.series), len(found.training), "no_system_metrics" in codes(found)) == (0, 1, True)

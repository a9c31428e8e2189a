"""MLflow's system metrics as series: names, units, times, rates, nodes, monitors; and what a run has beside them."""

from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpureport.testing import Recording
from tests.importers.trackers.mlflow.stores import (
    HARDWARE,
    START,
    TICKS,
    Made,
    Point,
    database,
    folder,
    monitored,
    run_id,
)
from tests.importers.trackers.tracked import describe, hold, recording, times

ID = run_id(1)
USED = "system/gpu_0_utilization_percentage"
Series = dict[str, list[Point]]
HALF = {"gpu_0_utilization_percentage": 5.0}
AMD = {
    **{"gpu_0_memory_usage_gigabytes": 12.5, "gpu_0_utilization_percentage": 50.0, "gpu_0_power_usage_watts": 250.0},
    "gpu_0_power_usage_percentage": 50.0,
}
COUNTS = [0.0, 20.1, 40.2, 60.3, 0.0, 10.05, 20.1, 30.15, 40.2]
SPEED = [(START + 10_000 * place, 1000.0, place) for place in range(8)]
LOSS = ((0, 1.0, 0), (2000, inf, 2), (1000, nan, 1), (3000, -inf, 3), (500, 0.9, 2))
TAGS = {
    **{"team": "vision", "mlflow.user": "ada", "mlflow.source.git.commit": "abc", "gpureport.report": "x"},
    "mlflow.autologging": "pytorch",
}
PLAIN = monitored(TICKS)


def again(first: list[int], later: int) -> Series:
    """Return what two monitors log of one machine, the second some milliseconds after the first."""
    one, other = monitored(first), monitored([tick + later for tick in first])
    return {key: [*one[key], *other[key]] for key in one}


CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "counts_that_begin_anew": {
        "series": PLAIN
        | {
            "system/network_receive_megabytes": [
                (START + tick, count, place) for place, (tick, count) in enumerate(zip(TICKS, COUNTS, strict=True))
            ]
        }
    },
    **{
        f"a_share_of_{used}_that_tells_no_total": {
            "series": monitored(
                TICKS, HARDWARE | {"gpu_0_memory_usage_megabytes": 1000.0 * used, "gpu_0_memory_usage_percentage": used}
            )
        }
        for used in (0.4, 0.0)
    },
    "two_monitors": {"series": again(TICKS, 3_000)},
    "a_monitor_after_a_pause": {"series": again(TICKS[:4], 100_000)},
    "nodes": {"series": monitored(TICKS, node="10.0.0.1") | monitored(TICKS, HARDWARE | {"fan": 3.0}, node="rack/b")},
    "a_pause": {"series": monitored([100_000, 110_000, 120_000, 180_000, 190_000], HALF), "end": START + 200_000},
    "an_amd_gpu": {"series": monitored(TICKS, AMD)},
    "metrics_without_a_place": {
        "series": monitored(TICKS, HALF | {"gpu_0_temperature_celsius": 61.5, "fan": 3.0, "net/eth0": 1.0})
    },
    "three_gpus": {
        "series": monitored(TICKS, {f"gpu_{gpu}_utilization_percentage": 50.0 * (gpu != 1) for gpu in range(3)})
    },
    "no_number": {"series": PLAIN | {USED: [(PLAIN[USED][0][0], nan, 0), *PLAIN[USED][1:]]}},
    "training": {"series": PLAIN | {"train/loss": [(START + late, value, step) for late, value, step in LOSS]}},
    "work": {"series": PLAIN | {"samples_per_second": SPEED, "batches": [(at, 2.0, step) for at, _, step in SPEED]}},
    "params_and_tags": {"params": {"lr": "0.1", "amp": ""}, "tags": TAGS},
    "still_running": {"status": "RUNNING", "end": None},
    "no_system_metrics": {"series": {"loss": [(START, 1.0, 0)]}},
}
"""What is special of a run."""
READINGS: dict[str, list[dict[str, Any]]] = {
    "plain": [{}, {"mlflow_raw_times": True}],
    "three_gpus": [{"gpus": (0, 2)}],
    "work": [{}, {"throughput": "batches"}, {"throughput": "tokens"}],
    "still_running": [{"runs": ID}],
    "no_system_metrics": [{"runs": ID}],
}
"""The options a case is read with, one reading after the other, where it is not read once without."""


@pytest.mark.parametrize("write", [database, folder], ids=["sqlite", "file store"])
@pytest.mark.parametrize("name", CASES)
def test_a_written_run(name: str, write: Any, tmp_path: Path, *, update_golden: bool) -> None:
    source = write(tmp_path / "mlflow.db", [Made(**{"id": ID, "series": PLAIN} | CASES[name])])
    hold(f"mlflow/{name}", [describe(source, **options) for options in READINGS.get(name, [{}])], update=update_golden)


def seconds(found: Recording, device: str) -> list[float]:
    return [(time / 1000 - START) / 1000 for time in times(found, device)]


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(1, 100_000), min_size=1, max_size=40), st.integers(-100_000, 200_000))
def test_values_are_read_in_order_and_before_they_are_logged(tmp_path: Path, steps: list[int], late: int) -> None:
    logged = [100_000 + sum(steps[: place + 1]) for place in range(len(steps))]
    made = Made(id=ID, series=monitored(logged, {"gpu_0_utilization_percentage": 5.0}), start=START + late, end=None)
    (tmp_path / "mlflow.db").unlink(missing_ok=True)
    read = seconds(recording(database(tmp_path / "mlflow.db", [made])), "gpu:0")
    assert all(one * 1000 <= other + 1e-6 for one, other in zip(read, logged, strict=True)), (read, logged)
    assert read == sorted(read)

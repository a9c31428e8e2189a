"""Databases of neptune-scale, and the names of its monitoring recipe."""

import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpureport.errors import SourceError
from tests.importers.trackers.neptune import databases
from tests.importers.trackers.neptune.schedule import GIB, START
from tests.importers.trackers.tracked import codes, column, recording, refused, state

VALUES = [97.0, 0.0, 0.0, 50.0, 97.0, 0.0]


def test_the_recipe_is_read(tmp_path: Path) -> None:
    databases.write(tmp_path, databases.recipe(VALUES))
    found = recording(tmp_path)
    assert column(found, "gpu:0", "gpu_utilization_ratio") == [value / 100 for value in VALUES]
    assert found.run.quality.imputed_points == 0
    assert column(found, "gpu:0", "gpu_memory_used_bytes") == [databases.MEMORY] * 6
    assert column(found, "gpu:0", "gpu_power_watts") == [250.0] * 6
    assert column(found, "gpu:0", "gpu_temperature_celsius") == [62.0] * 6
    assert column(found, "host", "cpu_utilization_ratio") == [None, *[0.8] * 5]
    assert column(found, "host", "host_memory_used_bytes") == [5 * GIB] * 6
    assert column(found, "host", "host_memory_used_ratio") == [0.2] * 6
    assert column(found, "host", "host_network_receive_bytes_per_second") == [None, *[2 * 2**20] * 5]
    gpu = found.run.gpus[0]
    assert (gpu.model, gpu.memory_total_bytes) == ("NVIDIA X", 16 * GIB)
    assert (found.run.name, found.run.stages, found.run.interval) == ("exp-a", (), 5.0)
    assert dict(found.run.params) == {"params/amp": "true", "params/layers": "12", "params/lr": "0.1"}
    assert found.training.column("step").to_pylist() == [None] * 6
    assert found.run.quality.noise == 6


def test_a_namespace_of_one_s_own_is_a_stage(tmp_path: Path) -> None:
    databases.write(tmp_path, databases.recipe(VALUES, space="training"))
    assert [stage.name for stage in recording(tmp_path).run.stages] == ["training"]


def test_a_sample_that_failed_is_unknown(tmp_path: Path) -> None:
    messages = databases.recipe(VALUES)
    power = {"runtime/monitoring/gpu/0/power_usage_watts": 100.0}
    messages.append(databases.snapshot(START + 30_000_000, step=6, append=power))
    databases.write(tmp_path, messages)
    assert column(recording(tmp_path), "gpu:0", "gpu_utilization_ratio")[-1] is None


@pytest.mark.parametrize("open_log", [False, True])
def test_a_database_is_only_read(tmp_path: Path, *, open_log: bool) -> None:
    place = databases.write(tmp_path, databases.recipe(VALUES), open_log=open_log)
    before = state(tmp_path)
    place.parent.chmod(0o555)
    try:
        assert len(recording(tmp_path).rows_of("gpu:0")) == 6
    finally:
        place.parent.chmod(0o755)
    assert state(tmp_path) == before
    assert any(name.endswith("-wal") for name in before) == open_log


def test_a_database_of_something_else(tmp_path: Path) -> None:
    place = tmp_path / "x" / databases.NAME
    place.parent.mkdir()
    with sqlite3.connect(place) as database:
        database.execute("create table a (b)")
    database.close()
    assert refused(tmp_path).code == "not_a_scale_database"
    place.write_bytes(b"SQLite format 3\0" + bytes(50))
    assert refused(tmp_path).code == "not_a_scale_database"
    place.unlink()
    torn = databases.write(tmp_path, [databases.recipe(VALUES)[1][:-3]])
    assert refused(tmp_path).code == "not_a_scale_database"
    shutil.rmtree(torn.parent)
    databases.write(tmp_path, databases.recipe(VALUES), version="v9")
    assert "newer_database" in codes(recording(tmp_path))


ONCE = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@ONCE
@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_none(tmp_path: Path, data: bytes) -> None:
    shutil.rmtree(tmp_path / "run", ignore_errors=True)
    databases.write(tmp_path / "run", [*databases.recipe(VALUES), data])
    with suppress(SourceError):
        recording(tmp_path / "run")


@pytest.mark.slow
@ONCE
@given(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False), st.text("aäß €", min_size=1))
def test_numbers_and_texts_come_back(tmp_path: Path, whole: int, number: float, text: str) -> None:
    shutil.rmtree(tmp_path / "run", ignore_errors=True)
    said = databases.snapshot(START, assign={"params/whole": whole, "params/number": number, "params/text": text})
    databases.write(tmp_path / "run", [*databases.recipe(VALUES), said])
    params = dict(recording(tmp_path / "run").run.params)
    assert (int(params["params/whole"]), float(params["params/number"])) == (whole, number)
    assert params.get("params/text", "").strip() == text.strip()

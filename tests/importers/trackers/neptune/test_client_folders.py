"""Folders of Neptune's client up to 1.x."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.program import Program
from tests.importers.trackers.neptune import dumps, folders
from tests.importers.trackers.neptune.schedule import GIB, START, TICK, Schedule, loss, square
from tests.importers.trackers.tracked import codes, column, ids, recording, recordings, rejected, state, times

LOAD = square(busy=3, idle=2, ticks=20)
RUN = Schedule(utilization=[LOAD, [35.0] * 20], cpu=[60.0] * 20)
PERCENT = st.sampled_from([0.0, 0.0, 1.0, 35.0, 97.0, 100.0])


def test_the_schedule_comes_back(tmp_path: Path) -> None:
    found = recording(folders.write(tmp_path, folders.operations(RUN)))
    assert times(found, "gpu:0") == RUN.ticks
    assert column(found, "gpu:0", "gpu_utilization_ratio") == [value / 100 for value in LOAD]
    assert column(found, "gpu:0", "imputed") == [value == 0 for value in LOAD]
    gpu = found.run.gpus[1]
    assert (gpu.memory_total_bytes, gpu.power_limit_watts) == (24 * GIB, 300.0)
    assert "memory_of_largest" in codes(found)
    assert (found.run.name, found.run.tags) == ("baseline", (("sample", "true"), ("node", "node-a")))
    assert dict(found.run.params) == {"parameters/batch_size": "64"}


def test_a_power_limit_of_0_is_none(tmp_path: Path) -> None:
    given = folders.operations(RUN)
    for each in given:
        if each["type"] == "ConfigFloatSeries" and "gpu_power" in each["path"][-1]:
            each["max"] = 0
    folders.write(tmp_path, given)
    assert recording(tmp_path).run.gpus[0].power_limit_watts is None


def test_memory_that_a_person_knows(tmp_path: Path) -> None:
    found = recording(folders.write(tmp_path, folders.operations(RUN)), gpu_memory_total=80 * GIB)
    assert found.run.gpus[0].memory_total_bytes == 80 * GIB


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(PERCENT, PERCENT, PERCENT), min_size=2, max_size=30))
def test_any_schedule_comes_back_from_log_and_export(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[float, float, float]]
) -> None:
    schedule = Schedule(utilization=[[row[0] for row in rows], [row[1] for row in rows]], cpu=[row[2] for row in rows])
    place = tmp_path_factory.mktemp("run")
    folders.write(place / ".neptune", folders.operations(schedule))
    dumps.write(place / "dump", dumps.run(schedule))
    for found in (recording(place / ".neptune"), recording(place / "dump")):
        assert found.run.quality.imputed_points >= sum(
            values.count(0.0) for values in schedule.utilization if any(values)
        )
        for index, values in enumerate(schedule.utilization):
            name = "gpu_utilization_ratio"
            if any(values):
                assert column(found, f"gpu:{index}", name) == [value / 100 for value in values]
            else:
                assert name not in found.series.column_names or set(column(found, f"gpu:{index}", name)) == {None}
                assert "never_reported" in codes(found)


def test_a_folder_is_only_read(gpureport: Program, tmp_path: Path) -> None:
    place = folders.write(tmp_path, folders.operations(RUN))
    (place / "last_put_version").unlink()
    before = state(tmp_path)
    place.chmod(0o555)
    try:
        recording(tmp_path)
        assert "2 GPUs, host" in gpureport("ingest", "--list", str(tmp_path)).out
    finally:
        place.chmod(0o755)
    assert state(tmp_path) == before


def test_a_killed_run(tmp_path: Path) -> None:
    given = folders.operations(RUN)
    place = folders.write(tmp_path, given, mode="async", put=len(given) + 14)
    log = place / "data-1.log"
    log.write_bytes(log.read_bytes()[:-30])
    found = recording(tmp_path)
    assert rejected(found) == [("cut_last_line", 1)]
    assert found.run.quality.rejected[0].first_line == len(given)
    assert "operations_lost" in codes(found)


def test_a_log_damaged_in_the_middle(tmp_path: Path) -> None:
    place = folders.write(tmp_path, folders.operations(RUN))
    lines = (place / "data-1.log").read_text().splitlines()
    lines[5] = lines[5][:20]
    (place / "data-1.log").write_text("\n".join(lines))
    found = recording(tmp_path)
    assert (rejected(found), found.run.quality.rejected[0].first_line) == ([("torn_line", 1)], 6)


def test_a_log_whose_beginning_was_uploaded(tmp_path: Path) -> None:
    given = folders.operations(RUN)
    place = folders.write(tmp_path, given[:60], mode="async", first=1201, put=1200 + len(given))
    rest = [json.dumps({"obj": each, "version": number, "at": 1.0}) for number, each in enumerate(given[60:], 1261)]
    (place / "data-1261.log").write_text("\n".join(rest))
    found = recording(tmp_path)
    assert "operations_uploaded" in codes(found)
    assert len(found.rows_of("gpu:0")) == 20


def test_other_containers_are_no_runs(tmp_path: Path) -> None:
    folders.write(tmp_path, folders.operations(RUN))
    folders.write(tmp_path, folders.operations(RUN), container="model", run="M-1")
    folders.write(tmp_path, folders.operations(RUN), container="project", run="P-1", about={})
    assert ids(tmp_path) == [folders.RUN]


@pytest.mark.parametrize("shape", ["offline/{run}", "offline/run__{run}"])
def test_older_shapes(tmp_path: Path, shape: str) -> None:
    place = folders.write(tmp_path / "new", folders.operations(RUN), about={})
    older = tmp_path / "old" / shape.format(run=folders.RUN)
    older.parent.mkdir(parents=True)
    place.rename(older)
    for source in (tmp_path / "old", older, older / "data-1.log"):
        assert ids(source) == [folders.RUN]
        assert len(recording(source).rows_of("gpu:0")) == 20


def test_processes_of_one_run(tmp_path: Path) -> None:
    other = Schedule(utilization=[[80.0] * 5], namespace="monitoring/validation", start=START + 30 * TICK)
    folders.write(tmp_path, folders.operations(RUN), mode="async")
    place = folders.write(tmp_path / "x", folders.operations(other), mode="async")
    place.rename(tmp_path / "async" / f"run__{folders.RUN}__1405__zzzzzzzz")
    found = recording(tmp_path)
    assert [stage.name for stage in found.run.stages] == ["training", "validation"]
    assert len(found.rows_of("gpu:0")) == 25


def test_stages_recorded_as_runs_are_grouped(tmp_path: Path) -> None:
    other = Schedule(utilization=[[80.0] * 5], namespace="monitoring/preprocessing", start=START - 9 * TICK)
    folders.write(tmp_path, folders.operations(RUN))
    folders.write(tmp_path, folders.operations(other), run="aaaaaaaa-eb52-4187-b43c-3cb0bae4f42f")
    assert len(recordings(tmp_path)) == 2
    found = recording(tmp_path, group="pipeline")
    assert found.run.name == "pipeline"
    assert [stage.name for stage in found.run.stages] == ["preprocessing", "training"]
    assert len(found.rows_of("gpu:0")) == 25
    assert found.run.id not in {each.run.id for each in recordings(tmp_path)}


def test_operations_that_take_back(tmp_path: Path) -> None:
    given = [
        *folders.floats("loss", loss(START, 3)),
        folders.operation("ClearFloatLog", "loss"),
        *folders.floats("loss", [(START, float("nan")), (START + TICK, 0.5)]),
        *folders.operations(RUN),
        folders.operation("AssignFloat", "params/lr", value=0.1),
        folders.operation("DeleteAttribute", "params/lr"),
        folders.operation("RemoveStrings", "sys/tags", values=["sample"]),
        folders.operation("AssignDatetime", "when", value=START // 1000),
    ]
    found = recording(folders.write(tmp_path, given))
    assert found.training.column("value").to_pylist() == [None, 0.5]
    assert (dict(found.run.params), found.run.tags) == ({"parameters/batch_size": "64"}, (("node", "node-a"),))


def test_monitoring_that_ended_early(tmp_path: Path) -> None:
    late = folders.floats("loss", [(START + 60 * TICK, 0.1)])
    folders.write(tmp_path, [*folders.operations(RUN), *late])
    found = recording(tmp_path)
    assert found.run.ended == RUN.ticks[-1]
    assert "monitoring_ended" in codes(found)


def test_two_values_at_one_time(tmp_path: Path) -> None:
    path = "monitoring/training/gpu_1"
    folders.write(tmp_path, [*folders.operations(RUN), *folders.floats(path, [(RUN.ticks[3], 44.0)])])
    found = recording(tmp_path)
    assert rejected(found) == [("another_value_at_the_same_time", 1)]
    assert column(found, "gpu:1", "gpu_utilization_ratio")[3:4] == [0.44]


def test_a_gauge_without_memory_cannot_be_restored(tmp_path: Path) -> None:
    kept = [each for each in folders.operations(RUN) if "gpu_memory" not in each["path"][-1]]
    found = recording(folders.write(tmp_path, kept))
    assert found.run.quality.imputed_points == 0
    assert "zeros_missing" in codes(found)

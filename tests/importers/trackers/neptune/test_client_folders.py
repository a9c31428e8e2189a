"""Folders of Neptune's client up to 1.x and databases of neptune-scale, and which of their runs are meant."""

import json
import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from gpureport.errors import SourceError
from tests.importers.trackers.neptune import databases, dumps, folders
from tests.importers.trackers.neptune.schedule import GIB, START, TICK, Schedule, loss, square
from tests.importers.trackers.tracked import codes, column, ids, recording, recordings, refused, rejected, state, times
from tests.support.program import Program

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


def test_limits_of_0_and_memory_that_a_person_knows(tmp_path: Path) -> None:
    given = folders.operations(RUN)
    for each in given:
        if each["type"] == "ConfigFloatSeries" and "gpu_power" in each["path"][-1]:
            each["max"] = 0
    folders.write(tmp_path, given)
    assert recording(tmp_path).run.gpus[0].power_limit_watts is None
    found = recording(folders.write(tmp_path / "known", folders.operations(RUN)), gpu_memory_total=80 * GIB)
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


def test_logs_cut_damaged_or_uploaded_in_part_keep_their_other_lines(tmp_path: Path) -> None:
    given = folders.operations(RUN)
    place = folders.write(tmp_path, given, mode="async", put=len(given) + 14)
    log = place / "data-1.log"
    log.write_bytes(log.read_bytes()[:-30])
    found = recording(tmp_path)
    assert rejected(found) == [("cut_last_line", 1)]
    assert found.run.quality.rejected[0].first_line == len(given)
    assert "operations_lost" in codes(found)
    place = folders.write(tmp_path / "torn", folders.operations(RUN))
    lines = (place / "data-1.log").read_text().splitlines()
    lines[5] = lines[5][:20]
    (place / "data-1.log").write_text("\n".join(lines))
    found = recording(tmp_path / "torn")
    assert (rejected(found), found.run.quality.rejected[0].first_line) == ([("torn_line", 1)], 6)
    given = folders.operations(RUN)
    place = folders.write(tmp_path / "uploaded", given[:60], mode="async", first=1201, put=1200 + len(given))
    rest = [json.dumps({"obj": each, "version": number, "at": 1.0}) for number, each in enumerate(given[60:], 1261)]
    (place / "data-1261.log").write_text("\n".join(rest))
    found = recording(tmp_path / "uploaded")
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


def test_processes_of_one_run_and_stages_recorded_as_runs(tmp_path: Path) -> None:
    other = Schedule(utilization=[[80.0] * 5], namespace="monitoring/validation", start=START + 30 * TICK)
    folders.write(tmp_path, folders.operations(RUN), mode="async")
    place = folders.write(tmp_path / "x", folders.operations(other), mode="async")
    place.rename(tmp_path / "async" / f"run__{folders.RUN}__1405__zzzzzzzz")
    found = recording(tmp_path)
    assert [stage.name for stage in found.run.stages] == ["training", "validation"]
    assert len(found.rows_of("gpu:0")) == 25
    other = Schedule(utilization=[[80.0] * 5], namespace="monitoring/preprocessing", start=START - 9 * TICK)
    folders.write(tmp_path / "stages", folders.operations(RUN))
    folders.write(tmp_path / "stages", folders.operations(other), run="aaaaaaaa-eb52-4187-b43c-3cb0bae4f42f")
    assert len(recordings(tmp_path / "stages")) == 2
    found = recording(tmp_path / "stages", group="pipeline")
    assert found.run.name == "pipeline"
    assert [stage.name for stage in found.run.stages] == ["preprocessing", "training"]
    assert len(found.rows_of("gpu:0")) == 25
    assert found.run.id not in {each.run.id for each in recordings(tmp_path / "stages")}


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


def test_monitoring_that_ended_early_values_twice_and_a_gauge_without_memory(tmp_path: Path) -> None:
    late = folders.floats("loss", [(START + 60 * TICK, 0.1)])
    folders.write(tmp_path / "late", [*folders.operations(RUN), *late])
    found = recording(tmp_path / "late")
    assert found.run.ended == RUN.ticks[-1]
    assert "monitoring_ended" in codes(found)
    path = "monitoring/training/gpu_1"
    folders.write(tmp_path / "twice", [*folders.operations(RUN), *folders.floats(path, [(RUN.ticks[3], 44.0)])])
    found = recording(tmp_path / "twice")
    assert rejected(found) == [("another_value_at_the_same_time", 1)]
    assert column(found, "gpu:1", "gpu_utilization_ratio")[3:4] == [0.44]
    kept = [each for each in folders.operations(RUN) if "gpu_memory" not in each["path"][-1]]
    found = recording(folders.write(tmp_path / "bare", kept))
    assert found.run.quality.imputed_points == 0
    assert "zeros_missing" in codes(found)


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


def test_a_namespace_of_one_s_own_and_a_sample_that_failed(tmp_path: Path) -> None:
    databases.write(tmp_path / "own", databases.recipe(VALUES, space="training"))
    assert [stage.name for stage in recording(tmp_path / "own").run.stages] == ["training"]
    messages = databases.recipe(VALUES)
    power = {"runtime/monitoring/gpu/0/power_usage_watts": 100.0}
    messages.append(databases.snapshot(START + 30_000_000, step=6, append=power))
    databases.write(tmp_path / "failed", messages)
    assert column(recording(tmp_path / "failed"), "gpu:0", "gpu_utilization_ratio")[-1] is None


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


def several(folder: Path) -> None:
    for place, run_id in enumerate(("OPT-1", "OPT-10", "OPT-2")):
        schedule = Schedule(utilization=[[50.0] * 3], start=START + place * 100 * TICK)
        singles = {"sys/name": f"run {place}", "sys/trashed": run_id == "OPT-2"}
        dumps.write(folder, dumps.run(schedule, run_id=run_id, singles=singles))


def test_which_runs_are_meant_also_in_a_folder_with_a_hash_sign(tmp_path: Path) -> None:
    several(tmp_path)
    assert ids(tmp_path) == ["OPT-1", "OPT-10"]
    assert ids(tmp_path, runs="OPT-1") == ["OPT-1"]
    assert ids(tmp_path, runs=("OPT-2", "run 0")) == ["OPT-2", "OPT-1"]
    assert ids(tmp_path, runs="OPT-1*") == ["OPT-1", "OPT-10"]
    assert ids(tmp_path, runs=("OPT-10", "run 1")) == ["OPT-10"]
    assert ids(tmp_path, runs=("OPT-10", "OPT-1")) == ["OPT-10", "OPT-1"]
    assert ids(tmp_path, latest=1) == ["OPT-10"]
    assert ids(tmp_path, experiment="run 1") == ["OPT-10"]
    assert len(ids(tmp_path, project="acme/*")) == 2
    assert ids(f"neptune:{tmp_path}#OPT-2") == ["OPT-2"]
    for options, code in (
        ({"runs": "OPT"}, "unknown_run"),
        ({"runs": "X-1"}, "unknown_run"),
        ({"experiment": "none"}, "no_finished_run"),
        ({"filter": "x"}, "filter_needs_server"),
        ({"project": "other/x"}, "no_runs"),
    ):
        assert refused(tmp_path, **options).code == code, options
    several(tmp_path / "a#b")
    assert ids(f"neptune:{tmp_path / 'a#b'}") == ["OPT-1", "OPT-10"]
    assert ids(f"neptune:{tmp_path / 'a#b'}#OPT-1") == ["OPT-1"]


def test_hidden_folders_where_they_are_named_and_what_decides_the_id(tmp_path: Path) -> None:
    folders.write(tmp_path / "job" / ".neptune", folders.operations(Schedule(utilization=[[50.0] * 3])))
    assert refused(tmp_path / "job").code == "folder_of_client"
    assert ids(tmp_path / "job" / ".neptune") == [folders.RUN]
    assert ids(f"neptune:{tmp_path / 'job'}") == [folders.RUN]
    rows = dumps.run(Schedule(utilization=[[50.0] * 3]))
    dumps.write(tmp_path / "a", rows)
    dumps.write(tmp_path / "b", rows)
    one = recording(tmp_path / "a").run.id
    assert recording(tmp_path / "b").run.id == one
    others = [recording(tmp_path / "a", stage="training"), recording(tmp_path / "a", tz="Europe/Berlin")]
    assert len({one, *(each.run.id for each in others)}) == 3


MAP = """
[neptune]
namespaces = ["hw/rank0"]

[neptune.series."sensors/util"]
metric = "gpu_utilization_ratio"
unit = "%"
device = "gpu:7"

[neptune.series."sensors/watts"]
metric = "gpu_power_watts"
device = "gpu:7"
"""


def test_names_of_one_s_own(gpureport: Program, tmp_path: Path) -> None:
    own = {
        "sensors/util": [(START + TICK * place, value) for place, value in enumerate((90.0, 0.0, 45.0))],
        "sensors/watts": [(START + TICK * place, 200.0) for place in range(3)],
        "loss": loss(START, 3),
    }
    rows = dumps.run(Schedule(utilization=[[50.0, 0.0, 50.0]], namespace="hw/rank0"), series=own)
    dumps.write(
        tmp_path / "data", [row for row in rows if not row["attribute_path"].endswith(("hostname", "pid", "tid"))]
    )
    (tmp_path / "map.toml").write_text(MAP)
    assert refused(tmp_path / "data").code == "no_finished_run"
    assert gpureport("ingest", "data", "--map", "map.toml").code == 0
    assert gpureport("runs", "export", "baseline", "-o", "run.parquet").code == 0
    table = parquet.read_table(tmp_path / "run.parquet")
    rows = [row for row in table.to_pylist() if row["device"] != "host"]
    found = {
        device: [(round(row["gpu_utilization_ratio"], 4), row["imputed"]) for row in rows if row["device"] == device]
        for device in ("gpu:0", "gpu:7")
    }
    assert found["gpu:7"] == [(0.9, False), (0.0, False), (0.45, False)]
    assert found["gpu:0"] == [(0.5, False), (0.0, True), (0.5, False)]
    assert {row["gpu_power_watts"] for row in rows if row["device"] == "gpu:7"} == {200.0}


def test_a_map_that_says_what_cannot_be(gpureport: Program, tmp_path: Path) -> None:
    dumps.write(tmp_path / "data", dumps.run(Schedule(utilization=[[50.0] * 3])))
    one = "[neptune.series.a]\nmetric = "
    for text, said in (
        ("neptune = 1", "neptune must be a table"),
        ("[neptune]\nspaces = []", "'spaces'"),
        ("[neptune]\nnamespaces = 'x'", "namespaces is not a list"),
        ("[neptune]\nseries = 1", "series must be a table"),
        (f"{one}'none'", "no metric 'none'"),
        (f"{one}'gpu_power_watts'", "which GPU"),
        (f"{one}'gpu_memory_used_bytes'\ndevice = 'gpu:0'", "no unit"),
        (f"{one}'gpu_power_watts'\ndevice = 'gpu:0'\nunit = '%'", "no unit '%'"),
        ("[neptune.series]\na = 1", "must be a table"),
        ("nonsense", "not TOML"),
        ("a = " + "9" * 5000, "not TOML"),
    ):
        (tmp_path / "map.toml").write_text(text)
        done = gpureport("ingest", "data", "--map", "map.toml")
        assert (done.code, done.err.startswith("gpureport: map.toml: "), said in done.err) == (2, True, True), done.err


def test_errors_are_one_line(gpureport: Program, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "other.csv").write_text("a,b\n")
    part = dumps.write(tmp_path / "damaged", dumps.run(Schedule(utilization=[[50.0] * 3])))
    part.write_bytes(part.read_bytes()[:-9])
    place = folders.write(tmp_path / "torn", [folders.operation("AssignInt", "a", value=1)] * 3)
    (place / "data-1.log").write_text('{"obj": \n{"obj": \n')
    dumps.write(tmp_path / "bare", dumps.run(series={"loss": loss(START, 3)}, created=START))
    for source, where in {
        "neptune:absent": "absent",
        "neptune:empty": "empty",
        "neptune:other.csv": "other.csv",
        "neptune://acme": "neptune://acme",
        "damaged": f"damaged/{part.relative_to(tmp_path / 'damaged')}",
        "torn": f"torn/{place.relative_to(tmp_path / 'torn')}/data-1.log",
        "neptune:bare": "bare",
    }.items():
        for command in ("ingest", "analyze"):
            done = gpureport(command, source)
            assert (done.code, done.out, done.err.count("\n")) == (3, "", 1), done
            assert done.err.startswith(f"gpureport: {where}: "), done.err


def test_the_list_is_printed_and_a_store_is_claimed_by_one_tracker(gpureport: Program, tmp_path: Path) -> None:
    several(tmp_path / "data")
    done = gpureport("ingest", "--list", "data")
    lines = done.out.splitlines()
    assert (done.code, len(lines)) == (0, 2)
    assert lines[1].startswith("OPT-1  run 0  inactive  2026-03-14T09:26:53")
    assert not (tmp_path / ".gpureport").exists()
    assert gpureport("analyze", "neptune:data#OPT-1").code == 0
    several(tmp_path / "dump")
    folders.write(tmp_path / "local", folders.operations(Schedule(utilization=[[50.0] * 3])))
    databases.write(tmp_path / "scale", databases.recipe([50.0] * 3))
    for name in ("dump", "local", "scale"):
        assert {each.run.sources[0].kind for each in recordings(tmp_path / name)} == {"neptune"}

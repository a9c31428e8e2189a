"""Folders of Neptune's client up to 1.x, databases of neptune-scale and exports, and which of their runs are meant."""

import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from gpureport.errors import SourceError
from tests.importers.trackers.neptune import databases, dumps, folders
from tests.importers.trackers.neptune.schedule import START, TICK, Schedule, loss, square
from tests.importers.trackers.tracked import codes, column, ids, readable, recording, recordings, refused, state
from tests.support.program import Program

LOAD = square(busy=3, idle=2, ticks=20)
RUN = Schedule(utilization=[LOAD, [35.0] * 20], cpu=[60.0] * 20)
PERCENT = st.sampled_from([0.0, 0.0, 1.0, 35.0, 97.0, 100.0])


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


@pytest.mark.parametrize("shape", ["offline/{run}", "offline/run__{run}"])
def test_older_shapes(tmp_path: Path, shape: str) -> None:
    place = folders.write(tmp_path / "new", folders.operations(RUN), about={})
    older = tmp_path / "old" / shape.format(run=folders.RUN)
    older.parent.mkdir(parents=True)
    place.rename(older)
    for source in (tmp_path / "old", older, older / "data-1.log"):
        assert ids(source) == [folders.RUN]
        assert len(recording(source).rows_of("gpu:0")) == 20


VALUES = [97.0, 0.0, 0.0, 50.0, 97.0, 0.0]


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
        ("[neptune]\nnamespaces = 'x'", "namespaces must be a list"),
        ("[neptune]\nseries = 1", "series must be a table"),
        (f"{one}'none'", "no metric 'none'"),
        (f"{one}'gpu_power_watts'", "no GPU is given"),
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


def test_parts_and_row_groups_make_no_difference(tmp_path: Path) -> None:
    rows = dumps.run(RUN, series={"loss": loss(START, 30)})
    dumps.write(tmp_path / "whole", rows, groups=1)
    dumps.write(tmp_path / "cut", rows[:77], groups=4)
    dumps.write(tmp_path / "cut", rows[77:], part=1, groups=5)
    whole, cut = recording(tmp_path / "whole"), recording(tmp_path / "cut")
    assert whole.series.equals(cut.series)
    assert whole.training.equals(cut.training)
    assert whole.run.id == cut.run.id


def test_a_broken_run_is_named_and_the_other_read(tmp_path: Path) -> None:
    for how, code in (
        ("interrupted", "export_interrupted"),
        ("missing", "missing_part"),
        ("cut", "damaged_export"),
        ("damaged in its pages", "damaged_export"),
        ("without a column", "no_such_column"),
    ):
        folder = tmp_path / how
        left_out = "float_value" if how == "without a column" else ""
        schema = pa.schema([field for field in dumps.SCHEMA if field.name != left_out])
        part = dumps.write_to(dumps.path(folder), dumps.run(RUN), schema=schema)
        whole = part.read_bytes()
        if how in {"interrupted", "missing"}:
            dumps.write(folder, dumps.run(RUN), part=1)
            part.rename(part.with_name(f"{part.name}.tmp")) if how == "interrupted" else part.unlink()
        elif how == "cut":
            part.write_bytes(whole[:-200])
        elif how == "damaged in its pages":
            part.write_bytes(whole[:4] + bytes(1496) + whole[1500:])
        dumps.write(folder, dumps.run(Schedule(utilization=[[50.0] * 3]), run_id="OPT-2"))
        (found,) = readable(folder, runs="OPT-2")[0]
        assert len(found.rows_of("gpu:0")) == 3, how
        error = refused(folder, runs="OPT-1")
        assert (error.code, str(folder) in error.where) == (code, True), how


def test_runs_without_hardware(tmp_path: Path) -> None:
    dumps.write(tmp_path, dumps.run(series={"train/loss": loss(START, 3)}, run_id="OPT-3", created=START))
    assert refused(tmp_path).code == "no_finished_run"
    assert refused(tmp_path, runs="OPT-3").code == "no_hardware_series"
    dumps.write(tmp_path, dumps.run(RUN))
    assert ids(tmp_path) == ["OPT-1"]
    assert refused(tmp_path, require_hardware=True).code == "no_hardware_series"


def test_not_every_parquet_is_an_export(tmp_path: Path) -> None:
    for _ in range(2):
        assert refused(tmp_path).code == "no_log"
        dumps.write_to(tmp_path / "x_part_0.parquet", [{"a": 1}], schema=pa.schema({"a": pa.int64()}))
        (tmp_path / "y.parquet").write_bytes(b"nonsense")


@pytest.mark.parametrize(
    ("zone", "tz", "created", "said"),
    [
        ("UTC", None, 6, ""),
        ("UTC", None, 420, ""),
        ("Asia/Kolkata", None, 6, "5.5 h after"),
        ("Asia/Tokyo", "Asia/Shanghai", 6, "1 h after"),
    ],
    ids=["right", "late monitoring", "to the quarter", "wrong zone"],
)
def test_an_offset_from_the_start_is_told(tmp_path: Path, zone: str, tz: str | None, created: int, said: str) -> None:
    rows = dumps.run(Schedule(utilization=[LOAD]), created=START - created * 1_000_000)
    dumps.write(tmp_path, dumps.local(rows, zone))
    notes = [note for note in recording(tmp_path, tz=tz).run.quality.notes if "the first sample lies" in note]
    assert [said in note for note in notes] == [True] * bool(said)

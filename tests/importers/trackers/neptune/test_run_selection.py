"""Which runs are meant, names of one's own, and what is said when nothing fits."""

from pathlib import Path

from pyarrow import parquet

from tests.cli.program import Program
from tests.importers.trackers.neptune import databases, dumps, folders
from tests.importers.trackers.neptune.schedule import START, TICK, Schedule, loss
from tests.importers.trackers.tracked import ids, recording, recordings, refused


def several(folder: Path) -> None:
    for place, run_id in enumerate(("OPT-1", "OPT-10", "OPT-2")):
        schedule = Schedule(utilization=[[50.0] * 3], start=START + place * 100 * TICK)
        singles = {"sys/name": f"run {place}", "sys/trashed": run_id == "OPT-2"}
        dumps.write(folder, dumps.run(schedule, run_id=run_id, singles=singles))


def test_which_runs_are_meant(tmp_path: Path) -> None:
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


def test_a_folder_with_a_hash_sign(tmp_path: Path) -> None:
    several(tmp_path / "a#b")
    assert ids(f"neptune:{tmp_path / 'a#b'}") == ["OPT-1", "OPT-10"]
    assert ids(f"neptune:{tmp_path / 'a#b'}#OPT-1") == ["OPT-1"]


def test_hidden_folders_are_looked_into_where_they_are_named(tmp_path: Path) -> None:
    folders.write(tmp_path / "job" / ".neptune", folders.operations(Schedule(utilization=[[50.0] * 3])))
    assert refused(tmp_path / "job").code == "folder_of_client"
    assert ids(tmp_path / "job" / ".neptune") == [folders.RUN]
    assert ids(f"neptune:{tmp_path / 'job'}") == [folders.RUN]


def test_what_decides_the_id_of_a_run(tmp_path: Path) -> None:
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


def test_the_list_is_printed(gpureport: Program, tmp_path: Path) -> None:
    several(tmp_path / "data")
    done = gpureport("ingest", "--list", "data")
    lines = done.out.splitlines()
    assert (done.code, len(lines)) == (0, 2)
    assert lines[1].startswith("OPT-1  run 0  inactive  2026-03-14T09:26:53")
    assert not (tmp_path / ".gpureport").exists()
    assert gpureport("analyze", "neptune:data#OPT-1").code == 0


def test_a_store_is_claimed_by_one_tracker(tmp_path: Path) -> None:
    several(tmp_path / "dump")
    folders.write(tmp_path / "local", folders.operations(Schedule(utilization=[[50.0] * 3])))
    databases.write(tmp_path / "scale", databases.recipe([50.0] * 3))
    for name in ("dump", "local", "scale"):
        assert {each.run.sources[0].kind for each in recordings(tmp_path / name)} == {"neptune"}

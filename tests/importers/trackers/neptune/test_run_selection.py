"""Which runs are meant, names of one's own, and what is said when nothing fits."""

from pathlib import Path
from typing import Any

import pytest

from gpureport.errors import SettingsError, SourceError
from gpureport.importers import LOCATORS, TRACKERS, ReadOptions, Selection, find_tracker
from tests.cli.program import Program, program
from tests.importers.trackers.neptune import databases, dumps, folders
from tests.importers.trackers.neptune.reading import column, readings, recording
from tests.importers.trackers.neptune.schedule import START, TICK, Schedule, loss, nearly


@pytest.fixture
def gpureport(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Program:
    """The program, run in an empty folder."""
    return program(capsys, monkeypatch, tmp_path)


def several(folder: Path) -> None:
    """Write three runs, one of them in the bin."""
    for place, run_id in enumerate(("OPT-1", "OPT-10", "OPT-2")):
        schedule = Schedule(utilization=[[50.0] * 3], start=START + place * 100 * TICK)
        singles = {"sys/name": f"run {place}", "sys/trashed": run_id == "OPT-2"}
        dumps.write(folder, dumps.run(schedule, run_id=run_id, singles=singles))


def ids(source: Path | str, **wanted: Any) -> list[str]:  # noqa: ANN401 - any field of a selection
    """Return the ids of the runs that are meant."""
    return [reading.locator.rpartition("#")[2] for reading in readings(source, **wanted)]


def test_which_runs_are_meant(tmp_path: Path) -> None:
    """By id, its beginning, name, `*`, the locator, the newest; what is in the bin only when named."""
    several(tmp_path)
    assert ids(tmp_path) == ["OPT-1", "OPT-10"]
    assert ids(tmp_path, runs=("OPT-1",)) == ["OPT-1"]
    assert ids(tmp_path, runs=("OPT-2", "run 0")) == ["OPT-2", "OPT-1"]
    assert ids(tmp_path, runs=("OPT-1*",)) == ["OPT-1", "OPT-10"]
    assert ids(tmp_path, runs=("OPT-10", "run 1")) == ["OPT-10"]
    assert ids(tmp_path, latest=1) == ["OPT-10"]
    assert ids(tmp_path, experiment="run 1") == ["OPT-10"]
    assert ids(f"neptune:{tmp_path}#OPT-2") == ["OPT-2"]
    with pytest.raises(
        SourceError, match="several runs begin with 'OPT': OPT-1, OPT-10, OPT-2; name one of them whole"
    ):
        ids(tmp_path, runs=("OPT",))
    with pytest.raises(SourceError, match="it holds no run 'X-1'; it holds OPT-1, OPT-10, OPT-2"):
        ids(tmp_path, runs=("X-1",))
    with pytest.raises(SourceError, match="it holds no such run"):
        ids(tmp_path, experiment="none")
    with pytest.raises(SettingsError, match="--filter: files of Neptune have no filter of their own"):
        ids(tmp_path, filter="x")


def test_runs_come_in_the_order_in_which_they_started(tmp_path: Path) -> None:
    """Whatever their ids and files; those that are named one by one in the order they are named."""
    for place, run_id in enumerate(("OPT-9", "OPT-1", "OPT-5")):
        schedule = Schedule(utilization=[[50.0] * 3], start=START + place * 100 * TICK)
        dumps.write(tmp_path, dumps.run(schedule, run_id=run_id))
    assert ids(tmp_path) == ids(tmp_path, runs=("*",)) == ["OPT-9", "OPT-1", "OPT-5"]
    assert ids(tmp_path, latest=2) == ["OPT-1", "OPT-5"]
    assert ids(tmp_path, runs=("OPT-5", "OPT-9")) == ["OPT-5", "OPT-9"]


def test_a_folder_with_a_hash_sign(tmp_path: Path) -> None:
    """A path that exists is a path, whatever signs it holds."""
    several(tmp_path / "a#b")
    assert ids(f"neptune:{tmp_path / 'a#b'}") == ["OPT-1", "OPT-10"]
    assert ids(f"neptune:{tmp_path / 'a#b'}#OPT-1") == ["OPT-1"]


def test_hidden_folders_are_looked_into_where_they_are_named(tmp_path: Path) -> None:
    """A folder of logs that also holds `.neptune` is one of logs; its name, or the locator, says otherwise."""
    folders.write(tmp_path / "job" / ".neptune", folders.operations(Schedule(utilization=[[50.0] * 3])))
    assert find_tracker(str(tmp_path / "job")) is None
    assert ids(tmp_path / "job" / ".neptune") == [folders.RUN]
    assert ids(f"neptune:{tmp_path / 'job'}") == [folders.RUN]


def test_what_decides_the_id_of_a_run(tmp_path: Path) -> None:
    """Where an export lies says nothing; stage, zone and map say which rows there are."""
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


def test_names_of_one_s_own(tmp_path: Path) -> None:
    """A map says which series mean what, and which namespaces are the client's; the rest stays training."""
    own = {
        "sensors/util": [(START + TICK * place, value) for place, value in enumerate((90.0, 0.0, 45.0))],
        "sensors/watts": [(START + TICK * place, 200.0) for place in range(3)],
        "loss": loss(START, 3),
    }
    rows = dumps.run(Schedule(utilization=[[50.0, 0.0, 50.0]], namespace="hw/rank0"), series=own)
    dumps.write(tmp_path, [row for row in rows if not row["attribute_path"].endswith(("hostname", "pid", "tid"))])
    (tmp_path / "map.toml").write_text(MAP)
    with pytest.raises(SourceError, match="the run holds no hardware series, but hw, loss, sensors"):
        recording(tmp_path)
    found = recording(tmp_path, map=tmp_path / "map.toml")
    assert [device.id for device in found.run.devices] == ["gpu:0", "gpu:7", "host"]
    assert nearly(column(found, "gpu:7", "gpu_utilization_ratio"), [0.9, 0.0, 0.45])
    assert nearly(column(found, "gpu:7", "gpu_power_watts"), [200.0] * 3)
    assert nearly(column(found, "gpu:0", "gpu_utilization_ratio"), [0.5, 0.0, 0.5])
    assert column(found, "gpu:0", "imputed") == [False, True, False]
    assert set(found.training.column("name").to_pylist()) == {"loss"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("neptune = 1", "[neptune] is no table"),
        ("[neptune]\nspaces = []", "[neptune] knows no 'spaces'; it takes namespaces, series"),
        ("[neptune]\nnamespaces = 'x'", "namespaces is no list of paths"),
        ("[neptune]\nseries = 1", "series is no table"),
        ("[neptune.series.a]\nmetric = 'none'", "names no metric"),
        ("[neptune.series.a]\nmetric = 'gpu_power_watts'", "names no device"),
        ("[neptune.series.a]\nmetric = 'gpu_memory_used_bytes'\ndevice = 'gpu:0'", "needs a unit; give one of B, KiB"),
        ("[neptune.series.a]\nmetric = 'gpu_power_watts'\ndevice = 'gpu:0'\nunit = '%'", "needs a unit; give one of "),
        ("[neptune.series]\na = 1", "is no table"),
        ("nonsense", "not TOML"),
        ("a = " + "9" * 5000, "not TOML"),
    ],
)
def test_a_map_that_says_what_cannot_be(tmp_path: Path, text: str, said: str) -> None:
    """One line with the file, what is wrong, and what to do."""
    dumps.write(tmp_path, dumps.run(Schedule(utilization=[[50.0] * 3])))
    (tmp_path / "map.toml").write_text(text)
    with pytest.raises(SettingsError) as error:
        readings(tmp_path, map=tmp_path / "map.toml")
    assert said in str(error.value)
    assert str(tmp_path / "map.toml") in str(error.value)


CASES = {
    "neptune:absent": (3, "absent: no such file or folder; give an export"),
    "neptune:empty": (3, "empty: it holds no run of Neptune; give an export"),
    "neptune:other.csv": (3, "other.csv: it holds no run of Neptune; give an export"),
    "neptune://acme": (3, "neptune://acme: not the locator of a project; "),
    "damaged": (
        3,
        "damaged/acme_gpu-opt-c82a897d74f812b5/OPT-1-8d6df92a19c0a8ac_part_0.parquet: the Parquet file is damaged",
    ),
    "torn": (
        3,
        f"torn/offline/run__{folders.RUN}__1404__oda9vxk6/data-1.log: line 1 is no operation of Neptune's client; ",
    ),
    "bare": (3, "neptune:bare#OPT-1: the run holds no hardware series, but "),
}


@pytest.mark.parametrize(("source", "expected"), CASES.items())
def test_errors_are_one_line(gpureport: Program, tmp_path: Path, source: str, expected: tuple[int, str]) -> None:
    """What cannot be used is one line on standard error and exit code 3, for every command."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "other.csv").write_text("a,b\n")
    part = dumps.write(tmp_path / "damaged", dumps.run(Schedule(utilization=[[50.0] * 3])))
    part.write_bytes(part.read_bytes()[:-9])
    place = folders.write(tmp_path / "torn", [folders.operation("AssignInt", "a", value=1)] * 3)
    (place / "data-1.log").write_text('{"obj": \n{"obj": \n')
    dumps.write(tmp_path / "bare", dumps.run(series={"loss": loss(START, 3)}, created=START))
    for command in ("ingest", "analyze"):
        outcome = gpureport(command, source)
        assert (outcome.code, outcome.out) == (expected[0], "")
        assert outcome.err.startswith(f"gpureport: {expected[1]}")
        assert outcome.err.count("\n") == 1


def test_other_runs_go_on(gpureport: Program, tmp_path: Path) -> None:
    """A run that cannot be read is named, the others are stored, and the code says that not all went well."""
    several(tmp_path / "data")
    part = dumps.path(tmp_path / "data", "OPT-10")
    part.write_bytes(part.read_bytes()[:-9])
    outcome = gpureport("ingest", "data")
    assert outcome.code == 3
    assert "Stored run 0: 1 GPU, 20 s, no point lost." in outcome.out
    assert "_part_0.parquet: the Parquet file is damaged" in outcome.err
    assert "run 0" in gpureport("runs").out


def test_an_export_is_read_again_when_it_grew(gpureport: Program, tmp_path: Path) -> None:
    """The same run is in the store once; with more in it, it is replaced."""
    dumps.write(tmp_path / "data", dumps.run(Schedule(utilization=[[50.0] * 30])))
    first = gpureport("ingest", "data").out
    assert "is stored already" in gpureport("ingest", "data").out
    dumps.write(tmp_path / "data", dumps.run(Schedule(utilization=[[50.0] * 400])))
    again = gpureport("ingest", "data").out
    assert again.split()[0] == first.split()[0]
    assert " again: " in again


def test_the_list_is_printed(gpureport: Program, tmp_path: Path) -> None:
    """`--list` stores nothing and shows what to name."""
    several(tmp_path / "data")
    outcome = gpureport("ingest", "--list", "data")
    lines = outcome.out.splitlines()
    assert (outcome.code, len(lines)) == (0, 3)
    assert lines[0].startswith("OPT-1  run 0  inactive  2026-03-14T09:26:53")
    assert not (tmp_path / ".gpureport").exists()


def test_a_locator_is_a_source(gpureport: Program, tmp_path: Path) -> None:
    """Every command that takes a run takes a locator."""
    several(tmp_path / "data")
    assert "neptune:" in LOCATORS
    assert gpureport("analyze", "neptune:data#OPT-1").code == 0
    assert ReadOptions().tz is None
    assert Selection().map is None


def test_a_store_is_claimed_by_one_tracker(tmp_path: Path) -> None:
    """No other tracker takes a store of Neptune for its own, whatever form it has."""
    several(tmp_path / "dump")
    folders.write(tmp_path / "local", folders.operations(Schedule(utilization=[[50.0] * 3])))
    databases.write(tmp_path / "scale", databases.recipe([50.0] * 3))
    for name in ("dump", "local", "scale"):
        assert [each.kind for each in TRACKERS if each.claims(str(tmp_path / name))] == ["neptune"]
    (tmp_path / "mlruns" / "0").mkdir(parents=True)
    (tmp_path / "mlruns" / "0" / "meta.yaml").write_text("experiment_id: '0'\nname: Default\n")
    assert [each.kind for each in TRACKERS if each.claims(str(tmp_path / "mlruns"))] != ["neptune"]

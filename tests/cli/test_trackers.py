"""Runs of a tracker on the command line: listed, stored, read again when they grow, and judged."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.api.test_api import loaded
from tests.importers.trackers.mlflow.stores import START, Made, database, folder, monitored, run_id
from tests.importers.trackers.neptune import dumps, folders
from tests.importers.trackers.neptune.schedule import Schedule
from tests.support.program import Program

_TICKS = [10_050 * (place + 1) for place in range(60)]
RUNS = [
    Made(id=run_id(1), name="baseline", series=monitored(_TICKS), params={"workers": "2"}, end=START + 610_000),
    Made(id=run_id(2), name="bare", series={"loss": [(START, 1.0, 0)]}),
    Made(id=run_id(3), name="on", series=monitored(_TICKS[:9]), status="RUNNING", end=None, start=START + 1),
]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A database with a run that has ended, one without hardware, and one that goes on."""
    return database(tmp_path / "mlflow.db", RUNS)


def test_a_run_is_stored_once_and_read_again_when_it_has_grown(gpureport: Program, source: Path) -> None:
    done = gpureport("ingest", str(source))
    assert (done.code, done.out.startswith("Stored baseline: ")) == (0, True)
    assert [word in done.err for word in ("2 runs skipped", "on", "bare", "--run")] == [True] * 4
    assert gpureport("ingest", str(source), "--run", "on").err == ""
    assert "540 points = 538 kept + 0 rejected + 2 " in gpureport("-v", "ingest", str(source), "--force").out
    assert gpureport("ingest", str(source)).out.startswith("baseline is already stored: ")
    source.unlink()
    database(source, [Made(id=run_id(1), name="baseline", series=monitored([*_TICKS, _TICKS[-1] + 10_050]))])
    assert gpureport("ingest", str(source)).out.startswith("Stored baseline again: ")
    assert len(gpureport("runs", "list").out.splitlines()) == 2


@pytest.mark.parametrize("make", [database, folder])
def test_a_run_is_stored_again_where_a_point_a_label_or_its_state_changed(
    gpureport: Program, tmp_path: Path, make: Callable[[Path, list[Made]], Path]
) -> None:
    def ingest(run: Made, name: str) -> str:
        path = tmp_path / name
        source = path if path.exists() else make(path, [run])
        return gpureport("ingest", f"mlflow:{source}", "--run", run.name).out.split(": ")[0]

    loss = [(START + tick, 1.0, place) for place, tick in enumerate(_TICKS)]
    ended = Made(id=run_id(1), name="one", series=monitored(_TICKS) | {"loss": loss})
    late = replace(ended, series={**ended.series, "loss": [*loss, (START + 5, 2.0, 4)]})
    said = [ingest(run, name) for run, name in ((ended, "a"), (ended, "a"), (late, "b"))]
    assert said == ["Stored one", "one is already stored", "Stored one again"]
    assert ingest(replace(late, tags={"team": "a"}), "c") == "Stored one again"


def test_a_group_says_what_it_makes_one_run(gpureport: Program, tmp_path: Path) -> None:
    ids = [f"{place}aaaaaaa-eb52-4187-b43c-3cb0bae4f42f" for place in range(2)]
    for place, key in enumerate(ids):
        schedule = Schedule(utilization=[[50.0] * 60], start=START * 1000 + 3_600_000_000 * place)
        folders.write(tmp_path / "runs", folders.operations(schedule), run=key)
    done = gpureport("analyze", "runs", "--group", "nosuch")
    assert (done.code, [key in done.err for key in ids], done.err.count("\n")) == (0, [True, True], 1)
    assert gpureport("analyze", "runs", "--group", "one", "--run", "0a*").err == ""


def test_a_damaged_run_is_named_beside_those_that_are_read(gpureport: Program, tmp_path: Path) -> None:
    runs = [Made(id=run_id(n), name=f"r{n}", series=RUNS[0].series, end=START + 610_000) for n in (1, 2, 3)]
    source = folder(tmp_path / "mlruns", runs)
    next(source.rglob(f"{run_id(2)}/meta.yaml")).write_text("")
    damaged = f"{run_id(2)}/meta.yaml"
    done = gpureport("ingest", str(source))
    assert (done.code, damaged in done.err) == (3, True)
    assert [line.split()[1] for line in done.out.splitlines() if ": 1 GPU" in line] == ["r1:", "r3:"]
    judged = gpureport("analyze", str(source))
    assert (judged.code, judged.err.count("gpureport: left out: ")) == (0, 1)
    listing = gpureport("ingest", "--list", str(source))
    assert (listing.code, [damaged in line for line in listing.out.splitlines()].count(True)) == (3, 1)
    alone = gpureport("ingest", f"mlflow:{source}#{run_id(2)}")
    assert (alone.code, alone.err.count("\n")) == (3, 1)
    night = gpureport("nightly", str(source), "--site", "site")
    assert (night.code, night.err.count(damaged)) == (4, 1)
    told = [page for each in (tmp_path / "site").rglob("*.html") if damaged in (page := each.read_text())]
    assert [("r1" in page, "r3" in page) for page in told] == [(True, True)] * len(told) != []


def test_what_mlflow_does_not_record_is_what_to_record(gpureport: Program, source: Path) -> None:
    (run,) = json.loads(gpureport("analyze", f"mlflow:{source}#baseline", "--format", "json").out)["runs"]
    told = {entry["kind"]: entry["recording"] for entry in run["not_judged"]}
    assert told["thermal_throttle"] == told["hw_throttle"] == "gpureport record -- COMMAND"
    assert (run["run"]["params"], run["run"]["timezone"]) == ({"workers": "2"}, "UTC")


def test_a_run_of_a_path_needs_no_prefix_and_no_hardware(gpureport: Program, source: Path, tmp_path: Path) -> None:
    def text(locator: str) -> str:
        return gpureport("analyze", locator).out.partition("Details: ")[0]

    whole = text(f"mlflow:{source}#baseline")
    assert text(f"{source}#baseline") == text("mlflow.db#baseline") == whole != ""
    dumps.write(tmp_path / "export", dumps.run(Schedule(utilization=[[50.0] * 60]), run_id="OPT-1"))
    assert text("export#OPT-1") == text("neptune:export#OPT-1") != ""
    assert gpureport("ingest", f"mlflow:{source}#bare").code == 0
    refused = gpureport("ingest", f"mlflow:{source}", "--run", "bare", "--require-hardware")
    assert (refused.code, refused.out, refused.err.count("\n")) == (3, "", 1)


def test_runs_without_the_param_of_the_groups_are_left_out(gpureport: Program, tmp_path: Path) -> None:
    rates = ("", "0.1", "0.2", "")
    runs = [
        replace(RUNS[0], id=run_id(at), name=f"run-{at}", params={"lr": rate} if rate else {}, start=START + at)
        for at, rate in enumerate(rates)
    ]
    source = f"mlflow:{database(tmp_path / 'four.db', runs)}"
    done = gpureport("compare", source, "--by", "param:lr", "--format", "json")
    assert ("2 of 4 runs left out" in done.err, "run-0" in done.err, "run-3" in done.err) == (True,) * 3
    assert [step["label"] for step in json.loads(done.out)["steps"]] == ["lr=0.1", "lr=0.2"]
    assert gpureport("report", source, "--by", "param:lr", "-o", str(tmp_path / "r.md")).code == 0
    refused = gpureport("compare", source, "--by", "param:lr", "--run", "run-0", "--run", "run-1")
    assert (refused.code, refused.err.count("\n")) == (2, 1)


def test_a_run_of_the_cpu_alone_is_no_step(gpureport: Program, tmp_path: Path) -> None:
    starts = {"slow": START, "fast": START + 20_000, "prepare": START - 20_000}
    runs = [replace(RUNS[0], id=run_id(at), name=name, start=start) for at, (name, start) in enumerate(starts.items())]
    runs[2] = replace(runs[2], series=monitored(_TICKS, {"cpu_utilization_percentage": 30.0}))
    source = f"mlflow:{database(tmp_path / 'three.db', runs)}"
    done = gpureport("compare", source, "--format", "json")
    assert done.err.endswith(": prepare\n")
    assert [step["label"] for step in json.loads(done.out)["steps"]] == ["slow", "fast"]
    pair = gpureport("compare", source, "--run", "prepare", "--run", "slow", "--format", "json")
    assert [step["label"] for step in json.loads(pair.out)["steps"]] == ["prepare", "slow"]


@pytest.mark.parametrize("command", ["ingest", "analyze"])
def test_reading_a_database_loads_neither_mlflow_nor_pandas(command: str, source: Path, tmp_path: Path) -> None:
    options = ("--store", str(tmp_path / "store")) if command == "ingest" else ("--format", "json")
    found = loaded(command, f"mlflow:{source}#baseline", *options)
    assert found & {"mlflow", "pandas", "matplotlib", "neptune"} == set()

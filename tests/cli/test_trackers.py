"""Runs of a tracker on the command line: listed, stored, read again when they grow, and judged."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.api.test_startup import loaded
from tests.cli.program import Program
from tests.importers.trackers.mlflow.stores import START, Made, database, folder, monitored, run_id
from tests.importers.trackers.neptune import dumps, folders
from tests.importers.trackers.neptune.schedule import Schedule

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


def test_a_listing_is_a_line_a_run(gpureport: Program, source: Path) -> None:
    """With id, name, status, start, and what it holds."""
    done = gpureport("ingest", "--list", f"mlflow:{source}")
    assert done.code == 0
    assert done.out.splitlines()[0] == f"{run_id(3)}  on  RUNNING  2026-11-21T00:41:13.409+00:00  1 GPU, host"
    assert len(done.out.splitlines()) == 3


def test_a_deleted_run_is_named_beside_the_listing(gpureport: Program, tmp_path: Path) -> None:
    """It is no line of it, since only its id reads it; not where a part of the store was asked for."""
    made = [*RUNS, Made(id=run_id(9), name="gone", series=monitored(_TICKS), deleted=True)]
    path = database(tmp_path / "deleted.db", made)
    done = gpureport("ingest", "--list", f"mlflow:{path}")
    assert (done.code, len(done.out.splitlines())) == (0, 3)
    assert done.err == (
        f"gpureport: mlflow:{path}: 1 deleted run is not listed: gone ({run_id(9)}); give the id to read one\n"
    )
    assert not gpureport("ingest", "--list", f"mlflow:{path}", "--latest", "1").err
    assert gpureport("analyze", f"mlflow:{path}#{run_id(9)}").code == 0


def test_a_folder_with_a_store_has_no_listing(gpureport: Program, source: Path) -> None:
    """The store is named."""
    done = gpureport("ingest", "--list", str(source.parent))
    assert (done.code, done.out) == (3, "")
    assert done.err == f"gpureport: {source.parent}: not the store of a tracker; give {source}, one of MLflow\n"


def test_runs_that_are_left_out_are_named(gpureport: Program, source: Path) -> None:
    """With the reason of each and how to read one; a run that is named leaves out none."""
    done = gpureport("ingest", str(source))
    said = f"gpureport: {source}: 2 runs skipped (1 still RUNNING: on; 1 without hardware series: bare)"
    assert done.err == f"{said}; --run NAME reads one\n"
    assert "left out" not in gpureport("ingest", str(source), "--run", "on").err


def test_a_run_is_stored_once_and_read_again_when_it_has_grown(gpureport: Program, source: Path) -> None:
    """The account adds up and counts points."""
    done = gpureport("ingest", str(source))
    assert done.code == 0
    assert "Stored baseline: 1 GPU, 9 min 53 s, no point lost. Id " in done.out
    every = gpureport("-v", "ingest", str(source)).out
    assert "540 points = 538 kept + 0 rejected + 2 without a value to keep" in every
    again = gpureport("ingest", str(source))
    assert again.out.startswith("baseline is stored already: ")
    source.unlink()
    grown = monitored([*_TICKS, _TICKS[-1] + 10_050])
    database(source, [Made(id=run_id(1), name="baseline", series=grown)])
    more = gpureport("ingest", str(source))
    assert more.out.startswith("Stored baseline again: ")
    assert len(gpureport("runs", "list").out.strip().splitlines()) <= 2


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
    assert said == ["Stored one", "one is stored already", "Stored one again"]
    assert ingest(replace(late, tags={"team": "a"}), "c") == "Stored one again"


def test_a_run_of_a_path_needs_no_prefix(gpureport: Program, source: Path, tmp_path: Path) -> None:
    """A path before `#` that is a store names one as a locator does, also without any slash."""

    def text(locator: str) -> str:
        return gpureport("analyze", locator).out.partition("Details: ")[0]

    whole = text(f"mlflow:{source}#baseline")
    assert text(f"{source}#baseline") == text("mlflow.db#baseline") == whole != ""
    dumps.write(tmp_path / "export", dumps.run(Schedule(utilization=[[50.0] * 60]), run_id="OPT-1"))
    assert text("export#OPT-1") == text("neptune:export#OPT-1") != ""


def test_a_group_says_what_it_makes_one_run(gpureport: Program, tmp_path: Path) -> None:
    """Its name is the run's and selects nothing, so what is merged is named, and where nothing can be that is said."""
    starts = (START * 1000, START * 1000 + 3_600_000_000)
    for place, start in enumerate(starts):
        schedule = Schedule(utilization=[[50.0] * 60], start=start)
        folders.write(
            tmp_path / "runs", folders.operations(schedule), run=f"{place}aaaaaaa-eb52-4187-b43c-3cb0bae4f42f"
        )
    ids = ", ".join(f"{place}aaaaaaa-eb52-4187-b43c-3cb0bae4f42f" for place in range(2))
    done = gpureport("analyze", "runs", "--group", "nosuch")
    said = f"gpureport: runs: 2 recordings read as one run called nosuch: {ids}; --run takes some\n"
    assert (done.code, done.err) == (0, said)
    assert gpureport("analyze", "runs", "--group", "one", "--run", "0a*").err == ""
    healthy = str(Path(__file__).parents[2] / "sample_logs" / "healthy")
    unchanged = f"gpureport: {healthy}: --group is for local recordings of Neptune, and changes nothing here\n"
    assert gpureport("analyze", healthy, "--group", "nosuch").err == unchanged


def test_runs_that_lie_in_two_folders_are_named_once(gpureport: Program, tmp_path: Path) -> None:
    """One line for all of them, whichever command reads them; the others are read."""
    schedule = Schedule(utilization=[[50.0] * 60])
    for place in ("a", "b"):
        for name in ("OPT-1", "OPT-2", "OPT-3"):
            dumps.write(tmp_path / "export" / place, dumps.run(schedule, run_id=name))
    dumps.write(tmp_path / "export" / "b", dumps.run(schedule, run_id="OPT-4"))
    judged, stored = gpureport("analyze", "export"), gpureport("ingest", "export")
    assert (judged.code, stored.code) == (0, 3)
    for outcome in (judged, stored):
        assert outcome.err.count("\n") == 1
        assert " as well: OPT-1, OPT-2, OPT-3; give one of the folders" in outcome.err


def test_a_damaged_run_is_named_beside_those_that_are_read(gpureport: Program, tmp_path: Path) -> None:
    """Storing goes on with the others, and its code says that not all went well; an analysis leaves it out."""
    runs = [Made(id=run_id(n), name=f"r{n}", series=monitored(_TICKS), end=START + 610_000) for n in (1, 2, 3)]
    source = folder(tmp_path / "mlruns", runs)
    next(source.rglob(f"{run_id(2)}/meta.yaml")).write_text("")
    done = gpureport("ingest", str(source))
    assert done.code == 3
    assert [line.split()[1] for line in done.out.splitlines() if ": 1 GPU" in line] == ["r1:", "r3:"]
    assert f"{run_id(2)}/meta.yaml: does not say that it is of run" in done.err
    judged = gpureport("analyze", str(source))
    assert (judged.code, judged.err.count("gpureport: left out: ")) == (0, 1)
    listing = gpureport("ingest", "--list", str(source))
    assert (listing.code, len(listing.out.splitlines())) == (3, 3)
    (broken,) = [line for line in listing.out.splitlines() if "  cannot be read  not recorded  " in line]
    assert "meta.yaml: does not say that it is of run" in broken
    assert broken.endswith("; restore it, or move its folder out of the store")
    alone = gpureport("ingest", f"mlflow:{source}#{run_id(2)}")
    assert (alone.code, alone.err.count("\n")) == (3, 1)


def test_a_night_goes_on_without_the_run_that_is_damaged(gpureport: Program, tmp_path: Path) -> None:
    """It keeps the others, names the damaged one with its reason, and does not succeed."""
    runs = [Made(id=run_id(n), name=f"r{n}", series=monitored(_TICKS), end=START + 610_000) for n in (1, 2, 3)]
    source = folder(tmp_path / "mlruns", runs)
    next(source.rglob(f"{run_id(2)}/meta.yaml")).write_text("")
    done = gpureport("nightly", str(source), "--site", "site")
    assert (done.code, done.err.count("does not say that it is of run")) == (4, 1)
    told = [page for page in (tmp_path / "site").rglob("*.html") if "does not say that it is of" in page.read_text()]
    assert told
    assert all("r1" in page.read_text() and "r3" in page.read_text() for page in told)


def test_an_interrupted_export_is_named_beside_the_runs_that_are_read(gpureport: Program, tmp_path: Path) -> None:
    """As a damaged run of MLflow is: the others are stored, or judged without it."""
    for run in ("OPT-1", "OPT-2"):
        part = dumps.write(tmp_path, dumps.run(Schedule(utilization=[[50.0] * 3]), run_id=run))
    part.rename(part.with_name(f"{part.name}.tmp"))
    done = gpureport("ingest", str(tmp_path))
    assert (done.code, "interrupted" in done.err) == (3, True)
    judged = gpureport("analyze", str(tmp_path))
    assert (judged.code, judged.err.count("gpureport: left out: ")) == (0, 1)
    assert sum(": 1 GPU" in line for line in done.out.splitlines()) == 1
    alone = gpureport("ingest", str(tmp_path), "--run", "OPT-2")
    assert (alone.code, "interrupted" in alone.err, alone.err.count("\n")) == (3, True, 1)


def test_what_mlflow_does_not_record_is_not_judged(gpureport: Program, source: Path) -> None:
    """Neither heat nor clocks nor the busiest core: each with what records it."""
    done = gpureport("analyze", f"mlflow:{source}#baseline", "--format", "json")
    run = json.loads(done.out)["runs"][0]
    told = {entry["kind"]: entry["recording"] for entry in run["not_judged"]}
    assert told["thermal_throttle"] == told["hw_throttle"] == "gpureport record -- COMMAND"
    assert run["run"]["params"] == {"workers": "2"}
    assert run["statistics"]["gpu:0"]["gpu_utilization_ratio"]["mean"] == pytest.approx(0.9)
    assert run["run"]["timezone"] == "UTC"
    text = gpureport("analyze", f"mlflow:{source}#baseline", "--detail", "full").out
    assert "WHAT COULD NOT BE JUDGED" in text
    assert "memory.used,memory.total,memory.used" not in text.replace("\n", "").replace(" ", "")


def test_a_run_without_hardware_is_read_unless_it_is_required(gpureport: Program, source: Path) -> None:
    """With what to do about it."""
    done = gpureport("ingest", f"mlflow:{source}#bare")
    assert done.code == 0
    assert "No system metrics in this run" in done.out
    refused = gpureport("ingest", f"mlflow:{source}", "--run", "bare", "--require-hardware")
    assert (refused.code, refused.out) == (3, "")
    assert "no hardware series in this run; record with mlflow.enable_system_metrics_logging()" in refused.err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("mlflow:absent.db",), 3, "no MLflow database or mlruns folder here; did you mean mlflow.db?"),
        (("mlflow:mlflow.db#nobody",), 3, "no run 'nobody'"),
        (("mlflow.db", "--experiment", "x"), 3, "no experiment 'x'; it has first"),
        (("mlflow.db", "--filter", "lr > 3"), 2, "--filter: only a server filters runs"),
        (
            ("mlflow:postgresql://me:secret@host/db",),
            3,
            "postgresql://host/db: a database server is not opened directly",
        ),
        (("mlflow.db", "--tz", "Nowhere"), 2, "--tz: no time zone 'Nowhere'"),
    ],
)
def test_errors_are_one_line_with_their_code(
    arguments: tuple[str, ...], code: int, said: str, gpureport: Program, source: Path
) -> None:
    """2 for what was asked, 3 for what is not there."""
    assert source.exists()
    done = gpureport("ingest", *arguments)
    assert done.code == code
    assert said in done.err
    assert done.err.count("\n") == 1


def test_runs_are_compared_by_the_work_they_did(gpureport: Program, tmp_path: Path) -> None:
    """A throughput that was logged makes figures count per thousand samples."""
    speeds = {"slow": 100.0, "fast": 200.0}
    runs = [
        Made(
            id=run_id(place),
            name=name,
            series=monitored(_TICKS) | {"samples_per_second": [(START + tick, speed, 0) for tick in _TICKS]},
            end=START + 610_000,
        )
        for place, (name, speed) in enumerate(speeds.items(), 1)
    ]
    database(tmp_path / "two.db", runs)
    done = gpureport("compare", "mlflow:two.db#slow", "mlflow:two.db#fast", "--format", "json")
    assert done.code == 0
    deltas = {delta["metric"]: delta for delta in json.loads(done.out)["deltas"]}
    per_work = next(delta for name, delta in deltas.items() if "per" in name and "energy" not in name)
    assert per_work["after"] == pytest.approx(per_work["before"] / 2, rel=1e-6)


def test_runs_without_the_param_of_the_groups_are_left_out(gpureport: Program, tmp_path: Path) -> None:
    """And named with their number; unless two groups are left, the first of them is refused instead."""
    rates = ("", "0.1", "0.2", "")
    runs = [
        Made(
            id=run_id(place),
            name=f"run-{place}",
            params={"lr": rate} if rate else {},
            series=monitored(_TICKS),
            start=START + place,
            end=START + 610_000,
        )
        for place, rate in enumerate(rates)
    ]
    source = f"mlflow:{database(tmp_path / 'four.db', runs)}"
    done = gpureport("compare", source, "--by", "param:lr", "--format", "json")
    assert "gpureport: 2 of 4 runs left out, without param lr: run-" in done.err
    assert [step["label"] for step in json.loads(done.out)["steps"]] == ["lr=0.1", "lr=0.2"]
    assert gpureport("report", source, "--by", "param:lr", "-o", str(tmp_path / "r.md")).code == 0
    refused = gpureport("compare", source, "--by", "param:lr", "--run", "run-0", "--run", "run-1")
    assert (refused.code, "has no param 'lr'" in refused.err) == (2, True)


def test_a_run_of_the_cpu_alone_is_no_step(gpureport: Program, tmp_path: Path) -> None:
    """It would be the first one, which leaves the others without a comparison; alone with one other it stays."""
    cpu = {"cpu_utilization_percentage": 30.0}
    runs = [
        Made(id=run_id(1), name="prepare", series=monitored(_TICKS, cpu), start=START - 20_000, end=START + 610_000),
        Made(id=run_id(2), name="slow", series=monitored(_TICKS), end=START + 610_000),
        Made(id=run_id(3), name="fast", series=monitored(_TICKS), start=START + 20_000, end=START + 610_000),
    ]
    source = f"mlflow:{database(tmp_path / 'three.db', runs)}"
    done = gpureport("compare", source, "--format", "json")
    assert "gpureport: left out, no GPU was recorded: prepare\n" in done.err
    assert [step["label"] for step in json.loads(done.out)["steps"]] == ["slow", "fast"]
    pair = gpureport("compare", source, "--run", "prepare", "--run", "slow", "--format", "json")
    assert [step["label"] for step in json.loads(pair.out)["steps"]] == ["prepare", "slow"]


@pytest.mark.parametrize("command", ["ingest", "analyze"])
def test_reading_a_database_loads_neither_mlflow_nor_pandas(command: str, source: Path, tmp_path: Path) -> None:
    """An environment without them will do."""
    options = ("--store", str(tmp_path / "store")) if command == "ingest" else ("--format", "json")
    assert (
        loaded(command, f"mlflow:{source}#baseline", *options) & {"mlflow", "pandas", "matplotlib", "neptune"} == set()
    )

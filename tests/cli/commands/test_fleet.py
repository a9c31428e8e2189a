"""`gpureport fleet`, and `report` and `compare` on a folder that is a fleet."""

import json
import shutil
from pathlib import Path

import pytest

from gpureport.cli.runs import step_grouping
from gpureport.fleet.running import engines
from gpureport.resources import find_shipped_folder
from tests.cli.program import Program
from tests.fleet.generated_fleet import FAULTY, HOT, generate_fleet
from tests.fleet.stored_samples import store_fleet
from tests.importers.trackers.neptune import dumps
from tests.importers.trackers.neptune.schedule import Schedule

SAMPLES = find_shipped_folder("sample_logs")


@pytest.fixture(autouse=True)
def _one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Analyse in this process: starting others takes longer than a few runs."""
    monkeypatch.setattr(engines, "count_allowed_cores", lambda: 1)


def test_logs_are_read_once_and_summed(gpureport: Program, tmp_path: Path) -> None:
    """A folder of logs goes into the store; the store alone then says the same."""
    for name in ("healthy", "idle_gap"):
        shutil.copytree(SAMPLES / name, tmp_path / "jobs" / name)
    first = gpureport("fleet", "jobs", "--gpu-hour-price", "2 EUR", "--format", "json")
    report = json.loads(first.out)
    assert (first.code, first.err, report["schema"]) == (0, "", "gpureport.fleet/1")
    assert report["use"]["runs"] == 2
    assert report["use"]["cost"] == pytest.approx(report["use"]["gpu_seconds"] / 3600 * 2)
    again = json.loads(gpureport("fleet", "--gpu-hour-price", "2 EUR", "--format", "json").out)
    assert again == report
    assert (tmp_path / ".gpureport" / "fleet" / "summaries.parquet").is_file()


def test_stored_runs_are_selected(gpureport: Program) -> None:
    """Without a source `--tag` and `--where` choose among them; what fits none is an error."""
    gpureport("ingest", str(SAMPLES / "healthy"), "--tag", "user=ann")
    gpureport("ingest", str(SAMPLES / "idle_gap"), "--tag", "user=bob")
    report = json.loads(gpureport("fleet", "--tag", "user=bob", "--by", "user", "--format", "json").out)
    assert [group["name"] for by in report["groupings"] for group in by["groups"]] == ["bob"]
    assert report["selection"] == "user=bob"
    nobody = gpureport("fleet", "--where", "gpus>=99")
    assert (nobody.code, nobody.out) == (3, "")
    assert "no run fits" in nobody.err
    named = gpureport("fleet", "--name", "x")
    assert (named.code, "--name: it matters only while a log is read" in named.err) == (2, True)


def test_an_empty_store(gpureport: Program) -> None:
    """There is nothing to say, and the way on is said."""
    outcome = gpureport("fleet")
    assert (outcome.code, outcome.out) == (3, "")
    assert "holds no run; ingest logs first" in outcome.err


def test_what_cannot_be_read_is_named(gpureport: Program, tmp_path: Path) -> None:
    """The others are summed, and the command ends well; with nothing left it does not."""
    gpureport("ingest", str(SAMPLES / "healthy"))
    gpureport("ingest", str(SAMPLES / "idle_gap"))
    series = sorted(tmp_path.glob(".gpureport/runs/*/hardware.parquet"))
    whole = series[1].read_bytes()
    for path in series:
        path.write_bytes(b"torn")
    assert gpureport("fleet", "--format", "json").code == 3
    series[1].write_bytes(whole)
    outcome = gpureport("fleet", "--format", "json")
    report = json.loads(outcome.out)
    assert outcome.code == 0
    assert outcome.err.startswith("gpureport: left out: ")
    assert outcome.err.endswith(": damaged or missing; ingest the run again\n")
    assert (report["use"]["runs"], len(report["failed"])) == (1, 1)


def test_runs_left_out_for_one_reason_are_named_on_one_line(gpureport: Program, tmp_path: Path) -> None:
    """The line names the file at fault, the runs, and what to do; a listing does too, and ends with the code 3."""
    for run in ("OPT-1", "OPT-2"):
        for place in ("a", "b"):
            dumps.write(tmp_path / "export" / place, dumps.run(Schedule(utilization=[[50.0] * 3]), run_id=run))
    dumps.write(tmp_path / "export" / "b", dumps.run(Schedule(utilization=[[50.0] * 3]), run_id="OPT-3"))
    outcome = gpureport("fleet", "neptune:export")
    assert (outcome.code, outcome.err.count("gpureport: left out: ")) == (0, 1)
    named = "left out: 2 runs, neptune:export#OPT-1, neptune:export#OPT-2: export/b"
    assert named in outcome.err
    assert outcome.err.endswith("OPT-1, OPT-2; give one of the folders\n")
    listing = gpureport("ingest", "--list", "neptune:export")
    assert (listing.code, listing.out.count("; give one of the folders\n")) == (3, 2)


def test_a_folder_of_many_runs_is_pointed_to_fleet(
    gpureport: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More runs than a chain can hold are no steps, in a folder or selected; up to that, and with steps, they are."""
    monkeypatch.setattr(step_grouping, "MOST_STEPS", 2)
    generate_fleet(tmp_path / "jobs", 3)
    for command in (("report", "jobs", "-o", "x.html"), ("compare", "jobs")):
        outcome = gpureport(*command)
        assert outcome.code == 2
        assert outcome.err == (
            "gpureport: jobs: 3 runs without a step label are no chain of steps; "
            "see them together: gpureport fleet jobs -o fleet.html\n"
        )
    assert gpureport("report", "jobs", "--step", "a", "-o", "x.html").code == 0
    gpureport("ingest", "jobs")
    selected = gpureport("compare", "--where", "gpus>=1")
    assert (selected.code, "gpureport fleet --where 'gpus>=1' -o fleet.html" in selected.err) == (2, True)
    (tmp_path / "jobs" / "job00000.csv").unlink()
    assert gpureport("compare", "jobs").code == 0


@pytest.mark.slow
def test_the_truth_of_a_fleet_is_recovered(gpureport: Program, tmp_path: Path) -> None:
    """Hours by class and by user, and the two sick cards with their runs."""
    truth = store_fleet(tmp_path / ".gpureport", 96)
    report = json.loads(gpureport("fleet", "--format", "json").out)
    classes = {each["name"]: each["gpu_seconds"] for each in report["classes"]}
    assert report["use"]["gpu_seconds"] == pytest.approx(truth.gpu_seconds)
    assert classes["unused"] == pytest.approx(truth.unused_seconds)
    assert classes["idle"] == pytest.approx(truth.idle_seconds, rel=0.01)
    by_user = {group["name"]: group["use"]["gpu_seconds"] for group in report["groupings"][0]["groups"]}
    assert by_user == pytest.approx(dict(truth.seconds_by_user))
    pulled = {card["uuid"]: card["symptoms"][0] for card in report["health"]["cards"] if card["verdict"] == "pull"}
    assert {uuid: [run["name"] for run in each["runs"]] for uuid, each in pulled.items()} == truth.sick_runs
    assert {uuid: each["symptom"] for uuid, each in pulled.items()} == {HOT: "heat_slowed", FAULTY: "ecc_uncorrected"}

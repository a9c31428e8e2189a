"""`gpureport fleet`, and `report` and `compare` on a folder that is a fleet."""

import json
from pathlib import Path

import psutil
import pytest

from tests.cli.logs import SAMPLES, log
from tests.cli.program import Program
from tests.fleet.generated_fleet import FAULTY, HOT, generate_fleet
from tests.importers.trackers.neptune import dumps
from tests.importers.trackers.neptune.schedule import Schedule


@pytest.fixture(autouse=True)
def _one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Analyse in this process: starting others takes longer than a few runs."""
    monkeypatch.setattr(psutil.Process, "cpu_affinity", lambda _: [0])


def test_stored_runs_are_selected_and_logs_read_once(gpureport: Program, tmp_path: Path) -> None:
    for code, words in ((3, ()), (2, ("--name", "x"))):
        refused = gpureport("--debug", "fleet", *words)
        assert (refused.code, refused.out) == (code, "")
        assert f"code: {'empty_store' if code == 3 else 'only_while_reading'}" in refused.err
    gpureport("ingest", str(SAMPLES / "healthy"), "--tag", "user=ann")
    one = json.loads(gpureport("fleet", str(SAMPLES / "idle_gap"), "--tag", "user=bob", "--format", "json").out)
    assert (one["use"]["runs"], one["schema"]) == (1, "gpureport.fleet/1")
    assert json.loads(gpureport("fleet", "--format", "json").out)["use"]["runs"] == 2
    found = json.loads(gpureport("fleet", "--tag", "user=bob", "--by", "user", "--format", "json").out)
    assert [group["name"] for by in found["groupings"] for group in by["groups"]] == ["bob"]
    assert found["selection"] == "user=bob"
    assert found | {"selection": ""} == one | {"groupings": found["groupings"]}
    nobody = gpureport("--debug", "fleet", "--where", "gpus>=99")
    assert (nobody.code, nobody.out, "code: nothing_selected" in nobody.err) == (3, "", True)
    (tmp_path / ".gpureport" / "fleet" / "summaries.parquet").unlink()
    for series in tmp_path.glob(".gpureport/runs/*/hardware.parquet"):
        series.write_bytes(b"torn")
    assert gpureport("fleet", "--format", "json").code == 3


def test_runs_left_out_for_one_reason_are_named_on_one_line(gpureport: Program, tmp_path: Path) -> None:
    for run in ("OPT-1", "OPT-2"):
        for place in ("a", "b"):
            dumps.write(tmp_path / "export" / place, dumps.run(Schedule(utilization=[[50.0] * 3]), run_id=run))
    dumps.write(tmp_path / "export" / "b", dumps.run(Schedule(utilization=[[50.0] * 3]), run_id="OPT-3"))
    outcome = gpureport("fleet", "neptune:export")
    assert (outcome.code, outcome.err.count("gpureport: left out: ")) == (0, 1)
    assert "neptune:export#OPT-1, neptune:export#OPT-2: export/b" in outcome.err
    assert gpureport("ingest", "--list", "neptune:export").code == 3


@pytest.mark.slow
def test_a_folder_of_many_runs_is_pointed_to_fleet(gpureport: Program, tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    for place in range(41):
        (tmp_path / "jobs" / f"{place}.csv").write_text(
            log(22 + place).replace("2026/03/14", f"2026/{place // 28 + 1:02}/{place % 28 + 1:02}")
        )
    for command in (("report", "jobs", "-o", "x.html"), ("compare", "jobs")):
        outcome = gpureport("--debug", *command)
        assert (outcome.code, "code: too_many_steps" in outcome.err) == (2, True)
        assert outcome.err.endswith("gpureport fleet jobs -o fleet.html\n")
    assert gpureport("report", "jobs", "--step", "a", "-o", "x.html").code == 0
    gpureport("ingest", "jobs")
    selected = gpureport("compare", "--where", "gpus>=1")
    assert (selected.code, "gpureport fleet --where 'gpus>=1' -o fleet.html" in selected.err) == (2, True)
    (tmp_path / "jobs" / "0.csv").unlink()
    assert gpureport("compare", "jobs", "--format", "json").code == 0


@pytest.mark.slow
def test_the_truth_of_a_fleet_is_recovered(gpureport: Program, tmp_path: Path) -> None:
    truth = generate_fleet(tmp_path / "logs", 96)
    report = json.loads(gpureport("fleet", "logs", "--format", "json").out)
    classes = {each["name"]: each["gpu_seconds"] for each in report["classes"]}
    assert report["use"]["gpu_seconds"] == pytest.approx(truth.gpu_seconds)
    assert classes["unused"] == pytest.approx(truth.unused_seconds)
    assert classes["idle"] == pytest.approx(truth.idle_seconds, rel=0.01)
    by_user = {group["name"]: group["use"]["gpu_seconds"] for group in report["groupings"][0]["groups"]}
    assert by_user == pytest.approx(dict(truth.seconds_by_user))
    pulled = {card["uuid"]: card["symptoms"][0] for card in report["health"]["cards"] if card["verdict"] == "pull"}
    assert {uuid: [run["name"] for run in each["runs"]] for uuid, each in pulled.items()} == truth.sick_runs
    assert {uuid: each["symptom"] for uuid, each in pulled.items()} == {HOT: "heat_slowed", FAULTY: "ecc_uncorrected"}

"""`--labels`: a table of jobs labels runs as they are read, as they are stored, and when they are stored already."""

import json
from pathlib import Path

import pytest

from tests.cli.program import Outcome, Program
from tests.support.logs import log

JOBS = """\
JobID|User|Account|NodeList|Start|End|State
4411|ada|vision|gpu01|2026-03-14T09:00:00|2026-03-14T09:01:00|COMPLETED
4412|bob|nlp|gpu02|2026-03-14T09:00:00|2026-03-14T09:01:00|COMPLETED
4413|eve|nlp|gpu02|2026-03-14T09:00:00|2026-03-14T09:01:00|COMPLETED
"""


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A table of jobs and a folder of logs: of a job by its number, of one of two on a machine, and of nobody."""
    (tmp_path / "jobs.csv").write_text(JOBS)
    folder = tmp_path / "logs"
    folder.mkdir()
    for seconds, name in ((58, "job4411"), (45, "gpu02"), (34, "mine")):
        (folder / f"{name}.csv").write_text(log(seconds).replace("1024 MiB", f"{seconds} MiB"))
    return folder


def tags(gpureport: Program, name: str) -> dict[str, str]:
    found: dict[str, str] = json.loads(gpureport("runs", "show", name).out)["run"]["tags"]
    return found


def notes(outcome: Outcome) -> str:
    return next(line for line in outcome.err.splitlines() if "jobs.csv" in line).partition("jobs.csv: ")[2]


def test_runs_are_labelled_as_they_are_stored_and_afterwards(gpureport: Program, logs: Path) -> None:
    (logs / "gpu02.csv.json").write_text('{"tags": {"node": "gpu02"}}')
    plain = gpureport("ingest", str(logs))
    assert tags(gpureport, "job4411") == {}
    labelled = gpureport("ingest", str(logs), "--labels", "jobs.csv", "--tag", "account=art")
    assert notes(labelled) == (
        "1 of 3 runs labelled; 1 not, as several rows fit equally well (gpu02); 1 without a row (mine); "
        "2 of 3 rows fit no run"
    )
    again = gpureport("-v", "ingest", str(logs), "--labels", "jobs.csv", "--tag", "account=art")
    assert "gpu02: several rows fit equally well: lines 3, 4" in again.err
    expected = {"user": "ada", "account": "art", "job": "4411", "node": "gpu01", "job_state": "COMPLETED"}
    assert tags(gpureport, "job4411") == expected
    assert tags(gpureport, "gpu02") == {"account": "art", "node": "gpu02"}
    ids = [
        sorted(line.rpartition(" ")[2] for line in each.out.splitlines() if "Id" in line) for each in (plain, labelled)
    ]
    assert ids[0] == ids[1]


def test_runs_that_are_not_stored(gpureport: Program, logs: Path) -> None:
    log_file = str(logs / "job4411.csv")
    for source in (log_file, "job4411"):
        for part in ((), ("--to", "30s")):
            found = gpureport("analyze", source, "--labels", "jobs.csv", "--format", "json", *part)
            assert json.loads(found.out)["runs"][0]["run"]["tags"]["user"] == "ada"
            assert notes(found) == "1 of 1 run labelled; 2 of 3 rows fit no run"
        gpureport("ingest", log_file)
    assert gpureport("-q", "analyze", log_file, "--labels", "jobs.csv").err == ""
    refused = gpureport("analyze", log_file, "--labels", log_file)
    assert (refused.code, "no column names a run, a job" in refused.err) == (2, True)


def test_a_file_of_labels_adds_to_a_stored_run(gpureport: Program, logs: Path) -> None:
    gpureport("ingest", str(logs), "--tag", "user=me")
    (logs / "labels.json").write_text('{"name": "night", "tags": {"user": "ada", "project": "x"}}')
    gpureport("ingest", str(logs))
    assert tags(gpureport, "mine") == {"user": "me", "project": "x"}
    gpureport("ingest", str(logs / "mine.csv"), "--force")
    assert tags(gpureport, "night") == {"user": "ada", "project": "x"}
    stored = [gpureport("ingest", str(path), "--store", "other").out for path in (logs / "mine.csv", logs)]
    assert ["Stored night:" in stored[0], "Stored gpu02:" in stored[1]] == [True, True]

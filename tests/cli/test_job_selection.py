"""`--job`: one job of a log that holds several, or each as a run of its own."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.logs import stamp, table
from tests.cli.program import Program


@pytest.fixture(autouse=True)
def _two_jobs(tmp_path: Path) -> None:
    rows = [
        f"{stamp(second)}, 0, NVIDIA L4, {95 if at_work else 0} %, {9000 if at_work else 3} MiB, 70.00 W"
        for second in range(1500)
        for at_work in [second < 300 or second >= 900]
    ]
    (tmp_path / "night.csv").write_text(table(*rows))


def _runs(gpureport: Program, *arguments: str) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = json.loads(gpureport("analyze", *arguments, "--format", "json").out)["runs"]
    return runs


def test_one_job_is_read_alone(gpureport: Program) -> None:
    gpureport("ingest", "night.csv")
    for source in ("night.csv", "night"):
        (run,) = _runs(gpureport, source, "--job", "2")
        assert (run["run"]["name"], run["run"]["started"]) == ("night #2", "2026-03-14T09:15:00.000")
        assert [each["rows"] for each in run["quality"]["rejected"]] == [900]
        assert run["no_job"] == {}


def test_each_job_is_a_run_on_request(gpureport: Program) -> None:
    assert [run["run"]["name"] for run in _runs(gpureport, "night.csv", "--job", "each")] == ["night #1", "night #2"]
    gpureport("ingest", "night.csv", "--job", "each")
    assert [run["run"]["name"] for run in _runs(gpureport, "night #1", "night #2")] == ["night #1", "night #2"]


def test_jobs_are_compared(gpureport: Program) -> None:
    assert "night #1 → night #2" in " ".join(gpureport("compare", "night.csv", "--job", "each").out.split())


def test_a_part_of_a_log_has_its_own_jobs(gpureport: Program) -> None:
    (run,) = _runs(gpureport, "night.csv", "--from", "600s", "--job", "1")
    assert run["run"]["name"] == "night #1"
    assert run["run"]["started"] == "2026-03-14T09:10:00.000"

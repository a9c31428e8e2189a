"""`--job`: one job of a log that holds several, or each as a run of its own."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Program
from tests.importers.written_logs import HEADER, stamp

_OTHERS = "outside the job of --job"


@pytest.fixture(autouse=True)
def _two_jobs(tmp_path: Path) -> None:
    """A log of two jobs of five and ten minutes, ten minutes apart."""
    rows = [
        f"{stamp(second)}, 0, NVIDIA L4, {95 if at_work else 0} %, {9000 if at_work else 3} MiB, 70.00 W"
        for second in range(1500)
        for at_work in [second < 300 or second >= 900]
    ]
    (tmp_path / "night.csv").write_text("\n".join([HEADER, *rows, ""]))


def _runs(gpureport: Program, *arguments: str) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = json.loads(gpureport("analyze", *arguments, "--format", "json").out)["runs"]
    return runs


def test_one_job_is_read_alone(gpureport: Program) -> None:
    """Its rows, and the others with the reason why they are left out; by whatever way the log is named."""
    gpureport("ingest", "night.csv")
    for source in ("night.csv", "night"):
        (run,) = _runs(gpureport, source, "--job", "2")
        assert (run["run"]["name"], run["run"]["started"]) == ("night #2", "2026-03-14T09:15:00.000")
        rejected = [(each["reason"], each["rows"], each["first_line"]) for each in run["quality"]["rejected"]]
        assert rejected == [(_OTHERS, 900, None)]
        assert run["no_job"] == {}


def test_each_job_is_a_run_on_request(gpureport: Program) -> None:
    """Together they hold what belongs to jobs, in analyses and in the store."""
    assert [run["run"]["name"] for run in _runs(gpureport, "night.csv", "--job", "each")] == ["night #1", "night #2"]
    gpureport("ingest", "night.csv", "--job", "each")
    assert [run["run"]["name"] for run in _runs(gpureport, "night #1", "night #2")] == ["night #1", "night #2"]


def test_jobs_are_compared(gpureport: Program) -> None:
    """Each is a step."""
    assert "night #1 → night #2" in " ".join(gpureport("compare", "night.csv", "--job", "each").out.split())


def test_a_part_of_a_log_has_its_own_jobs(gpureport: Program) -> None:
    """They are counted in what --from and --to leave."""
    (run,) = _runs(gpureport, "night.csv", "--from", "600s", "--job", "1")
    assert run["run"]["name"] == "night #1"
    assert run["run"]["started"] == "2026-03-14T09:10:00.000"


def test_a_job_that_is_not_there_is_an_error_that_lists_them(gpureport: Program) -> None:
    """In one line."""
    result = gpureport("analyze", "night.csv", "--job", "3")
    assert result.code == 2
    assert result.err.startswith("gpureport: --job: night has no job 3; it holds 2 jobs: job 1, 2026-03-14 09:00:00 to")
    assert result.err.count("\n") == 1


def test_what_is_no_number_of_a_job_is_refused(gpureport: Program) -> None:
    """As any value of an option is."""
    assert (
        "'0' is neither the number of a job, such as 2, nor each" in gpureport("analyze", "night.csv", "--job", "0").err
    )


def test_a_log_without_work_has_no_job(gpureport: Program, tmp_path: Path) -> None:
    """It says so."""
    rows = [f"{stamp(second)}, 0, NVIDIA L4, 0 %, 3 MiB, 20.00 W" for second in range(300)]
    (tmp_path / "idle.csv").write_text("\n".join([HEADER, *rows, ""]))
    assert "idle holds no job: no GPU worked" in gpureport("analyze", "idle.csv", "--job", "1").err

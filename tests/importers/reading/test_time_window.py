"""A part of a run holds its rows, and counts the others."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Program
from tests.importers.trackers.mlflow.stores import START, Made, database, monitored, run_id
from tests.support.logs import log, write

PARTS = {
    ("60", None): 240,
    ("1m", "2m30s"): 90,
    ("0:01:00", "0:04:00"): 180,
    ("2026-03-14T09:01", "2026-03-14 09:02"): 60,
    (None, "1m"): 60,
    (None, f"{'9' * 290}s"): 300,
    (None, "9999999999d"): 300,
}
"""From, to, and the seconds of the part: the start is part of it, the end is not."""
NO_TIMES = ("soon", "inf", "nan", f"{'9' * 400}h", f"{'9' * 5000}:00:00", "2m:")
BEYOND = (f"{'9' * 306}s", f"{'9' * 306}d", "1e305", "0001-01-01T00:00")


@pytest.fixture(autouse=True)
def a_log(tmp_path: Path) -> None:
    write(tmp_path, gpu=log(300, gpus=2))


def part(gpureport: Program, start: str | None = None, end: str | None = None, *more: str) -> Any:
    bounds = [word for option, value in (("--from", start), ("--to", end)) if value for word in (option, value)]
    done = gpureport("analyze", "gpu.csv", *bounds, *more, "--format", "json")
    assert done.code == 0, done.err
    (run,) = json.loads(done.out)["runs"]
    return run


def test_a_part_is_named_by_elapsed_time_or_moment(gpureport: Program) -> None:
    ids = set()
    for (start, end), seconds in PARTS.items():
        found = part(gpureport, start, end)
        assert found["quality"]["rows_kept"] == 2 * seconds, (start, end)
        ids.add(found["run"]["id"])
    assert len(ids) == len(PARTS)
    assert part(gpureport, "60")["run"]["id"] in ids


def test_a_moment_is_one_of_the_zone_of_the_run(gpureport: Program) -> None:
    """With a zone, 09:01 is the local time, and a stamp with another offset is the same moment."""
    zone = ("--tz", "Asia/Kolkata")
    local, other = (part(gpureport, start, None, *zone) for start in ("2026-03-14T09:01", "2026-03-14T03:31+00:00"))
    assert local["run"]["started"] == other["run"]["started"]
    assert gpureport("analyze", "gpu.csv", "--from", "2026-03-14T03:31+00:00").code == 2


def test_what_is_no_part_is_refused(gpureport: Program) -> None:
    for time in (*NO_TIMES, *BEYOND):
        done = gpureport("analyze", "gpu.csv", "--to" if time in BEYOND else "--from", time, "--tz", "Asia/Kolkata")
        assert (done.code in {2, 3}, done.err.count("\n")) == (True, 1), time
    assert gpureport("analyze", "gpu.csv", "--from", "2m", "--to", "1m").code == 2
    assert gpureport("analyze", "gpu.csv", "--from", "10m", "--to", "11m").code == 3


@pytest.mark.parametrize("at", [1, 37, 150, 299])
def test_two_parts_are_the_whole(gpureport: Program, at: int) -> None:
    parts = [part(gpureport, None, f"{at}s"), part(gpureport, f"{at}s")]
    assert sum(each["quality"]["rows_kept"] for each in parts) == 600


def test_a_part_counts_its_own_work(gpureport: Program, tmp_path: Path) -> None:
    assert part(gpureport, "1m", None, "--work", "100:steps")["run"]["work"] == {"amount": 100.0, "unit": "steps"}
    ticks = range(10_000, 310_000, 10_000)
    series = monitored(ticks) | {"it/s": [(START + tick, 2.0, tick) for tick in ticks]}
    database(tmp_path / "mlflow.db", [Made(id=run_id(1), series=series, end=START + 310_000)])
    whole, cut = (
        json.loads(gpureport("analyze", "mlflow:mlflow.db", *bounds, "--format", "json").out)["runs"][0]["run"]["work"]
        for bounds in ((), ("--from", "1m"))
    )
    assert (whole["unit"], cut) == ("steps", None)

"""Exports whose times are local time of the machine that exported."""

from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tests.importers.trackers.neptune import dumps
from tests.importers.trackers.neptune.dumps import Row
from tests.importers.trackers.neptune.schedule import START, TICK, Schedule, loss, square
from tests.importers.trackers.tracked import codes, column, recording, refused, rejected, times, trained

HOUR = 3_600_000_000
LOAD = square(busy=3, idle=2, ticks=20)


def local(rows: list[Row], zone: str) -> list[Row]:
    where = ZoneInfo(zone)
    return [
        row | {"timestamp": row["timestamp"].astimezone(where).replace(tzinfo=UTC)} if row.get("timestamp") else row
        for row in rows
    ]


def moment(text: str) -> int:
    return round(datetime.fromisoformat(f"{text}+00:00").timestamp() * 1e6)


@pytest.mark.parametrize("tz", [None, "Europe/Berlin"])
def test_times_that_no_clock_shows(tmp_path: Path, tz: str | None) -> None:
    far = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    rows = [
        row | {"timestamp": far} if row.get("timestamp") else row
        for row in dumps.run(Schedule(utilization=[LOAD]), run_id="OPT-2")
    ]
    dumps.write(tmp_path, rows)
    assert refused(tmp_path, tz=tz).code == "no_values"
    dumps.write(tmp_path, dumps.run(Schedule(utilization=[LOAD])))
    assert len(times(recording(tmp_path, tz=tz, runs=("OPT-1",)), "gpu:0")) == len(LOAD)


def test_an_export_from_los_angeles_is_found_out_and_put_right(tmp_path: Path) -> None:
    rows = dumps.run(Schedule(utilization=[LOAD]), series={"train/loss": loss(START, 9)})
    dumps.write(tmp_path, local(rows, "America/Los_Angeles"))
    kept = recording(tmp_path)
    assert kept.run.started == START - 7 * HOUR
    assert "first_sample_off" in codes(kept)
    right = recording(tmp_path, tz="America/Los_Angeles")
    assert times(right, "gpu:0") == Schedule(utilization=[LOAD]).ticks
    assert trained(right) == [at for at, _ in loss(START, 9)]
    assert "first_sample_off" not in codes(right)
    assert column(right, "gpu:0", "gpu_utilization_ratio") == [value / 100 for value in LOAD]


@pytest.mark.parametrize(
    ("zone", "tz", "created", "said"),
    [
        ("UTC", None, 6, ""),
        ("UTC", None, 420, ""),
        ("Asia/Kolkata", None, 6, "5.5 h after"),
        ("Asia/Tokyo", "Asia/Shanghai", 6, "1 h after"),
    ],
    ids=["right", "late monitoring", "to the quarter", "wrong zone"],
)
def test_an_offset_from_the_start_is_told(tmp_path: Path, zone: str, tz: str | None, created: int, said: str) -> None:
    rows = dumps.run(Schedule(utilization=[LOAD]), created=START - created * 1_000_000)
    dumps.write(tmp_path, local(rows, zone))
    notes = [note for note in recording(tmp_path, tz=tz).run.quality.notes if "the first sample lies" in note]
    assert [said in note for note in notes] == [True] * bool(said)


AUTUMN = moment("2025-10-26T00:20:00")
"""02:20 in Berlin for the first time; clocks are set back at 03:00."""


def autumn(start: int = AUTUMN, ticks: int = 500) -> Schedule:
    return Schedule(utilization=[square(busy=7, idle=4, ticks=ticks)], cpu=[50.0] * ticks, start=start)


def test_the_hour_that_comes_twice(tmp_path: Path) -> None:
    schedule = autumn(ticks=900)
    found = recording(dumps.write(tmp_path, local(dumps.run(schedule), "Europe/Berlin")), tz="Europe/Berlin")
    after = moment("2025-10-26T02:00:00")
    assert times(found, "gpu:0") == [at for at in schedule.ticks if at >= after]
    assert "ambiguous_hour" in codes(found)
    assert rejected(found)[0][0] == "no_time_stamp"


def test_the_hour_that_is_skipped(tmp_path: Path) -> None:
    schedule = autumn(start=moment("2026-03-29T00:40:00"), ticks=300)
    dumps.write(tmp_path, local(dumps.run(schedule), "Europe/Berlin"))
    assert len(recording(tmp_path).run.quality.gaps) == 2
    found = recording(tmp_path, tz="Europe/Berlin")
    assert (times(found, "gpu:0"), found.run.quality.gaps) == (schedule.ticks, ())


def test_times_of_neptune_3_are_left_alone(tmp_path: Path) -> None:
    start = START
    path = "runtime/monitoring/gpu/0/gpu_utilization_percent"
    rows = dumps.run(series={path: [(start + TICK * place, 50.0) for place in range(5)]}, created=start - 7 * HOUR)
    dumps.write(tmp_path, [row for row in rows if row["attribute_path"] != "sys/id"])
    found = recording(tmp_path, tz="America/Los_Angeles")
    assert (found.run.started, found.run.timezone) == (start, "America/Los_Angeles")

"""Exports of neptune-exporter."""

from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from tests.importers.trackers.neptune import dumps
from tests.importers.trackers.neptune.dumps import Row
from tests.importers.trackers.neptune.schedule import GIB, START, TICK, Schedule, loss, square
from tests.importers.trackers.tracked import (
    codes,
    column,
    ids,
    readable,
    recording,
    recordings,
    refused,
    rejected,
    times,
    trained,
)

LOAD = square(busy=3, idle=2, ticks=20)
RUN = Schedule(utilization=[LOAD, [35.0] * 20], cpu=[60.0] * 20)


def test_the_schedule_comes_back(tmp_path: Path) -> None:
    found = recording(dumps.write(tmp_path, dumps.run(RUN)))
    assert [device.id for device in found.run.devices] == ["gpu:0", "gpu:1", "host"]
    assert times(found, "gpu:0") == RUN.ticks
    assert column(found, "gpu:0", "gpu_utilization_ratio") == [value / 100 for value in LOAD]
    assert column(found, "gpu:0", "imputed") == [value == 0 for value in LOAD]
    assert column(found, "gpu:0", "gpu_memory_used_bytes") == [round(12.5 * GIB)] * 20
    assert column(found, "gpu:0", "gpu_power_watts") == [60 + 2 * value for value in LOAD]
    assert column(found, "host", "cpu_utilization_ratio") == [None, *[0.6] * 19]
    assert column(found, "host", "host_memory_used_bytes") == [round(5.25 * GIB)] * 20
    quality = found.run.quality
    assert (quality.imputed_points, quality.coverage_ratio) == (8, 1.0)
    assert "zeros_put_back" in codes(found)


def test_what_a_run_says_beside_its_series(tmp_path: Path) -> None:
    own = {"params/lr": 0.1, "params/amp": True, "params/net": "resnet", "sys/tags": ["b", "a"], "sys/failed": False}
    own |= {"source_code/entrypoint": "train.py", "source_code/integrations/neptune-pytorch": "2.0.1"}
    rows = dumps.run(RUN, series={"train/loss": loss(START, 40)}, singles=own)
    secret = {"project_id": dumps.PROJECT, "run_id": "OPT-1"}
    rows += [secret | row for row in dumps.text("monitoring/training/stdout", ["token=hunter2"], START)]
    found = recording(dumps.write(tmp_path, rows))
    assert found.run.name == "baseline"
    assert dict(found.run.params) == {
        "params/amp": "true",
        "params/lr": "0.1",
        "params/net": "resnet",
        "source_code/integrations/neptune-pytorch": "2.0.1",
    }
    assert found.run.tags == (("a", "true"), ("b", "true"), ("project", "acme/gpu-opt"), ("node", "node-a"))
    assert found.training.column("name").to_pylist() == ["train/loss"] * 40
    assert found.training.column("step").to_pylist() == list(range(40))
    assert found.training.column("value").to_pylist() == [value for _, value in loss(START, 40)]
    assert "hunter2" not in str(found.run)


def test_stages_are_kept(tmp_path: Path) -> None:
    stages = [
        Schedule(utilization=[[20.0] * 6], namespace="monitoring/preprocessing"),
        Schedule(utilization=[[90.0] * 9], namespace="monitoring/training", start=START + 7 * TICK),
    ]
    dumps.write(tmp_path, dumps.run(*stages, series={"training/loss": loss(START + 7 * TICK, 4)}))
    whole, part = recording(tmp_path), recording(tmp_path, stage="training")
    assert [(stage.name, stage.start) for stage in whole.run.stages] == [
        ("preprocessing", START),
        ("training", START + 7 * TICK),
    ]
    assert column(whole, "gpu:0", "stage") == ["preprocessing"] * 6 + ["training"] * 9
    assert part.run.id != whole.run.id
    assert (len(part.rows_of("gpu:0")), len(part.training), part.run.started) == (9, 4, START + 7 * TICK)
    error = refused(tmp_path, stage="validation")
    assert (error.code, error.hint) == ("no_such_stage", "it has preprocessing, training")


def test_metrics_of_a_person_and_of_an_export_alone(tmp_path: Path) -> None:
    own = {"train/memory": loss(START, 5), "eval/gpu": loss(START, 5), "train/cpu": loss(START, 5)}
    found = recording(dumps.write(tmp_path, dumps.run(RUN, series=own)))
    assert set(found.training.column("name").to_pylist()) == {"eval/gpu", "train/cpu", "train/memory"}
    assert len(found.run.devices) == 3
    rows = [row for row in dumps.run(RUN) if row["attribute_type"] == "float_series"]
    found = recording(dumps.write(tmp_path, rows))
    assert (found.run.name, found.run.params, len(found.rows_of("gpu:1"))) == ("OPT-1", (), 20)


def test_runs_of_one_file_are_told_by_its_columns(tmp_path: Path) -> None:
    one, other = dumps.run(RUN), dumps.run(Schedule(utilization=[[10.0] * 4]), run_id="OPT-2")
    folder = tmp_path / dumps.name(dumps.PROJECT)
    dumps.write_to(folder / "part_0.parquet", [*one[:90], *other], groups=3)
    dumps.write_to(folder / "part_1.parquet", one[90:], groups=2)
    first, second = recordings(tmp_path)
    assert (first.run.name, len(first.rows_of("gpu:0")), len(second.rows_of("gpu:0"))) == ("baseline", 20, 4)
    assert column(first, "gpu:0", "gpu_utilization_ratio") == [value / 100 for value in LOAD]


def test_parts_and_row_groups_make_no_difference(tmp_path: Path) -> None:
    rows = dumps.run(RUN, series={"loss": loss(START, 30)})
    dumps.write(tmp_path / "whole", rows, groups=1)
    dumps.write(tmp_path / "cut", rows[:77], groups=4)
    dumps.write(tmp_path / "cut", rows[77:], part=1, groups=5)
    whole, cut = recording(tmp_path / "whole"), recording(tmp_path / "cut")
    assert whole.series.equals(cut.series)
    assert whole.training.equals(cut.training)
    assert whole.run.id == cut.run.id


def test_a_broken_run_is_named_and_the_other_read(tmp_path: Path) -> None:
    for how, code in (
        ("interrupted", "export_interrupted"),
        ("missing", "missing_part"),
        ("cut", "damaged_export"),
        ("damaged in its pages", "damaged_export"),
        ("without a column", "no_such_column"),
    ):
        folder = tmp_path / how
        left_out = "float_value" if how == "without a column" else ""
        schema = pa.schema([field for field in dumps.SCHEMA if field.name != left_out])
        part = dumps.write_to(dumps.path(folder), dumps.run(RUN), schema=schema)
        whole = part.read_bytes()
        if how in {"interrupted", "missing"}:
            dumps.write(folder, dumps.run(RUN), part=1)
            part.rename(part.with_name(f"{part.name}.tmp")) if how == "interrupted" else part.unlink()
        elif how == "cut":
            part.write_bytes(whole[:-200])
        elif how == "damaged in its pages":
            part.write_bytes(whole[:4] + bytes(1496) + whole[1500:])
        dumps.write(folder, dumps.run(Schedule(utilization=[[50.0] * 3]), run_id="OPT-2"))
        (found,) = readable(folder, runs="OPT-2")[0]
        assert len(found.rows_of("gpu:0")) == 3, how
        error = refused(folder, runs="OPT-1")
        assert (error.code, str(folder) in error.where) == (code, True), how


def test_runs_without_hardware(tmp_path: Path) -> None:
    dumps.write(tmp_path, dumps.run(series={"train/loss": loss(START, 3)}, run_id="OPT-3", created=START))
    assert refused(tmp_path).code == "no_finished_run"
    assert refused(tmp_path, runs="OPT-3").code == "no_hardware_series"
    dumps.write(tmp_path, dumps.run(RUN))
    assert ids(tmp_path) == ["OPT-1"]
    assert refused(tmp_path, require_hardware=True).code == "no_hardware_series"


def test_points_without_a_time_and_values_without_a_path(tmp_path: Path) -> None:
    rows = dumps.run(RUN, series={"loss": loss(START, 3)})
    rows[-1] |= {"timestamp": None}
    found = recording(dumps.write(tmp_path, rows))
    assert rejected(found) == [("no_time_stamp", 1)]
    rows = dumps.run(RUN, singles={"sys/tags": ["a", None]})
    rows.append(rows[0] | {"attribute_path": None})
    found = recording(dumps.write(tmp_path, rows))
    assert (found.run.tags[0], len(found.rows_of("gpu:0"))) == (("a", "true"), 20)


def test_not_every_parquet_is_an_export(tmp_path: Path) -> None:
    for _ in range(2):
        assert refused(tmp_path).code == "no_log"
        dumps.write_to(tmp_path / "x_part_0.parquet", [{"a": 1}], schema=pa.schema({"a": pa.int64()}))
        (tmp_path / "y.parquet").write_bytes(b"nonsense")


def test_values_that_are_not_numbers_are_counted_in_every_process(tmp_path: Path) -> None:
    later = Schedule(utilization=[LOAD], namespace="monitoring/validation", start=START + 30 * TICK)
    rows = dumps.run(RUN, later)
    powers = [row for row in rows if row["attribute_path"].endswith("gpu_power_0")]
    for row in (powers[0], powers[1], powers[-1]):
        row["float_value"] = float("nan")
    quality = recording(dumps.write(tmp_path, rows)).run.quality
    assert [(each.column, each.cells) for each in quality.absent_cells] == [("gpu_power_watts", 3)]
    assert quality.noise == 3


HOUR = 3_600_000_000


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


def test_hours_that_come_twice_or_are_skipped(tmp_path: Path) -> None:
    schedule = autumn(ticks=900)
    found = recording(dumps.write(tmp_path, local(dumps.run(schedule), "Europe/Berlin")), tz="Europe/Berlin")
    after = moment("2025-10-26T02:00:00")
    assert times(found, "gpu:0") == [at for at in schedule.ticks if at >= after]
    assert "ambiguous_hour" in codes(found)
    assert rejected(found)[0][0] == "no_time_stamp"
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


def test_ranks_that_watch_the_same_gpus_count_once(tmp_path: Path) -> None:
    ranks = [
        Schedule(utilization=[LOAD, [35.0] * 20], namespace=f"monitoring/{rank:08x}", start=START + 90_000 * rank)
        for rank in range(4)
    ]
    found = recording(dumps.write(tmp_path, dumps.run(*ranks)))
    assert [device.id for device in found.run.devices] == ["gpu:0", "gpu:1", "host"]
    assert len(found.rows_of("gpu:0")) == 20
    assert column(found, "gpu:0", "gpu_utilization_ratio") == [value / 100 for value in LOAD]
    per_rank = 19 + 20 * 5 + 12 + 20
    assert rejected(found) == [("another_process_recorded_the_same_device", 3 * per_rank)]
    assert len(found.run.stages) == 1


def test_stages_that_touch_or_lie_within_a_process(tmp_path: Path) -> None:
    one = Schedule(utilization=[[20.0] * 6], namespace="monitoring/preprocessing")
    two = Schedule(utilization=[[90.0] * 6], namespace="monitoring/training", start=START + 5 * TICK + 4_000_000)
    found = recording(dumps.write(tmp_path, dumps.run(one, two)))
    assert (len(found.rows_of("gpu:0")), found.run.quality.rejected) == (12, ())
    launcher = Schedule(utilization=[[50.0] * 60], namespace="monitoring/launcher")
    inner = Schedule(utilization=[[90.0] * 10], namespace="monitoring/training", start=START + 20 * TICK + 1_000_000)
    found = recording(dumps.write(tmp_path, dumps.run(launcher, inner)))
    stages = column(found, "gpu:0", "stage")
    assert (stages.count("training"), stages.count("launcher")) == (10, 51)
    assert stages[20:31].count("training") == 10


@pytest.mark.parametrize(("apart", "gpus"), [(500_000, ["gpu:0", "gpu:1"]), (9 * TICK, ["gpu:0"])])
def test_processes_that_see_one_gpu_each(tmp_path: Path, apart: int, gpus: list[str]) -> None:
    ranks = [
        Schedule(utilization=[[value] * 5], namespace=f"monitoring/rank{rank}", start=START + rank * apart, numbers=())
        for rank, value in enumerate((80.0, 60.0))
    ]
    found = recording(dumps.write(tmp_path, dumps.run(*ranks)))
    assert [device.id for device in found.run.gpus] == gpus
    assert column(found, gpus[-1], "gpu_utilization_ratio")[-5:] == [0.6] * 5


def test_physical_numbers_are_kept(tmp_path: Path) -> None:
    found = recording(dumps.write(tmp_path, dumps.run(Schedule(utilization=[[50.0] * 3, [60.0] * 3], numbers=(2, 3)))))
    assert [device.id for device in found.run.gpus] == ["gpu:2", "gpu:3"]
    one = recording(tmp_path, gpus=(3,))
    assert [device.id for device in one.run.gpus] == ["gpu:3"]
    assert rejected(one) == [("gpu_not_selected", 9)]


def test_machines_are_told_apart(tmp_path: Path) -> None:
    rows = dumps.run(Schedule(utilization=[[50.0] * 5], namespace="monitoring/0000000a"))
    rows += [
        row
        for row in dumps.run(Schedule(utilization=[[70.0] * 5], namespace="monitoring/0000000b"), hostname="node-b")
        if row["attribute_path"].startswith("monitoring/")
    ]
    found = recording(dumps.write(tmp_path, rows))
    assert [device.id for device in found.run.devices] == ["node-a/gpu:0", "node-b/gpu:0", "node-a/host", "node-b/host"]
    assert column(found, "node-b/gpu:0", "gpu_utilization_ratio") == [0.7] * 5
    assert {stage.node for stage in found.run.stages} == {"node-a", "node-b"}


def test_a_stage_taken_up_again(tmp_path: Path) -> None:
    first = Schedule(utilization=[square(busy=4, idle=1, ticks=10)], cpu=[0.0] * 10)
    again = Schedule(utilization=[square(busy=4, idle=1, ticks=10)], cpu=[90.0] * 10, start=START + 400 * TICK)
    rows = dumps.run(first, series={})
    series = first.series()
    rows = [row for row in rows if row["attribute_type"] != "float_series"]
    for path, values in again.series().items():
        rows += [
            {"project_id": dumps.PROJECT, "run_id": "OPT-1", **row}
            for row in dumps.points(path, series.get(path, []) + values)
        ]
    found = recording(dumps.write(tmp_path, rows))
    assert {gap.device for gap in found.run.quality.gaps} == {"gpu:0", "host"}
    assert found.run.quality.imputed_points == 4 + 9
    cpu = column(found, "host", "cpu_utilization_ratio")
    assert cpu == [None, *[0.0] * 9, None, *[0.9] * 9]
    imputed = column(found, "gpu:0", "imputed")
    assert imputed.count(True) * 5 == len(imputed)

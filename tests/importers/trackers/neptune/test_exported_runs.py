"""Exports of neptune-exporter."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tests.importers.trackers.neptune import dumps
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


def test_a_person_s_metric_is_no_gauge(tmp_path: Path) -> None:
    own = {"train/memory": loss(START, 5), "eval/gpu": loss(START, 5), "train/cpu": loss(START, 5)}
    found = recording(dumps.write(tmp_path, dumps.run(RUN, series=own)))
    assert set(found.training.column("name").to_pylist()) == {"eval/gpu", "train/cpu", "train/memory"}
    assert len(found.run.devices) == 3


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


def test_an_export_of_metrics_alone(tmp_path: Path) -> None:
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


def _interrupted(folder: Path) -> None:
    part = dumps.write(folder, dumps.run(RUN))
    dumps.write(folder, dumps.run(RUN), part=1)
    part.rename(part.with_name(f"{part.name}.tmp"))


def _missing(folder: Path) -> None:
    dumps.write(folder, dumps.run(RUN), part=1)


def _cut(folder: Path) -> None:
    part = dumps.write(folder, dumps.run(RUN))
    part.write_bytes(part.read_bytes()[:-200])


def _damaged_in_its_pages(folder: Path) -> None:
    part = dumps.write(folder, dumps.run(RUN), groups=1)
    data = bytearray(part.read_bytes())
    data[4:1500] = bytes(1496)
    part.write_bytes(bytes(data))


def _without_a_column(folder: Path) -> None:
    schema = pa.schema([field for field in dumps.SCHEMA if field.name != "float_value"])
    dumps.write_to(dumps.path(folder), dumps.run(RUN), schema=schema)


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (_interrupted, "export_interrupted"),
        (_missing, "missing_part"),
        (_cut, "damaged_export"),
        (_damaged_in_its_pages, "damaged_export"),
        (_without_a_column, "no_such_column"),
    ],
)
def test_a_broken_run_is_named_and_the_other_read(tmp_path: Path, damage: Callable[[Path], None], code: str) -> None:
    damage(tmp_path)
    dumps.write(tmp_path, dumps.run(Schedule(utilization=[[50.0] * 3]), run_id="OPT-2"))
    (found,) = readable(tmp_path, runs="OPT-2")[0]
    assert len(found.rows_of("gpu:0")) == 3
    error = refused(tmp_path, runs="OPT-1")
    assert (error.code, str(tmp_path) in error.where) == (code, True)


def test_runs_without_hardware(tmp_path: Path) -> None:
    dumps.write(tmp_path, dumps.run(series={"train/loss": loss(START, 3)}, run_id="OPT-3", created=START))
    assert refused(tmp_path).code == "no_finished_run"
    assert refused(tmp_path, runs="OPT-3").code == "no_hardware_series"
    dumps.write(tmp_path, dumps.run(RUN))
    assert ids(tmp_path) == ["OPT-1"]
    assert refused(tmp_path, require_hardware=True).code == "no_hardware_series"


def test_points_without_a_time_are_rejected(tmp_path: Path) -> None:
    rows = dumps.run(RUN, series={"loss": loss(START, 3)})
    rows[-1] |= {"timestamp": None}
    found = recording(dumps.write(tmp_path, rows))
    assert rejected(found) == [("no_time_stamp", 1)]


def test_single_values_without_a_path_or_a_word(tmp_path: Path) -> None:
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

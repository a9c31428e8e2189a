"""Exports of neptune-exporter."""

from pathlib import Path

import pyarrow as pa
import pytest

from tests.importers.trackers.neptune import dumps
from tests.importers.trackers.neptune.schedule import START, Schedule, loss, square
from tests.importers.trackers.tracked import ids, readable, recording, refused

LOAD = square(busy=3, idle=2, ticks=20)
RUN = Schedule(utilization=[LOAD, [35.0] * 20], cpu=[60.0] * 20)


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


def test_not_every_parquet_is_an_export(tmp_path: Path) -> None:
    for _ in range(2):
        assert refused(tmp_path).code == "no_log"
        dumps.write_to(tmp_path / "x_part_0.parquet", [{"a": 1}], schema=pa.schema({"a": pa.int64()}))
        (tmp_path / "y.parquet").write_bytes(b"nonsense")


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
    dumps.write(tmp_path, dumps.local(rows, zone))
    notes = [note for note in recording(tmp_path, tz=tz).run.quality.notes if "the first sample lies" in note]
    assert [said in note for note in notes] == [True] * bool(said)

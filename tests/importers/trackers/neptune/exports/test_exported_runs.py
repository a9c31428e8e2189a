"""Exports of neptune-exporter."""

from pathlib import Path

import pyarrow as pa
import pytest

from gpureport.errors import SourceError
from gpureport.importers import Selection, find_tracker
from gpureport.importers.trackers.neptune.exports import export_files
from gpureport.importers.trackers.neptune.exports.exported_runs import find_exported_runs
from tests.importers.trackers.neptune import dumps
from tests.importers.trackers.neptune.reading import column, readings, recording, recordings, times
from tests.importers.trackers.neptune.schedule import GIB, START, TICK, Schedule, loss, nearly, square

LOAD = square(busy=3, idle=2, ticks=20)
RUN = Schedule(utilization=[LOAD, [35.0] * 20], cpu=[60.0] * 20)


def test_the_schedule_comes_back(tmp_path: Path) -> None:
    """Zeros that were dropped are there again and marked, units are base units, and times are those of the ticks."""
    dumps.write(tmp_path, dumps.run(RUN))
    found = recording(tmp_path)
    assert [device.id for device in found.run.devices] == ["gpu:0", "gpu:1", "host"]
    assert times(found, "gpu:0") == RUN.ticks
    assert nearly(column(found, "gpu:0", "gpu_utilization_ratio"), [value / 100 for value in LOAD])
    assert column(found, "gpu:0", "imputed") == [value == 0 for value in LOAD]
    assert column(found, "gpu:0", "gpu_memory_used_bytes") == [round(12.5 * GIB)] * 20
    assert nearly(column(found, "gpu:0", "gpu_power_watts"), [60 + 2 * value for value in LOAD])
    assert nearly(column(found, "host", "cpu_utilization_ratio"), [None, *[0.6] * 19])
    assert column(found, "host", "host_memory_used_bytes") == [round(5.25 * GIB)] * 20
    quality = found.run.quality
    assert (quality.imputed_points, quality.coverage_ratio) == (8, 1.0)
    assert "Neptune's client drops zeros: 8 of 20 values of utilization were 0 and are put back" in quality.notes


def test_what_a_run_says_beside_its_series(tmp_path: Path) -> None:
    """Params, tags, name and training metrics are kept; what processes printed is not read."""
    own = {"params/lr": 0.1, "params/amp": True, "params/net": "resnet", "sys/tags": ["b", "a"], "sys/failed": False}
    own |= {"source_code/entrypoint": "train.py", "source_code/integrations/neptune-pytorch": "2.0.1"}
    rows = dumps.run(RUN, series={"train/loss": loss(START, 40)}, singles=own)
    secret = {"project_id": dumps.PROJECT, "run_id": "OPT-1"}
    rows += [secret | row for row in dumps.text("monitoring/training/stdout", ["token=hunter2"], START)]
    dumps.write(tmp_path, rows)
    found = recording(tmp_path)
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
    """`train/memory` and `eval/gpu` are training metrics, whatever they are called."""
    own = {"train/memory": loss(START, 5), "eval/gpu": loss(START, 5), "train/cpu": loss(START, 5)}
    dumps.write(tmp_path, dumps.run(RUN, series=own))
    found = recording(tmp_path)
    assert set(found.training.column("name").to_pylist()) == {"eval/gpu", "train/cpu", "train/memory"}
    assert len(found.run.devices) == 3


def test_stages_are_kept(tmp_path: Path) -> None:
    """Each namespace of a sequential pipeline is a stage; one can be read alone, as another run."""
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
    with pytest.raises(SourceError, match="it has no stage 'validation'; it has preprocessing, training"):
        recording(tmp_path, stage="validation")


def test_an_export_of_metrics_alone(tmp_path: Path) -> None:
    """Without single values a namespace is known by how it begins; nothing else is made up."""
    rows = [row for row in dumps.run(RUN) if row["attribute_type"] == "float_series"]
    dumps.write(tmp_path, rows)
    found = recording(tmp_path)
    assert (found.run.name, found.run.params, len(found.rows_of("gpu:1"))) == ("OPT-1", (), 20)


def test_runs_of_one_file_are_told_by_its_columns(tmp_path: Path) -> None:
    """Exports of before November 2025 have many runs in a file, and a run in many files."""
    one, other = dumps.run(RUN), dumps.run(Schedule(utilization=[[10.0] * 4]), run_id="OPT-2")
    folder = tmp_path / dumps.name(dumps.PROJECT)
    dumps.write_to(folder / "part_0.parquet", [*one[:90], *other], groups=3)
    dumps.write_to(folder / "part_1.parquet", one[90:], groups=2)
    first, second = recordings(tmp_path)
    assert (first.run.name, len(first.rows_of("gpu:0")), len(second.rows_of("gpu:0"))) == ("baseline", 20, 4)
    assert nearly(column(first, "gpu:0", "gpu_utilization_ratio"), [value / 100 for value in LOAD])


def test_parts_and_row_groups_make_no_difference(tmp_path: Path) -> None:
    """However a run is cut, its recording and its id are the same."""
    rows = dumps.run(RUN, series={"loss": loss(START, 30)})
    dumps.write(tmp_path / "whole", rows, groups=1)
    dumps.write(tmp_path / "cut", rows[:77], groups=4)
    dumps.write(tmp_path / "cut", rows[77:], part=1, groups=5)
    whole, cut = recording(tmp_path / "whole"), recording(tmp_path / "cut")
    assert whole.series.equals(cut.series)
    assert whole.training.equals(cut.training)
    assert whole.run.id == cut.run.id


def test_models_are_no_runs(tmp_path: Path) -> None:
    """What the exporter writes of the model registry is left alone."""
    dumps.write(tmp_path, dumps.run(RUN))
    registry = tmp_path / dumps.name(dumps.PROJECT) / "models" / "M-1_part_0.parquet"
    dumps.write_to(registry, dumps.run(RUN, run_id="M-1"))
    assert len(readings(tmp_path)) == 1


def _broken(tmp_path: Path, error: str) -> None:
    """Check that the run that is broken says why, with the path, and that the other is read."""
    dumps.write(tmp_path, dumps.run(Schedule(utilization=[[50.0] * 3]), run_id="OPT-2"))
    good, bad = 0, []
    for reading in readings(tmp_path):
        try:
            good += len(reading.recording().rows_of("gpu:0"))
        except SourceError as fault:
            bad.append(str(fault))
    assert good == 3
    assert len(bad) == 1
    assert error in bad[0]
    assert str(tmp_path) in bad[0]


def test_an_interrupted_export(tmp_path: Path) -> None:
    """A part that kept its temporary name: the exporter did not finish the run."""
    part = dumps.write(tmp_path, dumps.run(RUN))
    dumps.write(tmp_path, dumps.run(RUN), part=1)
    part.rename(part.with_name(f"{part.name}.tmp"))
    _broken(tmp_path, "the export of this run was interrupted, ")


def test_a_missing_part(tmp_path: Path) -> None:
    """Without its first part a run is not complete."""
    dumps.write(tmp_path, dumps.run(RUN), part=1)
    _broken(tmp_path, "part 0 of this run is missing")


def test_a_damaged_part(tmp_path: Path) -> None:
    """A file that was cut off is named."""
    part = dumps.write(tmp_path, dumps.run(RUN))
    part.write_bytes(part.read_bytes()[:-200])
    _broken(tmp_path, "the Parquet file is damaged")


def test_a_part_damaged_in_its_pages(tmp_path: Path) -> None:
    """Damage that shows only when the values are read is told of the run it hits."""
    part = dumps.write(tmp_path, dumps.run(RUN), groups=1)
    data = bytearray(part.read_bytes())
    data[4:1500] = bytes(1496)
    part.write_bytes(bytes(data))
    _broken(tmp_path, "is damaged")


def test_missing_columns(tmp_path: Path) -> None:
    """A file that lacks a column is named with it."""
    rows = dumps.run(RUN)
    schema = pa.schema([field for field in dumps.SCHEMA if field.name != "float_value"])
    dumps.write_to(dumps.path(tmp_path), rows, schema=schema)
    _broken(tmp_path, "it lacks the column float_value")


def test_the_same_run_in_two_folders(tmp_path: Path) -> None:
    """Two copies of an export are not added up."""
    dumps.write(tmp_path / "a", dumps.run(RUN))
    dumps.write(tmp_path / "b", dumps.run(RUN))
    with pytest.raises(SourceError, match=r"b.*: it holds runs that are in .*a.* as well: OPT-1; give one of the fo"):
        recording(tmp_path)


def test_runs_in_two_folders_are_named_once(tmp_path: Path) -> None:
    """All runs of a pair of folders are in one message, and no run that lies in one of them alone."""
    for place in ("a", "b"):
        for run_id in ("OPT-1", "OPT-2"):
            dumps.write(tmp_path / place, dumps.run(RUN, run_id=run_id))
    dumps.write(tmp_path / "b", dumps.run(RUN, run_id="OPT-3"))
    faults = {run.id: str(run.fault) for run in find_exported_runs(tmp_path)}
    assert faults["OPT-1"] == faults["OPT-2"]
    assert " as well: OPT-1, OPT-2; give one of the folders" in faults["OPT-1"]
    assert faults["OPT-3"] == "None"


def test_runs_without_hardware(tmp_path: Path) -> None:
    """Named, such a run says what it holds; unnamed, it is left out; none but such is an error."""
    dumps.write(tmp_path, dumps.run(series={"train/loss": loss(START, 3)}, run_id="OPT-3", created=START))
    with pytest.raises(SourceError, match="the run holds no hardware series, but train"):
        recording(tmp_path)
    dumps.write(tmp_path, dumps.run(series={"train/loss": loss(START, 3)}, run_id="OPT-4", created=START))
    with pytest.raises(SourceError, match="none of its 2 runs holds hardware series"):
        recordings(tmp_path)
    dumps.write(tmp_path, dumps.run(RUN))
    assert [reading.locator.rpartition("#")[2] for reading in readings(tmp_path)] == ["OPT-1"]
    with pytest.raises(SourceError, match="#OPT-3: the run holds no hardware series"):
        recordings(tmp_path, require_hardware=True)


def test_points_without_a_time_are_rejected(tmp_path: Path) -> None:
    """They are counted; the rest is read."""
    rows = dumps.run(RUN, series={"loss": loss(START, 3)})
    rows[-1] |= {"timestamp": None}
    dumps.write(tmp_path, rows)
    found = recording(tmp_path)
    assert [(entry.reason, entry.rows) for entry in found.run.quality.rejected] == [("no time stamp", 1)]


def test_not_every_parquet_is_an_export(tmp_path: Path) -> None:
    """Files with other columns, and names alone, are not claimed."""
    found = find_tracker(str(tmp_path))
    assert found is None
    dumps.write_to(tmp_path / "x_part_0.parquet", [{"a": 1}], schema=pa.schema({"a": pa.int64()}))
    (tmp_path / "y.parquet").write_bytes(b"nonsense")
    assert find_tracker(str(tmp_path)) is None
    assert not export_files.is_export_file(tmp_path / "y.parquet")


def test_the_project_is_chosen(tmp_path: Path) -> None:
    """`--project` takes a name, with `*` for any part."""
    dumps.write(tmp_path, dumps.run(RUN))
    assert len(readings(tmp_path, project="acme/*")) == 1
    with pytest.raises(SourceError, match="it holds no run of project 'other/x'"):
        readings(tmp_path, project="other/x")


def test_listing(tmp_path: Path) -> None:
    """A listing shows what a run holds without reading series, and why another cannot be read."""
    dumps.write(tmp_path, dumps.run(RUN))
    part = dumps.write(tmp_path, dumps.run(RUN, run_id="OPT-2"))
    part.write_bytes(b"PAR1")
    found = find_tracker(str(tmp_path))
    assert found is not None
    one, other = found.listed(str(tmp_path), Selection())
    assert (one.id, one.name, one.status) == ("OPT-1", "baseline", "inactive")
    assert one.holds == "acme/gpu-opt  training: 20 ticks, 2 GPUs"
    assert one.points == 12 + 19 + 6 * 20
    assert other.status == "cannot be read"
    assert "the Parquet file is damaged" in str(other.fault)


def test_work_is_counted_by_a_training_metric(tmp_path: Path) -> None:
    """A throughput known by its name says how much was done; one that a person names wins, and must be there."""
    speed = [(START + 5_000_000 * place, 200.0) for place in range(40)]
    rows = dumps.run(RUN, series={"train/samples_per_second": speed, "eval/rate": speed, "val/loss": loss(START, 4)})
    dumps.write(tmp_path, rows)
    found = recording(tmp_path)
    assert found.run.work is not None
    assert (found.run.work.amount, found.run.work.unit) == (200.0 * 38 * 5, "samples")
    assert any(
        "training metrics by their names: throughput: train/samples_per_second; loss: val/loss" in note
        for note in found.run.quality.notes
    )
    other = recording(tmp_path, throughput="eval/rate").run.work
    assert other is not None
    assert other.unit == "eval/rate"
    missing = recording(tmp_path, throughput="none").run
    assert missing.work is None
    assert any("no training metric 'none' counts work" in note for note in missing.quality.notes)

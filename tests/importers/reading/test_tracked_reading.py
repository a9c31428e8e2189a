"""The seam between trackers and the rest: identity, state, strictness, logs kept with a run, and the store."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest

from gpureport import columns
from gpureport.errors import SourceError
from gpureport.importers.protocol.importer import Labels, ReadOptions
from gpureport.importers.protocol.reject_reasons import BESIDE_A_LOG, NOT_SELECTED
from gpureport.importers.protocol.tracker import Attachment, Tracked
from gpureport.importers.reading.attachments import join_attached_logs
from gpureport.importers.reading.tracked_reading import TrackedReading
from gpureport.importers.trackers.device_tables import add_timing, build_device_table, read_clocks
from gpureport.importers.trackers.training_metrics import TrainingMetric
from gpureport.importers.trackers.training_metrics import build_training_table as training_table
from gpureport.store import Store
from gpureport.testing import HOST, Device, Quality, Rejected, Work

START = int(datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp() * 1e6)
_SECOND = 1_000_000
_POINTS = 2 * 120
_COLUMN = {True: "cpu_utilization_ratio", False: "gpu_utilization_ratio"}


@dataclass(frozen=True)
class Run:
    """A run of a tracker that is known already."""

    tracked: Tracked
    key: str = "run 1"
    locator: str = "mlflow:store#1"

    @property
    def fault(self) -> None:
        """Nothing: it can be read."""
        return

    @property
    def source_state(self) -> None:
        """Nothing: reading it tells."""
        return

    def read(self, options: ReadOptions) -> Tracked:
        """Return it."""
        del options
        return self.tracked


def tracked(*, gpus: int = 1, every: int = 10, node: str | None = None) -> Tracked:
    """Return a run of twenty minutes: each GPU busy for four minutes, then idle for six, and again."""
    times = START + np.arange(0, 1200, every) * _SECOND
    used = _used((times - START) / _SECOND)
    devices = [Device(id=f"{node}/gpu:{n}" if node else f"gpu:{n}", index=n, node=node) for n in range(gpus)]
    devices.append(Device(id=f"{node}/host" if node else HOST, node=node))
    series = {each.id: build_device_table(each.id, times, {_COLUMN[each.index is None]: used}) for each in devices}
    metric = TrainingMetric("loss", times, np.arange(len(times)), used)
    return Tracked(
        name="one",
        span=(int(times[0]), int(times[-1])),
        devices=tuple(devices),
        series=series,
        quality=add_timing(Quality(lines=_POINTS, rows_kept=_POINTS), read_clocks(series.values())),
        state="10 points",
        training=training_table([metric]),
        interval=float(every),
        params=(("lr", "1"),),
        tags=(("team", "a"),),
        work=Work(amount=5.0, unit="steps"),
        lasted=(START - 5 * _SECOND, START + 1205 * _SECOND),
    )


def _used(seconds: "columns.FloatArray") -> "columns.FloatArray":
    return np.where(seconds % 600 < 240, 0.95, 0.0)


def reading(
    one: Tracked, options: ReadOptions | None = None, *, strict: bool = False, key: str = "run 1"
) -> TrackedReading:
    """Return a reading of a run."""
    return TrackedReading(
        "mlflow", Run(one, key), options or ReadOptions(), Labels(), strict=strict, join=join_attached_logs
    )


def log(path: Path, hours: float = 0.0, seconds: Sequence[int] = range(1200), gpus: int = 1) -> Attachment:
    """Write a log of nvidia-smi of the same GPUs, in a zone some hours before UTC."""
    zone = timezone(timedelta(hours=hours))
    lines = ["timestamp, index, name, utilization.gpu [%], temperature.gpu"]
    for second in seconds:
        moment = datetime.fromtimestamp(START / 1e6 + second, zone)
        stamp = f"{moment:%Y/%m/%d %H:%M:%S}.000"
        used = round(float(_used(np.array([second]))[0]) * 100)
        lines += [f"{stamp}, {gpu}, NVIDIA A100-SXM4-80GB, {used} %, 61" for gpu in range(gpus)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Attachment(name=f"gpureport/{path.name}", path=path)


def test_a_run_is_identified_by_its_key_and_what_selects_rows() -> None:
    """Not by how much the tracker holds of it, which tells whether it has grown."""
    one = tracked()
    more = replace(one, state="11 points")
    assert reading(one).run_id == reading(more).run_id
    assert reading(one).sources != reading(more).sources
    ids = {reading(one).run_id, reading(one, key="run 2").run_id, reading(one, ReadOptions(gpus=(0,))).run_id}
    assert len(ids) == 3


def test_what_a_tracker_says_of_a_run_comes_through() -> None:
    """Times are UTC, and labels of a person win."""
    labels = Labels(name="mine", step="2", params=(("lr", "2"),))
    run = (
        TrackedReading("mlflow", Run(tracked()), ReadOptions(), labels, strict=False, join=join_attached_logs)
        .recording()
        .run
    )
    assert (run.name, run.step, run.timezone, run.params, run.tags) == (
        "mine",
        "2",
        "UTC",
        (("lr", "2"),),
        (("team", "a"),),
    )
    assert run.work == Work(amount=5.0, unit="steps")
    assert [source.kind for source in run.sources] == ["mlflow"]


def test_strict_fails_on_what_was_rejected_but_not_on_what_was_not_asked_for() -> None:
    """GPUs that were left out are no fault of the run."""
    quality = Quality(lines=3, rows_kept=1, rejected=(Rejected(reason=NOT_SELECTED, rows=2, first_line=None),))
    assert reading(replace(tracked(), quality=quality), strict=True).run().quality == quality
    bad = replace(quality, rejected=(Rejected(reason="torn line", rows=2, first_line=None),))
    with pytest.raises(SourceError, match="mlflow:store#1: points were rejected: 2 torn line; leave out --strict"):
        reading(replace(tracked(), quality=bad), strict=True).run()


def test_a_run_comes_back_from_the_store(tmp_path: Path) -> None:
    """Series, training metrics and all that is known of it."""
    one = reading(tracked(gpus=2))
    store = Store(tmp_path / ".gpureport")
    entry = store.write(one, "1")
    back = store.read(entry)
    assert back.run == one.run()
    assert back.series.to_pylist() == one.recording().series.to_pylist()
    assert back.training.to_pylist() == one.recording().training.to_pylist()


def test_a_run_without_hardware_comes_back_from_the_store(tmp_path: Path) -> None:
    """It has no rows, and its training metrics."""
    bare = replace(tracked(), devices=(), series={})
    store = Store(tmp_path / ".gpureport")
    back = store.read(store.write(reading(bare), "1"))
    assert len(back.series) == 0
    assert len(back.training) == 120
    assert back.series.column_names == reading(bare).recording().series.column_names


@pytest.mark.parametrize("hours", [0, 1, -8, 5.75, 14])
def test_a_log_that_is_kept_with_a_run_is_read_instead(hours: float, tmp_path: Path) -> None:
    """Its stamps are placed by the time it shares with the run, whatever the zone of the machine."""
    one = replace(tracked(), attachments=(log(tmp_path / "gpu.csv", hours),))
    recording = reading(one).recording()
    rows = recording.rows_of("gpu:0")
    assert columns.integers(rows.column("timestamp")).tolist() == (START + np.arange(1200) * _SECOND).tolist()
    assert columns.floats(rows.column("gpu_temperature_celsius")).tolist() == [61.0] * 1200
    assert recording.run.gpus[0].model == "NVIDIA A100-SXM4-80GB"
    assert len(recording.rows_of("host")) == 120
    assert [source.kind for source in recording.run.sources] == ["mlflow", "nvidia_smi"]
    sign, minutes = "-" if hours < 0 else "+", abs(hours) * 60
    note = (
        f"gpureport/gpu.csv is attached to the run and is read for gpu:0 instead; its stamps are taken to be UTC{sign}"
    )
    note += f"{int(minutes // 60):02d}:{int(minutes % 60):02d}"
    assert any(each.startswith(note) for each in recording.run.quality.notes)


def test_of_zones_that_share_as_much_time_the_values_tell(tmp_path: Path) -> None:
    """A short log lies within a long run at many offsets; only at one of them is it busy when the run was."""
    run = tracked()
    series = {"gpu:0": run.series["gpu:0"].slice(0, 30)}
    long = replace(
        run, series=series | {HOST: run.series[HOST]}, lasted=(START - 7200 * _SECOND, START + 7200 * _SECOND)
    )
    one = replace(long, attachments=(log(tmp_path / "gpu.csv", 0.25, range(300)),))
    recording = reading(one).recording()
    assert int(columns.integers(recording.rows_of("gpu:0").column("timestamp"))[0]) == START


def test_every_point_is_accounted_for_beside_a_log(tmp_path: Path) -> None:
    """What the tracker recorded of the same GPU counts as left out."""
    one = replace(tracked(), attachments=(log(tmp_path / "gpu.csv"),))
    quality = reading(one).run().quality
    assert quality.accounted
    assert quality.lines == _POINTS + 1201
    assert [(each.reason, each.rows) for each in quality.rejected] == [(BESIDE_A_LOG, 120)]


def test_a_zone_that_a_person_names_is_the_zone(tmp_path: Path) -> None:
    """With --tz nothing is inferred."""
    one = replace(tracked(), attachments=(log(tmp_path / "gpu.csv", 1),))
    run = reading(one, ReadOptions(tz="Europe/Paris")).run()
    assert any("its stamps are in Europe/Paris" in note for note in run.quality.notes)
    with_wrong = reading(one, ReadOptions(tz="Asia/Tokyo")).run()
    assert any("it shares no time with the run" in note for note in with_wrong.quality.notes)


def test_a_log_that_covers_little_is_said_and_not_used(tmp_path: Path) -> None:
    """The tracker's own series are better than a few minutes of a log."""
    one = replace(tracked(), attachments=(log(tmp_path / "gpu.csv", 0, range(300)),))
    recording = reading(one).recording()
    assert len(recording.rows_of("gpu:0")) == 120
    assert any("not used: it covers too little of it" in note for note in recording.run.quality.notes)


def test_a_log_of_one_of_several_nodes_is_said_and_not_used(tmp_path: Path) -> None:
    """Nobody can say which node's gpu:0 it speaks of."""
    one = replace(tracked(node="a"), attachments=(log(tmp_path / "gpu.csv"),))
    recording = reading(one).recording()
    assert [device.id for device in recording.run.devices] == ["a/gpu:0", "a/host"]
    assert any("nothing says of which it is" in note for note in recording.run.quality.notes)


def test_a_host_log_that_is_kept_with_a_run_is_read_as_well(tmp_path: Path) -> None:
    """It holds what no tracker records, such as the busiest core."""
    path = tmp_path / "host.csv"
    stamps = (f"{datetime.fromtimestamp(START / 1e6 + second, UTC):%Y/%m/%d %H:%M:%S}.000" for second in range(1200))
    path.write_text(
        "timestamp,cpu_percent,cpu_max_core_percent\n" + "".join(f"{s},40,100\n" for s in stamps), encoding="utf-8"
    )
    one = replace(tracked(), attachments=(Attachment(name="gpureport/host.csv", path=path),))
    rows = reading(one).recording().rows_of(HOST)
    assert columns.floats(rows.column("cpu_busiest_core_ratio")).tolist() == [1.0] * 1200


@pytest.mark.parametrize("content", ["", "a,b\n1,2\n", "\0\0"])
def test_a_file_that_is_no_log_is_said_and_not_read(content: str, tmp_path: Path) -> None:
    """It does not keep the run out."""
    path = tmp_path / "other.csv"
    path.write_text(content, encoding="utf-8")
    one = replace(tracked(), attachments=(Attachment(name="gpureport/other.csv", path=path),))
    notes = reading(one).run().quality.notes
    assert any(note.startswith("gpureport/other.csv is attached to the run and not read") for note in notes)


def test_gpus_that_only_the_log_knows_are_read(tmp_path: Path) -> None:
    """Where nvidia-ml-py was missing, MLflow holds the machine alone."""
    run = tracked()
    bare = replace(run, devices=run.devices[1:], series={HOST: run.series[HOST]})
    one = replace(bare, attachments=(log(tmp_path / "gpu.csv", gpus=2),))
    assert [device.id for device in reading(one).run().devices] == ["gpu:0", "gpu:1", HOST]

"""Logs kept with a run of a tracker: read in place of what the tracker recorded, and placed by the time they share."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from gpureport.errors import SourceError
from gpureport.testing import Recording
from tests.importers.accounts import column, seconds
from tests.importers.trackers.mlflow.stores import START, Made, folder, run_id
from tests.support.logs import read
from tests.support.program import Program

EVERY, LASTS = 10, 1200
POINTS = LASTS // EVERY - 1
GPU, MACHINE = "gpu_0_utilization_percentage", "cpu_utilization_percentage"
BEGAN = START * 1000


def busy(second: float) -> int:
    """Return the use of a GPU that works for four minutes and then rests for six."""
    return 95 if second % 600 < 240 else 0


def store(place: Path, logs: Mapping[str, str], *, names: Iterable[str] = (GPU, MACHINE), lasts: int = LASTS) -> Path:
    """Write a store with a run of twenty minutes, and logs among its artifacts."""
    ticks = range(EVERY, lasts, EVERY)
    series = {
        f"system/{name}": [(START + 1000 * at, float(busy(at)), at) for at in ticks if at < LASTS] for name in names
    }
    made = Made(id=run_id(1), series=series, start=START, end=START + 1000 * lasts)
    path = folder(place / "mlruns", [made])
    kept = next(path.iterdir()) / made.id / "artifacts" / "gpureport"
    for name, content in logs.items():
        kept.mkdir(parents=True, exist_ok=True)
        (kept / name).write_text(content)
    return path


def log(hours: float = 0.0, over: Iterable[int] = range(LASTS), gpus: int = 1) -> str:
    """Return a log of nvidia-smi of the same GPUs, in a zone some hours before UTC."""
    zone = timezone(timedelta(hours=hours))
    lines = ["timestamp, index, name, utilization.gpu [%], temperature.gpu"]
    for second in over:
        moment = datetime.fromtimestamp(START / 1e3 + second, zone)
        stamp = f"{moment:%Y/%m/%d %H:%M:%S}.{moment.microsecond // 1000:03d}"
        lines += [f"{stamp}, {gpu}, NVIDIA A100-SXM4-80GB, {busy(second)} %, 61" for gpu in range(gpus)]
    return "\n".join(lines) + "\n"


def reading(path: Path, **options: object) -> Recording:
    return read(f"mlflow:{path}", mlflow_raw_times=True, **options)  # type: ignore[arg-type] # an address


@pytest.mark.parametrize("hours", [0, 1, -8, 5.75, 14])
def test_a_log_is_read_instead_whatever_its_zone(tmp_path: Path, hours: float) -> None:
    recording = reading(store(tmp_path, {"gpu.csv": log(hours)}))
    assert seconds(recording, start=BEGAN) == list(range(LASTS))
    assert column(recording, "gpu_temperature_celsius") == [61.0] * LASTS
    run = recording.run
    assert (run.gpus[0].model, run.timezone) == ("NVIDIA A100-SXM4-80GB", "UTC")
    # nothing is known of the machine before its first reading
    assert len(recording.rows_of("host")) == POINTS - 1
    assert [source.kind for source in run.sources] == ["mlflow", "nvidia_smi"]
    assert (run.quality.accounted, {POINTS} <= {each.rows for each in run.quality.rejected}) == (True, True)


def test_a_zone_is_found_where_one_fits_or_named(tmp_path: Path) -> None:
    path = store(tmp_path, {"gpu.csv": log(1, over=range(-3000, 4000, 5))})
    recording = reading(path)
    assert len(recording.rows_of("gpu:0")) == POINTS
    assert any("--tz" in note for note in recording.run.quality.notes)
    assert len(reading(path, tz="Etc/GMT-1").rows_of("gpu:0")) > POINTS
    # measured is the first part of a long run, and the log covers that
    assert seconds(reading(store(tmp_path / "long", {"gpu.csv": log(0.25)}, lasts=7200)), start=BEGAN)[0] == 0
    path = store(tmp_path / "short", {"gpu.csv": log(1)})
    assert len(reading(path, tz="Europe/Paris").rows_of("gpu:0")) == LASTS
    assert len(reading(path, tz="Asia/Tokyo").rows_of("gpu:0")) == POINTS


@pytest.mark.parametrize(
    "kept", [log(over=range(300)), "", "a,b\n1,2\n", "\0\0"], ids=["short", "empty", "table", "binary"]
)
def test_a_file_that_covers_little_or_is_no_log_is_noted_and_not_used(tmp_path: Path, kept: str) -> None:
    recording = reading(store(tmp_path, {"gpu.csv": kept}))
    assert len(recording.rows_of("gpu:0")) == POINTS
    assert any("gpureport/gpu.csv" in note for note in recording.run.quality.notes)


def test_what_only_an_attached_log_knows_is_read(tmp_path: Path) -> None:
    moments = (datetime.fromtimestamp(START / 1e3 + second, UTC) for second in range(LASTS))
    rows = (f"{each:%Y/%m/%d %H:%M:%S}.{each.microsecond // 1000:03d},40,100\n" for each in moments)
    recording = reading(store(tmp_path, {"host.csv": "timestamp,cpu_percent,cpu_max_core_percent\n" + "".join(rows)}))
    assert column(recording, "cpu_busiest_core_ratio", "host") == [1.0] * LASTS
    recording = reading(store(tmp_path / "gpus", {"gpu.csv": log(gpus=2)}, names=(MACHINE,)))
    assert [device.id for device in recording.run.devices] == ["gpu:0", "gpu:1", "host"]
    # Nobody can say which node's gpu:0 it speaks of.
    recording = reading(store(tmp_path / "nodes", {"gpu.csv": log()}, names=(f"a/{GPU}", f"a/{MACHINE}")))
    assert [device.id for device in recording.run.devices] == ["a/gpu:0", "a/host"]
    assert any("gpureport/gpu.csv" in note for note in recording.run.quality.notes)


def test_a_run_of_a_tracker_has_one_id_however_much_it_holds(tmp_path: Path, gpureport: Program) -> None:
    path, grown = store(tmp_path / "a", {}), store(tmp_path / "b", {}, lasts=LASTS - 300)
    one, other = reading(path).run, reading(grown).run
    assert one.sources != other.sources
    assert reading(path, gpus=(0,)).run.id != one.id
    assert reading(path, labels={"name": "mine", "step": "2"}).run.step == "2"
    # GPUs that were left out are no fault of the run
    assert gpureport("ingest", f"mlflow:{path}", "--strict", "--gpus", "1").code == 0


def test_a_run_without_hardware_comes_back_from_the_store(tmp_path: Path, gpureport: Program) -> None:
    points = [(START + 1000 * at, 1.0 / (1 + at), at) for at in range(0, LASTS, EVERY)]
    path = folder(tmp_path / "mlruns", [Made(id=run_id(1), series={"loss": points})])
    with pytest.raises(SourceError):
        read(f"mlflow:{path}")  # type: ignore[arg-type] # an address
    assert gpureport("ingest", f"mlflow:{path}#run").code == 0
    (run,) = json.loads(gpureport("analyze", "run", "--format", "json").out)["runs"]
    assert (run["run"]["devices"], run["quality"]["rows_kept"]) == ([], 120)

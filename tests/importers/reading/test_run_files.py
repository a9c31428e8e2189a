"""What `run.json` and logs kept beside it say of a run, beside what a person says."""

import json
import shutil
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import gpureport
from gpureport.errors import SourceError
from gpureport.testing import Recording, Run
from tests.importers.trackers.mlflow.stores import START, Made, folder, run_id
from tests.importers.trackers.tracked import column
from tests.readers.conftest import Hold
from tests.readers.pairs import seconds
from tests.support.logs import HEADER, read, row, write_recording
from tests.support.program import Program

SAID: dict[str, Any] = {
    "command": ["python", "train.py", "--token", "***"],
    "host": "node-7",
    "timezone": "Europe/Berlin",
    "started": 1,
    "ended": 2,
    "exit_code": 0,
    "params": {"batch_size": "64", "RANK": "0"},
}
HOST = "timestamp,cpu_percent\n" + "".join(f"2026/03/14 09:00:{second:02d}.000,50\n" for second in range(20))
DAY, HOUR = 86_400_000_000, 3_600_000_000


def record(folder: Path, *, gpu: int = 0, name: str = "gpu.csv", util: int = 90, **changes: object) -> Path:
    content = "\n".join([HEADER, *(row(second, gpu, util=util) for second in range(20)), ""])
    return write_recording(folder, content, name=name, **SAID | changes)


def joined(folder: Path) -> Run:
    return read(folder, as_one_run=True).run


def test_what_run_json_and_a_person_say(tmp_path: Path, hold: Hold) -> None:
    hold("a recording", partial(read, record(tmp_path / "night-7")))
    hold("its log", partial(read, record(tmp_path / "night-7") / "gpu.csv"))
    folder = record(tmp_path / "rec", params={"SLURM_JOB_ID": "4411"}, tags={"user": "ada"})
    hold("whose job it was", partial(read, folder))
    (folder / "labels.json").write_text('{"tags": {"user": "bob"}}')
    hold("a file of labels", partial(read, folder))
    labels = {"params": {"batch_size": "32"}, "tags": {"host": "mine"}}
    hold("what a person says", partial(read, record(tmp_path / "rec"), tz="Asia/Tokyo", labels=labels))
    for text in (b"", b"{", b'{"schema": "gpureport.record/1"}', b"[]", b'{"schema": "other/1"}', b"\xe9"):
        (record(tmp_path / "damaged") / "run.json").write_bytes(text)
        hold(f"damaged {text!r}", partial(read, tmp_path / "damaged"))
    for zone in ("UTC", "+00:00", "+02:00", "-05:00", "+05:30", "../etc", ""):
        hold(f"zone {zone}", partial(read, record(tmp_path / "zone", timezone=zone)))
    noted: dict[str, Any] = {"notes": ["dmon.log is missing: no dmon."], "exit_code": 137}
    hold("notes and an exit code", partial(read, record(tmp_path / "noted", **noted)))
    hold("killed", partial(read, record(tmp_path / "killed", ended=None, exit_code=None)))


def test_the_id_is_that_of_the_log_and_its_zone(tmp_path: Path) -> None:
    first, other = read(record(tmp_path / "rec")).run, record(tmp_path / "plain", name="smi.csv")
    assert first.id == read(other, tz="Europe/Berlin").run.id
    plain = read(other).run
    assert (plain.params, plain.tags, plain.timezone) == ((), (), None)
    assert read(record(tmp_path / "rec", exit_code=1, params={})).run.id == first.id
    assert read(record(tmp_path / "rec", timezone="UTC")).run.id != first.id


def test_several_folders_are_one_run(tmp_path: Path, hold: Hold) -> None:
    def one() -> Recording:
        return read(tmp_path / "runs", as_one_run=True)

    record(tmp_path / "runs/a")
    record(tmp_path / "runs/b", gpu=1, host="node-8", params={"batch_size": "64", "RANK": "1"})
    hold("two nodes", one)
    record(tmp_path / "runs/b", gpu=1, timezone="UTC")
    hold("two zones", one)
    record(tmp_path / "runs/b", gpu=1)
    record(tmp_path / "runs/c", gpu=2, name="smi.csv")
    (tmp_path / "runs/c/run.json").unlink()
    hold("one without run.json", one)
    shutil.rmtree(tmp_path / "runs")
    record(tmp_path / "runs/a")
    for host in ("node-8.example", "node-7"):
        record(tmp_path / "runs/b", host=host, util=40)
        hold(f"beside {host}", one)
    shutil.rmtree(tmp_path / "runs")
    for name in ("one", "two"):
        (record(tmp_path / "runs" / name) / "host.csv").write_text(HOST)
    hold("a recording twice", one)


def test_a_recording_of_the_machine(tmp_path: Path, hold: Hold) -> None:
    folder = record(tmp_path / "rec")
    (folder / "host.csv").write_text(HOST)
    hold("with a GPU", partial(read, folder))
    (folder / "gpu.csv").unlink()
    hold("alone", partial(read, folder))
    (folder / "gpu.csv").write_text("")
    hold("nvidia-smi gave no row", partial(read, folder))
    (folder / "run.json").unlink()
    hold("without run.json", partial(read, folder))


@pytest.mark.slow
def test_recorded_then_read(gpureport: Program, stand_in_driver: Path) -> None:
    assert stand_in_driver.exists()
    code = "import time; time.sleep(2); raise SystemExit(3)"
    job = (sys.executable, "-c", code, "--batch-size", "64", "--token=wxyz")
    assert gpureport("record", "-o", "rec", "--", *job).code == 3
    told = gpureport("analyze", "rec/gpu.csv", "--format", "json").out
    assert "wxyz" not in told
    (each,) = json.loads(told)["runs"]
    assert each["run"]["name"] == "rec"
    assert (each["run"]["params"]["batch_size"], each["run"]["tags"]["exit_code"]) == ("64", "3")
    assert each["run"]["timezone"] is not None


def test_links_and_compressed_logs_are_recordings(tmp_path: Path) -> None:
    record(tmp_path / "kept" / "night-7")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "a").symlink_to(tmp_path / "kept" / "night-7")
    (tmp_path / "runs" / "b").symlink_to(tmp_path / "runs")
    assert [each.run.name for each in gpureport.read(tmp_path / "runs")] == ["night-7"]
    found = read(Path("sample_logs/recorded/causes/checkpoints"))
    assert [Path(source.locator).name for source in found.run.sources] == ["gpu.csv.gz", "host.csv.gz", "dmon.log.gz"]
    assert dict(found.run.params)["kind"] == "checkpoints"


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
    return read(f"mlflow:{path}", **{"mlflow_raw_times": True, **options})  # type: ignore[arg-type] # an address


@pytest.mark.parametrize("hours", [0, 1, -8, 5.75, 14])
def test_a_log_is_read_instead_whatever_its_zone(tmp_path: Path, hours: float) -> None:
    recording = reading(store(tmp_path, {"gpu.csv": log(hours)}))
    assert seconds(recording, start=BEGAN) == list(range(LASTS))
    assert column(recording, "gpu:0", "gpu_temperature_celsius") == [61.0] * LASTS
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
    text = "timestamp,cpu_percent,cpu_max_core_percent\n" + "".join(rows)
    recording = reading(store(tmp_path, {"host.csv": text}))
    assert column(recording, "host", "cpu_busiest_core_ratio") == [1.0] * LASTS
    recording = reading(store(tmp_path / "gpus", {"gpu.csv": log(gpus=2)}, names=(MACHINE,)))
    assert [device.id for device in recording.run.devices] == ["gpu:0", "gpu:1", "host"]
    # attached logs alone select a run, which lasts as long as its GPUs were recorded
    both = {"gpu.csv": log(over=range(5, LASTS - 7)), "host.csv": text}
    run = read(f"mlflow:{store(tmp_path / 'both', both, names=())}").run  # type: ignore[arg-type] # an address
    assert (run.started, run.ended) == (BEGAN + 5_000_000, BEGAN + (LASTS - 8) * 1_000_000)
    # Nobody can say which node's gpu:0 it speaks of.
    recording = reading(store(tmp_path / "nodes", {"gpu.csv": log()}, names=(f"a/{GPU}", f"a/{MACHINE}")))
    assert [device.id for device in recording.run.devices] == ["a/gpu:0", "a/host"]
    assert any("gpureport/gpu.csv" in note for note in recording.run.quality.notes)


def test_a_run_of_a_tracker_has_one_id_however_much_it_holds(tmp_path: Path, gpureport: Program) -> None:
    path, grown = store(tmp_path / "a", {}), store(tmp_path / "b", {}, lasts=LASTS - 300)
    one, other = reading(path).run, reading(grown).run
    assert one.sources != other.sources
    assert len({one.id, reading(path, gpus=(0,)).run.id, reading(path, mlflow_raw_times=False).run.id}) == 3
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

"""What `run.json` says of a run: params, tags, zone and notes, beside what a person says."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import gpureport
from gpureport.errors import SourceError
from gpureport.testing import Run
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


@pytest.mark.parametrize("named", ["", "gpu.csv"])
def test_params_tags_and_zone(tmp_path: Path, named: str) -> None:
    run = read(record(tmp_path / "night-7") / named).run
    assert run.name == "night-7"
    assert dict(run.params) == SAID["params"]
    assert dict(run.tags) == {"command": "python train.py --token ***", "exit_code": "0", "host": "node-7"}
    assert run.timezone == "Europe/Berlin"
    # 09:00 in Berlin
    assert run.started % DAY == 8 * HOUR
    assert run.quality.notes == ()


def test_whose_job_it_was_and_what_a_person_says(tmp_path: Path) -> None:
    folder = record(tmp_path / "rec", params={"SLURM_JOB_ID": "4411"}, tags={"user": "ada"})
    tags = dict(read(folder).run.tags)
    assert (tags["job"], tags["user"]) == ("4411", "ada")
    (folder / "labels.json").write_text('{"tags": {"user": "bob"}}')
    assert dict(read(folder).run.tags) == tags | {"user": "bob"}
    labels = {"params": {"batch_size": "32"}, "tags": {"host": "mine"}}
    run = read(record(tmp_path / "rec"), tz="Asia/Tokyo", labels=labels).run
    assert dict(run.params) == {"batch_size": "32", "RANK": "0"}
    assert (dict(run.tags)["host"], run.timezone) == ("mine", "Asia/Tokyo")


def test_the_id_is_that_of_the_log_and_its_zone(tmp_path: Path) -> None:
    first, other = read(record(tmp_path / "rec")).run, record(tmp_path / "plain", name="smi.csv")
    assert first.id == read(other, tz="Europe/Berlin").run.id
    plain = read(other).run
    assert (plain.params, plain.tags, plain.timezone) == ((), (), None)
    assert read(record(tmp_path / "rec", exit_code=1, params={})).run.id == first.id
    assert read(record(tmp_path / "rec", timezone="UTC")).run.id != first.id


@pytest.mark.parametrize(
    "text", [b"", b"{", b'{"schema": "gpureport.record/1"}', b"[]", b'{"schema": "other/1"}', b"\xe9"]
)
def test_a_damaged_file_is_a_note(tmp_path: Path, text: bytes) -> None:
    folder = record(tmp_path / "rec")
    (folder / "run.json").write_bytes(text)
    run = read(folder).run
    assert (run.params, len(run.quality.notes)) == ((), 1)
    assert "run.json" in run.quality.notes[0]


def test_zones(tmp_path: Path) -> None:
    cases: list[tuple[str, str | None, str]] = [
        ("UTC", "UTC", ""),
        ("+00:00", "UTC", ""),
        ("+02:00", "Etc/GMT-2", ""),
        ("-05:00", "Etc/GMT+5", ""),
        ("+05:30", None, "--tz"),
        ("../etc", None, "--tz"),
        ("", None, ""),
    ]
    for zone, expected, note in cases:
        run = read(record(tmp_path / "rec", timezone=zone)).run
        assert run.timezone == expected, zone
        assert (note in "".join(run.quality.notes), bool(run.quality.notes)) == (True, bool(note)), zone
        hour = {"Etc/GMT-2": 7, "Etc/GMT+5": 14}.get(run.timezone or "", 9)
        assert run.started % DAY == hour * HOUR, zone


def test_notes_and_the_end(tmp_path: Path) -> None:
    noted = read(record(tmp_path / "rec", notes=["dmon.log is missing: no dmon."], exit_code=137)).run.quality
    assert noted.notes[0] == "dmon.log is missing: no dmon."
    assert (len(noted.notes), "137" in noted.notes[1], noted.unfinished) == (2, True, False)
    killed = read(record(tmp_path / "rec", ended=None, exit_code=None)).run
    assert (killed.quality.unfinished, len(killed.quality.notes)) == (True, 1)
    assert "exit_code" not in dict(killed.tags)


def test_several_folders_are_one_run(tmp_path: Path) -> None:
    record(tmp_path / "a")
    record(tmp_path / "b", gpu=1, host="node-8", params={"batch_size": "64", "RANK": "1"})
    run = joined(tmp_path)
    assert dict(run.params) == {"batch_size": "64", "RANK": "0, 1"}
    assert (dict(run.tags)["host"], run.timezone) == ("node-7, node-8", "Europe/Berlin")
    record(tmp_path / "b", gpu=1, timezone="UTC")
    assert joined(tmp_path).timezone is None
    assert any("Europe/Berlin, UTC" in note for note in joined(tmp_path).quality.notes)
    record(tmp_path / "b", gpu=1)
    record(tmp_path / "c", gpu=2, name="smi.csv")
    (tmp_path / "c" / "run.json").unlink()
    assert joined(tmp_path).timezone is None


def test_nodes_are_called_as_their_machines_and_counted_once(tmp_path: Path) -> None:
    for host, nodes in (("node-8.example", ["node-7", "node-8.example"]), ("node-7", ["a", "b"])):
        record(tmp_path / "a")
        record(tmp_path / "b", host=host, util=40)
        assert [device.node for device in joined(tmp_path).devices] == nodes
    for name in ("one", "two"):
        (record(tmp_path / "runs" / name) / "host.csv").write_text(HOST)
    run = joined(tmp_path / "runs")
    assert [each.rows for each in run.quality.rejected] == [20, 20]


def test_a_recording_of_the_machine(tmp_path: Path) -> None:
    folder = record(tmp_path / "rec")
    (folder / "host.csv").write_text(HOST)
    assert "cpu_utilization_ratio" in read(folder).rows_of("host").column_names
    for left in (None, ""):
        (folder / "gpu.csv").unlink(missing_ok=True)
        if left is not None:
            # nvidia-smi gave no row
            (folder / "gpu.csv").write_text(left)
        run = read(folder).run
        assert ([device.id for device in run.devices], run.name) == (["host"], "rec")
        assert (dict(run.params)["batch_size"], run.timezone) == ("64", "Europe/Berlin")
    (folder / "run.json").unlink()
    with pytest.raises(SourceError):
        gpureport.read(folder)


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

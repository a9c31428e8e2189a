"""What `run.json` says of a run: params, tags, zone and notes, beside what a person says."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import gpureport
from gpureport.errors import SourceError
from gpureport.importers import Labels, Reading, ReadOptions, find_run_logs
from gpureport.record_folder import RecordedRun, format_run_file
from gpureport.testing import Recording
from tests.importers.written_logs import HEADER, row

RUN = RecordedRun(
    command=("python", "train.py", "--token", "***"),
    host="node-7",
    timezone="Europe/Berlin",
    started=1,
    ended=2,
    exit_code=0,
    params=(("batch_size", "64"), ("RANK", "0")),
)
HOST = "timestamp,cpu_percent\n" + "".join(f"2026/03/14 09:00:{second:02d}.000,50\n" for second in range(20))


def record(folder: Path, text: str | None = None, *, gpu: int = 0, name: str = "gpu.csv", **changes: object) -> Path:
    """Write a folder as the recorder does; return it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("\n".join([HEADER, *(row(second, gpu, util=90) for second in range(20)), ""]))
    fields = {field: getattr(RUN, field) for field in RUN.__dataclass_fields__} | changes
    (folder / "run.json").write_text(format_run_file(RecordedRun(**fields)) if text is None else text)
    return folder


def read(source: Path, **options: object) -> Recording:
    """Return the only run of a source."""
    (recording,) = gpureport.read(source, **options)  # type: ignore[arg-type] # options of any kind
    return recording


@pytest.mark.parametrize("named", ["", "gpu.csv"])
def test_params_tags_and_zone(tmp_path: Path, named: str) -> None:
    """They are those of the recording, whether its folder is named or its log."""
    folder = record(tmp_path / "night-7")
    run = read(folder / named).run
    assert run.name == "night-7"
    assert dict(run.params) == {"batch_size": "64", "RANK": "0"}
    assert dict(run.tags) == {"command": "python train.py --token ***", "exit_code": "0", "host": "node-7"}
    assert run.timezone == "Europe/Berlin"
    # 09:00 in Berlin
    assert run.started is not None
    assert run.started % 86_400_000_000 == 8 * 3_600_000_000
    assert not run.quality.notes


def test_whose_job_it_was(tmp_path: Path) -> None:
    """The recorder writes it down; older recordings hold it as variables of Slurm. A file of labels wins."""
    folder = record(tmp_path / "rec", params=(("SLURM_JOB_ID", "4411"), ("RANK", "0")), tags=(("user", "ada"),))
    tags = dict(read(folder).run.tags)
    assert (tags["job"], tags["user"]) == ("4411", "ada")
    (folder / "labels.json").write_text('{"tags": {"user": "bob"}}')
    assert dict(read(folder).run.tags) == tags | {"user": "bob"}


def test_a_person_wins(tmp_path: Path) -> None:
    """What they say of a param or the zone is taken, the rest stays."""
    labels = {"params": {"batch_size": "32"}, "tags": {"host": "mine"}}
    run = read(record(tmp_path / "rec"), tz="Asia/Tokyo", labels=labels).run
    assert dict(run.params) == {"batch_size": "32", "RANK": "0"}
    assert dict(run.tags)["host"] == "mine"
    assert run.timezone == "Asia/Tokyo"


def test_the_id_is_that_of_the_log_and_its_zone(tmp_path: Path) -> None:
    """What else is in the file changes no id."""
    plain = read(record(tmp_path / "plain", "", name="smi.csv"), tz="Europe/Berlin").run
    first = read(record(tmp_path / "rec")).run
    assert first.id == plain.id
    assert read(record(tmp_path / "rec", exit_code=1, params=())).run.id == first.id
    assert read(record(tmp_path / "rec", timezone="UTC")).run.id != first.id


def test_another_log_in_the_folder_is_not_of_the_recording(tmp_path: Path) -> None:
    """A log of another name was not written by the recorder."""
    run = read(record(tmp_path / "rec", name="smi.csv")).run
    assert (run.params, run.tags, run.timezone) == ((), (), None)


@pytest.mark.parametrize("text", ["", "{", '{"schema": "gpureport.record/1"}', "[]", '{"schema": "other/1"}', "\udce9"])
def test_a_damaged_file_is_a_note(tmp_path: Path, text: str) -> None:
    """The logs are read all the same."""
    folder = record(tmp_path / "rec", "")
    (folder / "run.json").write_bytes(text.encode(errors="surrogateescape"))
    run = read(folder).run
    assert run.params == ()
    (note,) = run.quality.notes
    assert note.endswith("run.json is damaged: params, zone and exit code are not known from it.")


@pytest.mark.parametrize(
    ("zone", "expected", "note"),
    [
        ("UTC", "UTC", ""),
        ("+00:00", "UTC", ""),
        ("+02:00", "Etc/GMT-2", "official name of that zone is Etc/GMT-2"),
        ("-05:00", "Etc/GMT+5", "official name"),
        ("+05:30", None, "give --tz"),
        ("../etc", None, "give --tz"),
        ("", None, ""),
    ],
)
def test_zones(tmp_path: Path, zone: str, expected: str | None, note: str) -> None:
    """An offset is a zone, and one that is not known is left out with a note."""
    run = read(record(tmp_path / "rec", timezone=zone)).run
    assert run.timezone == expected
    assert note in "".join(run.quality.notes)
    assert bool(note) == bool(run.quality.notes)


def test_offset_is_applied_with_its_sign(tmp_path: Path) -> None:
    """The official names of such zones have it turned round."""
    started = read(record(tmp_path / "rec", timezone="+02:00")).run.started
    assert started is not None
    assert started % 86_400_000_000 == 7 * 3_600_000_000


def test_notes_and_the_end(tmp_path: Path) -> None:
    """What could not be recorded, and how it ended, is told."""
    noted = read(record(tmp_path / "rec", notes=("dmon.log is missing: no dmon.",), exit_code=137)).run
    assert noted.quality.notes == ("dmon.log is missing: no dmon.", "The job ended with exit code 137.")
    killed = read(record(tmp_path / "rec", ended=None, exit_code=None)).run
    assert killed.quality.unfinished
    assert "exit_code" not in dict(killed.tags)
    assert "the exit code is not known" in killed.quality.notes[0]


def test_several_folders_are_one_run(tmp_path: Path) -> None:
    """What they say alike is said once, what they say differently is listed; a log of another origin has no zone."""
    one = record(tmp_path / "a")
    two = record(tmp_path / "b", gpu=1, host="node-8", params=(("batch_size", "64"), ("RANK", "1")))
    inputs = find_run_logs([one, two])
    run = Reading(inputs, ReadOptions(), Labels(), as_one_run=True).recording().run
    assert dict(run.params) == {"batch_size": "64", "RANK": "0, 1"}
    assert dict(run.tags)["host"] == "node-7, node-8"
    assert run.timezone == "Europe/Berlin"
    record(tmp_path / "b", gpu=1, timezone="UTC")
    run = Reading(inputs, ReadOptions(), Labels(), as_one_run=True).recording().run
    assert run.timezone is None
    assert any("different zones (Europe/Berlin, UTC)" in note for note in run.quality.notes)
    three = record(tmp_path / "c", "", gpu=2, name="smi.csv")
    inputs = find_run_logs([one, three])
    assert Reading(inputs, ReadOptions(), Labels(), as_one_run=True).recording().run.timezone is None


def test_nodes_are_called_as_their_machines(tmp_path: Path) -> None:
    """Folders of several machines, whatever they are called; two of one machine go by their folders."""
    folders = [record(tmp_path / name, host=host) for name, host in (("a", "node-7"), ("b", "node-8.example"))]
    other = (folders[1] / "gpu.csv").read_text().replace("90 %", "40 %")
    (folders[1] / "gpu.csv").write_text(other)
    run = Reading(find_run_logs(folders), ReadOptions(), Labels(), as_one_run=True).recording().run
    assert [device.node for device in run.devices] == ["node-7", "node-8.example"]
    record(tmp_path / "b")
    (folders[1] / "gpu.csv").write_text(other)
    run = Reading(find_run_logs(folders), ReadOptions(), Labels(), as_one_run=True).recording().run
    assert [device.node for device in run.devices] == ["a", "b"]


def test_the_host_log_is_in_the_same_zone(tmp_path: Path) -> None:
    """It is joined by time, without a word of a person."""
    folder = record(tmp_path / "rec")
    (folder / "host.csv").write_text(HOST)
    assert "cpu_utilization_ratio" in read(folder).rows_of("host").column_names


def test_a_recording_of_the_machine_alone(tmp_path: Path) -> None:
    """Without GPUs it is a run with the machine's series; a host log that was not recorded so is none."""
    folder = record(tmp_path / "rec")
    (folder / "gpu.csv").unlink()
    (folder / "host.csv").write_text(HOST)
    recording = read(folder)
    assert recording.run.name == "rec"
    assert [device.id for device in recording.run.devices] == ["host"]
    assert dict(recording.run.params)["batch_size"] == "64"
    assert recording.run.timezone == "Europe/Berlin"
    # nvidia-smi gave no row
    (folder / "gpu.csv").write_text("")
    assert [device.id for device in read(folder).run.devices] == ["host"]
    (folder / "run.json").unlink()
    with pytest.raises(SourceError, match="no log of GPUs"):
        read(folder)


def test_recorded_then_read(tmp_path: Path, stand_in_driver: Path) -> None:
    """`gpureport record`, then `analyze`, says how the job was set up and how it ended."""
    assert stand_in_driver.exists()
    command = [sys.executable, "-m", "gpureport"]
    job = [
        sys.executable,
        "-c",
        "import time; time.sleep(2); raise SystemExit(3)",
        "--batch-size",
        "64",
        "--token=wxyz",
    ]
    done = subprocess.run([*command, "record", "-o", tmp_path / "rec", "--", *job], check=False)
    assert done.returncode == 3
    told = subprocess.run(
        [*command, "analyze", tmp_path / "rec" / "gpu.csv", "--format", "json"], capture_output=True, check=True
    ).stdout
    assert b"wxyz" not in told
    (each,) = json.loads(told)["runs"]
    assert each["run"]["name"] == "rec"
    assert each["run"]["params"]["batch_size"] == "64"
    assert each["run"]["tags"]["exit_code"] == "3"
    assert each["run"]["timezone"] is not None
    assert "The job ended with exit code 3." in each["quality"]["notes"]


def test_logs_that_were_compressed_since_are_one_recording() -> None:
    """With the host beside the GPUs, and what the run file says."""
    (found,) = gpureport.read("sample_logs/recorded/causes/checkpoints")
    assert [Path(source.locator).name for source in found.run.sources] == ["gpu.csv.gz", "host.csv.gz", "dmon.log.gz"]
    assert dict(found.run.params)["kind"] == "checkpoints"

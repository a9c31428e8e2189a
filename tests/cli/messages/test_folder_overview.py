"""What `gpureport` alone says of a folder."""

import gzip
import os
import shutil
from pathlib import Path

import pytest

from tests.api.test_startup import SAMPLE
from tests.cli.program import Program
from tests.importers.written_logs import log, write_recording


def write_log(path: Path, seconds: int = 182) -> None:
    """Write a log of a sample a second."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(log(seconds + 1), encoding="utf-8")


def record(folder: Path, gpus: int = 1, seconds: int = 182, *, started: int = 0, ended: bool = True) -> None:
    """Write a recording of a sample a second."""
    end = started + seconds * 1_000_000 if ended else None
    write_recording(folder, log(seconds + 1, gpus), started=started, ended=end)


def test_an_empty_folder_says_how_to_record(gpureport: Program) -> None:
    """Where there is nothing to read, the ways to something are named."""
    done = gpureport()
    assert done.code == 0
    assert "gpureport record -- COMMAND" in done.out
    assert "gpureport demo" in done.out


def test_two_recordings_are_compared_next(gpureport: Program, tmp_path: Path) -> None:
    """Each recording is listed with its length and its GPUs, and the next command compares them."""
    record(tmp_path / "runs" / "base")
    record(tmp_path / "runs" / "workers", gpus=4, seconds=45)
    assert gpureport().out.splitlines() == [
        "2 recordings here:",
        "  runs/base     3 min 2 s, 1 GPU",
        "  runs/workers  45 s, 4 GPUs",
        "Next: gpureport compare runs/base runs/workers",
        "All commands: gpureport --help",
    ]


def test_a_recording_that_goes_on_is_not_read_next(gpureport: Program, tmp_path: Path) -> None:
    """Its last line is of now; a recorder that was killed wrote its last line long ago."""
    record(tmp_path / "base", ended=False)
    record(tmp_path / "workers", ended=False)
    for name in ("base", "workers"):
        (tmp_path / name / "host.csv").write_text("timestamp,cpu_percent\n", encoding="utf-8")
    os.utime(tmp_path / "base" / "host.csv", (0, 0))
    assert gpureport().out.splitlines()[1:4] == [
        "  base     3 min 2 s, 1 GPU, cut off: its recorder was killed",
        "  workers  3 min 2 s, 1 GPU, still recording",
        "Next: gpureport report base -o report.html",
    ]


def test_recordings_are_listed_by_time_and_only_whole_ones_compared(gpureport: Program, tmp_path: Path) -> None:
    """Names sort otherwise than times; a recording that was cut off is no step to compare."""
    record(tmp_path / "workers", started=1)
    record(tmp_path / "killed", started=2, ended=False)
    record(tmp_path / "base", started=3)
    assert gpureport().out.splitlines()[1:5] == [
        "  workers  3 min 2 s, 1 GPU",
        "  killed   3 min 2 s, 1 GPU, cut off: its recorder was killed",
        "  base     3 min 2 s, 1 GPU",
        "Next: gpureport compare workers base",
    ]


def test_repetitions_are_listed_and_their_steps_compared(gpureport: Program, tmp_path: Path) -> None:
    """Each lies in a folder of its step, or the first in that folder itself; other names are no repetitions."""
    for started, name in enumerate(("base/1", "8-workers", "base/2", "8-workers/2")):
        record(tmp_path / "runs" / name, started=started)
    assert gpureport().out.splitlines() == [
        "4 recordings here:",
        "  runs/base/1       3 min 2 s, 1 GPU",
        "  runs/8-workers    3 min 2 s, 1 GPU",
        "  runs/base/2       3 min 2 s, 1 GPU",
        "  runs/8-workers/2  3 min 2 s, 1 GPU",
        "Next: gpureport compare runs/base runs/8-workers",
        "All commands: gpureport --help",
    ]


def test_numbered_recordings_of_one_folder_are_compared_with_each_other(gpureport: Program, tmp_path: Path) -> None:
    """As repetitions of one step they would leave nothing to compare."""
    for number in (1, 2):
        record(tmp_path / "runs" / str(number), started=number)
    assert "Next: gpureport compare runs/1 runs/2" in gpureport().out


@pytest.mark.parametrize("name", ["my log.csv", "nvidia-smi.log"])
def test_one_log_is_reported_next(gpureport: Program, tmp_path: Path, name: str) -> None:
    """A log is known by its content, and the path can be pasted into a shell."""
    write_log(tmp_path / name)
    (tmp_path / "notes.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    quoted = f"'{name}'" if " " in name else name
    assert gpureport().out.splitlines()[:3] == [
        "1 GPU log here:",
        f"  {name}  3 min 2 s, 1 GPU",
        f"Next: gpureport report {quoted} -o report.html",
    ]


def test_a_recording_that_was_cut_off_is_as_long_as_its_log(gpureport: Program, tmp_path: Path) -> None:
    """Without an end in run.json, the last whole row gives it, even where half a line follows."""
    record(tmp_path / "cut", ended=False)
    with (tmp_path / "cut" / "gpu.csv").open("a", encoding="utf-8") as log:
        log.write("2026/03/14 09:59:59.0")
    assert "  cut  3 min 2 s, 1 GPU, cut off" in gpureport().out


@pytest.mark.parametrize("ended", [True, False])
def test_a_recording_whose_logs_were_compressed_is_listed_as_before(
    gpureport: Program, tmp_path: Path, *, ended: bool
) -> None:
    """Its GPUs, and its length, which the log gives where the recorder was killed."""
    record(tmp_path / "base", gpus=2, ended=ended)
    listed = gpureport().out
    assert "  base  3 min 2 s, 2 GPUs" in listed
    for path in (tmp_path / "base").glob("*.csv"):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert gpureport().out == listed


def test_a_compressed_log_is_listed_without_length(gpureport: Program, tmp_path: Path) -> None:
    """The end of a compressed log is not looked for."""
    shutil.copy(SAMPLE, tmp_path / "smi.csv.gz")
    assert gpureport().out.splitlines()[:2] == ["1 GPU log here:", "  smi.csv.gz  1 GPU"]


def test_folders_far_below_are_left_alone(gpureport: Program, tmp_path: Path) -> None:
    """Two levels of folders are looked at."""
    write_log(tmp_path / "a" / "b" / "near.csv")
    write_log(tmp_path / "a" / "b" / "c" / "far.csv")
    out = gpureport().out
    assert "a/b/near.csv" in out
    assert "far.csv" not in out


def test_stored_runs_are_counted(gpureport: Program, tmp_path: Path) -> None:
    """Where the logs are gone, the newest stored run is the next to look at."""
    write_log(tmp_path / "gpu.csv")
    gpureport("ingest", "gpu.csv", "--name", "base")
    (tmp_path / "gpu.csv").unlink()
    out = gpureport().out
    assert out.startswith("1 run in the store ")
    assert "Next: gpureport report base -o report.html" in out


def test_many_logs_are_reported_together(gpureport: Program, tmp_path: Path) -> None:
    """More than a handful is not compared run by run, and the list stays short."""
    for number in range(12):
        write_log(tmp_path / f"{number:02}.csv", seconds=20 + number)
    out = gpureport().out
    assert "  4 more, then" in out
    assert "Next: gpureport report . -o report.html" in out


def test_a_monitor_beside_a_log_is_no_run_to_compare(gpureport: Program, tmp_path: Path) -> None:
    """A log of dmon in the folder of a log with a header belongs to the same run."""
    write_log(tmp_path / "run" / "gpu.csv")
    (tmp_path / "run" / "dmon.log").write_text(
        "#Date       Time        gpu   pwr gtemp mtemp\n#YYYYMMDD   HH:MM:SS    Idx     W     C     C\n"
        " 20260314   09:00:00      0    90    50     -\n",
        encoding="utf-8",
    )
    out = gpureport().out
    assert "2 GPU logs here:" in out
    assert "Next: gpureport report run -o report.html" in out

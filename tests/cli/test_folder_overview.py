"""What `gpureport` alone says of a folder, in ten lines at most."""

import gzip
from pathlib import Path

from tests.cli.logs import log, record
from tests.cli.program import Program


def overview(gpureport: Program) -> list[str]:
    done = gpureport()
    lines = done.out.splitlines()
    assert (done.code, done.err, len(lines) <= 10) == (0, "", True), done
    return lines


def next_command(gpureport: Program) -> str:
    return next(line for line in overview(gpureport) if line.startswith("Next: ")).removeprefix("Next: gpureport ")


def test_an_empty_folder_shows_the_ways_to_something(gpureport: Program) -> None:
    out = "\n".join(overview(gpureport))
    assert [word for word in ("gpureport record -- COMMAND", "gpureport demo") if word not in out] == []


def test_recordings_are_listed_by_time_and_whole_ones_compared(gpureport: Program, tmp_path: Path) -> None:
    for started, name, ended in ((1, "workers", 9), (2, "killed", None), (3, "base", 9)):
        record(tmp_path / name, log(60), started=started, ended=ended)
    (tmp_path / "base" / "gpu.csv.gz").write_bytes(gzip.compress((tmp_path / "base" / "gpu.csv").read_bytes()))
    assert [line.split()[0] for line in overview(gpureport)[1:4]] == ["workers", "killed", "base"]
    assert next_command(gpureport) == "compare workers base"


def test_the_next_command_fits_what_is_there(gpureport: Program, tmp_path: Path) -> None:
    near, far = tmp_path / "a" / "near.csv", tmp_path / "a" / "b" / "c" / "d" / "far.csv"
    far.parent.mkdir(parents=True)
    far.write_text(log())
    assert overview(gpureport)[0] == "No GPU logs in this folder."
    (tmp_path / "notes.csv").write_text("a,b\n1,2\n")
    near.write_text(log())
    assert next_command(gpureport) == "report a -o report.html"
    near.unlink()
    (tmp_path / "my log.csv").write_text(log(30))
    assert next_command(gpureport) == "report 'my log.csv' -o report.html"
    (tmp_path / "other.csv.gz").write_bytes(gzip.compress(log(40).encode()))
    assert next_command(gpureport) == "compare 'my log.csv' other.csv.gz"
    for number in range(9):
        (tmp_path / f"{number}.csv").write_text(log(50))
    assert next_command(gpureport) == "report . -o report.html"
    for started, name in enumerate(("runs/base/1", "runs/8-workers", "runs/base/2", "runs/8-workers/2")):
        record(tmp_path / name, log(60), started=started, ended=9)
    assert next_command(gpureport) == "compare runs/base runs/8-workers"


def test_numbered_recordings_of_one_folder_are_compared_with_each_other(gpureport: Program, tmp_path: Path) -> None:
    for number in (1, 2):
        record(tmp_path / "runs" / str(number), log(60), started=number, ended=9)
    assert next_command(gpureport) == "compare runs/1 runs/2"


def test_stored_runs_are_counted(gpureport: Program, tmp_path: Path) -> None:
    (tmp_path / "gpu.csv").write_text(log())
    gpureport("ingest", "gpu.csv", "--name", "base")
    (tmp_path / "gpu.csv").unlink()
    assert overview(gpureport)[0].startswith("1 run in the store ")
    assert next_command(gpureport) == "report base -o report.html"

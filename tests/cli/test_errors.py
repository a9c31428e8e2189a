"""Bad input: one line that says where, what and what to do; the right exit code; nothing left behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.logs import HEADER, log
from tests.cli.program import Program


def prepare(folder: Path) -> None:
    """Lay out every kind of bad source."""
    (folder / "empty.csv").touch()
    (folder / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    (folder / "sales.csv").write_text("region,sales\nnorth,3\n")
    (folder / "names.csv").write_text("timestamp, uuid\n2026/03/14 09:00:00.000, NVIDIA L4\n")
    (folder / "untimed.csv").write_text("utilization.gpu [%]\n5 %\n")
    (folder / "hostile.csv").write_text("\x1b[31mred\x1b[0m,b\n1,2\n")
    (folder / "headonly.csv").write_text("timestamp, utilization.gpu [%]\n")
    (folder / "folder").mkdir()
    (folder / "good.csv").write_text(log())
    (folder / "good.txt").write_text(log())
    (folder / "late.csv").write_text("timestamp,cpu_percent\n2026-05-14T09:00:00,5\n")
    for name in ("cpu.csv", "cpu2.csv"):
        (folder / name).write_text(f"timestamp,cpu_percent\n2026-03-14T09:00:00,{len(name)}\n")
    (folder / "bad.toml").write_text("[rules.idle_gap]\nlongest = 5\n")
    (folder / "broken.toml").write_text("[rules\n")


CASES = {
    ("analyze", "absent.csv"): (3, "absent.csv: no such file; check the path"),
    ("analyze", "empty.csv"): (3, "empty.csv: the file is empty; "),
    ("analyze", "picture.png"): (3, "picture.png: not a text log; "),
    ("analyze", "folder"): (3, "folder: the folder holds no log of a known kind; "),
    ("analyze", "sales.csv"): (3, "sales.csv: not a recognised GPU log (first line: region,sales); "),
    ("analyze", "names.csv"): (3, "names.csv: no GPU metric among the columns timestamp, uuid; "),
    ("analyze", "untimed.csv"): (3, "untimed.csv: no timestamp column among utilization.gpu; "),
    ("analyze", "headonly.csv"): (3, "headonly.csv: it holds a header and no row; "),
    ("analyze", "hostile.csv"): (3, "hostile.csv: not a text log; "),
    ("analyze", "unknown-run"): (
        3,
        (
            'no file, stored run or baseline named "unknown-run"; '
            "list runs: gpureport runs; set a baseline: gpureport baseline set unknown-run RUN"
        ),
    ),
    ("ingest", "absent.csv"): (3, "absent.csv: no such file; check the path"),
    ("analyze", "good.csv", "--source-kind", "dcgm"): (
        3,
        "good.csv: no header of dcgmi dmon, no table of DCGM's fields",
    ),
    ("report", "good.csv", "-o"): (2, "Option '-o' requires an argument (see 'gpureport report --help')"),
    ("runs", "list", "--store"): (2, "Option '--store' requires an argument (see 'gpureport runs list --help')"),
    ("report", "absent.csv", "-o", "x.html"): (3, "absent.csv: no such file; check the path"),
    ("report", "good.csv", "-o", "x.docx"): (2, "x.docx: "),
    ("report", "good.csv", "-o", "good.csv/x.html"): (2, "good.csv/x.html: "),
    ("analyze", "good.csv", "--tz", "Mars/Base"): (2, "--tz: no time zone 'Mars/Base'; "),
    ("analyze", "good.csv", "--select", "idle_gp"): (2, "--select: no kind 'idle_gp'; did you mean 'idle_gap'?"),
    ("analyze", "good.csv", "--config", "absent.toml"): (2, "absent.toml: No such file or directory; check the path"),
    ("analyze", "good.csv", "--config", "bad.toml"): (2, "bad.toml:2: unknown key 'longest' in [rules.idle_gap]; "),
    ("analyze", "good.csv", "--config", "broken.toml"): (2, "broken.toml: not TOML ("),
    ("analyze", "good.csv", "--work", "many"): (2, "Invalid value for '--work': 'many' is not an amount"),
    ("analyze", "good.csv", "--param", "x"): (2, "Invalid value for '--param': 'x' is not KEY=VALUE"),
    ("analyze", "good.csv", "--gpus", "all"): (2, "Invalid value for '--gpus': 'all' is not a list"),
    ("analyze", "good.csv", "--host", "sales.csv"): (
        3,
        "sales.csv: not a recognised host log (first line: region,sales); ",
    ),
    ("report", "good.txt", "-o", "good.txt"): (2, "good.txt: this is a source, not a place to write to; "),
    ("analyze", "good.csv", "--gpus", "²"): (2, "Invalid value for '--gpus': '²' is not a list"),
    ("analyze", "good.csv", "--gpu-hour-price", "nan"): (
        2,
        "Invalid value for '--gpu-hour-price': 'nan' is not a price",
    ),
    ("analyze", "good.csv", "--carbon-intensity", "-1"): (2, "Invalid value for '--carbon-intensity': '-1' is not"),
    ("analyze", "good.csv", "--param", "a=1", "--param", "a=2"): (2, "--param: a key is given twice; "),
    ("analyze", "good.csv", "--host", "cpu.csv", "--host", "cpu2.csv"): (3, "cpu.csv, cpu2.csv: several host logs for"),
    ("analyze", "good.csv", "good.txt", "--name", "a", "--name", "b"): (
        2,
        "Invalid value for '--name': this option may be given only once, as it applies to all sources. ",
    ),
    ("analyze", "good.csv", "--step", "a", "--step", "b"): (2, "--step: 2 labels for 1 source; give one, or one for"),
    ("analyze", "good.csv", "good.txt", "--as-one-run", "--step", "a", "--step", "b"): (
        2,
        "--step: 2 labels for one run; give one",
    ),
    ("report", "-o", "report.html"): (2, "name the runs, or a file of steps with --steps, and not both"),
    ("report", "good.csv", "--by", "colour", "-o", "report.html"): (2, "Invalid value for '--by': 'colour' is none of"),
    ("report", "good.csv", "--by", "param:lr", "-o", "report.html"): (2, "--by: run good has no param 'lr'; give it "),
    ("analyze", "good.csv", "good.txt", "--name", "a"): (2, "--name: one name for 2 runs; "),
    ("analyze", "good.csv", "--host", "late.csv"): (3, "late.csv: it covers another time than the GPU log ("),
    ("analyze", "n" * 300): (3, f'no file, stored run or baseline named "{"n" * 300}"; '),
    ("runs", "--store", "nowhere"): (3, "nowhere: no such store; "),
    ("runs", "list", "--store", "nowhere"): (3, "nowhere: no such store; "),
    ("analyse", "good.csv"): (2, "no command 'analyse'; did you mean 'analyze'?"),
    ("analyze",): (2, "Missing argument 'SOURCE...'"),
    ("runs", "show", "nothing"): (3, 'no file or stored run named "nothing"; '),
}


@pytest.mark.parametrize(("arguments", "expected"), CASES.items(), ids=map(" ".join, CASES))
def test_one_line_and_a_code(
    gpureport: Program, tmp_path: Path, arguments: tuple[str, ...], expected: tuple[int, str]
) -> None:
    prepare(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    outcome = gpureport(*arguments)
    assert (outcome.code, outcome.out) == (expected[0], "")
    assert outcome.err.startswith(f"gpureport: {expected[1]}")
    assert outcome.err.count("\n") == 1
    assert "Traceback" not in outcome.err
    assert outcome.err.rstrip("\n").isprintable()
    assert sorted(tmp_path.rglob("*")) == before


def test_debug_shows_the_traceback(gpureport: Program) -> None:
    for arguments in (("--debug", "analyze", "absent.csv"), ("analyze", "absent.csv", "--debug")):
        outcome = gpureport(*arguments)
        assert outcome.code == 3
        assert "Traceback" in outcome.err
        assert outcome.err.endswith("gpureport: absent.csv: no such file; check the path\n")


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "good.csv").write_text(log(60))
    command = [sys.executable, "-m", "gpureport", "analyze", "good.csv", "--format", "json"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("gpureport: standard output: No space left on device; ")


def test_a_request_to_end_leaves_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    process = subprocess.Popen([sys.executable, "-m", "gpureport", "ingest", "pipe"], cwd=tmp_path)
    with (tmp_path / "pipe").open("w") as pipe:
        pipe.write(log(10))
        pipe.flush()
        process.terminate()
        assert process.wait(timeout=30) == 143
    assert list(tmp_path.glob(".gpureport/runs/.tmp-*")) == []


def test_a_folder_is_read_without_the_log_that_cannot_be(gpureport: Program, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "headonly.csv").write_text(f"{HEADER}\n")
    alone = gpureport("analyze", "logs")
    assert (alone.code, "headonly.csv: it holds a header and no row" in alone.err) == (3, True)
    (folder / "good.csv").write_text(log(1200))
    (folder / "other.csv").write_text(log(1200, gpus=2))
    for command in (("analyze", "logs"), ("report", "logs", "-o", "out.html"), ("compare", "logs")):
        read = gpureport(*command)
        assert read.code == 0
        assert "gpureport: left out: logs/headonly.csv: it holds a header and no row; gpureport record" in read.err
    assert gpureport("analyze", "logs", "--fail-on", "idle_ratio <= 50%").code == 3
    assert gpureport("analyze", "logs", "--strict").code == 3
    checked = gpureport("check", "logs", "--fail-on", "idle_ratio <= 50%")
    assert (checked.code, "header and no row" in checked.out) == (4, True)


def test_a_place_that_cannot_be_written_is_told_before_any_work(gpureport: Program, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    told = gpureport("demo", "-o", "file/out.html")
    assert (told.code, told.out, told.err.count("\n")) == (2, "", 1)
    assert "file/out.html: cannot be written" in told.err

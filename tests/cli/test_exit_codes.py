"""Exit codes 0 to 5 of every command, and what is said of a fault, a signal, a closed stream or too little memory."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpureport.testing import fault
from tests.support.logs import gapped, log, row, table
from tests.support.program import Program
from tests.support.tables import read_table, words_of

KEPT, BROKEN = "--fail-on 'idle_ratio <= 50%'", "--fail-on 'idle_ratio <= 0.1%'"


def lay_out(folder: Path) -> None:
    (folder / "a.csv").write_text(gapped())
    (folder / "b.csv").write_text(gapped(320))
    (folder / "short.csv").write_text(log(10))


def test_each_command_ends_with_its_code(gpureport: Program, tmp_path: Path) -> None:
    lay_out(tmp_path)
    for code, command in read_table(Path(__file__).with_name("codes.tsv")):
        done = gpureport(*words_of(command))
        assert str(done.code) == code, (command, done)
        assert "Traceback" not in done.err, command
        # an error of use or of a source is one line
        assert code not in {"2", "3"} or (done.out, done.err.count("\n")) == ("", 1), (command, done)


FAILING = (
    *("analyze", "analyze --format json", "report -o report.md", "compare logs/a.csv", f"check {KEPT}"),
    *(f"check {BROKEN}", "nightly --site site", f"nightly --site site {BROKEN}"),
)
ERROR = ValueError("the truth\nof an array")


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    for number, name in enumerate("abc"):
        (tmp_path / "logs" / f"{name}.csv").write_text(table(*(row(1200 * number + second) for second in range(900))))
    return tmp_path


@pytest.mark.usefixtures("logs")
def test_a_fault_of_gpureport_is_five_and_one_line(gpureport: Program) -> None:
    with fault("analysis", ERROR, "b"):
        for command in FAILING:
            words = words_of(command)
            done = gpureport(*words, "logs/b.csv")
            assert (done.code, "Traceback" in done.err) == (5, False), words
            (line,) = [each for each in done.err.splitlines() if "internal error" in each]
            assert ("logs/b.csv: " in line, "ValueError" in line, "the truth of an array" in line) == (True,) * 3
            debugged = gpureport(*words, "logs/b.csv", "--debug").err
            assert "Traceback" in debugged, words


def test_the_other_runs_are_served(gpureport: Program, logs: Path) -> None:
    with fault("analysis", ERROR, "b"):
        analysed = gpureport("analyze", "logs", "--format", "json")
        assert [run["run"]["name"] for run in json.loads(analysed.out)["runs"]] == ["a", "c"]
        for command in ("report -o report.md", "compare", f"check {KEPT}", "analyze"):
            done = gpureport(*words_of(command), "logs")
            assert (done.code, done.err.count("left out: logs/b.csv: ")) == (5, 1), command
        assert "b.csv" not in (logs / "report.md").read_text()
        checked = gpureport(*words_of(f"check logs {KEPT} --format json --junit junit.xml"))
        outcomes = {each["run"]: each["outcome"] for each in json.loads(checked.out)["checks"]}
        assert outcomes == {"logs/b.csv": "cannot judge", "a": "passed", "c": "passed"}
        assert "<error" in (logs / "junit.xml").read_text()
        night = gpureport("nightly", "logs", "--site", "site", "--date", "2026-03-14")
        assert (night.code, "logs/b.csv" in night.err, (logs / "site" / "index.html").is_file()) == (5, True, True)
    with fault("reading", ZeroDivisionError(), "a.csv"):
        assert gpureport("report", "logs/a.csv", "logs/c.csv", "-o", "report.md").code == 5
        done = gpureport("report", "logs", "-o", "report.md")
        assert (done.code, done.err.count("left out: logs/")) == (5, 1)
        # where a limit was asked for, all or none are served
        strict = gpureport(*words_of(f"analyze logs {KEPT}"))
        assert (strict.code, strict.out, strict.err.count("\n")) == (5, "", 1)
    with fault("storing", IndexError(3), "c.csv"):
        for store, storing in (("one", ("ingest",)), ("two", ("nightly", "--site", "site"))):
            done = gpureport(*storing, "logs", "--store", store)
            assert (done.code, done.err.count("left out: logs/c.csv: ")) == (5, 1), storing
            names = [line.split()[3] for line in gpureport("runs", "--store", store).out.splitlines()]
            assert sorted(names) == ["a", "b"], storing


@pytest.mark.usefixtures("logs")
def test_too_little_memory_is_no_fault(gpureport: Program) -> None:
    for error in (
        MemoryError(),
        ImportError("_typst.so: failed to map segment from shared object"),
        RuntimeError("can't start new thread"),
    ):
        for stage in ("analysis", "reading"):
            with fault(stage, error):
                done = gpureport("--debug", "analyze", "logs/a.csv")
            assert (done.code, "code: too_little_memory" in done.err) == (3, True), (error, stage, done.err)


def test_a_closed_or_full_stream(tmp_path: Path) -> None:
    lay_out(tmp_path)
    for code, where, command in read_table(Path(__file__).with_name("streams.tsv")):
        words = ["/bin/bash", "-c", command.format(f"{sys.executable} -m gpureport")]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
        assert (str(done.returncode), done.stderr.count("\n")) == (code, int(code != "0")), command
        assert done.stderr.startswith(where), command


def test_a_request_to_end_leaves_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    process = subprocess.Popen([sys.executable, "-m", "gpureport", "ingest", "pipe"], cwd=tmp_path)
    with (tmp_path / "pipe").open("w") as pipe:
        pipe.write(log(10))
        pipe.flush()
        process.terminate()
    # the end of the pipe wakes a process whose signal came just before it began to wait for the next line
    assert process.wait(timeout=30) == 143
    assert list(tmp_path.glob(".gpureport/runs/.tmp-*")) == []

"""`gpureport ingest` and `gpureport runs`."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from gpureport.cli.messages.line_account import summarise_run
from gpureport.testing import event, recording, with_quality
from tests.cli.program import Program
from tests.importers.written_logs import HEADER, log, row


def dirty() -> str:
    """Return a log with one of everything that is no row."""
    lines = [HEADER, row(0), HEADER, row(1, power="[N/A]"), "torn", "----", "No devices were found", row(2)]
    return "\n".join([*lines, ""])


def test_the_summary_accounts_for_every_line(gpureport: Program, tmp_path: Path) -> None:
    """What was read, kept, rejected and why, is printed."""
    (tmp_path / "gpu.csv").write_text(dirty())
    outcome = gpureport("ingest", "gpu.csv", "--name", "first")
    sentence, _, rest = outcome.out.partition("\n")
    run_id = sentence.rpartition(" ")[2].rstrip(".")
    assert sentence == f"Stored first: 1 GPU, 2 s, 1 of 8 lines lost. Id {run_id}."
    assert rest == (
        "  rejected 1: wrong number of cells (first at line 5)\n"
        "  no devices, 1 s after the first sample: No devices were found (line 7)\n"
    )
    every = gpureport("-v", "ingest", "gpu.csv", "--force").out.splitlines()
    assert every[0] == f"Stored first again: 1 GPU, 2 s, 1 of 8 lines lost. Id {run_id}."
    assert every[1:5] == [
        "  8 lines = 3 rows kept + 1 rejected + 2 headers + 1 noise + 1 event",
        "  rejected 1: wrong number of cells (first at line 5)",
        "    line 5: torn",
        "  no value in 1 cell of power.draw: N/A",
    ]
    assert gpureport("runs").out.startswith(f"{run_id}  2026-03-14 09:00  first")


def test_the_summary_tells_what_happened() -> None:
    """Events with their time, the telling ones first; that there were no time stamps."""
    told = [event("driver_message", place, f"message {place}", line=place) for place in range(12)]
    told.append(event("gpu_lost", 100, "GPU is lost", line=102, device="gpu:1"))
    made = with_quality(recording(util=[50.0] * 200), log_events=tuple(told), synthetic_time=True)
    lines = summarise_run(made.run)
    assert lines[2:5] == [
        "  the log has no time stamps; times count from --interval",
        "  gpu lost of gpu:1, 100 s after the first sample: GPU is lost (line 102)",
        "  driver message, 0 s after the first sample: message 0 (line 0)",
    ]
    assert lines[-1] == "  5 more events"


def test_the_same_log_is_read_once(gpureport: Program, tmp_path: Path) -> None:
    """A second ingest says the run is there; other labels are taken over without reading it again."""
    (tmp_path / "gpu.csv").write_text(log())
    gpureport("ingest", "gpu.csv", "--name", "g", "--step", "a", "--param", "lr=1")
    parquet = next((tmp_path / ".gpureport").rglob("hardware.parquet"))
    written = parquet.stat().st_mtime_ns
    assert " is stored already: " in gpureport("ingest", "gpu.csv").out
    assert "labels changed" in gpureport("ingest", "gpu.csv", "--param", "batch=8").out
    assert parquet.stat().st_mtime_ns == written
    assert len(gpureport("runs", "list").out.splitlines()) == 1
    shown = json.loads(gpureport("runs", "show", "g").out)["run"]
    assert (shown["step"], shown["params"]) == ("a", {"lr": "1", "batch": "8"})
    assert " again: " in gpureport("ingest", "gpu.csv", "--force").out
    assert json.loads(gpureport("runs", "show", "g").out)["run"]["step"] == "a"


def test_the_source_is_not_touched(gpureport: Program, tmp_path: Path) -> None:
    """A log is byte-identical after it was read."""
    path = tmp_path / "gpu.csv"
    path.write_text(dirty())
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    gpureport("ingest", "gpu.csv")
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_strict_fails_on_a_rejected_line(gpureport: Program, tmp_path: Path) -> None:
    """With --strict one line that was not understood is an error, and no run is left in the store."""
    (tmp_path / "gpu.csv").write_text(dirty())
    outcome = gpureport("ingest", "gpu.csv", "--strict")
    assert outcome.code == 3
    assert "lines were rejected: 1 wrong number of cells (first at line 5)" in outcome.err
    assert "No runs in" in gpureport("runs").out


def test_runs_are_shown_labelled_exported_and_removed(gpureport: Program, tmp_path: Path) -> None:
    """The life of a run in the store."""
    (tmp_path / "gpu.csv").write_text(log(5))
    gpureport("ingest", "gpu.csv", "--name", "a", "--param", "lr=0.1", "--tag", "team=x", "--work", "100:steps")
    gpureport("runs", "step", "a", "baseline")
    gpureport("runs", "rename", "a", "b")
    shown = json.loads(gpureport("runs", "show", "b").out)["run"]
    assert (shown["step"], shown["params"], shown["tags"]) == ("baseline", {"lr": "0.1"}, {"team": "x"})
    assert shown["work"] == {"amount": 100.0, "unit": "steps"}
    gpureport("runs", "export", "b", "-o", "out.parquet")
    assert len(pd.read_parquet(tmp_path / "out.parquet")) == 5
    gpureport("runs", "rm", "b")
    assert "No runs in" in gpureport("runs").out


def test_a_stored_run_is_a_source(gpureport: Program, tmp_path: Path) -> None:
    """Every command that takes a log takes the name of a stored run."""
    (tmp_path / "gpu.csv").write_text(log(60))
    gpureport("ingest", "gpu.csv", "--name", "kept")
    stored = json.loads(gpureport("analyze", "kept", "--format", "json").out)["runs"][0]
    direct = json.loads(gpureport("analyze", "gpu.csv", "--name", "kept", "--format", "json").out)["runs"][0]
    assert stored == direct


def test_a_stored_run_takes_labels_but_no_placement(gpureport: Program, tmp_path: Path) -> None:
    """A step given with a stored run counts for this report; a zone does not fit what was already placed."""
    (tmp_path / "gpu.csv").write_text(log(60))
    gpureport("ingest", "gpu.csv", "--name", "kept")
    run = json.loads(gpureport("analyze", "kept", "--step", "b", "--format", "json").out)["runs"][0]["run"]
    assert run["step"] == "b"
    outcome = gpureport("analyze", "kept", "--tz", "UTC")
    assert (outcome.code, outcome.err[:16]) == (2, "gpureport: --tz:")


def test_one_bad_log_does_not_keep_the_others_out(gpureport: Program, tmp_path: Path) -> None:
    """Of a folder every log that can be read is stored; the other is named, and so is what is no log."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.csv").write_text("timestamp, uuid\n2026/03/14 09:00:00.000, x\n")
    (tmp_path / "logs" / "b.csv").write_text(log(5))
    (tmp_path / "logs" / "c.txt").write_text("notes")
    (tmp_path / "logs" / "host.csv").write_text("timestamp,cpu_percent\n2026-03-14T09:00:00,5\n")
    outcome = gpureport("ingest", "logs")
    assert (outcome.code, len(gpureport("runs").out.splitlines())) == (3, 1)
    skipped, failed = outcome.err.splitlines()
    assert skipped == "Skipped, no GPU log: logs/c.txt"
    assert failed.startswith("gpureport: logs/a.csv: no GPU metric among the columns timestamp, uuid; ")


def test_hostile_names_do_not_steer_the_terminal(gpureport: Program, tmp_path: Path) -> None:
    """Escape codes in a name or a message are not printed."""
    (tmp_path / "gpu.csv").write_text(log(3) + "No devices were found \x1b]0;owned\x07\n")
    outcome = gpureport("ingest", "gpu.csv", "--name", "a\x1b[31m\nb")
    assert "\x1b" not in outcome.out
    assert "\x07" not in outcome.out
    assert "\x1b" not in gpureport("runs").out


def test_strict_does_not_mind_gpus_left_out(gpureport: Program, tmp_path: Path) -> None:
    """Rows of GPUs that were not asked for are no fault of the log; a GPU that is not there is named."""
    (tmp_path / "gpu.csv").write_text(log(5, gpus=2))
    assert gpureport("ingest", "gpu.csv", "--strict", "--gpus", "0").code == 0
    outcome = gpureport("ingest", "gpu.csv", "--gpus", "7")
    assert outcome.err == "gpureport: gpu.csv: it holds none of the GPUs selected; --gpus can name 0, 1\n"


def test_standard_input_and_pipes(tmp_path: Path) -> None:
    """`-` and a pipe are read like a file, in one go."""
    text = log(60)
    command = [sys.executable, "-m", "gpureport", "analyze", "-", "--format", "json"]
    done = subprocess.run(command, input=text, cwd=tmp_path, capture_output=True, text=True, check=True)
    run = json.loads(done.stdout)["runs"][0]
    assert (run["run"]["name"], run["quality"]["rows_kept"]) == ("standard input", 60)
    done = subprocess.run(command, input="timestamp, uuid\n", cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr.startswith("gpureport: -: it holds a header and no row")
    unmapped = [*command, "--source-kind", "mapped"]
    done = subprocess.run(unmapped, input=text, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr.startswith("gpureport: -: no map says what its columns are; ")
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(
        [*command[:4], "pipe", *command[5:]], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as reader:
        (tmp_path / "pipe").write_text(text)
        assert reader.stdout is not None
        assert json.loads(reader.stdout.read())["runs"][0]["quality"]["rows_kept"] == 60


def test_a_large_log_is_not_hashed_for_a_store_without_it(
    gpureport: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a large log is stored is asked only where a run of its size is; the outcome is the same."""
    monkeypatch.setattr("gpureport.cli.runs.run_storing._SMALL", 0)
    (tmp_path / "gpu.csv").write_text(log())
    assert "already" not in gpureport("ingest", "gpu.csv").out
    assert " is stored already: " in gpureport("ingest", "gpu.csv").out
    (tmp_path / "gpu.csv").write_text(log(30))
    asked = list[str]()
    monkeypatch.setattr("gpureport.store.Store.get", lambda _, run_id: asked.append(run_id))
    gpureport("ingest", "gpu.csv")
    assert asked == []


def test_several_logs_as_one_run(gpureport: Program, tmp_path: Path) -> None:
    """--as-one-run makes one run of several logs, for every command that reads logs; a stored run is no part of one."""
    lines = log(40, gpus=2).splitlines(keepends=True)
    (tmp_path / "gpu.csv.1").write_text("".join(lines[:41]))
    (tmp_path / "gpu.csv").write_text(lines[0] + "".join(lines[41:]))
    outcome = gpureport("ingest", "gpu.csv", "gpu.csv.1", "--as-one-run", "--name", "both")
    assert outcome.out.startswith("Stored both: 2 GPUs, 39 s, no line lost. ")
    assert " is stored already: " in gpureport("ingest", "gpu.csv.1", "gpu.csv", "--as-one-run").out
    (run,) = json.loads(gpureport("analyze", "gpu.csv", "gpu.csv.1", "--as-one-run", "--format", "json").out)["runs"]
    assert [source["locator"] for source in run["run"]["sources"]] == ["gpu.csv", "gpu.csv.1"]
    assert len(gpureport("ingest", "gpu.csv", "gpu.csv.1").out.splitlines()) == 2
    refused = gpureport("analyze", "both", "--as-one-run")
    assert (refused.code, refused.err[:22]) == (3, "gpureport: both: no su")


def test_a_compressed_log(gpureport: Program, tmp_path: Path) -> None:
    """A cut compressed log is read as far as it goes, and that is said."""
    content = gzip.compress(log(4000).encode())
    (tmp_path / "a.csv.gz").write_bytes(content[: len(content) // 2])
    out = gpureport("ingest", "a.csv.gz").out
    assert out.startswith("Stored a: 1 GPU, ")
    assert "  The compressed log is cut: read up to there.\n" in out


@pytest.mark.parametrize(("terminal", "patience", "shown"), [(True, -1, True), (True, 60, False), (False, -1, False)])
def test_progress_is_shown_on_a_terminal_only(  # noqa: PLR0913 - one argument a circumstance
    gpureport: Program,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    terminal: bool,
    patience: float,
    shown: bool,
) -> None:
    """A read that takes over a second shows a bar on standard error of a terminal, and nowhere else."""
    (tmp_path / "gpu.csv").write_text(log())
    monkeypatch.setattr("gpureport.cli.messages.progress._PATIENCE", patience)
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda _: terminal, raising=False)
    for command in ("ingest", "analyze"):
        outcome = gpureport(command, "gpu.csv")
        assert ("Reading gpu.csv" in outcome.err) is shown
        assert "Reading gpu.csv" not in outcome.out


def test_a_verbose_ingest_says_what_each_column_became(gpureport: Program, tmp_path: Path) -> None:
    (tmp_path / "gpu.csv").write_text(log().replace("power.draw [W]", "power_W"))
    told = [line.strip() for line in gpureport("-v", "ingest", "gpu.csv").out.splitlines() if "column " in line]
    assert told == [
        "column timestamp: timestamp",
        "column index: index",
        "column name: model",
        "column utilization.gpu [%]: gpu_utilization_ratio",
        "column memory.used [MiB]: gpu_memory_used_bytes",
        "column power_W: gpu_power_watts",
    ]
    again = gpureport("-v", "ingest", "gpu.csv")
    assert (again.code, "column " in again.out) == (0, False)
    assert gpureport("ingest", "gpu.csv", "--explain").code == 2


def test_one_of_a_thing_is_said_as_one(gpureport: Program, tmp_path: Path) -> None:
    """Counts go with their nouns."""
    (tmp_path / "gpu.csv").write_text("\n".join([HEADER, row(0), row(0), "No devices were found", ""]))
    assert "  1 row shares the time stamp of the row before (kept)\n" in gpureport("ingest", "gpu.csv").out
    (tmp_path / "one.csv").write_text("\n".join([HEADER, row(0), ""]))
    assert (
        "  2 lines = 1 row kept + 0 rejected + 1 header + 0 noise + 0 events\n"
        in gpureport("-v", "ingest", "one.csv").out
    )
    (tmp_path / "narrow.csv").write_text("\n".join(["utilization.gpu", *(row(second) for second in range(9)), ""]))
    assert "its header names 1 column and its rows hold 6 cells" in gpureport("ingest", "narrow.csv").err


def test_what_several_logs_say_of_each_other(gpureport: Program, tmp_path: Path) -> None:
    for name, util in (("a", 90), ("b", 10)):
        (tmp_path / f"{name}.csv").write_text(
            "\n".join([HEADER, *(row(second, util=util) for second in range(20)), ""])
        )
    out = gpureport("ingest", "a.csv", "b.csv", "--as-one-run").out
    assert "  a.csv and b.csv hold the same numbers at the same time" in out


def test_known_bytes_under_another_name_are_told(gpureport: Program, tmp_path: Path) -> None:
    """With the name under which commands find them; one that is given renames the run."""
    for name in ("eobo.csv", "last-good.csv"):
        (tmp_path / name).write_text(log(20))
    gpureport("ingest", "eobo.csv")
    told = gpureport("ingest", "last-good.csv")
    assert "eobo is stored already (last-good.csv holds the same bytes): " in told.out
    assert gpureport("ingest", "eobo.csv").out.startswith("eobo is stored already: ")
    assert gpureport("ingest", "last-good.csv", "--name", "last-good").code == 0
    assert gpureport("baseline", "set", "main", "last-good").code == 0
    assert " 1 GPU  " in gpureport("runs").out

"""`gpureport ingest` and what `gpureport runs` makes of the stored run."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

from pyarrow import parquet

from tests.support.logs import HEADER, log, row, table
from tests.support.program import Program


def test_every_line_is_accounted_for_and_the_source_not_touched(gpureport: Program, tmp_path: Path) -> None:
    path = tmp_path / "gpu.csv"
    path.write_text(table(row(0), HEADER, row(1, power="[N/A]"), "torn", "----", "No devices were found", row(2)))
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    strict = gpureport("ingest", "gpu.csv", "--strict")
    assert (strict.code, strict.out, strict.err.count("\n")) == (3, "", 1)
    assert "No runs in" in gpureport("runs").out
    done = gpureport("ingest", "gpu.csv", "--name", "first")
    assert (done.code, done.err, done.out.startswith("Stored first: 1 GPU, 2 s, 1 of 8 lines lost. Id ")) == (
        0,
        "",
        True,
    )
    assert [word in done.out for word in ("line 5", "line 7")] == [True, True]
    every = gpureport("-v", "ingest", "gpu.csv", "--force").out
    assert "8 lines = 3 rows kept + 1 rejected + 2 headers + 1 noise + 1 event\n" in every
    assert "1 cell of power.draw: N/A" in every
    run_id = done.out.splitlines()[0].rpartition(" ")[2].rstrip(".")
    assert gpureport("runs").out.startswith(f"{run_id}  2026-03-14 09:00  first")
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    # counts go with their nouns
    (tmp_path / "one.csv").write_text(table(row(0)))
    assert (
        "2 lines = 1 row kept + 0 rejected + 1 header + 0 noise + 0 events\n"
        in gpureport("-v", "ingest", "one.csv").out
    )


def test_the_same_log_is_read_once(gpureport: Program, tmp_path: Path) -> None:
    (tmp_path / "gpu.csv").write_text(log())
    gpureport("ingest", "gpu.csv", "--name", "g", "--step", "a", "--param", "lr=1")
    series = next((tmp_path / ".gpureport").rglob("hardware.parquet"))
    written = series.stat().st_mtime_ns
    assert " is stored already: " in gpureport("ingest", "gpu.csv").out
    assert "labels changed" in gpureport("ingest", "gpu.csv", "--param", "batch=8").out
    assert series.stat().st_mtime_ns == written
    shown = json.loads(gpureport("runs", "show", "g").out)["run"]
    assert (shown["step"], shown["params"]) == ("a", {"lr": "1", "batch": "8"})
    assert " again: " in gpureport("ingest", "gpu.csv", "--force").out
    assert json.loads(gpureport("runs", "show", "g").out)["run"]["step"] == "a"
    # the same bytes under another name; one that is given renames the run
    (tmp_path / "copy.csv").write_text(log())
    assert "g is stored already (copy.csv holds the same bytes): " in gpureport("ingest", "copy.csv").out
    assert gpureport("ingest", "copy.csv", "--name", "copy").code == 0
    assert [line.split()[3] for line in gpureport("runs").out.splitlines()] == ["copy"]


def test_runs_are_shown_labelled_exported_and_removed(gpureport: Program, tmp_path: Path) -> None:
    (tmp_path / "gpu.csv").write_text(log(5))
    gpureport("ingest", "gpu.csv", "--name", "a", "--param", "lr=0.1", "--tag", "team=x", "--work", "100:steps")
    gpureport("runs", "step", "a", "baseline")
    gpureport("runs", "rename", "a", "b")
    shown = json.loads(gpureport("runs", "show", "b").out)["run"]
    assert (shown["step"], shown["params"], shown["tags"]) == ("baseline", {"lr": "0.1"}, {"team": "x"})
    assert shown["work"] == {"amount": 100.0, "unit": "steps"}
    gpureport("runs", "export", "b", "-o", "out.parquet")
    assert len(parquet.read_table(tmp_path / "out.parquet")) == 5
    gpureport("runs", "rm", "b")
    assert "No runs in" in gpureport("runs").out


def test_a_stored_run_is_a_source(gpureport: Program, tmp_path: Path) -> None:
    def read(*words: str) -> dict[str, object]:
        found: dict[str, object] = json.loads(gpureport("analyze", *words, "--format", "json").out)["runs"][0]
        return found

    (tmp_path / "gpu.csv").write_text(log(60))
    gpureport("ingest", "gpu.csv", "--name", "kept")
    assert read("kept") == read("gpu.csv", "--name", "kept")
    assert read("kept", "--step", "b") == read("gpu.csv", "--name", "kept", "--step", "b")
    refused = gpureport("--debug", "analyze", "kept", "--tz", "UTC")
    assert (refused.code, "code: only_while_reading" in refused.err) == (2, True)


def test_one_bad_log_does_not_keep_the_others_out(gpureport: Program, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.csv").write_text("timestamp, uuid\n2026/03/14 09:00:00.000, x\n")
    (tmp_path / "logs" / "b.csv").write_text(log(5))
    (tmp_path / "logs" / "c.txt").write_text("notes")
    (tmp_path / "logs" / "host.csv").write_text("timestamp,cpu_percent\n2026-03-14T09:00:00,5\n")
    done = gpureport("ingest", "logs")
    skipped, failed = done.err.splitlines()
    assert (done.code, len(gpureport("runs").out.splitlines())) == (3, 1)
    assert ("logs/c.txt" in skipped, failed.startswith("gpureport: logs/a.csv: ")) == (True, True)


def test_hostile_names_do_not_steer_the_terminal(gpureport: Program, tmp_path: Path) -> None:
    lines = [
        f"{HEADER}, bad",
        f"{row(0)}, \x1b[31mred",
        "x\x1b]0;owned\x07" + "y" * 500,
        "No devices were found \x1b]0;o\x07",
    ]
    (tmp_path / "gpu.csv").write_text("\n".join([*lines, f"{row(1)}, \x1b[31mred", ""]))
    shown = [gpureport("-v", "ingest", "gpu.csv", "--name", "a\x1b[31m\nb"), gpureport("runs")]
    texts = [text for each in shown for text in (each.out, each.err)]
    assert [code for code in ("\x1b", "\x07") for text in texts if code in text] == []
    assert max(len(line) for text in texts for line in text.splitlines()) < 250


def test_standard_input_and_pipes_are_read_like_a_file(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gpureport", "analyze", "-", "--format", "json"]
    done = subprocess.run(command, input=log(60), cwd=tmp_path, capture_output=True, text=True, check=True)
    run = json.loads(done.stdout)["runs"][0]
    assert (run["run"]["name"], run["quality"]["rows_kept"]) == ("standard input", 60)
    os.mkfifo(tmp_path / "pipe")
    command[4] = "pipe"
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as reader:
        (tmp_path / "pipe").write_text(log(60))
        assert reader.stdout is not None
        assert json.loads(reader.stdout.read())["runs"][0]["quality"]["rows_kept"] == 60


def test_several_logs_as_one_run(gpureport: Program, tmp_path: Path) -> None:
    lines = log(40, gpus=2).splitlines(keepends=True)
    (tmp_path / "gpu.csv.1").write_text("".join(lines[:41]))
    (tmp_path / "gpu.csv").write_text(lines[0] + "".join(lines[41:]))
    done = gpureport("ingest", "gpu.csv", "gpu.csv.1", "--as-one-run", "--name", "both")
    assert done.out.startswith("Stored both: 2 GPUs, 39 s, no line lost. ")
    assert " is stored already: " in gpureport("ingest", "gpu.csv.1", "gpu.csv", "--as-one-run").out
    (run,) = json.loads(gpureport("analyze", "gpu.csv", "gpu.csv.1", "--as-one-run", "--format", "json").out)["runs"]
    assert [source["locator"] for source in run["run"]["sources"]] == ["gpu.csv", "gpu.csv.1"]
    assert len(gpureport("ingest", "gpu.csv", "gpu.csv.1").out.splitlines()) == 2
    assert gpureport("analyze", "both", "--as-one-run").code == 3


def test_cut_logs_and_selected_gpus_are_no_faults(gpureport: Program, tmp_path: Path) -> None:
    (tmp_path / "gpu.csv").write_text(log(5, gpus=2))
    assert gpureport("ingest", "gpu.csv", "--strict", "--gpus", "0").code == 0
    content = gzip.compress(log(4000).encode())
    (tmp_path / "a.csv.gz").write_bytes(content[: len(content) // 2])
    done = gpureport("ingest", "a.csv.gz")
    assert (done.code, done.out.startswith("Stored a: 1 GPU, "), "cut" in done.out) == (0, True, True)


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
    gone = gpureport("--debug", "ingest", "gpu.csv", "--explain")
    assert (gone.code, "code: gone_option" in gone.err) == (2, True)

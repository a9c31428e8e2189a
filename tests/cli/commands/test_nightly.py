"""`gpureport ingest`, `nightly`, and what `runs` makes of the stored run: what they record, say, and how they exit."""

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from pyarrow import parquet

from tests.support.logs import HEADER, log, row, table, wavering
from tests.support.program import Outcome, Program


def test_every_line_is_accounted_for_and_the_source_not_touched(gpureport: Program, tmp_path: Path) -> None:
    path = tmp_path / "gpu.csv"
    path.write_text(table(row(0), HEADER, row(1, power="[N/A]"), "torn", "----", "No devices were found", row(2)))
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    strict = gpureport("ingest", "gpu.csv", "--strict")
    assert (strict.code, strict.out, strict.err.count("\n")) == (3, "", 1)
    assert "No runs in" in gpureport("runs").out
    done = gpureport("ingest", "gpu.csv", "--name", "first")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Stored first: 1 GPU, 2 s, 1 of 8 lines lost. Id ")
    assert [word in done.out for word in ("line 5", "line 7")] == [True, True]
    every = gpureport("-v", "ingest", "gpu.csv", "--force").out
    assert "8 lines = 3 rows kept + 1 rejected + 2 headers + 1 noise + 1 event\n" in every
    assert "1 cell of power.draw: N/A" in every
    run_id = done.out.splitlines()[0].rpartition(" ")[2].rstrip(".")
    assert gpureport("runs").out.startswith(f"{run_id}  2026-03-14 09:00  first")
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    # counts go with their nouns
    (tmp_path / "one.csv").write_text(table(row(0)))
    told = gpureport("-v", "ingest", "one.csv").out
    assert "2 lines = 1 row kept + 0 rejected + 1 header + 0 noise + 0 events\n" in told


def test_the_same_log_is_read_once(gpureport: Program, tmp_path: Path) -> None:
    (tmp_path / "gpu.csv").write_text(log())
    gpureport("ingest", "gpu.csv", "--name", "g", "--step", "a", "--param", "lr=1")
    series = next((tmp_path / ".gpureport").rglob("hardware.parquet"))
    written = series.stat().st_mtime_ns
    assert " is already stored: " in gpureport("ingest", "gpu.csv").out
    assert "its labels were changed" in gpureport("ingest", "gpu.csv", "--param", "batch=8").out
    assert series.stat().st_mtime_ns == written
    shown = json.loads(gpureport("runs", "show", "g").out)["run"]
    assert (shown["step"], shown["params"]) == ("a", {"lr": "1", "batch": "8"})
    assert " again: " in gpureport("ingest", "gpu.csv", "--force").out
    assert json.loads(gpureport("runs", "show", "g").out)["run"]["step"] == "a"
    # the same bytes under another name; one that is given renames the run
    (tmp_path / "copy.csv").write_text(log())
    assert "g is already stored (copy.csv has the same content): " in gpureport("ingest", "copy.csv").out
    assert gpureport("ingest", "copy.csv", "--name", "copy").code == 0
    assert [line.split()[3] for line in gpureport("runs").out.splitlines()] == ["copy"]


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
    lines = (f"{HEADER}, bad", f"{row(0)}, \x1b[31mred", "x\x1b]0;owned\x07" + "y" * 500)
    more = ("No devices were found \x1b]0;o\x07", f"{row(1)}, \x1b[31mred", "")
    (tmp_path / "gpu.csv").write_text("\n".join([*lines, *more]))
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
    assert done.out.startswith("Stored both: 2 GPUs, 39 s, no lines lost. ")
    assert " is already stored: " in gpureport("ingest", "gpu.csv.1", "gpu.csv", "--as-one-run").out
    (run,) = json.loads(gpureport("analyze", "gpu.csv", "gpu.csv.1", "--as-one-run", "--format", "json").out)["runs"]
    assert [source["locator"] for source in run["run"]["sources"]] == ["gpu.csv", "gpu.csv.1"]
    assert len(gpureport("ingest", "gpu.csv", "gpu.csv.1").out.splitlines()) == 2
    assert gpureport("analyze", "both", "--as-one-run").code == 3
    (tmp_path / "copies").mkdir()
    for name in ("a.csv", "b skipped.csv"):
        (tmp_path / "copies" / name).write_text(log(40))
    (run,) = json.loads(gpureport("analyze", "copies", "--format", "json").out)["runs"]
    assert run["quality"]["note_codes"] == ["copied_log"]


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
    assert [line.removeprefix("column ") for line in told] == [
        *("timestamp: timestamp", "index: index", "name: model", "utilization.gpu [%]: gpu_utilization_ratio"),
        *("memory.used [MiB]: gpu_memory_used_bytes", "power_W: gpu_power_watts"),
    ]
    again = gpureport("-v", "ingest", "gpu.csv")
    assert (again.code, "column " in again.out) == (0, False)


UTILISATION = "gpu_utilization_ratio"


@pytest.fixture
def nightly(gpureport: Program, tmp_path: Path) -> Program:
    for number in range(2):
        (tmp_path / f"{number}.csv").write_text(log(120 + number))

    def run(*arguments: str) -> Outcome:
        return gpureport("nightly", *arguments, "--site", "site")

    return run


def recorded(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of each night, as it was recorded last, in the order of nights."""
    rows = [row for path in (folder / ".gpureport/history").glob("*") for row in parquet.read_table(path).to_pylist()]
    last = {row["night"]: max(each["recorded"] for each in rows if each["night"] == row["night"]) for row in rows}
    return sorted(
        (row for row in rows if row["recorded"] == last[row["night"]]), key=lambda row: (row["night"], row["part"])
    )


def shown(folder: Path) -> dict[str, tuple[str | None, int, int]]:
    """Return the label of each night, and how many parts were measured and how many lack a log."""
    rows = recorded(folder)
    measured = {(row["night"], row["part"]) for row in rows if row["status"] == "measured"}
    missing = {(row["night"], row["part"]) for row in rows if row["reason"]}
    nights = {row["night"]: row["label"] for row in rows}
    return {
        str(night): (label, *(sum(each == night for each, _ in parts) for parts in (measured, missing)))
        for night, label in nights.items()
    }


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.html")}


def test_two_nights(nightly: Program, gpureport: Program, tmp_path: Path) -> None:
    assert nightly("0.csv", "--date", "2026-03-01", "--label", "abc", "--work", "500:steps").code == 0
    before = files(tmp_path / "site")
    # a retry of the same night adds nothing
    assert nightly("0.csv", "--date", "2026-03-01", "--label", "abc", "--work", "500:steps").code == 0
    assert files(tmp_path / "site") == before
    assert nightly("1.csv", "--date", "2026-03-02", "--param", "workers=4").code == 0
    assert shown(tmp_path) == {"2026-03-01": ("abc", 1, 0), "2026-03-02": (None, 1, 0)}
    figures = {(str(each["night"]), each["metric"]): each for each in recorded(tmp_path)}
    assert figures["2026-03-01", "gpu_seconds_per_1000_work"]["value"] == pytest.approx(119 / 500 * 1000)
    assert figures["2026-03-02", "gpu_seconds_per_1000_work"]["value"] is None
    assert figures["2026-03-02", "gpu_seconds"]["params"] == '{"workers": "4"}'
    assert len(gpureport("runs").out.splitlines()) == 2
    assert len([*(tmp_path / "site" / "nights").iterdir()]) == 2
    assert gpureport("nightly", "--site", "again").code == 0
    assert files(tmp_path / "again") == files(tmp_path / "site")


def test_a_night_counts_findings_and_costs_as_its_report_does(
    nightly: Program, gpureport: Program, tmp_path: Path
) -> None:
    idle = {0: range(100, 160), 1: range(200, 260)}
    rows = (row(second, gpu, util=0 if second in idle[gpu] else 95) for second in range(400) for gpu in idle)
    (tmp_path / "two.csv").write_text(table(*rows))
    assert nightly("two.csv", "--work", "1000:steps", "--gpu-hour-price", "9 EUR").code == 0
    assert ">€2.00<" in (tmp_path / "site" / "index.html").read_text()
    figures = {each["metric"]: each["value"] for each in recorded(tmp_path)}
    counts = [figures[f"findings_{severity}"] for severity in ("problem", "warning", "info")]
    assert "FINDINGS  1 warning." in gpureport("analyze", "two.csv").out
    assert counts == [0, 1, 0]


def test_a_missing_log_is_a_night_without_its_data(nightly: Program, tmp_path: Path) -> None:
    written = ("--junit", "junit.xml", "--summary", "summary.md", "--fail-on", "idle_ratio <= 5%")
    done = nightly("nights/gone.csv", "1.csv", "--date", "2026-03-01", "--step", "a", "--step", "b", *written)
    assert (done.code, shown(tmp_path)) == (4, {"2026-03-01": (None, 1, 1)})
    for text in (done.out, done.err, *((tmp_path / name).read_text() for name in ("summary.md", "site/index.html"))):
        assert "nights/gone.csv" in text
    suite = ET.parse(tmp_path / "junit.xml").getroot()[0]  # noqa: S314 - our own
    assert (suite.get("errors"), len(suite)) == ("1", 2)
    (tmp_path / "bad.csv").write_text("nothing,of,this\n1,2,3\n")
    assert nightly("bad.csv", "gone.csv", "--date", "2026-03-02").code == 4
    assert nightly("bad.csv", "--date", "2026-03-03").code == 4
    assert [each[1:] for each in shown(tmp_path).values()][1:] == [(0, 2), (0, 1)]
    (tmp_path / "bad.csv").write_text(log(125))
    assert nightly("bad.csv", "--date", "2026-03-03").code == 0
    assert shown(tmp_path)["2026-03-03"] == (None, 1, 0)
    # a log that was left over is not counted again
    again = nightly("bad.csv", "--date", "2026-03-04")
    assert (again.code, "2026-03-03" in again.err, shown(tmp_path)["2026-03-04"]) == (4, True, (None, 0, 1))


def test_a_missing_log_beside_one_of_the_same_name(nightly: Program, tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"node{number}").mkdir()
    (tmp_path / "node0" / "gpu.csv").write_text(log(120))
    names = [f"node{number}/gpu.csv" for number in range(3)]
    for _ in range(2):
        assert nightly(*names, "--date", "2026-03-01").code == 4
        assert shown(tmp_path) == {"2026-03-01": (None, 1, 2)}
    for number in (1, 2):
        (tmp_path / names[number]).write_text(log(120 + number))
    assert nightly(*names, "--date", "2026-03-01").code == 0
    assert shown(tmp_path) == {"2026-03-01": (None, 3, 0)}


def test_the_headline_is_of_this_call(nightly: Program, tmp_path: Path) -> None:
    assert nightly("0.csv", "--date", "2026-03-09", "--fail-on", f"{UTILISATION} >= 100%").code == 1
    for date, headline in (("2026-03-08", "8 Mar: "), ("2026-03-09", "9 Mar: ")):
        done = nightly("1.csv", "--date", date, "--fail-on", "idle_ratio <= 99%", "--summary", "summary.md")
        heading, _, line = (tmp_path / "summary.md").read_text().splitlines()[:3]
        assert (done.code, "PASSED" in heading, "failed" in done.out) == (0, True, False)
        assert [text.startswith(headline) for text in (line, done.out)] == [True, True]
        for path in (tmp_path / ".gpureport" / "history").glob("2026-03-08*"):
            path.unlink()


def test_what_a_night_takes(nightly: Program, gpureport: Program, tmp_path: Path) -> None:
    gpureport("ingest", "0.csv", "--name", "bert")
    assert nightly("bert", "--date", "2026-03-01").code == 0
    lines = (tmp_path / "1.csv").read_text().splitlines(keepends=True)
    (tmp_path / "a.csv").write_text("".join(lines[:60]))
    (tmp_path / "b.csv").write_text("".join([lines[0], *lines[60:]]))
    assert nightly("a.csv", "b.csv", "--as-one-run", "--date", "2026-03-02").code == 0
    assert nightly("a.csv", "gone.csv", "--as-one-run", "--date", "2026-03-03").code == 4
    assert [each[1] for each in shown(tmp_path).values()] == [1, 1, 0]
    assert nightly("0.csv", "--select", "nothing").code == 2


@pytest.mark.slow
def test_a_change_breaks_the_gate_once(nightly: Program, gpureport: Program, tmp_path: Path) -> None:
    def wave(*shape: int) -> str:
        # an L4 cannot draw 250 W
        return wavering(*shape).replace("NVIDIA L4", "NVIDIA L40S")

    for night in range(1, 13):
        (tmp_path / "n.csv").write_text(wave(60, 120 + night, night))
        done = nightly("n.csv", "--date", f"2026-03-{night:02}", "--fail-on-change")
        assert done.code == (4 if night < 10 else 0), (night, done)
    kept = tmp_path / "kept"
    shutil.copytree(tmp_path / ".gpureport", kept)
    less = [", ".join(line.split(", ")[:-1]) for line in wave(60, 150).splitlines()]
    for variant, codes in (("worse", [1, 1, 1, 1]), ("better", [0, 0, 0]), ("less", [4, 0])):
        shutil.copytree(kept, tmp_path / variant)
        for place, code in enumerate(codes):
            util = 20 if variant == "worse" else 95
            text = "\n".join([*less, ""]) if variant == "less" else wave(util, 150 + place, place)
            (tmp_path / "n.csv").write_text(text)
            gate = () if variant == "less" and place else ("--fail-on-change", "--fail-on", f"{UTILISATION} >= 50%")
            date = f"2026-03-{13 + (variant != 'less') * place}"
            done = gpureport("nightly", "n.csv", "--date", date, "--site", "pages", "--store", variant, *gate)
            assert (done.code, "--all-reports" in done.err) == (code, True), (variant, place, done)
            assert ("2 rules failed" in done.out) == (variant == "worse" and place == 2), (variant, place, done)
        shutil.rmtree(tmp_path / "pages")


@pytest.mark.slow
def test_a_change_for_the_worse_stands_until_it_is_accepted(
    nightly: Program, gpureport: Program, tmp_path: Path
) -> None:
    for night in range(1, 17):
        (tmp_path / "n.csv").write_text(wavering(60 if night < 13 else 20, 120 + night, night))
        gate = ("--fail-on-standing-change",) if night > 11 else ()
        done = nightly("n.csv", "--date", f"2026-03-{night:02}", "--name", f"n{night}", "--label", f"c{night}", *gate)
        assert done.code == (night > 14), (night, done)
        assert ("no confirmed change" in done.out.splitlines()[0]) == (9 < night < 13), (night, done)
    assert "since 13 Mar" in done.out
    assert "Last good night: 12 Mar (c12); first bad night: 13 Mar (c13)" in done.out
    assert "Last good night" in nightly().out
    assert gpureport("baseline", "set", "main", "n14", "n15", "n16").code == 0
    assert "Last good night" not in nightly().out


def test_the_date_of_a_reproducible_build(nightly: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1773400000")
    assert nightly("0.csv").code == 0
    assert list(shown(tmp_path)) == ["2026-03-13"]
    for wrong in ("soon", "9" * 14, "9" * 40, "1.5"):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", wrong)
        for more in ((), ("--date", "2026-03-14")):
            done = nightly("1.csv", *more)
            assert (done.code, done.err.startswith("gpureport: SOURCE_DATE_EPOCH: ")) == (2, True)


def test_a_history_that_cannot_be_listed_stops_it(nightly: Program, tmp_path: Path) -> None:
    (tmp_path / ".gpureport").mkdir()
    (tmp_path / ".gpureport" / "history").write_text("")
    for sources in ((), ("0.csv",)):
        assert nightly(*sources, "--date", "2026-03-02").code == 3


def test_the_node_that_fails_is_the_one_that_is_red(nightly: Program, tmp_path: Path) -> None:
    for number, util in enumerate((90, 40)):
        (tmp_path / f"node{number}").mkdir()
        (tmp_path / f"node{number}" / "gpu.csv").write_text(table(*(row(second, util=util) for second in range(120))))
    done = nightly("node0/gpu.csv", "node1/gpu.csv", "--date", "2026-03-03", "--fail-on", f"{UTILISATION} >= 80%")
    assert (done.code, done.out.count("FAILED"), " (node1): " in done.out) == (1, 1, True)


def test_a_night_is_set_beside_its_baseline_and_the_night_before(
    nightly: Program, gpureport: Program, tmp_path: Path
) -> None:
    for number, util in enumerate((90, 90, 70)):
        (tmp_path / f"{number}.csv").write_text(wavering(util, 600, number))
    gpureport("baseline", "set", "main", "0.csv")
    rule = ("--baseline", "main", "--fail-on", f"change {UTILISATION} >= -4 points")
    assert nightly("1.csv", "--date", "2026-03-01", *rule).code == 0
    assert nightly("2.csv", "--date", "2026-03-02", *rule).code == 1
    (path,) = (tmp_path / "site" / "nights").glob("2026-03-02*.html")
    section = path.read_text().split('id="earlier"')[1].split("</details>")[0]
    assert [title for title in ("Baseline main", "Night of 2026-03-01") if title not in section] == []
    assert nightly("0.csv", "--date", "2026-04-02", "--step", "new", *rule).code == 4
    assert nightly("--baseline", "main").code == 0

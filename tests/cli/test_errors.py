"""Bad input: one line that says where and what, the right exit code and the code of the error; nothing left behind."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.logs import HEADER, SAMPLE, gapped, log, stamp, table, write_recording
from tests.support.program import Program

LONG = "9" * 5000
STEPS = (
    *("", "step = 5", "[[step]]\nlabel = 'a'", "x = [", "[[step]]\nlabel=''\nruns=['a']"),
    *("[[step]]\nlabel='a'\nruns=['a']\nother=1", "[[step]]\nlabel='a'\nruns=['a']\nparams={x=[1]}"),
    *("[[step]]\nlabel='a'\nruns=['a']\nwork='many'", "[[step]]\nlabel='a'\nruns=['a']\nwork=['1:x', '2:x']"),
    *("[[step]]\nlabel='a'\nruns=['a']\nwork=1000", "[[step]]\nlabel='a'\nruns=['a']\nwork=[1000]"),
    # no file can have such a name, and Python cannot print such a number
    f"[[step]]\nlabel='a'\nruns={json.dumps(['good.csv', 'c' * 300, chr(0)])}",
    *(f"[[step]]\nlabel='a'\nruns=['a']\nparams={{a={number}}}" for number in (LONG, f"0x{LONG}")),
)
"""What is no file of steps."""


def prepare(folder: Path) -> None:
    for name, text in {
        "empty.csv": "",
        "sales.csv": "region,sales\nnorth,3\n",
        "names.csv": "timestamp, uuid\n2026/03/14 09:00:00.000, NVIDIA L4\n",
        "untimed.csv": "utilization.gpu [%]\n5 %\n",
        "hostile.csv": "\x1b[31mred\x1b[0m,b\n1,2\n",
        "headonly.csv": "timestamp, utilization.gpu [%]\n",
        "torn.csv": f"{log()}torn\n",
        "good.csv": log(),
        "good.txt": log(),
        "night.csv": gapped(),
        "idle.csv": table(*(f"{stamp(second)}, 0, NVIDIA L4, 0 %, 3 MiB, 20.00 W" for second in range(300))),
        "late.csv": "timestamp,cpu_percent\n2026-05-14T09:00:00,5\n",
        "cpu.csv": "timestamp,cpu_percent\n2026-03-14T09:00:00,7\n",
        "cpu2.csv": "timestamp,cpu_percent\n2026-03-14T09:00:00,8\n",
        "loss.csv": "timestamp,step,val_loss\n2026-03-14T09:00:01,1,2.0\n2026-03-14T09:00:09,2,1.0\n",
        "bad.toml": "[rules.idle_gap]\nlongest = 5\n",
        "broken.toml": "[rules\n",
        "deep.toml": "a = " + "[" * 100_000,
        "dear.toml": '[prices]\ncurrency = "EUR"\ndate = 2026-03-01\ngpu_hour = "cheap"\n',
        "named.toml": '\n[baseline]\nnmae = "main"\n',
        "text.toml": "[baseline]\nname = 3\n",
        "twice.toml": "[[step]]\nlabel='a'\nruns=['good.csv']\n[[step]]\nlabel='a'\nruns=['good.txt']\n",
        "steps.toml": "[[step]]\nlabel='a'\nruns=['good.csv']\n[[step]]\nlabel='b'\nruns=['good.txt']\n",
        "map.toml": '[columns.a]\nmetric = "x"',
    }.items():
        (folder / name).write_text(text)
    (folder / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    (folder / "folder").mkdir()
    (folder / "two").mkdir()
    for place in range(2):
        (folder / "two" / f"{place}.csv").write_text(gapped(300 + place))
    for place, text in enumerate(STEPS):
        (folder / f"steps{place}.toml").write_text(text)
    write_recording(folder / "rec", log(60), started=1, ended=2)


GOOD, PAIR = ("analyze", "good.csv"), ("compare", "good.csv", "good.txt")
Case = tuple[int, str, str]
"""Exit code, place that the line begins with, and code of the error; empty where another room gives it."""
CASES: dict[tuple[str, ...], Case] = {
    # sources
    ("analyze", "absent.csv"): (3, "absent.csv: ", ""),
    ("analyze", "empty.csv"): (3, "empty.csv: ", ""),
    ("analyze", "picture.png"): (3, "picture.png: ", ""),
    ("analyze", "folder"): (3, "folder: ", ""),
    ("analyze", "sales.csv"): (3, "sales.csv: ", ""),
    ("analyze", "names.csv"): (3, "names.csv: ", ""),
    ("analyze", "untimed.csv"): (3, "untimed.csv: ", ""),
    ("analyze", "headonly.csv"): (3, "headonly.csv: ", ""),
    ("analyze", "hostile.csv"): (3, "hostile.csv: ", ""),
    ("analyze", "torn.csv", "--strict"): (3, "torn.csv: ", ""),
    ("analyze", "unknown-run"): (3, "", "unknown_run"),
    ("analyze", "n" * 300): (3, "", "unknown_run"),
    ("compare", "rec", f"rec/{'x' * 300}"): (3, "", ""),
    ("ingest", "absent.csv"): (3, "absent.csv: ", ""),
    (*GOOD, "--gpus", "7"): (3, "good.csv: ", ""),
    ("ingest", "--list", "folder"): (3, "folder: ", "not_a_tracker"),
    (*GOOD, "--source-kind", "dcgm"): (3, "good.csv: ", ""),
    (*GOOD, "--host", "sales.csv"): (3, "sales.csv: ", ""),
    (*GOOD, "--host", "late.csv"): (3, "late.csv: ", ""),
    (*GOOD, "--host", "cpu.csv", "--host", "cpu2.csv"): (3, "cpu2.csv: ", ""),
    ("report", "absent.csv", "-o", "x.html"): (3, "absent.csv: ", ""),
    ("report", "rec", "rec/gpu.csv", "-o", "x.md"): (3, "rec: ", "named_twice"),
    ("runs", "--store", "nowhere"): (3, "nowhere: ", "no_such_store"),
    ("runs", "list", "--store", "nowhere"): (3, "nowhere: ", "no_such_store"),
    ("runs", "show", "nothing"): (3, "", ""),
    # values that an option does not take
    (*GOOD, "--work", "many"): (2, "Invalid value for '--work': ", "not_an_amount"),
    (*GOOD, "--param", "x"): (2, "Invalid value for '--param': ", "not_a_pair"),
    (*GOOD, "--gpus", "all"): (2, "Invalid value for '--gpus': ", "not_gpu_indices"),
    (*GOOD, "--gpus", "\N{SUPERSCRIPT TWO}"): (2, "Invalid value for '--gpus': ", "not_gpu_indices"),
    (*GOOD, "--gpus", LONG): (2, "Invalid value for '--gpus': ", "not_gpu_indices"),
    (*GOOD, "--job", "0"): (2, "Invalid value for '--job': ", "not_a_job_number"),
    (*GOOD, "--job", LONG): (2, "Invalid value for '--job': ", "not_a_job_number"),
    (*GOOD, "--gpu-hour-price", "nan"): (2, "Invalid value for '--gpu-hour-price': ", "not_a_price"),
    (*PAIR, "--gpu-hour-price", "dear"): (2, "Invalid value for '--gpu-hour-price': ", "not_a_price"),
    (*PAIR, "--gpu-hour-price", "2 euro"): (2, "Invalid value for '--gpu-hour-price': ", "not_a_price"),
    (*GOOD, "--carbon-intensity", "-1"): (2, "Invalid value for '--carbon-intensity': ", "not_a_price"),
    (*GOOD, "--interval", "0"): (2, "Invalid value for '--interval': ", "not_a_time"),
    (*GOOD, "--columns", "a,,b"): (2, "Invalid value for '--columns': ", "not_a_list"),
    (*GOOD, "--gpu-model", "H10O"): (2, "Invalid value for '--gpu-model': ", "unknown_gpu_model"),
    (*GOOD, "--gpu-model", "Radeon"): (2, "Invalid value for '--gpu-model': ", "unknown_gpu_model"),
    (*PAIR, "--better", "regret=up"): (2, "Invalid value for '--better': ", "not_a_direction"),
    (*PAIR, "--target", "val_accuracy"): (2, "Invalid value for '--target': ", "not_a_target"),
    (*PAIR, "--by", "colour"): (2, "Invalid value for '--by': ", "not_a_grouping"),
    (*PAIR, "--by", "gpu,gpu"): (2, "Invalid value for '--by': ", "not_a_grouping"),
    **{
        ("report", "good.csv", "--detail", detail, "-o", "r.html"): (
            2,
            "Invalid value for '--detail': ",
            "not_a_detail",
        )
        for detail in ("0", "-5", "2.5", "fine", "86401", LONG)
    },
    (*GOOD, "--format", "xml"): (2, "Invalid value for '--format': ", "not_a_valid_value"),
    (*GOOD, "good.txt", "--name", "a", "--name", "b"): (2, "Invalid value for '--name': ", "given_twice"),
    ("report", "good.csv", "-o"): (2, "Option '-o' requires an argument", "bad_option"),
    ("runs", "list", "--store"): (2, "Option '--store' requires an argument", "bad_option"),
    ("analyse", "good.csv"): (2, "unknown command 'analyse'; did you mean 'analyze'?", "unknown_command"),
    ("analyze",): (2, "Missing argument 'SOURCE...'", "missing_parameter"),
    ("check",): (2, "Missing argument 'SOURCE...'", "missing_parameter"),
    (*GOOD, "--nothing"): (2, "No such option", "unknown_option"),
    # values that do not fit what they are said of
    (*GOOD, "--tz", "Mars/Base"): (2, "--tz: ", ""),
    (*GOOD, "--select", "idle_gp"): (2, "--select: ", ""),
    (*GOOD, "--param", "a=1", "--param", "a=2"): (2, "--param: ", "repeated_key"),
    (*GOOD, "--step", "a", "--step", "b"): (2, "--step: ", "wrong_count"),
    (*GOOD, "good.txt", "--as-one-run", "--step", "a", "--step", "b"): (2, "--step: ", "wrong_count"),
    (*GOOD, "good.txt", "--name", "a"): (2, "--name: ", "wrong_count"),
    (*PAIR, *("--work", "1:steps") * 3): (2, "--work: ", "wrong_count"),
    (*PAIR, "--training", "loss.csv"): (2, "--training: ", "wrong_count"),
    (*PAIR, "--target", "regret=0.3"): (2, "", ""),
    (*PAIR, "--by", "param:lr"): (2, "--by: ", ""),
    ("analyze", "night.csv", "--job", "3"): (2, "--job: ", "no_such_job"),
    ("analyze", "idle.csv", "--job", "1"): (2, "--job: ", "no_job"),
    ("analyze", "good.csv", "--since", "30d"): (2, "name the runs or select ", "named_or_selected"),
    (*PAIR, "--where", "gpus=1"): (2, "name the runs or select ", "named_or_selected"),
    ("report", "good.csv", "--since", "30d", "-o", "x.md"): (2, "name the runs or select ", "named_or_selected"),
    ("report", "-o", "report.html"): (2, "name the runs or, with --steps, ", "named_or_selected"),
    (*PAIR, "--steps", "steps.toml"): (2, "name the runs or, with --steps, ", "named_or_selected"),
    ("compare",): (2, "name the runs or, with --steps, ", "named_or_selected"),
    ("compare", "--steps", "steps.toml", "--step", "a"): (2, "--step: ", "steps_stated_twice"),
    ("compare", "good.csv"): (2, "a comparison needs ", "too_few_runs"),
    (*PAIR, "--step", "s"): (2, "all 2 runs are of one step (s)", "one_step"),
    ("ingest", "good.csv", "--anonymise"): (2, "--anonymise: ", "names_are_kept"),
    ("baseline", "set", "main", "good.csv", "--anonymise"): (2, "--anonymise: ", "names_are_kept"),
    ("nightly", "good.csv", "--site", "site", "--anonymise"): (2, "--anonymise: ", "names_are_kept"),
    ("nightly", "good.csv", "--site", "site", "--date", "soon"): (2, "Invalid value for '--date': ", "not_a_date"),
    ("nightly", "good.csv", "--site", "site", "--fail-on", "no such limit"): (2, "--fail-on: ", ""),
    ("nightly", "--site", "site", "--fail-on", "problem"): (2, "--fail-on: ", "needs_source"),
    ("record", "--host-only", "-o", "new", "touch", "x"): (2, "put -- before the command", "missing_dashes"),
    # outputs
    ("report", "good.csv", "-o", "x.docx"): (2, "x.docx: ", ""),
    ("report", "good.csv", "-o", "good.csv/x.html"): (2, "good.csv/x.html: ", ""),
    ("report", "good.txt", "-o", "good.txt"): (2, "good.txt: ", ""),
    ("report", "good.csv", "-o", "r.md", "--detail", "full"): (2, "--detail full: ", ""),
    ("report", "good.csv", "-o", "r.txt", "--detail", "60"): (2, "--detail 60: ", ""),
    ("report", "good.csv", "-o", "r.html", "--templates", "folder"): (2, "", "gone_option"),
    ("ingest", "good.csv", "--explain"): (2, "", "gone_option"),
    ("report", "good.csv", "-o", "r.md", "--open"): (2, "--open: ", "nothing_to_open"),
    ("demo", "-o", "a.md", "--open"): (2, "--open: ", "nothing_to_open"),
    ("demo", "-o", "good.csv/out.html"): (2, "good.csv/out.html: ", ""),
    # files that people write
    (*GOOD, "--config", "absent.toml"): (2, "absent.toml: ", ""),
    (*GOOD, "--config", "bad.toml"): (2, "bad.toml:2: ", ""),
    (*GOOD, "--config", "broken.toml"): (2, "broken.toml: ", ""),
    (*GOOD, "--config", "dear.toml"): (2, "dear.toml:4: ", ""),
    ("check", "good.csv", "--fail-on", "problem", "--config", "named.toml"): (2, "named.toml:3: ", ""),
    ("check", "good.csv", "--fail-on", "problem", "--config", "text.toml"): (2, "text.toml:2: ", ""),
    (*GOOD, "--config", "deep.toml"): (2, "deep.toml: ", ""),
    (*GOOD, "--config", "/dev/zero"): (2, "/dev/zero: ", ""),
    (*GOOD, "--map", "deep.toml"): (2, "deep.toml: ", ""),
    (*GOOD, "--map", "/dev/zero"): (2, "/dev/zero: ", ""),
    (*GOOD, "--map", "broken.toml"): (2, "broken.toml: ", ""),
    (*GOOD, "--map", "empty.csv"): (2, "empty.csv: ", ""),
    (*GOOD, "--map", "map.toml"): (2, "map.toml: ", ""),
    ("check", "good.csv", "--policy", "deep.toml"): (2, "deep.toml: ", ""),
    ("check", "good.csv", "--policy", "/dev/zero"): (2, "/dev/zero: ", ""),
    ("check", "good.csv", "--policy", "absent.toml"): (2, "absent.toml: ", ""),
    ("check", "good.csv"): (2, "gpureport.toml: ", "no_rule"),
    ("check", "good.csv", "--fail-on", "idel <= 5%"): (2, "--fail-on: ", ""),
    (*GOOD, "--fail-on", "idel <= 5%"): (2, "--fail-on: ", ""),
    (*GOOD, "--fail-on", "change idle_ratio <= 2 points"): (2, "--fail-on: ", "no_baseline"),
    ("compare", "--steps", "twice.toml"): (2, "twice.toml: ", "repeated_step"),
    **{("compare", "--steps", f"steps{place}.toml"): (2, f"steps{place}.toml: ", "") for place in range(11)},
    ("compare", "--steps", "steps11.toml"): (3, "", ""),
    **{("compare", "--steps", f"steps{place}.toml"): (2, f"steps{place}.toml: ", "") for place in (12, 13)},
}


def test_one_line_and_a_code(gpureport: Program, tmp_path: Path) -> None:
    prepare(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    for words, (code, where, fault) in CASES.items():
        done = gpureport(*words)
        named = [word[:40] for word in words]
        assert (done.code, done.out, done.err.count("\n")) == (code, "", 1), (named, done.err[:500])
        assert done.err.startswith(f"gpureport: {where}"), (named, done.err[:500])
        assert done.err.rstrip("\n").isprintable(), named
        debugged = gpureport("--debug", *words)
        assert (debugged.code, debugged.err.endswith(done.err)) == (code, True), named
        assert not fault or debugged.error == fault, (named, debugged.error)
        assert sorted(tmp_path.rglob("*")) == before, named


def test_a_folder_is_read_without_the_log_that_cannot_be(gpureport: Program, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "headonly.csv").write_text(f"{HEADER}\n")
    assert gpureport("analyze", "logs").code == 3
    (folder / "good.csv").write_text(log(1200))
    (folder / "other.csv").write_text(log(1200, gpus=2).replace(" 09:", " 12:"))
    for command in (("analyze", "logs"), ("report", "logs", "-o", "out.html"), ("compare", "logs")):
        read = gpureport(*command)
        assert (read.code, read.err.count("left out: logs/headonly.csv: ")) == (0, 1), command
    assert gpureport("analyze", "logs", "--fail-on", "idle_ratio <= 50%").code == 3
    assert gpureport("analyze", "logs", "--strict").code == 3
    assert gpureport("check", "logs", "--fail-on", "idle_ratio <= 50%").code == 4


def test_one_line_however_it_is_asked_for(gpureport: Program, tmp_path: Path) -> None:
    for words in (("--debug", "analyze", "absent"), ("analyze", "absent", "--debug")):
        done = gpureport(*words)
        assert (done.code, done.error, "Traceback" in done.err) == (3, "unknown_run", True)
    for more, text in (([], "timestamp, uuid\n"), (["--source-kind", "mapped"], log())):
        command = [sys.executable, "-m", "gpureport", "analyze", "-", *more]
        piped = subprocess.run(command, input=text, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (piped.returncode, piped.stderr.startswith("gpureport: -: ")) == (3, True)


@pytest.mark.parametrize("name", ["a.html", "a.pdf"])
@pytest.mark.parametrize("browser", [True, False])
def test_a_page_is_opened_where_there_is_a_browser(
    gpureport: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, *, browser: bool
) -> None:
    opened: list[str] = []

    def launch(path: str) -> int:
        opened.append(path)
        return int(not browser)

    monkeypatch.setattr("click.launch", launch)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.delenv("BROWSER", raising=False)
    monkeypatch.setenv("DISPLAY", ":0" if browser else "")
    done = gpureport("report", str(SAMPLE), "-o", "first.json", "-o", name, "--open")
    assert (done.code, opened, "No browser" in done.err) == (0, [name] * browser, not browser)
    assert (tmp_path / name).is_file()

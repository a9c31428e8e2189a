"""Help, completion, and what a command shows while it takes long."""

import os
import re
import select
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from gpureport.cli.main import COMMANDS
from gpureport.cli.main import gpureport as program_group
from tests.docs.page_runner import install_programs
from tests.support.logs import SAMPLE, SAMPLES
from tests.support.program import Program


@pytest.mark.parametrize("name", COMMANDS)
def test_help_gives_an_example_and_fits_a_terminal(gpureport: Program, name: str) -> None:
    lines = gpureport(name, "--help").out.splitlines()
    begin = " ".join(line.strip() for line in lines[: lines.index("Options:")])
    assert f"Example: gpureport {name}" in begin or name == "completion"
    assert "Example: " in begin
    assert [line for line in lines if len(line) > 80] == []


@pytest.mark.parametrize(("name", "count"), [("report", 48), ("analyze", 45), ("check", 46), ("runs", 1)])
def test_help_lists_the_usual_options_and_help_all_the_rest(gpureport: Program, name: str, count: int) -> None:
    own = ("--help", "--help-all")
    shown = (gpureport(name, asked).out.partition("Options:\n")[2] for asked in own)
    usual, every = ({*re.findall(r"^  (?:-\w, )?(--[\w-]+)", text, re.MULTILINE)} - {*own} for text in shown)
    assert (usual <= every, len(usual) <= 10, len(every) >= count) == (True, True, True)


@pytest.mark.parametrize("name", ["check", "nightly", "baseline set", "compare"])
def test_work_is_a_usual_option_where_rules_need_it(gpureport: Program, name: str) -> None:
    assert "--work N:UNIT" in gpureport(*name.split(), "--help").out


@pytest.fixture
def long_log(tmp_path: Path) -> Path:
    """Return the folder of the test, which holds a log."""
    shutil.copy(SAMPLE, tmp_path / "gpu.csv.gz")
    return tmp_path


def test_help_has_the_order_of_use_and_ways_to_something(gpureport: Program) -> None:
    names = program_group.list_commands(click.Context(program_group))
    first = ["record", "report", "analyze", "compare", "try", "check", "nightly", "fleet"]
    assert names[: len(first)] == first
    done = gpureport()
    assert (done.code, done.err) == (0, "")
    ways = ("gpureport record -- COMMAND", "gpureport report . -o report.html", "gpureport demo", "gpureport --help")
    assert [way for way in ways if way not in done.out] == []


def test_it_names_what_the_folder_holds_in_ten_lines(gpureport: Program, long_log: Path) -> None:
    for folder in ("runs/base", "mlruns", ".neptune", ".gpureport"):
        (long_log / folder).mkdir(parents=True)
    (long_log / "runs/base/run.json").write_text("{}", encoding="utf-8")
    (long_log / "mlflow.db").touch()
    own = "check gpu.csv.gz --fail-on problem --junit tests.xml --export openmetrics=metrics.txt"
    assert gpureport(*own.split()).code == 0
    lines = gpureport().out.splitlines()
    trackers = (f"ingest {name} --list" for name in ("mlflow.db", "mlruns", ".neptune"))
    ways = ("analyze runs/base", "analyze gpu.csv.gz", *trackers, "runs", "demo")
    assert [way for way in ways if not any(line.endswith(f" gpureport {way}") for line in lines)] == []
    assert len(lines) <= 10
    assert lines[1].startswith("1 log (gpu.csv.gz): ")


BASH = shutil.which("bash")


def press_tab(folder: Path, *words: str) -> list[str]:
    """Return what bash offers for the last of the words typed after `gpureport`."""
    code = """
eval "$(gpureport completion bash)"
# compopt works only where a person presses Tab
compopt() { echo "$2"; }
COMP_WORDS=(gpureport "$@"); COMP_CWORD=$#
_gpureport_completion gpureport
printf '%s\\n' "${COMPREPLY[@]}"
"""
    environment = install_programs(folder) | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [BASH or "bash", "--norc", "-c", code, "bash", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder, env=environment)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
def test_bash_offers_what_fits(long_log: Path) -> None:
    offered = {
        ("rep",): ["report"],
        ("compare", "--sel"): ["--select"],
        ("analyze", "--format", "j"): ["json"],
        # files are offered by bash itself
        ("analyze", "g"): ["default"],
    }
    assert {words: press_tab(long_log, *words) for words in offered} == offered


@pytest.mark.usefixtures("long_log")
def test_completion_has_scripts_and_a_path_is_proposed(gpureport: Program) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert f"{shell}_complete" in gpureport("completion", shell).out
    lines = gpureport("completion").out
    assert (len(lines.splitlines()), lines.count(">> ~/.")) == (4, 2)
    done = gpureport("gpu.csv.gz", "--tz", "UTC")
    assert (done.code, "did you mean gpureport analyze gpu.csv.gz --tz UTC?" in done.err) == (2, True)


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
def test_a_new_shell_without_gpureport_on_its_path_stays_quiet(gpureport: Program, tmp_path: Path) -> None:
    (line,) = (each for each in gpureport("completion").out.splitlines() if ".bashrc" in each)
    bash, home = str(BASH), {"HOME": str(tmp_path), "PATH": ""}
    subprocess.run([bash, "-c", line.split(maxsplit=1)[1]], env=home, check=True)
    done = subprocess.run([bash, "-c", ". ~/.bashrc; echo ready"], env=home, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("ready\n", "")


LOG = str(SAMPLES / "healthy")


@pytest.mark.parametrize("flag", ["-q", "--quiet"])
def test_a_quiet_command_says_nothing_but_its_answer_and_errors(gpureport: Program, flag: str) -> None:
    page, store = ("-o", "r.html"), ("--store", "one")
    assert gpureport("report", LOG, *page).err.endswith("r.html\n")
    for words in (("report", LOG, *page, flag), (flag, "ingest", LOG, *store), ("ingest", LOG, *store, flag)):
        done = gpureport(*words)
        assert (done.code, done.out, done.err) == (0, "", ""), words
    assert "  healthy  " in gpureport("runs", *store).out
    for command in (("report", *page), ("ingest", *store)):
        assert gpureport(flag, *command, "absent.csv").err.startswith("gpureport: absent.csv: ")


@pytest.mark.parametrize("flag", ["-v", "--verbose"])
def test_a_verbose_command_accounts_for_every_line_it_read(gpureport: Program, flag: str) -> None:
    usual, verbose = gpureport("analyze", LOG), gpureport("analyze", LOG, flag)
    assert (verbose.out, usual.err) == (usual.out, "")
    assert "lines = " in verbose.err


pty = pytest.importorskip("pty", reason="pseudo-terminals are a matter of Unix")

_RUN = """
import sys, threading, time
# a clock that goes faster or slower stands for longer or shorter work
clock, timer = time.monotonic, threading.Timer
time.monotonic = lambda: clock() / {patience}
def begin(seconds, show):
    if {patience} < 1:
        # a thread of its own may come after the work has ended
        show()
    return timer(seconds * {patience}, show)
threading.Timer = begin
sys.argv = ["gpureport", *{arguments!r}]
from gpureport.cli import main
main()
"""


def watch(long_log: Path, *arguments: str, patience: float = 1e-6) -> tuple[str, str]:
    """Return what a command writes to the terminal on its standard error, and to a pipe on its standard output."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", _RUN.format(patience=patience, arguments=list(arguments))]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, cwd=long_log, env=environment)
    os.close(theirs)
    seen = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            part = os.read(ours, 65536)
        except OSError:
            # Linux ends a terminal that nobody writes to with an error
            break
        if not part:
            break
        seen += part
    os.close(ours)
    out, _ = done.communicate()
    assert done.returncode == 0
    return seen.decode(), out.decode()


def test_long_stages_are_named_and_short_work_shows_nothing(long_log: Path) -> None:
    seen, out = watch(long_log, "report", "gpu.csv.gz", "-o", "a.html")
    assert [stage in seen for stage in ("Reading gpu.csv.gz", "Analysing", "Writing a.html")] == [True] * 3
    assert out == ""
    seen, _ = watch(long_log, "report", "gpu.csv.gz", "-o", "a.html", patience=3600.0)
    assert [stage in seen for stage in ("Reading", "Analysing")] == [False] * 2


@pytest.mark.slow
def test_a_night_shows_its_stages_and_quiet_nothing(long_log: Path) -> None:
    seen, _ = watch(long_log, "nightly", "gpu.csv.gz", "--site", "site", "--date", "2026-03-14")
    assert [text for text in ("Reading gpu.csv.gz", "Writing the pages in site") if text not in seen] == []
    assert watch(long_log, "-q", "report", "gpu.csv.gz", "-o", "a.html")[0] == ""

"""Words that the shell offers on Tab, in a real bash."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpureport.analysis import RULES
from gpureport.cli.options.completion import KINDS
from tests.api.test_startup import SAMPLE
from tests.cli.program import Program

BASH = shutil.which("bash")
HEAVY = ("numpy", "pyarrow", "pandas", "jinja2")


@pytest.fixture
def folder(gpureport: Program, tmp_path: Path) -> Path:
    """A folder with a stored run, a baseline of it and two files, where `gpureport` is a program."""
    log = tmp_path / "gpu.csv.gz"
    shutil.copy(SAMPLE, log)
    (tmp_path / "runs").mkdir()
    assert gpureport("ingest", "gpu.csv.gz", "--name", "base").code == 0
    assert gpureport("baseline", "set", "good", "base").code == 0
    programs = tmp_path / "bin"
    programs.mkdir()
    script = programs / "gpureport"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gpureport "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return tmp_path


def press_tab(folder: Path, *words: str) -> list[str]:
    """Return what bash offers for the last of the words typed after `gpureport`."""
    code = """
eval "$(gpureport completion bash)"
# compopt works only where a person presses Tab
compopt() { :; }
COMP_WORDS=(gpureport "$@"); COMP_CWORD=$#
_gpureport_completion gpureport
printf '%s\\n' "${COMPREPLY[@]}"
"""
    environment = os.environ | {"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [BASH or "bash", "--norc", "-c", code, "bash", *words],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env=environment,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("rep",), ["report"]),
        (("compare", "--sel"), ["--select"]),
        (("explain", "therm"), ["thermal_throttle"]),
        (("explain", "rec"), ["recording"]),
        (("analyze", "--ignore", "zomb"), ["zombie_memory"]),
        (("check", "base", "--fail-on", "prob"), ["problem"]),
        (("check", "base", "--baseline", "goo"), ["good"]),
        (("runs", "show", ""), ["base"]),
        (("baseline", "set", "new", "b"), ["base", "bin"]),
        (("analyze", "g"), ["gpu.csv.gz"]),
        (("report", "b"), ["base", "bin"]),
        (("nosuch", "x"), []),
    ],
    ids=" ".join,
)
def test_bash_offers_what_fits(folder: Path, words: tuple[str, ...], offered: list[str]) -> None:
    """Commands, options, checks, severities, runs, baselines and files are offered where each of them fits."""
    assert press_tab(folder, *words) == offered


def test_every_check_is_offered() -> None:
    """The names for the shell are those of the rules."""
    assert sorted(KINDS) == sorted(kind for rule in RULES for kind in rule.kinds)


@pytest.mark.parametrize("words", ["explain i", "analyze --select i", "runs show b", "report b", "baseline rm g"])
def test_a_tab_loads_nothing_heavy(folder: Path, words: str) -> None:
    """Runs and checks are offered without NumPy and Arrow."""
    code = (
        "import sys\nfrom gpureport.cli import main\ntry: main()\nexcept SystemExit: pass\n"
        f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    environment = {"COMP_WORDS": f"gpureport {words}", "COMP_CWORD": str(len(words.split()))}
    environment |= {"_GPUREPORT_COMPLETE": "bash_complete"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env=os.environ | environment | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert done.stdout
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script(gpureport: Program, shell: str) -> None:
    """The script asks gpureport for the words of its own shell."""
    assert f"{shell}_complete" in gpureport("completion", shell).out


def test_the_line_that_installs_it_is_printed(gpureport: Program) -> None:
    """Without a shell, one line for each is printed."""
    done = gpureport("completion")
    assert len(done.out.splitlines()) == 4
    assert done.out.count(">> ~/.") == 2


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_a_new_shell_without_gpureport_on_its_path_stays_quiet(gpureport: Program, tmp_path: Path) -> None:
    """As in a terminal in which the virtual environment has not been activated."""
    (line,) = (each for each in gpureport("completion").out.splitlines() if ".bashrc" in each)
    bash = str(shutil.which("bash"))
    home = {"HOME": str(tmp_path), "PATH": ""}
    subprocess.run([bash, "-c", line.split(maxsplit=1)[1]], env=home, check=True)
    done = subprocess.run([bash, "-c", ". ~/.bashrc; echo ready"], env=home, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("ready\n", "")

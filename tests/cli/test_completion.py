"""Words that the shell offers on Tab, in a real bash."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.logs import SAMPLE
from tests.cli.program import Program

BASH = shutil.which("bash")
HEAVY = ("numpy", "pyarrow", "pandas", "jinja2")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a log, where `gpureport` is a program."""
    shutil.copy(SAMPLE, tmp_path / "gpu.csv.gz")
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
compopt() { echo "$2"; }
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
def test_bash_offers_what_fits(folder: Path) -> None:
    offered = {
        ("rep",): ["report"],
        ("compare", "--sel"): ["--select"],
        ("analyze", "--format", "j"): ["json"],
        # files are offered by bash itself
        ("analyze", "g"): ["default"],
    }
    assert {words: press_tab(folder, *words) for words in offered} == offered


@pytest.mark.parametrize("words", ["ana", "runs sh", "report b"])
def test_a_tab_loads_nothing_heavy(folder: Path, words: str) -> None:
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
    assert f"{shell}_complete" in gpureport("completion", shell).out


def test_the_line_that_installs_it_is_printed(gpureport: Program) -> None:
    done = gpureport("completion")
    assert len(done.out.splitlines()) == 4
    assert done.out.count(">> ~/.") == 2


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_a_new_shell_without_gpureport_on_its_path_stays_quiet(gpureport: Program, tmp_path: Path) -> None:
    (line,) = (each for each in gpureport("completion").out.splitlines() if ".bashrc" in each)
    bash = str(shutil.which("bash"))
    home = {"HOME": str(tmp_path), "PATH": ""}
    subprocess.run([bash, "-c", line.split(maxsplit=1)[1]], env=home, check=True)
    done = subprocess.run([bash, "-c", ". ~/.bashrc; echo ready"], env=home, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("ready\n", "")

"""Runs the code blocks of a page as a reader would: in order, in one folder, with the files that the page speaks of.

Blocks of `sh` and `bash` share one shell, blocks of `python` and `sql` run by themselves. A `text` block is what the
command above it prints: its lines must be there, in that order; `…` stands for lines that are left out.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.recorder.stand_in import install_stand_in

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK = "-- the next block --"
_SHELL = ("sh", "bash")
_SQL = "import sys, duckdb; print(duckdb.sql(sys.stdin.read().strip().rstrip(';')))"


class Block(NamedTuple):
    """A code block: the path of its page below the root, its language, and its lines."""

    page: str
    language: str
    text: str


def read_blocks(page: Path) -> list[Block]:
    name = page.relative_to(ROOT).as_posix()
    return [Block(page=name, language=kind, text=text) for kind, text in _BLOCK.findall(page.read_text("utf-8"))]


def _script(block: Block) -> str:
    if block.language in _SHELL:
        return block.text
    reader = {"python": "python -W error -", "sql": f"python -c {shlex.quote(_SQL)}"}[block.language]
    return f"{reader} <<'END OF BLOCK'\n{block.text}END OF BLOCK\n"


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def install(name: str, path: Path, **places: object) -> Path:
    """Put a program of `programs` that stands in for another one where a path says."""
    text = Path(__file__).with_name("programs").joinpath(name).read_text(encoding="utf-8")
    return program(path, text.format(**places) if places else text)


def install_programs(folder: Path) -> dict[str, str]:
    """Put `gpureport`, `python`, a driver to stand in and a job into a folder; return the environment to use them."""
    programs = folder / "bin"
    install_stand_in(programs)
    for name, text in {"gpureport": f"{sys.executable} -m gpureport", "python": sys.executable}.items():
        program(programs / name, f'#!/bin/sh\nexec {text} "$@"\n')
    (folder / "train.py").write_text("import time\ntime.sleep(0.5)\n")
    program(folder / "train.sh", "#!/bin/sh\nsleep 0.5\n")
    return {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder),
        "STAND_IN_PAST": "yes",
    }


def run_blocks(blocks: Sequence[Block], folder: Path) -> list[str]:
    """Run blocks of one page in a folder; return what each printed. Any that fails ends the run with its error."""
    script = f"\necho {shlex.quote(_MARK)}\n".join(_script(block) for block in blocks)
    words = ["bash", "-e", "-o", "pipefail", "-c", script]
    environment = install_programs(folder)
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-600:]}\n{done.stderr}"
    return done.stdout.split(f"{_MARK}\n")


def find_missing_line(shown: str, printed: str) -> str | None:
    """Return the first line of a text block that a command did not print after those before it."""
    lines = iter(line.rstrip() for line in printed.splitlines())
    wanted = [line.rstrip() for line in shown.splitlines() if line.strip() not in ("", "…")]
    return next((line for line in wanted if not any(line == each for each in lines)), None)

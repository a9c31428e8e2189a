"""The roads of docs/contributing, followed to the letter in a copy of the checkout."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "contributing" / "README.md"
COPIED = ("docs", "gpureport", "sample_logs", "templates", "tests", "pyproject.toml", "README.md")
_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_SHOWS = {
    "check": ("1 passed", "Hot GPU memory", "hot GPU memory, 3 min 58 s"),
    "log form": ("3 lines = 2 kept + 1 rejected", "71.5, null"),
    "figure": ("gpu_module_power_watts", "688.5"),
    "section": ("TEMPERATURES",),
    "command": ("gpu:3  NVIDIA A10G",),
}
"""What the commands of a road print in the end."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tmp_path / name)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("road", _SHOWS)
def test_a_road_works_to_the_letter(road: str, checkout: Path) -> None:
    printed = "".join(follow(read_roads()[road], checkout))
    assert [text for text in _SHOWS[road] if text not in printed] == [], printed
    run("python -m ruff check --no-cache gpureport tests", checkout)


def read_roads() -> dict[str, str]:
    """Return the parts of the page that say how to add something, by what that is; each of them is followed."""
    parts = re.split(r"^## Add an? (.*)\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert {*parts[1::2]} == {*_SHOWS}
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def follow(road: str, checkout: Path) -> Iterator[str]:
    """Do what a road says, block by block; yield what its commands print."""
    for language, name, content in _BLOCK.findall(road):
        if language == "sh":
            yield run(content, checkout)
        elif language == "diff":
            change(checkout / name, content)
        elif name:
            target = checkout / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content, encoding="utf-8")


def run(commands: str, checkout: Path) -> str:
    script = "set -e\n" + "".join(
        f'{name}() {{ "{sys.executable}" {module} "$@"; }}\n'
        for name, module in (("python", ""), ("gpureport", "-m gpureport"))
    )
    done = subprocess.run(
        ["bash", "-c", script + commands],  # noqa: S607 - the shell of the machine
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def change(file: Path, difference: str) -> None:
    """Apply a difference, whose old lines a file must hold just once."""
    lines = difference.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line[0] in " -")
    after = "".join(line[1:] for line in lines if line[0] in " +")
    text = file.read_text(encoding="utf-8")
    assert text.count(before) == 1, f"{file.name} holds {text.count(before)} times:\n{before}"
    file.write_text(text.replace(before, after), encoding="utf-8")

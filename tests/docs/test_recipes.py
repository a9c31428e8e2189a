"""Each recipe of docs/contributing, followed to the letter in a copy of the checkout."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONTRIBUTING = ROOT / "docs" / "contributing"
COPIED = ("docs", "gpureport", "sample_logs", "templates", "tests", "pyproject.toml", "README.md")
_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_SHOWS = {
    "add-a-detector": ("Hot GPU memory", "hot GPU memory, 3 min 58 s"),
    "add-an-importer": ("gpuwatch", "NVIDIA L4"),
    "add-a-report-section": ("TEMPERATURES",),
    "add-a-metric": ("1 passed",),
}
"""What the commands of a recipe print in the end."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a copy of the checkout that may be changed."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tmp_path / name)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("recipe", _SHOWS)
def test_a_recipe_works_to_the_letter(recipe: str, checkout: Path) -> None:
    """Files are written, lines added and commands run in the order of the page, and show what was added."""
    printed = "".join(follow(CONTRIBUTING / f"{recipe}.md", checkout))
    assert [text for text in _SHOWS[recipe] if text not in printed] == [], printed
    tidy = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", "gpureport", "tests"],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=False,
    )
    assert tidy.returncode == 0, tidy.stdout


def test_every_recipe_is_tried() -> None:
    """A page beside the index is a recipe, and each is followed above."""
    assert {page.stem for page in CONTRIBUTING.glob("*.md")} - {"README"} == set(_SHOWS)


def follow(page: Path, checkout: Path) -> Iterator[str]:
    """Do what a page says, block by block; yield what its commands print."""
    for language, name, content in _BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "sh":
            yield run(content, checkout)
        elif language == "diff":
            change(checkout / name, content)
        elif name:
            target = checkout / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content, encoding="utf-8")


def run(commands: str, checkout: Path) -> str:
    """Return what commands print, each of which must end with 0."""
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

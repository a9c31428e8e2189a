"""Recipes and roads: workflows for GitHub with a stand-in, and docs/contributing followed to the letter."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # its stubs are not among the tools

from tests.docs.ci_bench import (
    HOT,
    NIGHTS,
    PERSON,
    RECIPES,
    RUNS,
    Bench,
    Night,
    count_runs,
    find_faults,
    only_block,
    workspace,
)
from tests.docs.test_pages import blocks

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "contributing" / "README.md"
COPIED = ("docs", "gpureport", "sample_logs", "templates", "tests", "pyproject.toml", "README.md")
_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_SHOWS = {
    "check": ("1 passed", "Hot GPU memory", "hot GPU memory, 3 min 58 s"),
    "log format": ("4 lines = 2 kept + 2 rejected", "71.5, null"),
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
    words = ["bash", "-c", script + commands]
    given = os.environ | {"PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"}
    done = subprocess.run(words, cwd=checkout, env=given, capture_output=True, text=True, check=False)
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


_WHOLE = slice(None)
NIGHTLY, PULL_REQUEST = blocks(RECIPES / "github-actions.md", "yaml")
"""The workflows for GitHub."""
SET_NIGHTLY, SET_PULL_REQUEST = blocks(RECIPES / "github-actions.md", "bash")
"""How the baseline of each is set."""


def read_steps(workflow: str = NIGHTLY) -> list[dict[str, Any]]:
    content: Any = yaml.safe_load(workflow)
    # `on` is true in YAML 1.1
    assert "workflow_dispatch" in content[True]
    fields = [each["cron"].count(" ") for each in content[True].get("schedule", ())]
    assert fields == ([4] if workflow == NIGHTLY else [])
    (job,) = content["jobs"].values()
    steps: list[dict[str, Any]] = job["steps"]
    return steps


def run_github(bench: Bench, night: Night, part: slice = _WHOLE, rule: str = "--fail-on problem") -> int:
    """Run the job of a night, or a part of its steps, as its runner would; return its exit code."""
    steps = read_steps()[part]
    for step in steps:
        step["run"] = step.get("run", "").replace("--fail-on problem", rule)
    return run_steps(bench, night, steps)


_BY_HAND, _PULL_REQUEST = "workflow_dispatch", "pull_request"
_NOT_BY_HAND = "always() && github.event_name != 'workflow_dispatch'"
_CONDITIONS = {"always()", _NOT_BY_HAND}


def run_steps(bench: Bench, night: Night, steps: Sequence[dict[str, Any]], event: str = _PULL_REQUEST) -> int:
    """Run steps as the runner of GitHub would on an event; return the exit code of the first that fails."""
    place = workspace(bench.folder / f"workspace-{night.number}", night)
    code, path = 0, place / "path"
    path.touch()
    for step in steps:
        uses, given = step.get("uses", "").partition("@")[0], step.get("with", {})
        condition = step.get("if")
        if (code and condition not in _CONDITIONS) or (condition == _NOT_BY_HAND and event == _BY_HAND):
            continue
        if uses == "actions/checkout" and given:
            remote = f"file://{bench.folder}/remote.git"
            words = ["git", "clone", "-q", "--depth", "1", "--branch", given["ref"], remote, given["path"]]
            bench.run_all([words], place)
        elif uses == "actions/upload-artifact" and (place / given["path"]).exists():
            kept = bench.folder / f"{given['name']}-{night.number}"
            if (place / given["path"]).is_dir():
                shutil.copytree(place / given["path"], kept)
            else:
                kept.mkdir()
                shutil.copy(place / given["path"], kept)
        elif uses == "actions/upload-pages-artifact":
            shutil.copytree(place / given["path"], bench.folder / "published", dirs_exist_ok=True)
        elif step.get("run"):
            variables = {"GITHUB_SHA": f"{night.number}abcdef0123", "GITHUB_STEP_SUMMARY": str(place / "summary.md")}
            variables["GITHUB_PATH"] = str(path)
            folder = place / step.get("working-directory", ".")
            words = ["bash", "-e", "-c", step["run"]]
            done = bench.run(words, night, folder, path.read_text().splitlines(), **variables)
            code = code or done.returncode
    assert path.read_text() in {f"{place}/.venv/bin\n", ""}
    return code


def begin_history(bench: Bench) -> Path:
    """Make the branch of the history as the page says, and return a clone of the repository."""
    clone = bench.folder / "clone"
    commands = ("git init -q --bare -b main remote.git", "git clone -q remote.git clone")
    bench.run_all([command.split() for command in commands], bench.folder)
    commit = ["git", "commit", "-q", "--allow-empty", "-m", "Begin"]
    bench.run_all([commit, ["git", "push", "-q", "origin", "HEAD"]], clone, **PERSON)
    begin = only_block("github-actions", "sh")
    bench.run_all([["sh", "-e", "-c", begin]], clone, **PERSON)
    return clone


def clone_history(bench: Bench) -> Path:
    bench.run_all([["git", "clone", "-qb", "gpu-history", "remote.git", "end"]], bench.folder)
    return bench.folder / "end"


@pytest.mark.slow
def test_github(bench: Bench) -> None:
    begin_history(bench)
    assert [run_github(bench, night) for night in NIGHTS] == [0, 0, 3, 1, 9]
    assert count_runs(clone_history(bench) / ".gpureport") == RUNS
    summaries = [(bench.folder / f"workspace-{night.number}" / "summary.md").read_text() for night in NIGHTS]
    verdicts = [text.split("## gpureport nightly ")[1].split(" (")[0].split(":")[0] for text in summaries]
    assert verdicts == ["PASSED", "PASSED", "NOT ASSESSED", "FAILED", "PASSED"]
    published = bench.folder / "published"
    assert "No data." in (published / "index.html").read_text()
    assert len(list((published / "nights").glob("*.html"))) == 4
    assert len(list((bench.folder / "end" / "site" / "nights").glob("*.html"))) == 4


@pytest.mark.slow
def test_github_first_night_without_data(bench: Bench) -> None:
    begin_history(bench)
    assert [run_github(bench, night) for night in (NIGHTS[2], replace(NIGHTS[0], number=3))] == [3, 0]
    assert count_runs(clone_history(bench) / ".gpureport") == [0, 1]
    assert "No data." in (bench.folder / "published" / "index.html").read_text()


@pytest.mark.slow
def test_github_baseline(bench: Bench) -> None:
    clone = begin_history(bench)
    page = (RECIPES.parent / "nightly.md").read_text()
    (rule,) = re.findall(r"replace `--fail-on problem` in the recipes with `(.*?)`", " ".join(page.split()))
    nights = [replace(NIGHTS[0], number=number) for number in range(4)]
    assert [run_github(bench, night, rule=rule) for night in nights[:3]] == [4, 4, 4]
    bench.run_all([["bash", "-e", "-c", SET_NIGHTLY]], clone, RUNS="0 1 2", **PERSON)
    assert run_github(bench, nights[3], rule=rule) == 0
    assert run_github(bench, replace(NIGHTS[3], number=4), rule=rule) == 1
    summaries = [(bench.folder / f"workspace-{number}" / "summary.md").read_text() for number in (0, 3, 4)]
    lines = [next(line for line in text.splitlines() if "| no new warning |" in line) for text in summaries]
    assert [line.split("|")[1].strip(" *") for line in lines] == ["not assessed", "passed", "failed"]


@pytest.mark.slow
def test_github_jobs_that_push_at_once(bench: Bench) -> None:
    begin_history(bench)
    keep = next(place for place, step in enumerate(read_steps()) if "git push" in step.get("run", ""))
    for night in NIGHTS[:2]:
        assert run_github(bench, night, slice(keep)) == 0
    with ThreadPoolExecutor() as runners:
        ended = list(runners.map(lambda night: run_github(bench, night, slice(keep, None)), NIGHTS[:2]))
    assert ended == [0, 0]
    end = clone_history(bench)
    assert count_runs(end / ".gpureport") == RUNS[:2]
    bench.run_all([["gpureport", "nightly", "--site", "site"]], end)
    index = (end / "site" / "index.html").read_text()
    reports = [f"nights/{path.name}" for path in (end / "site" / "nights").glob("*.html")]
    assert len(reports) == 2
    assert all(name in index for name in reports)


@pytest.mark.slow
def test_github_pull_request(bench: Bench) -> None:
    clone, steps = begin_history(bench), read_steps(PULL_REQUEST)
    nights = [replace(NIGHTS[0], number=number) for number in range(4)]
    assert [run_steps(bench, night, steps, _BY_HAND) for night in nights[:3]] == [0, 0, 0]
    assert run_steps(bench, Night(number=9), steps) == 4
    (clone / "run-old").mkdir()
    bench.run_all([["bash", "-e", "-c", SET_PULL_REQUEST]], clone, RUNS="0 1 2", **PERSON)
    checked = [nights[3], Night(number=4, played=HOT), Night(number=5, played=None), Night(number=6, trained=9)]
    for night in checked:
        shutil.copytree(clone / ".gpureport", bench.folder / f"workspace-{night.number}" / ".gpureport")
    assert [run_steps(bench, night, steps) for night in checked] == [0, 1, 3, 9]
    verdicts = [(bench.folder / f"workspace-{number}" / "summary.md").read_text().split()[3] for number in (3, 4, 5)]
    assert verdicts == ["PASSED", "FAILED:", "NOT"]
    assert (bench.folder / "rules-4" / "gpu.xml").is_file()
    assert "main → " in (bench.folder / "report-4" / "report.html").read_text()


@pytest.mark.slow
def test_github_workflow_is_valid(tmp_path: Path) -> None:
    (shown,) = blocks(RECIPES.parent / "publish.md", "yaml")
    for step in [*read_steps(), *read_steps(PULL_REQUEST), *yaml.safe_load(shown)]:
        assert ("uses" in step) != ("run" in step)
        assert step.get("if", "always()") in _CONDITIONS
        assert re.fullmatch(r"actions/[a-z-]+@v\d+", step.get("uses", "actions/none@v1"))
    workflow = tmp_path / "nightly.yml"
    assert "runs-on" in find_faults("github-workflows", workflow, NIGHTLY.replace("runs-on", "runs_on"))
    assert find_faults("github-workflows", workflow, NIGHTLY + textwrap.indent(shown, "      ")) == ""
    assert find_faults("github-workflows", workflow, PULL_REQUEST) == ""
